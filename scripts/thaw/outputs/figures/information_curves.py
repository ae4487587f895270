"""Figure: bits that layers share with the labels, or with the last layer; estimators stand in panels of their own."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import over_seeds, run_key, run_names, ticks
from thaw.outputs.frame.collection import shown_split, value

ESTIMATORS = {"edge": "EDGE", "kmeans": "k-means"}
WITH_LAST = {"with_last": "binned, not absolute", "cka_with_last": "CKA"}
AXES = {"with_last": "Bits shared with the last layer", "cka_with_last": "CKA with the last layer"}
LINE = ["encoder", "run"]
PANEL = ["task", "subset", "estimator"]
PROVED = 2  # standard errors over rows, on both sides of what is proved


def information_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw bits by layer, a panel for each task and estimator, a line for each encoder, pretrained or adapted.

    Args: paths, the metrics.json of probes; spec as step `figure` gets it. Raises UserError where there is no result.
    """
    if not paths:
        raise UserError("no probe of mutual information has a result yet; run the workflow first")
    kinds = WITH_LAST if spec.get("last") else ESTIMATORS
    records = [read_json(path) for path in paths]
    found = points(records, paths, spec["split"], list(kinds))
    panels = list(found.groupby(PANEL, sort=False))
    marks = figure_style.marks([" ".join(key) for key in found[LINE].drop_duplicates().itertuples(index=False)])
    with figure_style.panels([_title(key, spec, kinds) for key, _ in panels], wide=2) as (figure, axes):
        for axis, (key, rows) in zip(axes, panels, strict=True):
            for line, part in rows.groupby(LINE, sort=False):
                _draw(axis, part, *marks[" ".join(line)], bool(spec.get("last")), len(marks) == 1)
            axis.set_ylabel(AXES.get(key[2], "Bits shared with the labels"))
            axis.set_xlabel("Layer; 0: embeddings")
            axis.set_xticks(ticks(int(rows["layer"].max())))
            axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
        figure_style.legend(figure, _handles(found, marks, spec, run_names(records, spec["labels"])))
        figure_style.save(figure, prefix)
    write_text(f"{prefix}.csv", found.round(4).to_csv(index=False, lineterminator="\n"))


def points(records: list[dict], paths: list[Path], split: str, kinds: list[str]):
    """Return a row for each line, layer and estimator: means over seeds of what the record says, and a flag.

    Beside the mean stand low and high over seeds (mean less and more the deviation from three on, else the range) and
    lowest and highest of the sweep. The flag says `below bound` where the estimate is less than is proved, `noise`
    where it is no more than shuffled labels give. split: "test" (the first of a task) or "validation".
    """
    import pandas

    rows = []
    for record, path in zip(records, paths, strict=True):
        of, task = value(record, path, "spec", "of"), record["spec"]["task"]
        wanted = shown_split(task, split)
        line = {"encoder": of["encoder"], "run": run_key(of)}
        for end in value(record, path, "layers"):
            scores = end["scores"][wanted]
            for kind in (kind for kind in kinds if kind in scores):
                row = {"task": of["task"], "subset": of["subset"], "estimator": kind, **line, "split": wanted}
                own = {name.removeprefix(f"{kind}_"): score for name, score in scores.items() if name.startswith(kind)}
                row |= {"layer": end["layer"], "bits": own.pop(kind)} | own
                rows.append(row | {name: scores[name] for name in ("bound", "bound_error", "entropy")})
    keys = ["task", "subset", "estimator", *LINE, "split", "layer"]
    table = pandas.DataFrame(rows)
    found = table.groupby(keys, sort=False).mean()
    spread = over_seeds(table.assign(value=table["bits"]), keys).set_index(keys)
    found = found.join(spread[["low", "high", "seeds"]])
    found["flag"] = ""
    labelled = found.index.get_level_values("estimator").isin(list(ESTIMATORS))
    found.loc[labelled & (found["bits"] < found["bound"]), "flag"] = "below bound"
    found.loc[labelled & (found["bits"] <= found["noise"]), "flag"] = "noise"
    return found.reset_index()


def _draw(axis, part, colour, marker, last: bool, alone: bool) -> None:
    """Draw one line with its sweep, its seeds, what shuffled labels give, and what is proved."""
    layers = part["layer"]
    if "lowest" in part and part["lowest"].notna().all():
        axis.fill_between(layers, part["lowest"], part["highest"], color=colour, alpha=0.15, linewidth=0)
    bars = [part["bits"] - part["low"], part["high"] - part["bits"]]
    axis.errorbar(layers, part["bits"], yerr=bars, color=colour, zorder=4, capsize=2, elinewidth=0.9)
    for flagged, face in ((part["flag"] != "", "white"), (part["flag"] == "", colour)):
        look = {"facecolor": face, "edgecolor": [colour], "marker": marker, "s": 26, "zorder": 5}
        axis.scatter(layers[flagged], part["bits"][flagged], **look)
    if not last:
        axis.plot(layers, part["shuffled"], color=colour, linestyle=figure_style.BROKEN[1], linewidth=1)
        error = PROVED * part["bound_error"]
        shade = "black" if alone else colour
        axis.plot(layers, part["bound"], color=shade, linestyle=figure_style.BROKEN[0], linewidth=1)
        axis.fill_between(layers, part["bound"] - error, part["bound"] + error, color=shade, alpha=0.08, linewidth=0)


def _handles(found, marks: dict, spec: dict, runs: dict[str, str]) -> list:
    """Return the entries of the legend; runs, the names of pretrained and adapted encoders."""
    from matplotlib.lines import Line2D

    lines = list(found[LINE].drop_duplicates().itertuples(index=False))
    handles = []
    for line in lines:
        colour, marker = marks[" ".join(line)]
        handles.append(Line2D([], [], color=colour, marker=marker, label=_name(line, spec, found, runs)))
    if spec.get("last"):
        return handles
    look = {"color": figure_style.GREY, "linewidth": 1}
    handles.append(Line2D([], [], linestyle=figure_style.BROKEN[0], label="proved by a held-out probe", **look))
    handles.append(Line2D([], [], linestyle=figure_style.BROKEN[1], label="of shuffled labels, taken off", **look))
    hollow = {"marker": "o", "markerfacecolor": "white", "linestyle": "none"}
    return [*handles, Line2D([], [], color=figure_style.GREY, label="less than is proved, or noise", **hollow)]


def _name(line, spec: dict, found, runs: dict[str, str]) -> str:
    """Return a line's name: its encoder, pretrained or as runs left it where there are several."""
    encoder = spec["labels"].get("encoders", {}).get(line.encoder, line.encoder)
    return encoder if found["run"].nunique() == 1 else f"{encoder}; {runs[line.run]}"


def _title(key: tuple, spec: dict, kinds: dict) -> str:
    """Return a panel's title: task and estimator."""
    return f"{wording.task_name(spec['labels'].get('tasks', {}), key[0])}: {kinds[key[2]]}"
