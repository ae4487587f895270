"""Figure: which tasks help each other, and whether anything foretells it (Bingel and Søgaard 2017)."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import Addition, OutputKind, Requirement

FIGURES = {
    "task_pair_figure": OutputKind(
        "thaw.papers.task_pairs:build",
        "source by target: what training with one other task, or after it, gains over the reference, by rows, "
        "words and own gain of the source",
        options.ReferenceOptions,
        needs=(Requirement.TASK_PAIRS,),
        adds=(Addition.TASK_PAIRS,),
    ),
}


from functools import partial
from textwrap import fill

import numpy as np

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.phrases import plural
from thaw.data.corpus import Corpus
from thaw.decision.contrasts import OPEN
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.paired_differences import Contrasts, jointly
from thaw.outputs.frame.probe_frame import Names
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.render.typed_table import ALIKE, plain
from thaw.papers.pretraining_proximity import gains
from thaw.statistics.word_divergence import jensen_shannon, terms
from thaw.words import wording

GROUP = CELL[1:4]
LETTERS = 12  # of a line of a task's name on an axis
WAYS = {"together": "Trained together", "first": "Source first, then target"}
PROPERTIES = {  # of a source, or of a pair
    "source_rows": "Training rows of the source",
    "divergence": "Divergence of words, bits",
    "source_gain": "What fine-tuning gains on the source",
}
RHO = (
    "ρ: the mean over targets of the rank correlation over sources; in brackets without one target each. It describes "
    "these pairs: {sources} and {targets} cannot decide what foretells a gain"
)


def build(data, spec: dict) -> panels.Figure:
    """Return a matrix of gains for each way, then the gains against each of `PROPERTIES` that differs.

    Args: spec with `reference`, the control, and `pairs` and `corpora` (see planning/output_requirements.py). Raises
    UserError where no run of a pair has a control with its seeds.
    """
    return figure(measured(data, spec), spec)


def figure(frame, spec: dict) -> panels.Figure:
    """Return the figure of what was measured. Args: a frame as `measured` returns it; spec with `labels`."""
    names, drawn, said = Names(spec, frame), [], []
    largest = max(1.0, frame["gain"].abs().max())
    for group, rows in frame.groupby(GROUP, sort=False):
        group = dict(zip(GROUP, group, strict=True))
        of = names.several(group, *GROUP)
        for way, part in rows.groupby("way", sort=False):
            title = "\n".join([*of, WAYS[way]])
            drawn.append(panels.Panel(title, partial(matrix, rows=part, names=names, largest=largest)))
        for name, label in PROPERTIES.items():
            found = {way: foretold(part, name) for way, part in rows.groupby("way", sort=False)}
            said += [group | {"way": way, "property": name} | one for way, one in found.items()]
            if rows[name].nunique() < 2:
                continue
            title = "\n".join([*of, *(f"{way}: {_printed(one)}" for way, one in found.items())])
            drawn.append(panels.Panel(title, partial(_points, rows=rows, name=name, label=label, names=names)))
    notes = [
        f"{ALIKE}: the interval holds 0. {wording.joint_ci(len(frame))}",
        *wording.few_seeds(int(frame["seeds"].min())),
    ]
    notes += [RHO.format(**{f"{of}s": plural(frame[of].nunique(), of) for of in ("source", "target")})]
    legend = [panels.hollow_entry("source first"), *(panels.entry(note, linestyle="none") for note in notes)]
    made = panels.compose(drawn, frame, legend, wide=2)
    made.records += plain(said)
    return made


def measured(data, spec: dict):
    """Return a row for each pair: the gain of the target over the control in points, and the properties."""
    import pandas

    contrasts, cells, means = Contrasts(data.runs, "test", data.predictions), [], []
    shown = contrasts.shown
    shown = shown[shown["split"] == shown.groupby("task")["split"].transform("first")]
    for (*cell, split), _ in shown.groupby([*CELL, "split"], sort=False):
        pair = spec["pairs"].get(cell[0], {}).get(cell[4])
        mean = contrasts.between(tuple(cell), (*cell[:4], spec["reference"], "base"), split) if pair else None
        if pair and mean:
            of = {"source": pair["source"], "target": cell[0], "way": pair["way"], "seeds": mean.spread.seeds}
            cells.append(of | dict(zip(CELL, cell, strict=True)))
            means.append(mean)
    if not cells:
        raise UserError(f"a task_pair_figure needs runs of {spec['reference']} with the seeds of those of a pair")
    for cell, one in zip(cells, jointly(means), strict=True):
        cell |= {"gain": one.value, "low": one.low, "high": one.high, "answer": one.answer}
    frame, words = pandas.DataFrame(cells), _words(data, spec)
    own = gains(data.runs, spec["reference"], data.predictions)
    known = data.runs[(data.runs["kind"] == "run") & data.runs["train_rows"].notna()]
    for row in frame.itertuples():
        start = spec["pairs"][row.target][row.strategy].get("subset", row.subset)
        rows = known.loc[(known["task"] == row.source) & (known["subset"] == start), "train_rows"]
        place = own[(own[["task", *GROUP]] == [row.source, row.subset, row.encoder, row.head]).all(axis=1)]
        frame.loc[row.Index, "source_rows"] = rows.max()
        frame.loc[row.Index, "source_gain"] = place["gain"].max()
        frame.loc[row.Index, "divergence"] = jensen_shannon(words[row.source], words[row.target])
    return frame


def _words(data, spec: dict) -> dict[str, list[str]]:
    """Return terms of each task's training texts, drawn without replacement, of all as many as the shortest has."""
    found = {}
    for task, name in spec["corpora"].items():
        corpus = Corpus(data.results / layout.folder("prepare", {"corpus": name}))
        frame = corpus.frame("train")
        texts = map(" ".join, frame[corpus.words]) if corpus.words else (t for c in corpus.texts for t in frame[c])
        found[task] = np.random.default_rng(0).permutation(terms(texts))
    shortest = min(map(len, found.values()))
    return {task: words[:shortest].tolist() for task, words in found.items()}


