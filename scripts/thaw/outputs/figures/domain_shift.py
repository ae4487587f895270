"""Figure: score against the divergence of words, a point for each domain that was trained on and scored."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import run_key, run_names
from thaw.outputs.frame.collection import shown_split, value


def domain_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw the last layer's scores against divergence, a panel for each task and encoder.

    All layers are in the CSV. Args: paths, the metrics.json of probes of domains; spec as step `figure` gets it. Raises
    UserError where there is no result.
    """
    from matplotlib.lines import Line2D

    if not paths:
        raise UserError("no probe of domains has a result yet; run the workflow first")
    records = [read_json(path) for path in paths]
    found, runs = points(records, paths, spec["split"]), run_names(records, spec["labels"])
    last = found[found["layer"] == found.groupby(["task", "encoder"])["layer"].transform("max")]
    panels = list(last.groupby(["task", "encoder", "run"], sort=False))
    marks = figure_style.marks(last["tested"])
    with figure_style.panels([_title(key, spec, found, runs) for key, _ in panels]) as (figure, axes):
        for axis, (_, rows) in zip(axes, panels, strict=True):
            for row in rows.itertuples():
                colour, marker = marks[row.tested]
                face = colour if row.trained == row.tested else "white"
                axis.plot(row.divergence, row.score, marker, color=colour, markerfacecolor=face, zorder=4)
                axis.vlines(row.divergence, row.low, row.high, color=colour, linewidth=0.9)
            axis.set_xlabel("Divergence of words, bits")
            axis.set_ylabel(f"{wording.metric_name(spec['labels'], rows['measure'].iloc[0])} × 100")
        handles = [
            Line2D([], [], color=c, marker=m, linestyle="none", label=f"scored on {domain}")
            for domain, (c, m) in marks.items()
        ]
        hollow = {"marker": "o", "markerfacecolor": "white", "linestyle": "none", "color": figure_style.GREY}
        handles.append(Line2D([], [], label="fitted to another domain, or to all", **hollow))
        figure_style.legend(figure, handles)
        figure_style.save(figure, prefix)
    write_text(f"{prefix}.csv", found.round(4).to_csv(index=False, lineterminator="\n"))


def points(records: list[dict], paths: list[Path], split: str):
    """Return a row for each pair of domains and layer: divergence and score x 100, means over seeds, low and high.

    split: "test" (the first of a task) or "validation".
    """
    import pandas

    rows = []
    for record, path in zip(records, paths, strict=True):
        of, task = value(record, path, "spec", "of"), record["spec"]["task"]
        wanted = shown_split(task, split)
        name = {"task": of["task"], "subset": of["subset"], "encoder": of["encoder"]}
        name |= {"run": run_key(of), "measure": task["metrics"][0]}
        for end in value(record, path, "layers"):
            cells = [cell for cell in end["cells"] if cell["split"] == wanted]
            rows += [name | cell | {"layer": end["layer"]} for cell in cells]
    keys = [*name, "split", "layer", "trained", "tested"]
    groups = pandas.DataFrame(rows).astype({"score": float}).groupby(keys, sort=False)
    found = groups["score"].agg(["mean", "min", "max", "count"]) * [100, 100, 100, 1]
    found.columns = ["score", "low", "high", "seeds"]
    found.insert(0, "divergence", groups["divergence"].mean())
    return found.reset_index()


def _title(key: tuple, spec: dict, found, runs: dict[str, str]) -> str:
    """Return a panel's title: the task, and encoder and run where there are several."""
    name = wording.task_name(spec["labels"].get("tasks", {}), key[0])
    encoder = spec["labels"].get("encoders", {}).get(key[1], key[1])
    told = [encoder] * (found["encoder"].nunique() > 1) + [runs[key[2]]] * (found["run"].nunique() > 1)
    return "\n".join([name, *told])
