#!/usr/bin/env python3
"""Keep what a finished experiment gave in docs/results, and put its tables into the pages that show them.

    python scripts/record.py read_before_thaw    from results/outputs/read_before_thaw
    python scripts/record.py                     the pages alone, from what docs/results holds

docs/results/<experiment> gets tables as .md and .csv, figures as .png and .csv, and
  runs.csv     the main test score and the costs of each run
  scores.csv   its main score on every split, its warnings and what extraction cost
  record.json  when, with what and on what it was made
and of an experiment in REPLAYED every row's answer, see answers.py; then run replay.py.
A page names what it shows, and everything up to the closing line is written here:

    <!-- table: read_before_thaw/draws_way -->
    <!-- notes: read_before_thaw/draws_way -->
    <!-- scores: grid/small -->
    <!-- times: read_before_thaw_cost/linear_probe_all_layers -->
    <!-- records: all/circumstances -->
    <!-- end -->

A note that two tables of a page share is written below the first of them, but for what the marks of a table mean.
`scores` is a table of a few tasks and strategies of runs.csv, which SMALL names; `times` says how many times as much
full fine-tuning takes as a strategy; `records` lists all records: when, with which code and on what processor each was
made, and the pages that show it.

tests/test_documents.py compares pages and records.
"""

import re
import shutil
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

import answers
from thaw.core.errors import UserError
from thaw.core.failed_outputs import reason
from thaw.core.files import read_json, write_json, write_text
from thaw.core.runtime import run_step
from thaw.declarations.decision import FEWEST_OF_INTERVAL
from thaw.outputs.render.typed_table import ALIKE
from thaw.outputs.report import provenance
from thaw.outputs.tables.protocol_notes import MARKS as OF_PAPERS
from thaw.outputs.wording import MISSING, WARNINGS
from thaw.schema.catalogue import Catalogue, shipped

HOME = Path(__file__).resolve().parents[1]
RECORDS = HOME / "docs/results"
PAGES = [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]
REPLAYED = {"grid"}
KEPT = {"tables": ("md", "csv"), "figures": ("png", "csv")}
COLUMNS = ["task", "subset", "encoder", "strategy", "variant", "seed", "split", "value"]
COSTS = ["trained_parameters", "train_seconds", "peak_memory_mb"]
FURTHER = ["role", "flags", "extraction_seconds", "extraction_whole_seconds", "price_seconds"]
MARKS = {"ᵛ", ALIKE, MISSING, *WARNINGS, *OF_PAPERS.values()}
SHOWN = re.compile(r"(<!-- (table|notes|answer|scores|times|records): (\w+)/(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What pages show of a record: its tasks and strategies by their ids, with the names that they print. A point of a sweep
# follows its strategy after a space.
SMALL = {
    "small": {
        "tasks": {
            "sst2_sentences": "SST-2<br>accuracy",
            "trec6": "TREC-6<br>accuracy",
            "conll2003": "CoNLL-2003<br>span F1",
            "stsb": "STS-B<br>Pearson r",
        },
        "strategies": {
            "bag_of_words": "*Bag of words, no encoder*",
            "linear_probe": "Linear probe, last layer",
            "linear_probe_all_layers": "Linear probe, all layers",
            "top_k k02": "Top 2 of 6 layers",
            "full": "Full fine-tuning",
        },
    }
}


def record(experiment: str) -> None:
    """Copy an experiment's outputs from results into its record. Raises UserError where it is not finished."""
    made, kept = HOME / "results/outputs" / experiment, RECORDS / experiment
    if not (made / "report.html").exists():
        raise UserError(f"{made} has no report.html; run the experiment first")
    for path in sorted(made.glob("*/*.csv")):
        if why := reason(path.with_suffix("")):
            raise UserError(f"{path.with_suffix('')} could not be drawn: {why}; fix that and run again")
    shutil.rmtree(kept, ignore_errors=True)
    for folder, endings in KEPT.items():
        for path in sorted((made / folder).glob("*")) if (made / folder).is_dir() else ():
            if path.suffix[1:] in endings:
                (kept / folder).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, kept / folder / path.name)
    frame = pd.read_csv(made / "runs.csv", dtype=str, keep_default_na=False)
    write_text(kept / "runs.csv", main_scores(frame).to_csv(index=False))
    write_text(kept / "scores.csv", frame.loc[frame["main"] == "True", COLUMNS + FURTHER].to_csv(index=False))
    write_json(kept / "record.json", circumstances(frame))
    if experiment in REPLAYED:
        answers.write(experiment, HOME / "results")


def main_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the main test scores of an experiment's runs.csv and their costs, one row for each run and test split."""
    return frame.loc[(frame["main"] == "True") & (frame["role"] == "test"), COLUMNS + COSTS]


def circumstances(frame: pd.DataFrame) -> dict:
    """Return how many runs an experiment has, from when, and on what machines with which versions."""
    made = provenance.circumstances(frame[(frame["kind"] == "run") & (frame["missing"] == "")], HOME / "results")
    dates = sorted(run["date"] for run in made)
    facts = {
        what: {value: len(folders) for value, folders in having.items()}
        for what, having in provenance.values(made).items()
    }
    return {"runs": len(made), "from": dates[0], "to": dates[-1], "facts": facts}


