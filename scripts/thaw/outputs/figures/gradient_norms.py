"""Figure: how large the gradients of each layer were in each epoch of training."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.evaluation.result_files import GRADIENT
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.frame.runs_frame import CELL, RUN

LOOKS = {"head": {"color": "black", "linestyle": figure_style.BROKEN[0]}}
LOOKS["embeddings"] = {"color": figure_style.GREY, "linestyle": figure_style.BROKEN[1]}


def gradient_figure(runs, spec: dict, results: Path, prefix) -> None:
    """Draw for each task and strategy the norm of each layer's gradient by epoch, on a logarithmic axis.

    Args: runs as `read_runs` gives them; spec as step `figure` gets it; results, below which the runs lie. Raises
    UserError where no run has noted any.
    """
    found = norms(runs, results)
    panels = list(found.groupby(CELL, sort=False))
    several = [name for name in CELL if name not in ("task", "strategy", "variant") and found[name].nunique() > 1]
    titles = [_title(dict(zip(CELL, key, strict=True)), spec["labels"], several) for key, _ in panels]
    layers = sorted(set(found["layer"]) - set(LOOKS), key=_number)
    looks = _looks(layers)
    with figure_style.panels(titles) as (figure, axes):
        for axis, (_, rows) in zip(axes, panels, strict=True):
            for layer, part in rows.groupby("layer", sort=False):
                axis.plot(part["passed"], part["mean"], marker="o", markersize=2.5, **looks[layer])
                axis.fill_between(
                    part["passed"], part["low"], part["high"], alpha=0.12, linewidth=0, color=looks[layer]["color"]
                )
            for begins in rows.loc[rows["phase"].diff() > 0, "passed"]:
                axis.axvline(begins - 0.5, color="#c4c9d0", linewidth=0.7)
            _axes(axis, found)
        figure_style.legend(figure, _handles(looks, found))
        figure_style.save(figure, prefix)
    numbers = found.drop(columns="passed").to_csv(index=False, lineterminator="\n", float_format="%.6g")
    write_text(f"{prefix}.csv", numbers)


def _axes(axis, found) -> None:
    """Label the axes; the vertical one is the same in all panels, with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_yscale("log")
    axis.set_ylim(found["low"].min() / 1.2, found["high"].max() * 1.2)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel("Norm of the gradient")
    axis.set_xlabel("Epoch")
    axis.xaxis.get_major_locator().set_params(integer=True)


def norms(runs, results: Path):
    """Return a row for each cell, epoch and layer: mean, low and high over seeds, and `passed`, epochs of all phases.

    What no run of a cell trained in an epoch has no row there.
    """
    import pandas

    told = []
    for row in runs[(runs["kind"] == "run") & (runs["missing"] == "")].drop_duplicates(RUN).to_dict("records"):
        path = results / row["folder"] / "history.csv"
        history = pandas.read_csv(path) if path.is_file() else pandas.DataFrame()
        columns = [name for name in history if name.startswith(GRADIENT)]
        if columns:
            last = history.groupby(["phase", "epoch"], as_index=False).last()
            last["passed"] = range(1, len(last) + 1)
            long = last.melt(["phase", "epoch", "passed"], columns, "layer", "norm").dropna()
            told.append(long.assign(**{name: row[name] for name in CELL}))
    if not told:
        raise UserError("no run here has noted its gradients; say gradients: true, and run the workflow again")
    table = pandas.concat(told)
    table["layer"] = table["layer"].str.removeprefix(GRADIENT)
    groups = table.groupby([*CELL, "phase", "epoch", "passed", "layer"], sort=False)["norm"]
    return groups.agg(mean="mean", low="min", high="max", seeds="count").reset_index()


def _number(layer: str) -> int:
    """Return n of layer.n."""
    return int(layer.partition(".")[2])


def _looks(layers: list[str]) -> dict[str, dict]:
    """Return how each line is drawn: layers from dark, the lowest, to light."""
    from matplotlib import colormaps

    shades = colormaps["viridis"]
    return {
        layer: {"color": shades(0.95 * place / max(1, len(layers) - 1))} for place, layer in enumerate(layers)
    } | LOOKS


def _handles(looks: dict, found) -> list:
    """Return the entries of the legend, from the embeddings up."""
    from matplotlib.lines import Line2D

    names = {"embeddings": "Embeddings"} | {layer: f"Layer {_number(layer)}" for layer in looks if layer not in LOOKS}
    names["head"] = "Head"
    return [Line2D([], [], label=name, **looks[layer]) for layer, name in names.items() if layer in set(found["layer"])]


def _title(cell: dict, labels: dict, several: list[str]) -> str:
    """Return a panel's title: task and strategy, and what else differs between panels."""
    told = [wording.strategy_name(labels.get("strategies", {}), cell["strategy"], cell["variant"])]
    told += [labels.get(f"{name}s", {}).get(cell[name], cell[name]) for name in several]
    return f"{wording.task_name(labels.get('tasks', {}), cell['task'])}\n{', '.join(told)}"
