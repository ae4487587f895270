"""Tables by layer, a column for each: scores of probes, and mutual information with the labels."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from thaw.declarations.probes import WORD_EMBEDDINGS
from thaw.declarations.task_types import TARGET_OF_TYPE
from thaw.outputs.frame.probe_frame import (
    PRETRAINED,
    PROBED,
    Names,
    ProbeRecord,
    layer_scores,
    over_seeds,
    run_names,
)
from thaw.outputs.render.typed_table import Cell, Group, Row, Table
from thaw.words import wording

SCORE = ["task", "subset", "probe", "measure"]
ENCODER = ["encoder", "run"]


def score_name(key: dict, names: Names) -> str:
    """Return a row's name: its task, its subset and probe where several have the same score, and what is scored."""
    words = names.title_words(key, "subset") + names.probe_if_several(key, "task", "measure")
    return f"{', '.join(words)}: {wording.metric_name(names.labels, key['measure'])}"


def bits(records: list[ProbeRecord], split: str, estimators: list[str]):
    """Return a row for each estimator and layer: mean, sd and number of seeds, and a flag.

    Further columns: the means of `entropy` and `bound_error`. The flag is `noise` if an estimate is not above that of
    shuffled labels. split: see `layer_scores`.
    """
    import pandas

    keys = [*PROBED, "probe", "estimator", "split", "layer"]
    table = pandas.DataFrame(estimates(records, split, estimators)).astype({"noise": float})
    frame = over_seeds(table, keys).drop(columns=["low", "high"])
    means = table.groupby(keys, sort=False)[["entropy", "bound_error", "noise"]].mean().reset_index(drop=True)
    flags = (frame["mean"] <= means.pop("noise")).map({True: "noise", False: ""})
    return pandas.concat([frame, means], axis=1).assign(flag=flags)


def estimates(records: list[ProbeRecord], split: str, estimators: list[str]) -> Iterator[dict]:
    """Yield a row for each record, layer and estimator that it has: `value` in bits, and what else is said of it.

    That is, where the estimator has it, `noise`, `lowest` and so on, and `bound`, `bound_error` and `entropy` of the
    layer. split: see `layer_scores`.
    """
    for record in records:
        cell = record.cell | {"split": record.split(split)}
        for end in record.value("layers"):
            values = end["scores"][cell["split"]]
            for name in filter(values.__contains__, estimators):
                row = cell | {"estimator": name, "layer": end["layer"], "value": values[name]}
                of_name = [key for key in values if key.startswith(f"{name}_")]
                row |= {key.removeprefix(f"{name}_"): values[key] for key in of_name}
                yield row | {key: values[key] for key in ("bound", "bound_error", "entropy")}


BITS = {
    "bound": "Lower bound",
    "edge": "EDGE",
    "edge_shuffled": "EDGE, shuffled labels",
    "kmeans": "k-means",
    "kmeans_shuffled": "k-means, shuffled labels",
    "with_last": "Last layer, binned",
}
NOISE = "†"
RANK, BELOW = "Mean rank", "Points below the best"
RANK_NOTE = (
    "Mean rank: the mean over the rows above, where 1 is a row's highest score. Points below the best: what a layer is "
    "below a row's highest score, the mean over the rows above. Bold: the lowest."
)
LAYER_0 = "Layer 0: the output of the embeddings."


