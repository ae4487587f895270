"""Figure: gradient norm of each layer in each epoch of training."""

from thaw.declarations.output_kind import OutputKind, Requirement

FIGURES = {
    "gradient_figure": OutputKind(
        "thaw.papers.gradient_norms:build",
        "norm of each layer's gradient by epoch, a panel for each task and strategy; needs `gradients: true` in the "
        "experiment",
        needs=(Requirement.GRADIENTS,),
    ),
}


from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.evaluation.result_files import GRADIENT
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.probe_frame import Names
from thaw.outputs.frame.runs_frame import CELL, RUN
from thaw.words import wording

LOOKS = {"head": {"color": "black", "linestyle": figure_style.BROKEN[0]}}
LOOKS["embeddings"] = {"color": figure_style.GREY, "linestyle": figure_style.BROKEN[1]}


def build(data, spec: dict) -> panels.Figure:
    """Return for each task and strategy the norm of each layer's gradient by epoch, on a logarithmic axis."""
    frame = norms(data)
    names, looks = Names(spec, frame), _looks(sorted(set(frame["layer"]) - set(LOOKS), key=_number))

    def draw(axis, cell, rows) -> None:
        for layer, part in rows.groupby("layer", sort=False):
            axis.plot(part["passed"], part["mean"], marker="o", markersize=2.5, **looks[layer])
            band = {"alpha": 0.12, "linewidth": 0, "color": looks[layer]["color"]}
            axis.fill_between(part["passed"], part["low"], part["high"], **band)
        for begins in rows.loc[rows["phase"].diff() > 0, "passed"]:
            axis.axvline(begins - 0.5, color="#c4c9d0", linewidth=0.7)
        _axes(axis, frame)

    def title(cell: dict) -> str:
        words = [wording.strategy_name(names.labels, cell["strategy"], cell["variant"])]
        words += names.several(cell, "subset", "encoder", "head")
        return f"{names.of('task', cell['task'])}\n{', '.join(words)}"

    drawn = panels.grouped(frame, CELL, title, draw)
    legend = _legend(looks, frame) + panels.band_entry(frame, deviation=False)
    return panels.compose(drawn, frame.drop(columns=["passed", "by_updates"]), legend, digits=8)


def _axes(axis, frame) -> None:
    """Label the axes; the vertical one is the same in all panels, with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_yscale("log")
    axis.set_ylim(frame["low"].min() / 1.2, frame["high"].max() * 1.2)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel("Gradient norm")
    axis.set_xlabel("Epoch, or evaluation" if frame["by_updates"].any() else "Epoch")
    axis.xaxis.get_major_locator().set_params(integer=True)


def norms(data):
    """Return a row for each cell, epoch and layer: mean, low and high over seeds, and `passed`, epochs of all phases.

    Of a run that has a phase with `updates` (`by_updates`) an epoch is the part between two evaluations. Layers
    that no run of a cell trained in an epoch have no row. Raises UserError if no run recorded gradients.
    """
    import pandas

    noted, runs = [], data.runs
    for row in runs[(runs["kind"] == "run") & (runs["missing"] == "")].drop_duplicates(RUN).to_dict("records"):
        path = data.folder(row) / "history.csv"
        history = pandas.read_csv(path) if path.is_file() else pandas.DataFrame()
        columns = [name for name in history if name.startswith(GRADIENT)]
        if columns:
            last = history.groupby(["phase", "epoch"], as_index=False).last()
            last["passed"] = range(1, len(last) + 1)
            long = last.melt(["phase", "epoch", "passed"], columns, "layer", "norm").dropna()
            phases = read_json(data.folder(row) / "metrics.json")["spec"].get("phases", [])
            long["by_updates"] = any(phase.get("updates") for phase in phases)
            noted.append(long.assign(**{name: row[name] for name in CELL}))
    if not noted:
        raise UserError(
            "no run of this experiment recorded its gradients; set gradients: true and run the workflow again"
        )
    table = pandas.concat(noted)
    table["layer"] = table["layer"].str.removeprefix(GRADIENT)
    groups = table.groupby([*CELL, "phase", "epoch", "passed", "layer", "by_updates"], sort=False)["norm"]
    return groups.agg(mean="mean", low="min", high="max", seeds="count").reset_index()


def _number(layer: str) -> int:
    """Return n of layer.n."""
    return int(layer.partition(".")[2])


def _looks(layers: list[str]) -> dict[str, dict]:
    """Return how each line is drawn: layers from dark, the lowest, to light."""
    from matplotlib import colormaps

    shades = colormaps["viridis"]
    return {
        layer: {"color": shades(0.95 * index / max(1, len(layers) - 1))} for index, layer in enumerate(layers)
    } | LOOKS


def _legend(looks: dict, frame) -> list:
    names = {"embeddings": "Embeddings"} | {layer: f"Layer {_number(layer)}" for layer in looks if layer not in LOOKS}
    names["head"] = "Head"
    return [panels.entry(name, **looks[layer]) for layer, name in names.items() if layer in set(frame["layer"])]
