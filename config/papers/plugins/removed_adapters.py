"""Figure: what models lose without the adapters of a span of layers, a grid of its first and last layer."""

from thaw.declarations.output_kind import OF_PROBES, OutputKind

FIGURES = {
    "adapters_figure": OutputKind(
        "thaw.papers.removed_adapters:build",
        "what fine-tuned models lose without the adapters of a span of layers, by its first and last layer (Houlsby et "
        "al. 2019, figure 6)",
        **OF_PROBES,
    ),
}


from functools import partial

import numpy as np

from thaw.core.errors import UserError
from thaw.outputs.figures import panels
from thaw.outputs.frame.probe_frame import PROBED, Names, ProbeRecord, run_names
from thaw.words import wording

GRID = [*PROBED, "probe"]


def build(data, spec: dict) -> panels.Figure:
    """Return a grid for each task and run: the change of the score in % of the whole model's, mean over seeds.

    A row is the last layer of a span, a column its first one; all adapters are removed in the upper left corner.
    """
    frame = spans(data.probes)
    names, drawn = Names(spec, frame, run_names(data.probes, spec["labels"])), []
    for key, part in frame.groupby(GRID, sort=False):
        cell = dict(zip(GRID, key, strict=True))
        words = ", ".join(names.title_words(cell, "subset", "encoder") + names.probe_if_several(cell, *PROBED))
        whole = f"{wording.metric_name(spec['labels'], part['measure'].iloc[0])} {part['whole'].mean():.1f}"
        draw = partial(_map, rows=part, low=frame["change"].min())
        drawn.append(panels.Panel(f"{words}\n{names.of('run', cell['run'])}: {whole}", draw))
    return panels.compose(drawn, frame, wide=min(2, len(drawn)))


def spans(records: list[ProbeRecord]):
    """Return a row for each span: `whole` and `score` x 100, and `change` in % of the whole, means over seeds.

    Seeds in which a score is undefined, or the whole one 0, are left out. Raises UserError where none is left.
    """
    import pandas

    rows = []
    for record in records:
        common = {name: record.cell[name] for name in GRID} | {"measure": record.task["metrics"][0]}
        ends = [end for end in record.value("layers") if "spans" in end]
        whole = {end["seed"]: end["whole"] for end in ends if "whole" in end}
        for end in ends:
            for span in end["spans"]:
                of_all, score = whole[end["seed"]], span["score"]
                if of_all and score is not None:
                    change = 100 * (score - of_all) / of_all
                    numbers = {"whole": 100 * of_all, "score": 100 * score, "change": change}
                    rows.append(common | {"first": end["layer"], "last": span["last"], **numbers})
    if not rows:
        raise UserError("an adapters_figure needs a probe of kind adapter_removal with defined scores")
    groups = pandas.DataFrame(rows).groupby([*GRID, "measure", "first", "last"], sort=False)
    return groups.agg(whole=("whole", "mean"), score=("score", "mean"), change=("change", "mean")).reset_index()


def _map(axis, rows, low: float) -> None:
    grid = rows.pivot(index="last", columns="first", values="change")
    axis.imshow(grid.to_numpy(), cmap="Blues_r", vmin=min(low, -1.0), vmax=0.0, aspect="auto", origin="lower")
    for (line, column), change in np.ndenumerate(grid.to_numpy()):
        if np.isfinite(change):
            colour = "white" if change < 0.6 * min(low, -1.0) else "#1b1e22"
            text = wording.number(change, 0 if len(grid) > 8 else 1)
            axis.text(column, line, text, ha="center", va="center", fontsize=7, color=colour)
    axis.set_xticks(range(len(grid.columns)), [int(layer) for layer in grid.columns])
    axis.set_yticks(range(len(grid)), [int(layer) for layer in grid.index])
    axis.set_xlabel("First layer without adapters")
    axis.set_ylabel("Last layer without adapters")
    axis.grid(False)