def build(data, spec: dict) -> Table:
    """Return a row for each score, in a group for each encoder, pretrained or adapted; the best layer is bold.

    Where there is one score, the encoders are its rows. The last column is the baseline, where there is one. Below
    scores of several tasks stand the mean rank of each layer and how far it is below the best.
    """
    frame = layer_scores(data.probes, spec["split"], [*SCORE, *ENCODER, "split", "layer"]).drop(columns=["low", "high"])
    names = Names(spec, frame, run_names(data.probes, spec["labels"]))
    parts: list[tuple[list[str], Callable]] = [
        (ENCODER, lambda cell: ", ".join(names.several(cell, *ENCODER))),
        (SCORE, partial(score_name, names=names)),
    ]
    if len(frame[SCORE].drop_duplicates()) == 1 < len(frame[ENCODER].drop_duplicates()):
        parts.reverse()
    runs = ", and are those of the runs that adapted an encoder" * bool((frame["run"] != PRETRAINED).any())
    notes = [
        f"Scores × 100 of probes on the states of each layer, {_split(frame, names)}: {_over_seeds(frame)}. Seeds draw "
        f"the rows by which a probe's penalty or epoch is chosen{runs}. {_layer_0(data.probes, names)}",
        "Bold: the highest mean of a row. No difference between layers is tested.",
    ]
    last = ("Baseline", "baseline") if frame["baseline"].notna().any() else None
    if last:
        sets = any(TARGET_OF_TYPE.get(record.task.get("type")) == "label_set" for record in data.probes)
        several = "of sets of labels each label's majority, " * sets
        notes.append(f"Baseline: the most frequent label, {several}of numbers the mean, of train.")
    notes += _unscored(data.probes, names)
    table = _table(spec, frame, parts, notes, bold=True, last=last)
    if parts[0][0] == ENCODER:
        for group, (_, of_encoder) in zip(table.groups, _by(frame, ENCODER), strict=True):
            for cell, part in _by(of_encoder, [*ENCODER, "probe"]):
                for row in _over_scores(part, cell, sorted(frame["layer"].unique())):
                    name = ", ".join([row.name, *names.several(cell, "probe")])
                    group.rows.append(replace(row, name=name, cells=row.cells + [None] * bool(last)))
        if any(row.name.startswith(RANK) for group in table.groups for row in group.rows):
            table.notes.insert(2, RANK_NOTE)
    return table


def _over_scores(frame, cell: dict, layers: list[int]) -> list[Row]:
    """Return the mean rank of each layer over scores of a probe, and what it is below the best; nothing of one task."""
    wide = frame.pivot_table("mean", SCORE, "layer").dropna().round(6)  # equal scores share a rank
    if wide.index.get_level_values("task").nunique() < 2:
        return []
    below = wide.rsub(wide.max(axis=1), axis=0).mean()
    rows = []
    for name, of_layer in ((RANK, wide.rank(axis=1, ascending=False).mean()), (BELOW, below)):
        record = cell | {"measure": name, "scores": len(wide)}
        records = [record | {"layer": layer, "mean": round(value, 6)} for layer, value in of_layer.items()]
        cells = [Cell(of_layer[n], best=of_layer[n] == of_layer.min()) if n in of_layer else None for n in layers]
        rows.append(Row(name, cells, records))
    return rows


def build_information(data, spec: dict) -> Table:
    """Return what each layer shares with the labels, in bits: the lower bound, both estimates, and shuffled labels."""
    frame = bits(data.probes, spec["split"], list(BITS))
    names = Names(spec, frame, run_names(data.probes, spec["labels"]))
    of = [*PROBED, "probe"]
    parts = [
        (of, lambda cell: ", ".join(names.title_words(cell, *of[1:]))),
        (["estimator"], lambda cell: BITS[cell["estimator"]]),
    ]
    most = ceil(round(100 * frame["bound_error"].max(), 6)) / 100
    notes = [
        f"Bits that the mean vectors of a layer share with the labels, {_split(frame, names)}: {_over_seeds(frame)}. "
        f"H(labels): the entropy of the labels. {LAYER_0}",
        "Lower bound: H(labels) less the cross-entropy of a linear probe, which was fitted to rows of train. Its "
        f"standard error over rows, mean over seeds, is at most {wording.number(most, 2)}. EDGE and k-means: "
        "estimates, adjusted for those of shuffled labels. One below the bound shows the bias of the estimator.",
    ]
    if (frame["estimator"] == "with_last").any():
        notes.append("Last layer: bits that a layer shares with the clusters of the last one; binned, not absolute.")
    if (frame["flag"] != "").any():
        notes.append(f"{NOISE}: not distinguishable from 0, as it is within the range of 95 % of the shuffles.")
    return _table(spec, frame, parts, notes, digits=2, last=("H(labels)", "entropy"))


