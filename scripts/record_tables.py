"""Tables and the figure that pages show, each made from the records in docs/results by today's code.

A record is a Parquet file with a row for each run and scored split; its metadata say when and with what it was made.
Scores are × 100. The grid's record also has every row's answer (scripts/answers.py).
"""

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet

import difference_tables
import joint
import replay
import unseen
from answers import COSTS, FULL, Record, difference, recorded
from record_names import HOME, RECORDS, catalogue, label, mean, task_label, title
from thaw.core.files import read_json
from thaw.decision.contrasts import Difference
from thaw.declarations.splits import RESERVED
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.paired_differences import jointly
from thaw.words import wording
from thaw.words.wording import number

sys.path.insert(0, str(HOME))  # for benchmarks/
EIGHT = ("sick_e", "stsb", "sst2_sentences", "cola", "trec6", "trec50", "conll2003", "ud_ewt_upos")
LOOP_SPLITS = ("test", RESERVED)
THREE = ("trec6", "sst2_sentences", "conll2003")
PROBE, ALL, LORA, TOP = "linear_probe", "linear_probe_all_layers", "lora", "top_k k02"
CURVES = {  # tasks and strategies of the figures of scores by rows
    "grid_sizes": (THREE, (PROBE, ALL, TOP, FULL)),
    "unseen_sizes": (("subj", "mpqa", "ag_news_part"), (PROBE, ALL, FULL)),
}
OF_PAIRS = ("lora_separate", "top_k_separate k02", "full_separate")
OF_GRID = (PROBE, ALL, LORA, "top_k k01", TOP, "top_k k03", FULL, "budget_stack", "budget_ulmfit", "budget_adapters")


@dataclass(frozen=True)
class Layout:
    """Strategies by tasks of a record. Args: points, id and variant; costs, whether columns of costs follow."""

    record: str
    tasks: tuple[str, ...]
    points: tuple[str, ...]
    costs: bool = False


LAYOUTS = {
    "grid": Layout("grid", EIGHT, ("majority", "bag_of_words", *OF_GRID, *OF_PAIRS)),
    "updates": Layout(
        "updates",
        ("trec6", "conll2003"),
        tuple(f"{name} updates{n}" for name in ("updates_top_2", "updates_full") for n in (50, 100, 200, 400, 800)),
    ),
    "unseen_updates": Layout(
        "unseen_updates",
        ("subj", "wnut17"),
        tuple(
            f"{name} updates{n}" for name in ("updates_lora", "updates_top_2", "updates_full") for n in (200, 400, 800)
        ),
    ),
    "read": Layout(
        "read_before_thaw", EIGHT, (PROBE, ALL, "frozen_lowest_layer", "ladder", "grid_top_k k02", "grid_full")
    ),
    "students": Layout(
        "students_small",
        ("trec6", "sick_e"),
        (
            *("majority", "brief_full", "brief_drop_top n03", "brief_hinton n03", "brief_pkd n03", "brief_kd_1 k03"),
            *("brief_kd_1_labels k03", "brief_cut_1 k03"),
        ),
        costs=True,
    ),
    "merges": Layout(
        "merge_small",
        ("sick_e", "sick_r", "trec6", "trec50", "sst2_sentences", "mrpc"),
        ("brief_top_k k01", "brief_top_k k02", "brief_top_k k04", "brief_full"),
        costs=True,
    ),
    "stacking": Layout(
        "stacking",
        ("trec6",),
        (
            *(PROBE, "frozen_sgd", "full", "full_one_rate", "full_5_epochs", "stack_1_epoch", "stack_then_finetune"),
            *("stack_by_gap", "stack_converged"),
        ),
        costs=True,
    ),
}


def table(name: str) -> str:
    """Return a table as Markdown. Raises KeyError where there is none of that name."""
    if name.startswith("benchmark_"):
        from benchmarks.record import tables

        lines = tables()[name.removeprefix("benchmark_")].splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith("|"))
    made = OTHERS[name]() if name in OTHERS else by_layout(LAYOUTS[name])
    return markdown(made)


