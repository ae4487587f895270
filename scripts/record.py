#!/usr/bin/env python3
"""Keep what a finished experiment gave in docs/results, and write the tables of the pages from what is kept there.

    python scripts/record.py read_before_thaw    from results/outputs/read_before_thaw
    python scripts/record.py unseen=unseen_s1    adds the runs of results/outputs/unseen_s1 to the record of unseen
    python scripts/record.py                     the pages alone, from what docs/results holds

docs/results/<experiment>.parquet has a row for each run and scored split, with its costs, its flags and every row's
answer (answers.py). Its metadata say when, with what and on what the runs were made. The data of a figure that is named
as its experiment lie beside it. A page names what it shows, and everything up to the closing line is written here:

    <!-- table: grid -->        a table of record_tables.py
    <!-- answer: grid -->       the answer that replay.py writes
    <!-- end -->

tests/test_documents.py compares pages and records.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet

sys.path.insert(0, str(Path(__file__).resolve().parent))

import answers
import joint
import record_tables
from record_names import HOME, RECORDS
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.failed_outputs import reason
from thaw.core.files import atomic_write, write_text
from thaw.core.runtime import run_step
from thaw.outputs.frame.runs_frame import read_runs
from thaw.outputs.report import provenance

PAGES = [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]
SHOWN = re.compile(r"(<!-- (table|answer): (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def record(experiment: str, whole: str) -> None:
    """Write an experiment's record from results, or add to that of a `whole` of which it is a part.

    Raises UserError where it is not finished, or is in the record already.
    """
    results = HOME / "results"
    report = results / layout.file("report", {"experiment": experiment})
    if not report.exists():
        raise UserError(f"there is no {report}; run the experiment first")
    for path in sorted(report.parent.glob("*/*.csv")):
        if why := reason(path.with_suffix("")):
            raise UserError(f"{path.with_suffix('')} could not be drawn: {why}; fix that and run again")
    runs = read_runs(results / layout.file("collect", {"experiment": experiment}))
    lines, about, path = (
        answers.answers(runs, results),
        circumstances(runs, results),
        RECORDS / f"{whole}.parquet",
    )
    if whole != experiment and path.exists():
        lines, about = added(parquet.read_table(path), lines, about, path)
    write(path, lines, about)
    if (drawn := report.parent / f"figures/{whole}.csv").exists():
        write_text(path.with_suffix(".csv"), drawn.read_text(encoding="utf-8"))


def added(before: pa.Table, lines: pd.DataFrame, about: dict, path: Path) -> tuple[pd.DataFrame, dict]:
    """Return a record's lines with more, and what its metadata then say: numbers of runs are summed.

    A baseline is of a task and its rows, so each part has it; the first one stays.
    """
    earlier, old = before.to_pandas(), json.loads(before.schema.metadata[b"record"])
    runs = [name for name in answers.KEYS if name not in ("metric", "value", "flags", "role")]
    known = lines[runs].merge(earlier[runs], on=runs, how="left", indicator=True)["_merge"] == "both"
    lines = lines[~(known & (lines["kind"] == "baseline").to_numpy()).to_numpy()]
    if len(both := earlier.merge(lines[runs], on=runs)):
        raise UserError(
            f"{path} has {both.iloc[0]['strategy']} on {both.iloc[0]['task']} already; it was recorded before"
        )
    facts = {
        what: dict(Counter(old["facts"].get(what, {})) + Counter(about["facts"].get(what, {})))
        for what in old["facts"] | about["facts"]
    }
    dates = {"from": min(old["from"], about["from"]), "to": max(old["to"], about["to"])}
    return pd.concat([earlier, lines], ignore_index=True), {
        "runs": old["runs"] + about["runs"],
        **dates,
        "facts": facts,
    }


def write(path: Path, lines, about: dict) -> None:
    """Write a record. Args: the path of the file; a frame with its rows; what its metadata say."""
    table = pa.Table.from_pandas(lines, preserve_index=False)
    table = table.replace_schema_metadata({b"record": json.dumps(about).encode()})
    with atomic_write(path) as file:  # whole columns as one page: rows repeat
        whole = {"use_dictionary": False, "data_page_size": 1 << 30, "compression": "zstd", "compression_level": 19}
        parquet.write_table(table, file, **whole)


def circumstances(runs, results: Path) -> dict:
    """Return how many runs an experiment has, from when, and on what machines with which versions."""
    made = provenance.circumstances(runs[(runs["kind"] == "run") & (runs["missing"] == "")], results)
    dates = sorted(run["date"] for run in made)
    facts = {
        what: {value: len(folders) for value, folders in having.items()}
        for what, having in provenance.values(made).items()
    }
    return {"runs": len(made), "from": dates[0], "to": dates[-1], "facts": facts}


def with_records(page: str) -> str:
    """Return a page's text with the tables that it names."""

    def shown(match: re.Match) -> str:
        name = match[3]
        made = record_tables.table(name) if match[2] == "table" else (RECORDS / name / "answer.txt").read_text("utf-8")
        return f"{match[1]}\n{made}\n{match[4]}"

    return SHOWN.sub(shown, page)


def main() -> None:
    """Record the experiments that are named, then write the pages."""
    for named in sys.argv[1:]:
        whole, _, part = named.partition("=")
        record(part or whole, whole)
        print(f"wrote docs/results/{whole}.parquet")
    record_tables.draw_sizes(RECORDS / "grid/sizes.svg", "grid_sizes")
    record_tables.draw_sizes(RECORDS / "unseen_sizes.svg", "unseen_sizes")
    record_tables.draw_prices(RECORDS / "unseen.svg")
    joint.draw_pairs(RECORDS / "task_pairs.svg")
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_records(before)
        if after != before:
            write_text(page, after)
            print(f"wrote {page.relative_to(HOME)}")


if __name__ == "__main__":
    run_step(main)