def _table(spec: dict, frame, parts: list[tuple[list[str], Callable]], notes: list[str], **look) -> Table:
    """Return the table of a frame with layer, mean and sd.

    Args: of its groups and of their rows the columns that make them and what names them; look, see `_cells`.
    """
    (of_group, group_name), (of_row, row_name) = parts
    layers, groups = sorted(frame["layer"].unique()), []
    for key, part in _by(frame, of_group):
        rows = [
            Row(row_name(cell), _cells(row, layers, **look), row.round(6).to_dict("records"))
            for cell, row in _by(part, of_row)
        ]
        groups.append(Group(group_name(key), rows))
    titles = [*map(str, layers), *(look.get("last") or ())[:1]]
    return Table.of_spec(spec, titles, groups, notes, of="Layer")


def _by(frame, columns: list[str]) -> Iterator[tuple[dict, Any]]:
    """Yield the values of some columns as a dict, and the rows that have them."""
    for key, part in frame.groupby(columns, sort=False):
        yield dict(zip(columns, key, strict=True)), part


def _cells(row, layers: list[int], digits: int = 1, bold: bool = False, last: tuple[str, str] | None = None) -> list:
    """Return the cells of a row, None for a layer that it lacks.

    Args: the lines of a frame; decimals; whether the highest mean is bold; the last column's title, and its name in the
    frame.
    """
    by_layer, best = {one.layer: one for one in row.itertuples()}, row["mean"].max()
    cells = []
    for layer in layers:
        one = by_layer.get(layer)
        marks, sd = NOISE * bool(getattr(one, "flag", "")), one and wording.shown_sd(one.sd, one.seeds)
        cells.append(one and Cell(one.mean, digits=digits, sd=sd, best=bold and one.mean == best, marks=marks))
    if last:
        value = row[last[1]].mean()
        cells.append(None if value != value else Cell(value, digits=digits))
    return cells


def _over_seeds(frame) -> str:
    seeds = frame["seeds"].clip(lower=1)  # none where a score is undefined
    return wording.means_over(int(seeds.min()), int(seeds.max()))


def _layer_0(records: list[ProbeRecord], names: Names) -> str:
    """Return what layer 0 is, and in which probes it is something else."""
    read = [record.of["probe"] for record in records if record.entry.get("layer_0") == WORD_EMBEDDINGS]
    if not read:
        return LAYER_0
    if len(read) == len(records):
        return "Layer 0: the word embeddings, without positions and token types."
    probes = wording.listing(names.of("probe", probe) for probe in dict.fromkeys(read))
    return f"{LAYER_0[:-1]}; of {probes} the word embeddings, without positions and token types."


def _unscored(records: list[ProbeRecord], names: Names) -> list[str]:
    """Return a note on the labels that edge F1 leaves out on some tasks."""
    edges = [record for record in records if record.value("main") == "edge_f1"]
    left_out = {record.of["task"]: record.task.get("unscored_labels") for record in edges}
    parts = [f"{', '.join(labels)} ({names.of('task', task)})" for task, labels in left_out.items() if labels]
    return [f"Labels that are trained and not scored: {'; '.join(parts)}."] if parts else []


def _split(frame, names: Names) -> str:
    """Return the split that is scored, with its tasks where there are several."""
    tasks = {split: dict.fromkeys(part["task"]) for split, part in frame.groupby("split", sort=False)}
    if len(tasks) == 1:
        return f"on {next(iter(tasks))}"
    named = {split: wording.listing(names.of("task", task) for task in of) for split, of in tasks.items()}
    return f"on {', '.join(f'{split} ({of})' for split, of in named.items())}"
