#!/usr/bin/env python3
"""Write what the experiments of papers need, and how many printed numbers they address, into the pages that show it.

    python scripts/paper_plans.py

plans each experiment of the Makefile's PAPERS as `thaw plan` does, in a minute, and writes what is between

    <!-- plans: needs -->       runs with trials, jobs, store, updates, days of a GPU
    <!-- plans: coverage -->    numbers that a paper prints, and those with an address here
    <!-- end -->

Prepare no data before: sizes are those that the catalogue states. A slow test compares the pages.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.cli.plan_command import readable
from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.core.runtime import run_step
from thaw.core.steps import COMPUTING
from thaw.planning import cost_estimate
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.papers import printed_tables
from thaw.planning.plan import Plan
from thaw.schema.catalogue import Catalogue, shipped

HOME = Path(__file__).resolve().parents[1]
PAGES = {"needs": HOME / "docs/howto/cluster.md", "coverage": HOME / "docs/results/index.md"}
PAPERS = ["peters2019", "lee2019", "wang2019", "wei2022", "houlsby2019", "ulmfit", "kovaleva2019"]
PAPERS += ["sun2019", "xu2020", "sanh2019"]
PAPERS += ["tenney2019", "tenney2019_edge", "jiao2020", "wang_minilm2020", "sung2022"]  # without any address
DAY = 86_400


def plans() -> dict[str, Plan]:
    """Return the plan of each experiment of papers, by name, but for those that need local files."""
    (papers,) = re.findall(r"^PAPERS := (.*)$", (HOME / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    files = {name: str(HOME / f"config/experiments/{name}.yaml") for name in papers.split()}
    by_name = {}
    for name, file in files.items():
        try:
            by_name[name] = load_plan(read_config([file]), HOME, "nothing", [file])
        except UserError as error:  # a dataset of which there are local files alone
            print(f"without {name}: {error}", file=sys.stderr)
    return by_name


def needs(by_name: dict[str, Plan]) -> str:
    """Return a table of what each experiment needs."""
    lines = [
        "| experiment | runs with trials | jobs | store | million updates | GPU days |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for name, plan in by_name.items():
        steps = [(step, key) for step in COMPUTING for key in plan.jobs[step]]
        days = sum(cost_estimate.seconds_on_gpu(plan, step, key) for step, key in steps) / DAY
        trained = [plan.job("train", key) for key in plan.jobs["train"]]
        updates = sum(cost_estimate.training_updates(plan, job.spec, job.store)[0] for job in trained)
        store = readable(sum(store.bytes for store in cost_estimate.stores(plan)))
        jobs = sum(map(len, plan.jobs.values()))
        shown = f"{days:.0f}" if days >= 1 else "less than 1"
        lines.append(f"| `{name}` | {len(plan.runs):,} | {jobs:,} | {store} | {updates / 1e6:,.1f} | {shown} |")
    return "\n".join(lines)


def coverage() -> str:
    """Return a table of the numbers that papers print and of those that have an address."""
    catalogue = Catalogue(shipped(HOME))
    lines = ["| paper | printed numbers | with an address here |", "|:--|--:|--:|"]
    for paper in PAPERS:
        cite, printed, addressed = numbers_with_address(paper, catalogue)
        lines.append(f"| {cite} | {printed} | {addressed} |")
    lines += [
        "",
        "No report counts those of a paper without an address; its file in `config/reference` says why it has none.",
    ]
    return "\n".join(lines)


def written(page: str, kind: str, table: str) -> str:
    """Return a page's text with a table in its place."""
    return re.sub(rf"(<!-- plans: {kind} -->\n).*?(<!-- end -->)", rf"\1\n{table}\n\n\2", page, flags=re.DOTALL)


def main() -> None:
    """Write both tables."""
    for kind, table in (("needs", needs(plans())), ("coverage", coverage())):
        write_text(PAGES[kind], written(PAGES[kind].read_text(encoding="utf-8"), kind, table))
        print(f"wrote {PAGES[kind].relative_to(HOME)}")


def numbers_with_address(paper: str, catalogue: Catalogue) -> tuple[str, int, int]:
    """Return a paper's citation, how many numbers it prints, and how many of them have an address."""
    reference, _ = printed_tables.read(catalogue.folders, paper)
    every = [
        (table, {(number.row, number.column): number for number in printed_tables.printed(table)})
        for table in reference.tables.values()
    ]
    printed = [(one, table, numbers) for table, numbers in every for one in numbers.values() if one.value is not None]
    parts = [_parts(*number) for number in printed]
    return reference.cite, len(printed), sum(bool(of) and all(part.at for part in of) for of in parts)


def _parts(number, table, numbers: dict) -> list:
    """Return the numbers with an address of their own that a number is made of: itself, or those of rows or columns."""
    row, column = table.rows[number.row], table.columns[number.column]
    if number.reason:
        return []
    if row.minus:
        return [part for other in row.minus for part in _parts(numbers[other, number.column], table, numbers)]
    if column.over:
        others = [numbers[number.row, name] for name, other in table.columns.items() if not other.over]
        return [other for other in others if other.value is not None] or others
    return [number]


if __name__ == "__main__":
    run_step(main)
