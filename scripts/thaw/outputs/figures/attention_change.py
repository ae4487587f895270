"""Figure: how alike the attention of each head is before and after adaptation, a grid of layers and heads."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import read, run_key, run_names

BETWEEN = "between_seeds"


def attention_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw a grid for each task and strategy, and to its right that of two seeds; colours have one scale.

    Args: the metrics.json of probes; spec as step `figure` gets it. Raises UserError where there is no result.
    """
    records = read(paths)
    found = heads(records)
    runs = run_names(records, spec["labels"])
    grids = list(found.groupby(["task", "subset", "encoder", "run", "against"], sort=False))
    low, layers = found["cosine"].min(), sorted(found["layer"].unique())
    with figure_style.panels([_title(key, spec, runs, found) for key, _ in grids], wide=2) as (figure, axes):
        for axis, (_, rows) in zip(axes, grids, strict=True):
            grid = rows.pivot(index="layer", columns="head", values="cosine").to_numpy()
            image = axis.imshow(grid, vmin=min(low, 0.99), vmax=1.0, cmap="viridis", aspect="auto", origin="lower")
            axis.grid(False)
            axis.set_yticks(range(len(layers)), layers)
            axis.set_xlabel("Head")
            axis.set_ylabel("Layer")
        figure.colorbar(image, ax=axes, shrink=0.8, aspect=30).set_label("Cosine of maps; 1: no change")
        figure_style.save(figure, prefix)
    write_text(f"{prefix}.csv", found.round(6).to_csv(index=False, lineterminator="\n"))


def heads(records: list[dict]):
    """Return a row for each run, layer and head: the mean cosine over seeds, with pretrained and between two seeds."""
    import pandas

    rows = []
    for record in records:
        of, kind = record["spec"]["of"], record["main"]
        for end in record["layers"]:
            for name, values in end["heads"].items():
                common = {key: of[key] for key in ("task", "subset", "encoder")}
                common |= {"run": run_key(of), "against": "pretrained" if name == kind else BETWEEN}
                rows += [common | {"layer": end["layer"], "head": n, "cosine": v} for n, v in enumerate(values)]
    if not rows:
        raise UserError("no attention maps were compared")
    table = pandas.DataFrame(rows).astype({"cosine": float})
    return (
        table.groupby([name for name in table.columns if name != "cosine"], sort=False)["cosine"].mean().reset_index()
    )


def _title(key: tuple, spec: dict, runs: dict[str, str], found) -> str:
    """Return a grid's title: task and strategy, and what is compared."""
    task, _, encoder, run, against = key
    told = [wording.task_name(spec["labels"].get("tasks", {}), task)]
    told += [spec["labels"].get("encoders", {}).get(encoder, encoder)] * (found["encoder"].nunique() > 1)
    return f"{', '.join(told)}\n{runs[run]}\n" + ("two seeds" if against == BETWEEN else "with pretrained")
