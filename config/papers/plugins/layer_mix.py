"""Figure: the layers that edge probing uses for a task, by mixing weights and by the gain of each layer.

Tenney, Das and Pavlick 2019, sections 3.1 and 3.2. Layers count from 0, the embeddings, to L.
"""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import Addition, OutputKind, Requirement

FIGURES = {
    "mix_figure": OutputKind(
        "thaw.papers.layer_mix:build",
        "edge probing: the weights of the mix of all layers with their centre of gravity, and what each layer adds, "
        "with the expected layer",
        options.SplitOptions,
        needs=(Requirement.PROBES, Requirement.ALL_LAYERS),
        adds=(Addition.PROBES,),
    ),
}


from collections.abc import Sequence
from functools import partial

import numpy as np

from thaw.core.errors import UserError
from thaw.outputs.figures import panels
from thaw.outputs.frame.probe_frame import PROBED, Names, ProbeRecord, over_seeds, run_names
from thaw.words import wording

KEYS = [*PROBED, "probe"]
COLOURS = {"weight": "#0173b2", "delta": "#8b6fc0"}
AXES = {"weight": "Weight in the mix", "delta": "F1 added by the layer × 100"}
# Titles of the panels: the expected layer of the bars, and their divergence from uniform.
SUMMARIES = {"weight": ("centre_of_gravity", "k_s"), "delta": ("expected_layer", "k_delta")}
NAMES = {"centre_of_gravity": "centre of gravity", "expected_layer": "expected layer"}


def build(data, spec: dict) -> panels.Figure:
    """Return for each task the weights of the mix of all layers, and the gain of each layer.

    Raises UserError where there is no result, or one of an encoder of which a single layer was read.
    """
    frame = quantities(data.probes, spec["split"])
    names, drawn = Names(spec, frame, run_names(data.probes, spec["labels"])), []
    for key, rows in frame.groupby(KEYS, sort=False):
        cell = dict(zip(KEYS, key, strict=True))
        words = names.title_words(cell, "subset", "encoder", "run", "probe")
        for kind in AXES:
            title = f"{', '.join(words)}\n{_summary(rows, kind)}"
            drawn.append(panels.Panel(title, partial(_bars, rows=rows, kind=kind)))
    return panels.compose(drawn, frame, wide=2)


def quantities(records: list[ProbeRecord], split: str):
    """Return a row for each quantity of each probe, by layer where it has one: mean, low, high and number of seeds.

    Quantities: weight, score (of a mix of the layers up to this one) and delta, by layer, scores x 100; and for all
    layers centre_of_gravity and expected_layer in layers, k_s and k_delta in bits. Low and high are mean ±
    standard deviation from three seeds on, else the range. Undefined values of a seed are left out.
    """
    import pandas

    rows = []
    for record in records:
        main, shown = record.value("main"), record.split(split)
        cell = record.cell | {"split": shown}
        for seed in record.record["spec"]["seeds"]:
            ends = [end for end in record.value("layers") if end["seed"] == seed]
            layers = [end["layer"] for end in ends]
            if layers != list(range(len(layers))) or len(layers) < 2:
                raise UserError(
                    f"{record.path}: a figure of mixes needs every layer; leave layers: out of the probe's entry"
                )
            scores = [end["mix"]["scores"][shown][main] for end in ends]
            scores = [np.nan if score is None else 100 * score for score in scores]
            rows += [cell | row for row in _of_seed(ends[-1]["mix"]["weights"], scores)]
    keys = [*KEYS, "split", "quantity", "layer"]
    table = pandas.DataFrame(rows).astype({"value": float}).dropna(subset="value")
    return over_seeds(table, keys)