def with_records(page: str) -> str:
    """Return a page's text with the tables and notes that it names.

    A note that it already has is left out, unless it says what a mark of the table means.
    """
    noted: list[str] = []

    def written(match: re.Match) -> str:
        kind, experiment, name = match[2], match[3], match[4]
        own = {"scores": lambda: small(experiment, **SMALL[name]), "times": lambda: times(experiment, name)}
        own |= {"records": all_records}
        rows = own[kind]() if kind in own else part(experiment, name, kind)
        if kind == "notes":
            lines = [line for line in rows.splitlines(keepends=True) if line not in noted or MARKS & set(line)]
            noted.extend(lines)
            rows = "".join(lines)
        return match[1] + "\n" + rows + "\n" + match[5]

    return SHOWN.sub(written, page)


def part(experiment: str, table: str, kind: str) -> str:
    """Return the rows of a recorded table as Markdown, its notes, or an answer as the command line prints it."""
    lines = (RECORDS / experiment / "tables" / f"{table}.md").read_text(encoding="utf-8").splitlines(keepends=True)
    if kind == "answer":
        return "".join(lines)
    return "".join(line for line in lines if line.startswith("|" if kind == "table" else "- "))


def small(experiment: str, tasks: dict[str, str], strategies: dict[str, str]) -> str:
    """Return strategies by tasks as Markdown: test scores × 100 with their deviation over draws, and the costs.

    Costs are medians over the runs of a task, averaged over the tasks. Nothing is bold: nothing is tested here.
    """
    frame = _recorded(experiment, "runs.csv")
    frame = frame[frame["task"].isin(tasks)]
    heading = ["", *tasks.values(), "trainable<br>parameters", "training,<br>seconds", "memory,<br>MiB"]
    lines = [heading, [":--", *["--:"] * (len(heading) - 1)]]
    for point, label in strategies.items():
        strategy, _, variant = point.partition(" ")
        rows = frame[(frame["strategy"] == strategy) & (frame["variant"] == (variant or "base"))]
        scores = [_spread(rows.loc[rows["task"] == task, "value"] * 100) for task in tasks]
        costs = rows.groupby("task")[COSTS].median().mean()
        shown = ["–" if pd.isna(cost) else f"{cost:.1f}" if cost < 10 else f"{cost:,.0f}" for cost in costs]
        lines.append([label, *scores, *shown])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def times(experiment: str, strategy: str) -> str:
    """Return as Markdown, by task, how many times as much full fine-tuning takes as a strategy.

    Of training alone and of memory from runs.csv; of the price from the table of the way to full fine-tuning
    (draws_way), where a record from before 28 November calls it cost_shared, and has test rows in it.
    """
    runs = _recorded(experiment, "runs.csv").drop_duplicates(["task", "strategy", "variant", "seed"])
    runs = runs.pivot_table(index="task", columns="strategy", values=["train_seconds", "peak_memory_mb"])
    way = _recorded(experiment, "tables/draws_way.csv")
    way = way[way["strategy"] == strategy].drop_duplicates("task").set_index("task")
    columns = {
        "Head alone": runs["train_seconds"]["grid_full"] / runs["train_seconds"][strategy],
        "Price": 100 / way["price_share" if "price_share" in way else "cost_shared"],
        "Peak memory": runs["peak_memory_mb"]["grid_full"] / runs["peak_memory_mb"][strategy],
    }
    lines = [["Full fine-tuning takes this many times as much", *columns], [":--", *["--:"] * len(columns)]]
    labels = Catalogue(shipped(HOME))
    for task in sorted(way.index, key=lambda task: -columns["Price"][task]):
        numbers = [
            f"{values[task]:,.0f}" if values[task] >= 10 else f"{values[task]:.1f}" for values in columns.values()
        ]
        lines.append([labels.get("tasks", task, "record").label, *numbers])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _recorded(experiment: str, file: str) -> pd.DataFrame:
    """Return a CSV file of a record, with the ids that its strategies have today."""
    frame, catalogue = pd.read_csv(RECORDS / experiment / file), Catalogue(shipped(HOME))
    return frame.assign(strategy=[catalogue.id_of("strategies", str(name)) for name in frame["strategy"]])


def all_records() -> str:
    """Return as Markdown what each record was made of: pages, runs, days, commits of Thaw and processors."""
    lines = [["record", "shown in", "runs", "made", "code", "processor"], [":--", ":--", "--:", *[":--"] * 3]]
    texts = {
        page: page.read_text(encoding="utf-8") for page in PAGES if page.parent == RECORDS and page.stem != "index"
    }
    for path in sorted(RECORDS.glob("*/record.json")):
        made, name = read_json(path), path.parent.name
        pages = [f"[{page.stem}]({page.name})" for page, text in texts.items() if f"{name}/" in text]
        facts = {what: made["facts"].get(what, {"–": 0}) for what in ("thaw", "machine")}
        code = ["`{}`".format(version.partition("(")[2].rstrip(")") or version) for version in facts["thaw"]]
        processors = [machine.replace("(R)", "").removeprefix("cpu; ") for machine in facts["machine"]]
        days = " to ".join(dict.fromkeys((made["from"], made["to"])))
        row = [f"[{name}]({name}/record.json)", ", ".join(pages), str(made["runs"]), days]
        lines.append([*row, ", ".join(code), ", ".join(processors)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _spread(scores) -> str:
    """Return a mean with its standard deviation; with too few scores, or where one is undefined, a dash."""
    if scores.isna().any() or len(scores) < FEWEST_OF_INTERVAL:
        return "–"
    return f"{scores.mean():.1f} ± {scores.std():.1f}"


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
