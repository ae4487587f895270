"""The report: one self-contained page that reads like a paper's results section.

What it reads of its spec (those of the other steps are in the docstrings of `collection` and of each table and figure):
    experiment, title
    outputs      [{id, kind, step, caption, label}] in order; step, table or figure, decides the folder of its file
    labels       {tasks|encoders|heads|subsets|strategies|ensembles: {id: name in print}}
    order        {tasks: [id], strategies: [[strategy, variant]]}
    notes        {encoder: footnote}
    tasks        {id: Task as plain values, defaults filled in}
    encoders     {id: Encoder, likewise}
    heads        {id: HeadConfig without defaults}, those of sets of heads included
    strategies   {id: StrategyConfig without defaults}: those of the experiment, those that they start from, and those
                 whose search they use
    search_seeds the largest number of seeds of a search, only if the experiment sets it
    further_pretraining   {id: FurtherPretrainingConfig without defaults}, only where a strategy starts from one
    store        {dtype, precision, max_gib}; compute {threads}
    first_draws, draw_labels   {subset: the first of the draws that it is one of} and {first: what all are called}, only
                 where an output shows draws together
    preparatory  runs that are planned and not shown: what others start from, trials of searches, runs of baselines
    corpora      {id: {label, licence, cite}}
    references   {key: BibTeX entry}
    left_out     [sentence], only where parts of the experiment were
and of the results: runs.csv, the cards of corpora, encoders and tokens, each run's cost.json, the JSON of tables
and figures, and figures' svg.
"""

import itertools
import shlex
from functools import partial
from pathlib import Path

from thaw.core import layout
from thaw.core.home import release
from thaw.core.runtime import machine_size
from thaw.decision import record
from thaw.declarations import citations
from thaw.declarations.outputs import ADVISING
from thaw.evaluation.result_files import SCORED_TRAINING_ROWS
from thaw.outputs import templates
from thaw.outputs.frame import aggregate, output_data, price
from thaw.outputs.frame.result_links import cell_anchor, relative
from thaw.outputs.frame.runs_frame import CELL, RUN
from thaw.outputs.report import methods, page_tables, provenance
from thaw.outputs.report.shown_outputs import numbered
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import HeadConfig
from thaw.words import answer_text, settings, wording


def page(content: dict, command: str) -> str:
    """Return the report as HTML. Args: what `content` returns; the command before the names of files."""
    return templates.render("report.html.j2", **content, command=command)


def paper(content: dict) -> str:
    """Return the report as LaTeX, which includes the tables and figures of its folder. Args: what `content` returns."""
    return templates.render_tex("paper.tex.j2", **content)


def content(runs, spec: dict, results, folder: Path) -> dict:
    """Return the values of both templates by name, with the content of the outputs' files.

    Args: runs as `read_runs` gives them; spec as above; results: the results folder; folder: the experiment's
    outputs with tables/ and figures/.
    """
    first, labels_of_runs, each_run = spec.get("first_draws", {}), spec["labels"], runs
    spec, runs = _with_draws_named(spec), output_data.together(runs, first)
    labels, summary = spec["labels"], aggregate.summarise(runs, "test", spec["order"])
    columns = aggregate.columns(summary, labels)
    fitted = each_run[each_run["kind"] == "run"]
    present = fitted[fitted["missing"] == ""]
    made_with = provenance.circumstances(present, results)
    metrics = dict.fromkeys(task["metrics"][0] for task in spec["tasks"].values())
    tables = itertools.count(1)
    synthetic = list(dict.fromkeys(column.label for column in columns if column.synthetic))
    linked, answers = partial(_linked, results, folder), _answers(spec, folder)
    return {
        "spec": spec,
        "words": wording,
        "synthetic_tasks": synthetic,
        "counts": (counts := _counts(summary, fitted, present, spec)),
        "draws": output_data.notes(each_run, first),
        "missing": (missing := provenance.missing(each_run, labels_of_runs)),
        "missing_table": page_tables.missing(missing),
        "differences": provenance.differences(made_with),
        "tasks": (tasks := page_tables.tasks(spec, results)),
        "choices": methods.choices(tasks),
        "subsets": methods.subsets(spec),
        "encoders": page_tables.encoders(spec, results),
        "references": spec.get("references", {}),
        "optimizers": _optimizers(present),
        "metric_cites": [citations.METRICS[metric] for metric in metrics if metric in citations.METRICS],
        "heads": methods.entries(spec["heads"], HeadConfig),
        "strategies": (strategies := methods.strategies(spec)),
        "compared": [one for one in strategies if one["shown"]],
        "further_pretraining": methods.entries(spec.get("further_pretraining", {}), FurtherPretrainingConfig),
        "defaults": [{"id": of, "name": of, "settings": lines} for of, lines in settings.defaults().items()],
        "pairs": methods.pairs(summary, spec),
        "baselines": _baselines(summary, labels),
        "answers": [_said(answer) for answer in answers],
        "caution": methods.caution(summary, counts["unit"]),
        "shown": _with_first(numbered(spec["outputs"], folder, bool(synthetic), tables, labels), bool(answers)),
        "cell_files": cell_files(each_run, results, first),
        "unseen": bool((runs["role"] == "unseen").any()),
        "scored_training_rows": SCORED_TRAINING_ROWS,
        "splits": [{**t, "number": next(tables)} for t in page_tables.by_split(runs, summary, columns, labels)],
        "cost": {"table": page_tables.costs(summary, columns, labels), "number": next(tables)},
        "tasks_number": next(tables),
        "extraction": _extraction(present),
        "flagged": provenance.flagged(present, labels_of_runs, linked),
        "values": provenance.values(made_with),
        "release": release(),
        "span": provenance.span(made_with) if made_with else None,
        "written_on": "{cores} cores, {memory_gib:g} GiB of memory".format(**machine_size()),
        "cost_rule": " ".join([wording.COST_RULE, *price.note(present)]),
        "days": sorted(run["date"] for run in made_with),
    }


