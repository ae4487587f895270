"""The files of a table or figure on the report's page: links, texts to copy, the picture and its points."""

import base64
import csv
import gzip
import io
import re
from pathlib import Path

from thaw.declarations.output_kind import FORMATS, Requirement
from thaw.declarations.outputs import OUTPUTS
from thaw.outputs import wording
from thaw.outputs.frame.result_links import cell_anchor, relative

RECORDS = {  # what an output is drawn from besides runs, and its name in print
    Requirement.PROBES: "probes",
    Requirement.MERGES: "merges",
    Requirement.LATENCY: "merges",
}
COPYABLE = ("TeX", "Markdown")
COPIED = 60_000  # letters of a text that the page holds for a button that copies it
ON_DEMAND = 200_000  # bytes from which on a picture is packed, and drawn when it is asked for
_GROUP = re.compile(r'<g id="points((?:\.\d+)+)">(.*?)</g>\s*</g>', re.DOTALL)
_USE = re.compile(r'<use [^>]*?x="([-\d.]+)" y="([-\d.]+)"')


def links(path: Path, step: str, kind: str, page_folder: Path) -> list[tuple[str, str]]:
    """Return (format, link) of the files of an output, and where the probes or merges behind it are listed.

    Args: its declared file; table or figure; its kind.
    """
    there = ((name, path.with_suffix(ending)) for ending, name in FORMATS[step].items() if name != "HTML")
    files = [(name, relative(file, page_folder)) for name, file in there if file.exists()]
    records = [name for need, name in RECORDS.items() if need in OUTPUTS[kind].needs]
    return files + [(name, "examples.html#records") for name in records[:1]]


def copies(path: Path) -> list[tuple[str, str]]:
    """Return (format, text) of what can be copied of a table. Args: its declared file."""
    there = [(name, path.with_suffix(ending)) for ending, name in FORMATS["table"].items() if name in COPYABLE]
    texts = [(name, file.read_text(encoding="utf-8")) for name, file in there if file.exists()]
    return [(name, text) for name, text in texts if len(text) <= COPIED]


def picture(svg: bytes) -> dict:
    """Return a picture as a data URL (`image`), or where it is large packed (`packed`)."""
    if len(svg) < ON_DEMAND:
        return {"image": "data:image/svg+xml;base64," + base64.b64encode(svg).decode(), "packed": ""}
    return {"image": "", "packed": base64.b64encode(gzip.compress(svg, mtime=0)).decode()}


def points(svg: str, numbers: str, labels: dict) -> list[dict]:
    """Return the points of a figure that names them: place in per cent of its width and height, text, anchor.

    Args: the picture, in which a group `points.3.4` has the marks of lines 3 and 4 of the CSV; the CSV; labels of the
    report's spec.
    """
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    rows, named_points = list(csv.DictReader(io.StringIO(numbers))), []
    for lines, group in _GROUP.findall(svg) if box else []:
        for line, (x, y) in zip(lines.split(".")[1:], _USE.findall(group), strict=False):
            row = {"kind": "run", **rows[int(line)]}
            place = {
                "left": _percent(x, box[1]),
                "top": _percent(y, box[2]),
                "strategy": row["strategy"],
                "task": row["task"],
            }
            named_points.append(place | {"text": _text(row, labels), "anchor": cell_anchor(row["task"], row)})
    return named_points


def _percent(value: str, whole: str) -> float:
    return round(100 * float(value) / float(whole), 2)


def _text(row: dict, labels: dict) -> str:
    """Return what a point is, in words."""
    name = wording.strategy_name(labels, row["strategy"], row["variant"])
    mean, sd = (float(row[column] or "nan") for column in ("mean", "sd"))
    score = wording.number(mean) + wording.spread(sd, int(row["seeds"]))
    costs = [wording.seconds(float(row["price"] or "nan")), f"{wording.short(float(row['flops'] or 'nan'))} FLOPs"]
    front = "; on the Pareto front" if row.get("pareto") == "True" else ""
    return f"{name}, {wording.task_name(labels, row['task'])}: {score}; {', '.join(costs)}{front}"
