#!/usr/bin/env python3
"""Keep what a finished experiment gave in docs/results, and put its tables into the pages that show them.

    python scripts/record.py read_before_thaw    from results/outputs/read_before_thaw
    python scripts/record.py                     the pages alone, from what docs/results holds

docs/results/<experiment> gets runs.csv, tables as .md and .csv, figures as .png and .csv, and record.json, which says
when, with what and on what. A page names what it shows, and everything up to the closing line is written here:

    <!-- table: read_before_thaw/draws_way -->
    <!-- notes: read_before_thaw/draws_way -->
    <!-- end -->

tests/test_documents.py compares pages and records.
"""

import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.errors import UserError
from thaw.core.files import write_json, write_text
from thaw.core.runtime import run_step
from thaw.outputs.report import provenance

HOME = Path(__file__).resolve().parents[1]
RECORDS = HOME / "docs/results"
PAGES = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
KEPT = {"tables": ("md", "csv"), "figures": ("png", "csv")}
SHOWN = re.compile(r"(<!-- (table|notes): (\w+)/(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def record(experiment: str) -> None:
    """Copy an experiment's outputs from results into its record. Raises UserError where it is not finished."""
    made, kept = HOME / "results/outputs" / experiment, RECORDS / experiment
    if not (made / "report.html").exists():
        raise UserError(f"{made} has no report.html; run the experiment first")
    shutil.rmtree(kept, ignore_errors=True)
    for folder, endings in KEPT.items():
        for path in sorted((made / folder).glob("*")) if (made / folder).is_dir() else ():
            if path.suffix[1:] in endings:
                (kept / folder).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, kept / folder / path.name)
    shutil.copyfile(made / "runs.csv", kept / "runs.csv")
    write_json(kept / "record.json", circumstances(made / "runs.csv"))


def circumstances(runs: Path) -> dict:
    """Return how many runs an experiment has, from when, and on what machines with which versions."""
    import pandas as pd

    frame = pd.read_csv(runs, keep_default_na=False)
    made = provenance.circumstances(frame[(frame["kind"] == "run") & (frame["missing"] == "")], HOME / "results")
    dates = sorted(run["date"] for run in made)
    facts = {
        what: {value: len(folders) for value, folders in having.items()}
        for what, having in provenance.values(made).items()
    }
    return {"runs": len(made), "from": dates[0], "to": dates[-1], "facts": facts}


def with_records(page: str) -> str:
    """Return a page's text with the tables and notes that it names."""
    return SHOWN.sub(lambda match: match[1] + "\n" + part(match[3], match[4], match[2]) + "\n" + match[5], page)


def part(experiment: str, table: str, kind: str) -> str:
    """Return the rows of a recorded table as Markdown, or its notes."""
    lines = (RECORDS / experiment / "tables" / f"{table}.md").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith("|" if kind == "table" else "- "))


def main() -> None:
    """Record the experiments that are named, then write the pages."""
    for experiment in sys.argv[1:]:
        record(experiment)
        print(f"wrote docs/results/{experiment}")
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_records(before)
        if after != before:
            write_text(page, after)
            print(f"wrote {page.relative_to(HOME)}")


if __name__ == "__main__":
    run_step(main)