def foretold(rows, name: str) -> dict:
    """Return how a property of sources goes with their gains, of one way of training.

    rho: the mean over targets of Spearman's correlation over sources; low and high: without one target each.
    """
    tables = [rows.groupby(["target", "source"])[of].mean().unstack() for of in (name, "gain")]
    found = np.array([_correlation(*one) for one in zip(*(table.to_numpy(float) for table in tables), strict=True)])
    own = found[~np.isnan(found)]
    left = [float(np.delete(own, at).mean()) for at in range(len(own))] if len(own) > 1 else []
    ends = {"low": min(left, default=None), "high": max(left, default=None)}
    return {"targets": len(own), "rho": float(own.mean()) if len(own) else None} | ends


def _correlation(values: np.ndarray, gain: np.ndarray) -> float:
    """Return Spearman's correlation over the sources [S] that have both; NaN where either is constant."""
    from scipy.stats import rankdata

    known = ~np.isnan(values) & ~np.isnan(gain)
    ranks = [rankdata(one[known]) for one in (values, gain)]
    return float(np.corrcoef(*ranks)[0, 1]) if all(len(set(rank)) > 1 for rank in ranks) else np.nan


def _printed(one: dict) -> str:
    if one["rho"] is None:
        return "ρ undefined"
    ends = f" ({wording.number(one['low'], 2)} to {wording.number(one['high'], 2)})" if one["low"] is not None else ""
    return f"ρ {wording.number(one['rho'], 2)}{ends}"


def matrix(axis, rows, names: Names, largest: float) -> None:
    """Draw the gains of one way, sources by targets; what is decided is bold."""
    sources, targets = list(rows["source"].unique()), list(rows["target"].unique())
    grid = rows.pivot(index="source", columns="target", values="gain").reindex(index=sources, columns=targets)
    axis.imshow(grid.to_numpy(float), cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto", alpha=0.6)
    for row in rows.itertuples():
        number = wording.number(row.gain)
        text = f"{ALIKE}{number}" if row.answer == OPEN else number
        ends = f"\n{wording.interval(row.low, row.high)}" if len(targets) < 6 else ""
        look = {
            "fontweight": "normal" if row.answer == OPEN else "bold",
            "fontsize": 5.5,
            "ha": "center",
            "va": "center",
        }
        axis.text(targets.index(row.target), sources.index(row.source), text + ends, **look)
    axis.grid(False)
    axis.set_xticks(range(len(targets)), [fill(names.of("task", task), LETTERS) for task in targets], rotation=30)
    axis.set_yticks(range(len(sources)), [fill(names.of("task", task), LETTERS) for task in sources])
    axis.set_xlabel("Target")
    axis.set_ylabel("Source")


def _points(axis, rows, name: str, label: str, names: Names) -> None:
    """Draw each pair's gain, with its interval, against a property."""
    marks = figure_style.marks(rows["target"])
    for row in rows.itertuples():
        colour, marker = marks[row.target]
        ends = [[max(0, row.gain - row.low)], [max(0, row.high - row.gain)]]
        face = colour if row.way == "together" else "white"
        axis.errorbar(getattr(row, name), row.gain, ends, color=colour, marker=marker, mfc=face, elinewidth=0.6)
    for target, (colour, marker) in marks.items():
        axis.plot([], [], color=colour, marker=marker, linestyle="none", label=names.of("task", target))
    axis.axhline(0, color=figure_style.GREY, linewidth=0.7)
    axis.set_xlabel(label)
    axis.set_ylabel("Gain, points")
    axis.margins(x=0.15)
