"""Tables and figures on the report's page, from their JSON: number, content, files, texts to copy, points."""

import base64
import gzip
import itertools
import shlex
from pathlib import Path

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.failed_outputs import reason
from thaw.core.runtime import log
from thaw.decision import record
from thaw.declarations.output_kind import FORMATS, Requirement
from thaw.declarations.outputs import OUTPUTS
from thaw.outputs.frame.result_links import cell_anchor, relative
from thaw.outputs.render.table_formats import to_markdown, to_tex
from thaw.outputs.render.typed_table import Table
from thaw.words import wording

RECORDS = {  # what an output is drawn from besides runs, and its name in print
    Requirement.PROBES: "probes",
    Requirement.MERGES: "merges",
}
COPYABLE = {"TeX": to_tex, "Markdown": to_markdown}
COPIED = 60_000  # letters of a text that the page holds for a button that copies it
ON_DEMAND = 200_000  # bytes from which on a picture is packed, and drawn when it is asked for


def numbered(outputs: list[dict], folder: Path, synthetic: bool, tables, labels: dict) -> list[dict]:
    """Return the outputs with number, content and files: a table as such, a figure's SVG as a data URL.

    An output that could not be drawn has no content, and the reason in `failed`. Args: tables: counter of the page's
    tables; labels of the spec.
    """
    figures, shown = itertools.count(1), []
    for output in outputs:
        word, count = ("Table", tables) if output["step"] == "table" else ("Figure", figures)
        path = layout.output(folder, output["step"], output["id"])
        item = {**output, "word": word, "number": next(count), "synthetic": synthetic, "long": False}
        item |= {"files": shlex.quote(str(path)), "links": links(path, output, folder), "copies": []}
        item["failed"] = reason(path.with_suffix(""))
        if item["failed"]:
            log(f"{word} {item['number']}, {output['id']}, is a gap: {item['failed']}")
        elif word == "Table":
            table = Table.read(path.with_suffix(".json"))
            copies = [(name, text) for name, form in COPYABLE.items() if len(text := form(table)) <= COPIED]
            item |= {"table": table, "long": table.sentences, "copies": copies}
        else:
            content = record.read_output(path.with_suffix(".json"))
            item |= picture(_bytes(path)) | {"points": points(content, labels)}
        shown.append(item)
    return shown


def links(path: Path, output: dict, page_folder: Path) -> list[tuple[str, str]]:
    """Return (format, link) of the files of an output, and where the probes or merges behind it are listed.

    Args: its declared file; its entry of the report's spec.
    """
    there = ((name, path.with_suffix(ending)) for ending, name in FORMATS[output["step"]].items() if name != "HTML")
    files = [(name, relative(file, page_folder)) for name, file in there if file.exists()]
    records = [name for need, name in RECORDS.items() if need in OUTPUTS[output["kind"]].needs]
    return files + [(name, "runs.html#records") for name in records[:1]]


def picture(svg: bytes) -> dict:
    """Return a picture as a data URL (`image`), or where it is large packed (`packed`)."""
    if len(svg) < ON_DEMAND:
        return {"image": "data:image/svg+xml;base64," + base64.b64encode(svg).decode(), "packed": ""}
    return {"image": "", "packed": base64.b64encode(gzip.compress(svg, mtime=0)).decode()}


def points(content: dict, labels: dict) -> list[dict]:
    """Return the points of a figure: place in per cent of its width and height, text, anchor. Args: its JSON."""
    shown = []
    for point in content["points"]:
        row = {"kind": "run", **content["records"][point["record"]]}
        place = {name: point[name] for name in ("left", "top")} | {name: row[name] for name in ("strategy", "task")}
        shown.append(place | {"text": _text(row, labels), "anchor": cell_anchor(row["task"], row)})
    return shown


def _text(row: dict, labels: dict) -> str:
    """Return what a point is, in words."""
    name = wording.strategy_name(labels, row["strategy"], row["variant"])
    score = wording.number(row["mean"]) + wording.spread(row["sd"], row["seeds"])
    costs = f"{wording.seconds(row['price'])}, {wording.short(row['flops'])} FLOPs"
    front = "; on the Pareto front" * bool(row.get("pareto"))
    return f"{name}, {wording.task_name(labels, row['task'])}: {score}; {costs}{front}"


def _bytes(path: Path) -> bytes:
    """Read a file; a missing one is a UserError."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run the step that makes it") from error
