"""Figure: how important each attention head is, and what is left without those that are least so."""

from pathlib import Path

from thaw.core.files import write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import read, run_key, run_names

ORDERS = {"importance": "least important first", "random": "in random order"}
KEYS = ["task", "subset", "encoder", "run"]


def heads_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw for each task and encoder a grid of heads, and beside it the score by share of heads removed.

    Args: paths, the metrics.json of probes of heads; spec as step `figure` gets it. Raises UserError where there is no
    result.
    """
    from matplotlib.lines import Line2D

    records = read(paths)
    found, runs = points(records), run_names(records, spec["labels"])
    panels = [(key, kind, rows) for key, part in found.groupby(KEYS, sort=False) for kind, rows in part.groupby("kind")]
    marks = figure_style.marks(ORDERS)
    titles = [_title(key, kind, spec, runs, found) for key, kind, _ in panels]
    with figure_style.panels(titles, wide=2) as (figure, axes):
        for axis, (_, kind, rows) in zip(axes, panels, strict=True):
            if kind == "head":
                _grid(figure, axis, rows)
            else:
                _curves(axis, rows, marks, spec["labels"])
        figure_style.legend(
            figure,
            [Line2D([], [], color=c, marker=m, label=f"heads removed {ORDERS[o]}") for o, (c, m) in marks.items()],
        )
        figure_style.save(figure, prefix)
    write_text(f"{prefix}.csv", found.round(4).to_csv(index=False, lineterminator="\n"))


def points(records: list[dict]):
    """Return a row for each head (kind `head`) and for each share removed (`removed`): mean, low and high over seeds.

    The value of a head is its importance over the norm of its layer's, that of a share the score x 100.
    """
    import pandas

    rows = []
    for record in records:
        of = record["spec"]["of"]
        common = {key: of[key] for key in KEYS[:3]} | {
            "run": run_key(of),
            "measure": record["spec"]["task"]["metrics"][0],
        }
        for end in record["layers"]:
            own = common | {"kind": "head", "layer": end["layer"]}
            rows += [own | {"head": head, "value": value} for head, value in enumerate(end["heads"])]
            for entry in end.get("removed", []):
                told = {"order": entry["order"], "share": entry["share"]}
                score = None if entry["score"] is None else 100 * entry["score"]
                rows.append(common | {"kind": "removed", **told, "value": score})
    table = pandas.DataFrame(rows).astype({"value": float})
    groups = table.groupby([name for name in table.columns if name != "value"], sort=False, dropna=False)["value"]
    return groups.agg(mean="mean", low="min", high="max", seeds="count").reset_index()


def _grid(figure, axis, rows) -> None:
    """Draw the importance of each layer's heads."""
    grid = rows.pivot(index="layer", columns="head", values="mean")
    image = axis.imshow(grid.to_numpy(), vmin=0, cmap="viridis", aspect="auto", origin="lower")
    axis.grid(False)
    axis.set_yticks(range(len(grid)), [int(layer) for layer in grid.index])
    axis.set_xlabel("Head")
    axis.set_ylabel("Layer")
    figure.colorbar(image, ax=axis, label="Importance, of its layer's norm")


def _curves(axis, rows, marks: dict, labels: dict) -> None:
    """Draw the score by share of heads removed, in both orders."""
    for order, part in rows.groupby("order", sort=False):
        colour, marker = marks[order]
        axis.plot(100 * part["share"], part["mean"], color=colour, marker=marker, zorder=4)
        axis.fill_between(100 * part["share"], part["low"], part["high"], color=colour, alpha=0.2, linewidth=0)
    axis.set_xlabel("Heads removed, %")
    axis.set_ylabel(f"{wording.metric_name(labels, rows['measure'].iloc[0])} × 100, validation")


def _title(key: tuple, kind: str, spec: dict, runs: dict[str, str], found) -> str:
    """Return a panel's title: the task, the encoder and the run where there are several."""
    told = [wording.task_name(spec["labels"].get("tasks", {}), key[0])]
    told += [spec["labels"].get("encoders", {}).get(key[2], key[2])] * (found["encoder"].nunique() > 1)
    told += [runs[key[3]]] * (found["run"].nunique() > 1)
    return ", ".join(told) + ("\nimportance of heads" if kind == "head" else "\nwithout heads")
