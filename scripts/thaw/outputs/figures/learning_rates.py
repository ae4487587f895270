"""The learning rate of every layer at every update of a strategy, as a picture, from the groups that training makes.

L layers, S updates. A row is the head, a layer or the embeddings: L + 2 of them, from the top.
"""

from pathlib import Path

import numpy as np
from torch.nn import Linear

from thaw.adaptation.param_groups import groups
from thaw.adaptation.rounds import lengths, rounds
from thaw.adaptation.schedules import lr_factor
from thaw.adaptation.selectors import block
from thaw.adaptation.stages import stages_of
from thaw.core.errors import UserError
from thaw.outputs.figures import figure_style, panels
from thaw.schema.phases import PhaseConfig

EPOCH = 100  # updates that an epoch is drawn with
FROZEN = "#e5e7eb"


def rates(phases: list[dict], layers: int) -> tuple[np.ndarray, list[float]]:
    """Return the learning rates [L + 2, S] of phases, NaN where frozen, and the epochs of each phase, of EPOCH updates.

    A tiny module represents each component, and its parameters are grouped as a real module's. A phase with optimizer
    lbfgs has no learning rate and is left out.
    """
    rows = ["head", *(f"layer.{n}" for n in range(layers, 0, -1)), "embeddings"]
    columns, drawn = [], []
    for entry in phases:
        phase = PhaseConfig.of_spec(entry)
        stages = stages_of(phase, entry)
        if phase.optimizer == "lbfgs":
            continue
        updates = lengths(rounds(phase, stages, EPOCH))
        for number, stage in enumerate(stages):
            parts = {component: Linear(1, 1).named_parameters() for component in stage["components"]}
            peaks = np.full(len(rows), np.nan)
            for group in groups(parts, phase, layers):
                peaks[rows.index(block(group["component"]))] = group["peak"]
            steps = range(sum(updates[:number]), sum(updates[: number + 1]))
            columns += [peaks * lr_factor(phase, updates, number, step, EPOCH) for step in steps]
        drawn.append(sum(updates) / EPOCH)
    return np.array(columns).T, drawn


def draw(strategies: dict[str, list[dict]], layers: int, path) -> None:
    """Draw the learning rates of some strategies {label: phases}, a panel each on one scale of colours, into a file.

    Raises UserError for an unknown file type, and if no strategy has a learning rate.
    """
    rates_by_label = {label: rates(phases, layers) for label, phases in strategies.items()}
    rates_by_label = {label: pair for label, pair in rates_by_label.items() if pair[1]}
    kind = Path(path).suffix.removeprefix(".")
    if kind not in panels.METADATA:
        raise UserError(f"{path}: the file must end in one of {', '.join(panels.METADATA)}")
    if not rates_by_label:
        raise UserError("none of these strategies has a learning rate: lbfgs fits a head to convergence without one")
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Patch

    every = np.concatenate([matrix.ravel() for matrix, _ in rates_by_label.values()])
    norm = LogNorm(np.nanmin(every), max(np.nanmax(every), 1.01 * np.nanmin(every)))
    with figure_style.style():
        figure, axes = figure_style.grid(list(rates_by_label), wide=min(2, len(rates_by_label)))
        for axis, (label, (matrix, ends)) in zip(axes, rates_by_label.items(), strict=True):
            mesh = _panel(axis, matrix, ends, norm)
            axis.set_xlabel(_unit(strategies[label]))
        figure.colorbar(mesh, ax=axes, label="learning rate", fraction=0.05, pad=0.02)
        figure_style.legend(figure, [Patch(color=FROZEN, label="frozen"), *_phase_mark(rates_by_label)])
        figure_style.freeze_layout(figure)
    panels.write_picture(figure, path)


def _unit(phases: list[dict]) -> str:
    """Return what the horizontal axis of some phases counts."""
    units = {f"{EPOCH} updates" if "updates" in phase else "epoch" for phase in phases}
    return " or ".join(sorted(units, reverse=True))


def _panel(axis, matrix: np.ndarray, ends: list[float], norm):
    """Draw one strategy's rates [L + 2, S] over epochs, with a line where a new phase begins."""
    edges = np.arange(matrix.shape[1] + 1) / EPOCH
    axis.set_facecolor(FROZEN)
    mesh = axis.pcolormesh(edges, np.arange(len(matrix) + 1), matrix, norm=norm, cmap="viridis_r", rasterized=True)
    for end in np.cumsum(ends)[:-1]:
        axis.axvline(end, color="black", linewidth=1)
    axis.set(xlim=(0, edges[-1]), ylim=(len(matrix), 0))
    layers = len(matrix) - 2
    names = ["head", *(f"layer {n}" if layers <= 12 or n % 4 == 0 else "" for n in range(layers, 0, -1)), "embeddings"]
    axis.set_yticks(np.arange(len(matrix)) + 0.5, names)
    axis.tick_params(axis="y", length=0)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(False)
    return mesh


def _phase_mark(rates_by_label: dict) -> list:
    """Return the legend entry of the lines between phases, if there are any."""
    from matplotlib.lines import Line2D

    several = any(len(ends) > 1 for _, ends in rates_by_label.values())
    return [Line2D([], [], color="black", linewidth=1, label="start of a phase")] if several else []
