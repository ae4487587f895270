"""Figure: where edge probing finds a task, by the weights of a mix of layers and by what each layer adds."""

from pathlib import Path

import numpy as np

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import over_seeds
from thaw.outputs.frame.collection import shown_split, value
from thaw.statistics.layer_location import centre_of_gravity, deltas, divergence, expected_layer

KEYS = ["task", "subset", "encoder", "run", "probe"]
COLOURS = {"weight": "#0173b2", "delta": "#8b6fc0"}
AXES = {"weight": "Weight in the mix", "delta": "F1 added by the layer × 100"}
# What stands above a panel: the layer that its bars point to, and how far they are from equal.
SUMMARIES = {"weight": ("centre_of_gravity", "k_s"), "delta": ("expected_layer", "k_delta")}
NAMES = {"centre_of_gravity": "centre of gravity", "expected_layer": "expected layer"}


def mix_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw for each task the weights of the mix of all layers, and beside them what each layer adds to the score.

    Args: paths, the metrics.json of probes of kind edge; spec as step `figure` gets it. Raises UserError where there
    is no result, or one of an encoder of which a single layer was read.
    """
    if not paths:
        raise UserError("no edge probe of this experiment has a result yet; run the workflow first")
    found = quantities([read_json(path) for path in paths], paths, spec["split"], spec.get("negative", "keep"))
    cells = list(found.groupby(KEYS, sort=False))
    titles = [_title(key, rows, spec, found, kind) for key, rows in cells for kind in AXES]
    with figure_style.panels(titles, wide=2) as (figure, axes):
        for axis, (rows, kind) in zip(axes, ((rows, kind) for _, rows in cells for kind in AXES), strict=True):
            _bars(axis, rows, kind)
        figure_style.save(figure, prefix)
    numbers = found.round({name: 4 for name in ("mean", "low", "high")})
    write_text(f"{prefix}.csv", numbers.to_csv(index=False, lineterminator="\n"))


def quantities(records: list[dict], paths: list[Path], split: str, negative: str):
    """Return a row for each quantity of each probe, by layer where it has one: mean, low, high and number of seeds.

    Quantities: weight, score (of a mix of the layers up to this one) and delta, by layer, scores x 100; and for all
    layers centre_of_gravity and expected_layer in layers, k_s and k_delta in bits. Low and high are mean less and more
    the deviation from three seeds on, else the range. A seed for which one is not defined has no part in it.
    """
    import pandas

    rows = []
    for record, path in zip(records, paths, strict=True):
        of, main = value(record, path, "spec", "of"), value(record, path, "main")
        task = record["spec"]["task"]
        shown = shown_split(task, split)
        run = of.get("run", {})
        cell = {"task": of["task"], "subset": of["subset"], "encoder": of["encoder"]}
        cell |= {
            "run": " ".join([run["strategy"], run["variant"]]) if run else "",
            "probe": of["probe"],
            "split": shown,
        }
        for seed in record["spec"]["seeds"]:
            ends = [end for end in value(record, path, "layers") if end["seed"] == seed]
            layers = [end["layer"] for end in ends]
            if layers != list(range(len(layers))) or len(layers) < 2:
                raise UserError(f"{path}: a figure of mixes needs every layer; leave layers: out of the probe's entry")
            scores = [end["mix"]["scores"][shown][main] for end in ends]
            scores = [np.nan if score is None else 100 * score for score in scores]
            rows += [cell | {"seed": seed} | told for told in _of_seed(ends[-1]["mix"]["weights"], scores, negative)]
    keys = [*KEYS, "split", "quantity", "layer"]
    table = pandas.DataFrame(rows).astype({"value": float}).dropna(subset="value")
    return over_seeds(table, keys).drop(columns="sd")


def _of_seed(weights: list[float], scores: list[float], negative: str) -> list[dict]:
    """Return the quantities of one seed. Args: weights of the mix of all layers; scores of the mixes of 0 to l."""
    added = deltas(scores, negative)
    rows = [{"quantity": "weight", "layer": n, "value": weight} for n, weight in enumerate(weights)]
    rows += [{"quantity": "score", "layer": n, "value": score} for n, score in enumerate(scores)]
    rows += [{"quantity": "delta", "layer": n, "value": delta} for n, delta in enumerate(added.tolist(), 1)]
    whole = {
        "centre_of_gravity": centre_of_gravity(weights),
        "k_s": divergence(weights),
        "expected_layer": expected_layer(scores, negative),
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


def _title(key: tuple, rows, spec: dict, found, kind: str) -> str:
    """Return a panel's title: the task, what else tells it apart, and the layer that the bars point to."""
    labels = spec["labels"]
    name = wording.task_name(labels.get("tasks", {}), key[0])
    strategy = key[3].partition(" ")[0]
    others = {
        "subset": labels.get("subsets", {}).get(key[1], key[1]),
        "encoder": labels.get("encoders", {}).get(key[2], key[2]),
        "run": labels.get("strategies", {}).get(strategy, strategy) or "pretrained",
        "probe": spec["probes"].get(key[4], key[4]),
    }
    several = [text for column, text in others.items() if found[column].nunique() > 1]
    layer, bits = (rows[rows["quantity"] == quantity] for quantity in SUMMARIES[kind])
    told = f"{NAMES[SUMMARIES[kind][0]]} not defined"
    if len(layer):
        half = (layer.iloc[0]["high"] - layer.iloc[0]["low"]) / 2
        spread = f" ± {half:.2f}" if layer.iloc[0]["seeds"] > 1 else ""
        told = f"{NAMES[SUMMARIES[kind][0]]} {layer.iloc[0]['mean']:.2f}{spread}"
        told += f"; K {bits.iloc[0]['mean']:.2f} bits" if len(bits) else ""
    return "\n".join([", ".join([name, *several]), told])