def _of_seed(weights: list[float], scores: list[float]) -> list[dict]:
    """Return the quantities of one seed. Args: weights of the mix of all layers; scores of the mixes of 0 to l."""
    added = deltas(scores)
    rows = [{"quantity": "weight", "layer": n, "value": weight} for n, weight in enumerate(weights)]
    rows += [{"quantity": "score", "layer": n, "value": score} for n, score in enumerate(scores)]
    rows += [{"quantity": "delta", "layer": n, "value": delta} for n, delta in enumerate(added.tolist(), 1)]
    whole = {
        "centre_of_gravity": centre_of_gravity(weights),
        "k_s": divergence(weights),
        "expected_layer": expected_layer(scores),
        "k_delta": divergence(added),
    }
    return rows + [{"quantity": name, "layer": "", "value": number} for name, number in whole.items()]


def _bars(axis, rows, kind: str) -> None:
    """Draw bars by layer with their spread, and a line where they point to, with its spread as a band."""
    bars = rows[rows["quantity"] == kind]
    layers = bars["layer"].astype(int)
    spread = np.array([bars["mean"] - bars["low"], bars["high"] - bars["mean"]])
    look = {"ecolor": "#30353b", "error_kw": {"linewidth": 0.9}, "zorder": 3}
    axis.bar(layers, bars["mean"], color=COLOURS[kind], yerr=spread, width=0.75, **look)
    centre = rows[rows["quantity"] == SUMMARIES[kind][0]]
    if len(centre):
        at = centre.iloc[0]
        axis.axvspan(at["low"], at["high"], color="#d55e00", alpha=0.25, linewidth=0, zorder=2)
        axis.axvline(at["mean"], color="#d55e00", linewidth=1.3, zorder=4)
    axis.axhline(0, color="#3b3f45", linewidth=0.6)
    axis.set_ylabel(AXES[kind])
    axis.set_xlabel("Layer; 0: embeddings")
    axis.set_xlim(-0.6, rows[rows["quantity"] == "weight"]["layer"].astype(int).max() + 0.6)
    axis.set_xticks(layers if len(layers) <= 13 else layers[::4])


def _summary(rows, kind: str) -> str:
    """Return the layer that a panel's bars point to, and how far they are from equal."""
    layer, bits = (rows[rows["quantity"] == quantity] for quantity in SUMMARIES[kind])
    name = NAMES[SUMMARIES[kind][0]]
    if layer.empty:
        return f"{name} not defined"
    at = layer.iloc[0]
    spread = wording.spread(at["sd"], at["seeds"], 2)
    return f"{name} {at['mean']:.2f}{spread}" + (f"; K {bits.iloc[0]['mean']:.2f} bits" if len(bits) else "")


def centre_of_gravity(weights: Sequence[float]) -> float:
    """Return the mean layer under the weights of a mix [L + 1], which add up to 1 (equation 2)."""
    return float(np.arange(len(weights)) @ np.asarray(weights))


def deltas(scores: Sequence[float]) -> np.ndarray:
    """Return what each layer adds to the score of a mix of those below it, [L] (equation 3).

    Args: scores of mixes of the layers 0 to l, [L + 1].
    """
    return np.diff(np.asarray(scores, dtype=float))


def expected_layer(scores: Sequence[float]) -> float | None:
    """Return the mean layer under the differences of scores (equation 4); None where they do not add up to more than 0.

    The published code keeps negative differences here, though not in the divergence
    (https://github.com/nyu-mll/jiant, probing/analysis_bertlayer_ACL_camera_ready.ipynb).
    """
    differences = deltas(scores)
    return float(np.arange(1, len(scores)) @ differences / differences.sum()) if differences.sum() > 0 else None


def divergence(shares: Sequence[float]) -> float | None:
    """Return the bits between shares and equal ones: 0 where all are equal, log2 of their number where one has all.

    They need not add up to 1. Negative ones count as 0, as in the published code; None where nothing is left.
    """
    distribution = np.maximum(np.asarray(shares, dtype=float), 0)
    if not distribution.sum() > 0:
        return None
    distribution = distribution / distribution.sum()
    positive = distribution[distribution > 0]
    return float(positive @ np.log2(positive * len(distribution)))