def _with_draws_named(spec: dict) -> dict:
    """Return the spec whose label of the first of several draws, as which all are shown, is that of all."""
    labels = spec["labels"]
    return spec | {"labels": labels | {"subsets": labels["subsets"] | spec.get("draw_labels", {})}}


def _linked(results, folder: Path, run: str) -> str:
    return relative(Path(results, run, "metrics.json"), folder)


def _answers(spec: dict, folder: Path) -> list[record.TaskAnswer]:
    """Return the answers of the report's own tables of recommendations."""
    ids = [output["id"] for output in spec["outputs"] if output["kind"] in ADVISING]
    files = [layout.output(folder, "table", id).with_suffix(".json") for id in ids]
    return [answer for file in files if file.exists() for answer in record.read_file(file)]


def _said(answer: record.TaskAnswer) -> dict:
    """Return an answer in print: title, metric, headline, score on test with its anchor, sentences."""
    cell = answer.cell_of(answer.decision.taken)
    return {
        "title": answer.title,
        "metric": answer.metric,
        "headline": answer_text.headline(answer),
        "score": answer_text.tested(answer),
        "anchor": cell_anchor(answer.task, {"kind": "run"} | cell) if cell else "",
        "reasons": answer_text.reasons(answer),
        "cheaper": answer_text.cheaper(answer),
    }


def _with_first(shown: list[dict], answered: bool) -> list[dict]:
    """Mark the first figure of scores against costs, which is shown with the answers."""
    pictures = [item["id"] for item in shown if item["kind"] == "cost_figure" and not item["failed"]]
    return [item | {"first": answered and item["id"] in pictures[:1]} for item in shown]


def bibliography(content: dict) -> str:
    """Return references.bib: the entries of what is cited. Args: what `content` returns."""
    return "\n\n".join(content["references"].values()) + "\n"


def _optimizers(present) -> list[str]:
    used = {name for names in present["optimizer"].unique() for name in names.split("+")}
    return [key for name, key in citations.OPTIMIZERS.items() if name in used]


def _baselines(summary, labels: dict) -> list[str]:
    rows = summary[summary["baseline"]].sort_values("rank", kind="stable")
    return list(dict.fromkeys(aggregate.row_name(row, labels) for row in rows.itertuples()))


def _counts(summary, fitted, present, spec: dict) -> dict:
    axes = {name: summary.loc[summary["fitted"], name].nunique() for name in ("task", "encoder", "head", "subset")}
    axes["strategies"] = present["strategy"].nunique()
    seeds = sorted(int(seed) for seed in fitted["seed"].unique())
    planned, there = (len(runs[RUN].drop_duplicates()) for runs in (fitted, present))
    over = methods.seeds_of(summary)
    unit = output_data.unit(spec.get("first_draws", {}), over["most"])
    return (
        axes
        | over
        | {"unit": unit, "seeds": seeds, "planned": planned, "runs": there, "preparatory": spec.get("preparatory", 0)}
    )


def cell_files(runs, results, first: dict[str, str]) -> dict[str, str]:
    """Return by anchor of a cell the files that a command makes again to make its runs again, quoted for a shell.

    Args: first, for each subset that is one of several draws, the first of them, whose cell has the files of all.
    """
    rows = runs[runs["main"].astype(bool) & (runs["role"] == "test")].drop_duplicates(["task", "folder"])
    files: dict[str, list[str]] = {}
    for row in rows.itertuples():
        cell = row._asdict() | {"subset": first.get(row.subset, row.subset)}
        files.setdefault(cell_anchor(row.task, cell), []).append(f"{results}/{row.folder}/metrics.json")
    return {anchor: shlex.join(paths) for anchor, paths in files.items()}


def _extraction(present) -> dict:
    """Return the seconds of extraction, how many runs share them, and those of training, of a shared fit once."""
    runs = present.drop_duplicates(RUN)
    spent, again = runs["extraction_seconds"], (runs["optimizer"] == "lbfgs") & runs.duplicated(CELL)
    training = runs.loc[~again, "train_seconds"].sum()
    return {"seconds": spent.sum(), "readers": int((spent > 0).sum()), "training": training}
