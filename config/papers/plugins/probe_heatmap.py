"""Figure: which layer serves which task best, a row for each task and score, a column for each layer."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import OF_PROBES, OutputKind

FIGURES = {
    "heat_figure": OutputKind(
        "thaw.papers.probe_heatmap:build",
        "scores of probes as a map, tasks by layers",
        options.SplitOptions,
        **OF_PROBES,
    ),
}


import textwrap
from functools import partial

import numpy as np

from thaw.outputs.figures import panels
from thaw.outputs.frame.layer_values import ENCODER, SCORE, score_name, scores
from thaw.outputs.frame.printed_names import Names
from thaw.outputs.frame.probe_frame import PRETRAINED, ProbeRecord, run_names

LETTERS, LETTER = 48, 0.062  # of a line of a row's name, and the inches of one in a tick's font


def build(data, spec: dict) -> panels.Figure:
    """Return the scores of probes as a map, a panel for each encoder, colours from each row's least to its greatest.

    Numbers are means over seeds x 100; the best layer of a row is bold.
    """
    frame = shares(data.probes, spec["split"])
    names = Names(spec, frame, run_names(data.probes, spec["labels"]))
    shown, layers = list(frame.groupby(ENCODER, sort=False)), sorted(frame["layer"].unique())
    rows = max(len(part[SCORE].drop_duplicates()) for _, part in shown)
    keys = frame[SCORE].drop_duplicates().itertuples(index=False, name=None)
    called = {key: textwrap.fill(score_name(dict(zip(SCORE, key, strict=True)), names), LETTERS) for key in keys}
    drawn = [
        panels.Panel(
            ", ".join([names.of("encoder", encoder)] + [names.of("run", run)] * (run != PRETRAINED)),
            partial(_map, part=part, layers=layers, called=called),
        )
        for (encoder, run), part in shown
    ]
    letters = max(len(line) for name in called.values() for line in name.splitlines())
    height = 1.1 + 0.27 * rows + 0.13 * max(name.count("\n") for name in called.values()) * rows
    size = max(3.2, 0.4 + LETTER * letters + 0.5 * len(layers)), height
    return panels.compose(drawn, frame, wide=1, size=size)


def shares(records: list[ProbeRecord], split: str):
    """Return the scores with `share`, the mean scaled from the lowest layer (0) to the highest (1) of its row."""
    frame = scores(records, split).drop(columns="baseline")
    of_row = frame.groupby([*SCORE, *ENCODER], sort=False)["mean"]
    least, greatest = of_row.transform("min"), of_row.transform("max")
    spread = (greatest - least).where(greatest > least)
    return frame.assign(share=((frame["mean"] - least) / spread).fillna(0.0))


def _map(axis, part, layers: list[int], called: dict[tuple, str]) -> None:
    lines, grid, numbers = [], [], []
    for key, row in part.groupby(SCORE, sort=False):
        by_layer = row.set_index("layer")
        lines.append(called[key])
        grid.append([by_layer["share"].get(layer, np.nan) for layer in layers])
        numbers.append([by_layer["mean"].get(layer, np.nan) for layer in layers])
    axis.imshow(grid, cmap="Blues", vmin=0, vmax=1.25, aspect="auto")
    for line, row in enumerate(numbers):
        for column, number in enumerate(row):
            if np.isfinite(number):
                look = {"color": "white"} if grid[line][column] > 0.75 else {"color": "#1b1e22"}
                look |= {"fontweight": "bold"} if number == np.nanmax(row) else {}
                axis.text(column, line, f"{number:.1f}", ha="center", va="center", fontsize=7, **look)
    axis.set_yticks(range(len(lines)), lines)
    axis.set_xticks(range(len(layers)), layers)
    axis.set_xlabel("Layer; 0: embeddings")
    axis.grid(False)
    for side in axis.spines.values():
        side.set_visible(False)
    axis.tick_params(length=0)