def markdown(lines: list[list[str]]) -> str:
    """Return lines of cells, of which the first has the titles, as Markdown."""
    rows = [lines[0], [":--", *["--:"] * (len(lines[0]) - 1)], *lines[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in rows)


def about(name: str) -> dict:
    """Return what a record says of its making."""
    return json.loads(parquet.read_schema(RECORDS / f"{name}.parquet").metadata[b"record"])


def columns(frame: pd.DataFrame, tasks: tuple[str, ...], role: str = "test") -> list[tuple[str, str]]:
    """Return task and split of each column."""
    splits = frame[frame["role"] == role].groupby("task")["split"].unique()
    return [(task, split) for task in tasks for split in sorted(splits[task])]


def by_layout(layout: Layout) -> list[list[str]]:
    """Return means over runs ± their standard deviation."""
    frame = recorded(layout.record)
    frame = frame[frame["role"] == "test"]
    of = columns(frame, layout.tasks)
    lines = [["", *(title(*one) for one in of)]]
    lines[0] += ["trainable<br>parameters", "training,<br>seconds", "memory,<br>MiB"] if layout.costs else []
    for point in layout.points:
        mine = frame[(frame["point"] == point) & frame["task"].isin(layout.tasks)]
        cells = [_cell(mine, *one) for one in of]
        if layout.costs:
            costs = mine.groupby("task")[COSTS].median().mean()
            cells += ["–" if pd.isna(one) else f"{one:.1f}" if one < 10 else f"{one:,.0f}" for one in costs]
        lines.append([label(point), *cells])
    return lines


def _cell(mine: pd.DataFrame, task: str, split: str) -> str:
    return mean(100 * mine.loc[(mine["task"] == task) & (mine["split"] == split), "value"])


@cache
def answered() -> Record:
    """Return every row's answer on the grid."""
    return Record(recorded("grid"))


def vectors() -> list[list[str]]:
    """Return scores of static vectors, of words without an encoder, and of MiniLM, in the same three draws."""
    draws = ("n1000_r1", "n1000_r2", "n1000_r3")
    static, others = recorded("word_vectors"), pd.concat([recorded("grid"), recorded("unseen")])
    of = columns(static, tuple(static["task"].unique()))
    rows = {
        f"GloVe, {how}, {head}": static[(static["strategy"] == f"vectors_{kind}") & (static["head"] == name)]
        for name, head in (("linear_mean", "linear head"), ("bilstm", "BiLSTM"))
        for kind, how in (("frozen", "frozen"), ("tuned", "tuned"))
    }
    rows |= {label(point): static[static["point"] == point] for point in ("majority", "bag_of_words")}
    rows |= {f"MiniLM, {label(point)}": others[others["point"] == point] for point in (ALL, FULL)}
    lines = [["", *(title(*one) for one in of)]]
    for name, mine in rows.items():
        mine = mine[mine["subset"].isin(draws)]
        whole = mine.groupby(["task", "split"])["subset"].nunique()
        lines.append([name, *(_cell(mine, *one) if whole.get(one, 0) == len(draws) else "–" for one in of)])
    return lines


def grid() -> list[list[str]]:
    """Return scores on test; bold where the difference to full fine-tuning has an interval without zero."""
    layout, (titles, *lines) = LAYOUTS["grid"], by_layout(LAYOUTS["grid"])
    of, told = columns(recorded("grid"), EIGHT), grid_differences()
    for point, line in zip(layout.points, lines, strict=True):
        differs = [told[*one, point].answer in ("higher", "lower") if (*one, point) in told else False for one in of]
        line[1:] = [f"**{cell}**" if bold else cell for cell, bold in zip(line[1:], differs, strict=True)]
    return [titles, *lines]


def grid_differences() -> dict[tuple[str, str, str], Difference]:
    """Return by task, test split and strategy its points less full fine-tuning, with one 95 % interval for all."""
    record, drawn = answered(), {}
    for task, split in columns(recorded("grid"), EIGHT):
        points = [one for one in (*OF_GRID, *OF_PAIRS) if (task, record.draws[0], one, split) in record.lines]
        lines = {point: [record.lines[task, draw, point, split] for draw in record.draws] for point in points}
        for point in (one for one in points if one != FULL):
            drawn[task, split, point] = difference([[pair] for pair in zip(lines[point], lines[FULL], strict=True)])
    return dict(zip(drawn, jointly(list(drawn.values())), strict=True))


def seeds() -> list[list[str]]:
    """Return how far scores of TREC-6 spread by seed, in one draw, and by draw, with one seed."""
    frame = recorded("grid_seeds")
    frame = frame[frame["role"] == "test"].assign(value=100 * frame["value"])
    lines = [["TREC-6, standard deviation in points", "three seeds of one draw", "eight draws of one seed"]]
    for point, mine in frame.groupby("point"):
        spread = [mine.groupby(by)["value"].var().mean() ** 0.5 for by in ("subset", "seed")]
        lines.append([label(point), *(number(one, 2) for one in spread)])
    return lines


def worst() -> list[list[str]]:
    """Return how far the worst draw is below the mean of the grid's columns, and how many runs failed."""
    frame = recorded("grid")
    frame = frame[(frame["role"] == "test") & (frame["kind"] == "run")]
    lines = [["", "worst draw below its mean", "most of all", "runs", "one class", "undertrained"]]
    for point in (*OF_GRID, *OF_PAIRS):
        mine = frame[frame["point"] == point]
        scores = 100 * mine.groupby(["task", "split"])["value"].agg(["mean", "min"])
        below = scores["mean"] - scores["min"]
        most = f"{number(below.max())} ({title(*below.idxmax()).partition('<br>')[0]})"
        flags = mine.drop_duplicates(["task", "subset"])["flags"]
        failed = [str(flags.str.contains(flag).sum()) for flag in ("one_class", "underfit")]
        lines.append([label(point), number(below.mean()), most, str(len(flags)), *failed])
    return lines


def way() -> list[list[str]]:
    """Return how much of the way from the probe to full fine-tuning strategies go on single texts and words, in %."""
    frame = recorded("read_before_thaw")
    tasks = [task for task in EIGHT if task not in ("sick_e", "stsb", "cola")]
    means = 100 * frame.groupby(["point", "task"])["value"].mean().unstack()[tasks]
    lines = [["% of the way", *(task_label(task) for task in tasks), "median"]]
    for point in (ALL, "frozen_lowest_layer", "ladder", "grid_top_k k02"):
        share = 100 * (means.loc[point] - means.loc[PROBE]) / (means.loc["grid_full"] - means.loc[PROBE])
        lines.append([label(point), *(number(one, 0) for one in [*share, share.median()])])
    return lines


def times() -> list[list[str]]:
    """Return how many times as much full fine-tuning takes as the probe on all layers, on an idle machine."""
    frame = recorded("read_before_thaw_cost").drop_duplicates(["task", "point"])
    of = frame.pivot(index="task", columns="point", values=COSTS)
    lines = [["Full fine-tuning takes so many times as much", "training, seconds", "peak memory"]]
    for task in EIGHT:
        parts = [of.loc[task, (what, "grid_full")] / of.loc[task, (what, ALL)] for what in COSTS[1:]]
        lines.append([task_label(task), *(number(one, 1) for one in parts)])
    return lines


def pooled(frame: pd.DataFrame) -> dict[str, tuple[list[float], list[float]]]:
    """Return by task the scores of Thaw's loop and of the plain loop in points, over the rows of all splits together.

    Args: a line for each run of either loop: task, seed, loop, and accuracy and rows of each split.
    """
    rows = sum(frame[f"{split}_rows"] for split in LOOP_SPLITS)
    points = 100 * sum(frame[split] * frame[f"{split}_rows"] for split in LOOP_SPLITS) / rows
    return {
        task: tuple(points[(frame["task"] == task) & (frame["loop"] == loop)].tolist() for loop in ("thaw", "plain"))
        for task in ("trec6", "sst2_sentences", "sick_e")
        if (frame["task"] == task).any()
    }


def loops() -> list[list[str]]:
    """Return accuracies of both loops with two one-sided tests: equivalent where the 90 % CI is within half a point."""
    from benchmarks.quality import equivalence

    by_task = pooled(pd.read_parquet(RECORDS / "loop_equivalence.parquet"))
    lines = [["", "seeds", "Thaw", "plain loop", "difference [90 % CI]", "within half a point"]]
    for task, pairs in [*((task, [pair]) for task, pair in by_task.items()), ("", list(by_task.values()))]:
        tested, sides = equivalence(pairs), []
        for side in (0, 1):
            spread = f" ± {np.std(pairs[0][side], ddof=1):.2f}" if task else ""
            sides.append(f"{np.mean([np.mean(pair[side]) for pair in pairs]):.2f}{spread}")
        name = task_label(task) if task else "mean of the tasks"
        shown = f"{number(tested.difference, 2)} {wording.interval(tested.low, tested.high, 2)}"
        verdict = "yes" if tested.within(0.5) else "not shown"
        lines.append([name, str(len(pairs[0][0])) if task else "", *sides, shown, verdict])
    return lines


def planned() -> list[list[str]]:
    """Return what `thaw plan` said and what the runs took."""
    lines = [["experiment", "runs", "planned", "taken", "load before"]]
    for row in read_json(RECORDS / "planned_time.json"):
        taken = f"{row['taken']} s" if row["taken"] < 100 else f"{row['taken'] / 60:.0f} min"
        lines.append([row["experiment"], str(row["runs"]), row["planned"], taken, str(row["load"])])
    return lines


def not_taken() -> list[list[str]]:
    """Return what was tried to save seconds and not taken, with what it would save."""
    rows = read_json(RECORDS / "not_taken.json")
    return [["tried", "saves", "why not", "on"], *([*row.values()] for row in rows)]


def records() -> list[list[str]]:
    """Return what each record was made of: runs, days, commits of Thaw and processors."""
    lines = [["record", "runs", "made", "code", "processor"]]
    for path in sorted(RECORDS.glob("*.parquet")):
        made = about(path.stem)
        if "runs" not in made:
            continue
        facts = {what: made["facts"].get(what, {"–": 0}) for what in ("thaw", "machine")}
        code = ["`{}`".format(version.partition("(")[2].rstrip(")") or version) for version in facts["thaw"]]
        processors = [machine.replace("(R)", "").removeprefix("cpu; ") for machine in facts["machine"]]
        days = " to ".join(dict.fromkeys((made["from"], made["to"])))
        row = [f"[{path.stem}]({path.name})", str(made["runs"]), days, ", ".join(code), ", ".join(processors)]
        lines.append(row)
    return lines


def draw_sizes(path: Path, name: str) -> pd.DataFrame:
    """Draw scores by the number of labelled rows, and return the means. Args: where the SVG goes; one of CURVES."""
    tasks, drawn = CURVES[name]
    frame = recorded(name)
    frame = frame[(frame["role"] == "test") & frame["point"].isin(drawn)]
    frame = frame.assign(rows=frame["subset"].str.extract(r"n(\d+)_")[0].astype(int), value=100 * frame["value"])
    points = frame.groupby(["task", "point", "rows"])["value"].agg(["mean", "std"]).reset_index()
    with figure_style.style():
        figure, axes = figure_style.grid([task_label(task) for task in tasks])
        marks = figure_style.marks([label(point) for point in (PROBE, ALL, TOP, FULL)])
        for axis, task in zip(axes, tasks, strict=True):
            axis.set(xlabel="labelled rows", ylabel="score × 100", xscale="log")
            axis.set_xticks([100, 300, 1000, 3500], ["100", "300", "1,000", "3,500"])
            handles = []
            for point in drawn:
                mine = points[(points["task"] == task) & (points["point"] == point)]
                colour, marker = marks[label(point)]
                shown = axis.errorbar(mine["rows"], mine["mean"], mine["std"], color=colour, marker=marker, capsize=2)
                shown.set_label(label(point))
                handles.append(shown)
        figure_style.legend(figure, handles)
        figure_style.freeze_layout(figure)
        figure.savefig(path, metadata={"Date": None})
    return points


def draw_prices(path: Path) -> None:
    """Draw tuned scores on the unseen tasks by the price of one training, the median over rates. Args: the SVG."""
    record = unseen.read()
    points = (PROBE, ALL, LORA, TOP, FULL)
    with figure_style.style():
        figure, axes = figure_style.grid([task_label(task) for task in record.tasks])
        marks = figure_style.marks(list(map(label, points)))
        for axis, task in zip(axes, record.tasks, strict=True):
            panels.log_axis(axis, (1.0, 3.0))
            axis.set(xlabel="seconds", ylabel="score × 100")
            handles = []
            for point in points:
                rates = unseen.RATES if point in unseen.TRAINED else ("",)
                score = record.score(task, record.best(task, tuple(unseen.at(point, rate) for rate in rates))).ci
                price = record.seconds.loc[task].loc[[unseen.at(point, rate) for rate in rates]].sum(axis=1).median()
                colour, marker = marks[label(point)]
                away = [[score.value - score.low], [score.high - score.value]]
                shown = axis.errorbar(price, score.value, away, color=colour, marker=marker, capsize=2)
                shown.set_label(label(point))
                handles.append(shown)
        figure_style.legend(figure, handles)
        figure_style.freeze_layout(figure)
        figure.savefig(path, metadata={"Date": None})


def layers() -> list[list[str]]:
    """Return the mean rank over tasks of each layer of MiniLM, and what it is below the best layer of a task."""
    scores = pd.read_csv(RECORDS / "layers_over_tasks.csv").pivot(index="task", columns="layer", values="mean")
    below = scores.rsub(scores.max(axis=1), axis=0)
    made = [["layer", *map(str, scores.columns)]]
    for name, of_layer in (
        ("mean rank", scores.rank(axis=1, ascending=False).mean()),
        ("points below the best", below.mean()),
    ):
        least = of_layer.min()
        made.append([name, *(f"**{number(one)}**" if one == least else number(one) for one in of_layer)])
    return made


def encoders() -> list[list[str]]:
    """Return the encoders of transformers in the catalogue, and what they were trained to do."""
    made = [["id", "encoder", "layers", "width", "million parameters", "languages", "trained to do", "licence"]]
    for name in catalogue().ids("encoders"):
        entry = catalogue().get("encoders", name, "encoders")
        if entry.kind == "transformers" and not entry.truncated:
            sizes = [str(entry.layers), f"{entry.width:,}", f"{entry.parameters:,g}"]
            trained = [entry.languages, entry.objective.split(" (")[0]]
            made.append([f"`{name}`", entry.label, *sizes, *trained, entry.licence])
    return made


OTHERS = (
    unseen.TABLES
    | difference_tables.TABLES
    | joint.TABLES
    | {
        "encoders": encoders,
        "layers": layers,
        "rules": lambda: replay.replay_rows(pd.read_json(replay.SUMMARY)),
        "grid": grid,
        "vectors": vectors,
        "seeds": seeds,
        "worst": worst,
        "way": way,
        "times": times,
        "loops": loops,
        "planned": planned,
        "not_taken": not_taken,
        "records": records,
    }
)
