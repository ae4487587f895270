"""Figure: how much runs changed of each layer, beside how far two seeds are apart."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.figures.probe_curves import PRETRAINED, read, run_key, run_names, ticks

BETWEEN = "between_seeds"
# what stands on the axis
MEASURES = {
    "cka": "CKA; 1: no change",
    "rsa": "RSA; 1: no change",
    "svcca": "SVCCA; 1: no change",
    "attention_similarity": "Cosine; 1: no change",
    "weight_distance": "Distance, share of the norm",
}
KEYS = ["task", "subset", "encoder", "probe", "run", "against"]


def change_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw each measure by layer, a panel for each task and probe, a line for each strategy.

    Whole lines compare with the pretrained encoder, broken ones two seeds of the same strategy; bands go from the
    lowest to the highest seed. Args: the metrics.json of probes; spec as step `figure` gets it. Raises UserError where
    there is no result.
    """
    from matplotlib.lines import Line2D

    records = read(paths)
    found, runs = changes(records), run_names(records, spec["labels"])
    marks = figure_style.marks(runs)
    several = found["encoder"].nunique() > 1
    panels = list(found.groupby(["task", "subset", "encoder", "probe"], sort=False))
    with figure_style.panels([_title(key, spec, several, found) for key, _ in panels]) as (figure, axes):
        for axis, (_, rows) in zip(axes, panels, strict=True):
            for (run, against), part in rows.groupby(["run", "against"], sort=False):
                colour, marker = marks[run]
                whole = against == PRETRAINED
                look = {"marker": marker} if whole else {"linestyle": figure_style.BROKEN[0], "linewidth": 1.0}
                axis.plot(part["layer"], part["mean"], color=colour, zorder=4 if whole else 3, **look)
                axis.fill_between(part["layer"], part["low"], part["high"], color=colour, alpha=0.15, linewidth=0)
            axis.set_ylabel(MEASURES[rows["measure"].iloc[0]])
            axis.set_xlabel("Layer; 0: embeddings")
            axis.set_xticks(ticks(int(rows["layer"].max())))
            if rows["measure"].iloc[0] == "weight_distance":
                axis.set_ylim(bottom=0)
        handles = [
            Line2D([], [], color=c, marker=m, label=f"{runs[run]}, with pretrained") for run, (c, m) in marks.items()
        ]
        look = {"color": figure_style.GREY, "linestyle": figure_style.BROKEN[0], "linewidth": 1.0}
        handles.append(Line2D([], [], label="Two seeds of the strategy, in its colour", **look))
        figure_style.legend(figure, handles)
        figure_style.save(figure, prefix)
    write_text(f"{prefix}.csv", found.round(6).to_csv(index=False, lineterminator="\n"))


def changes(records: list[dict]):
    """Return a row for each run, layer and what it is compared with: mean, low, high and number of seeds.

    Raises UserError where nothing was measured.
    """
    import pandas

    rows = []
    for record in records:
        of, kind = record["spec"]["of"], record["main"]
        for end in record["layers"]:
            (scores,) = end["scores"].values()
            common = {**of, "run": run_key(of), "measure": kind, "layer": end["layer"]}
            for against, name in ((PRETRAINED, kind), (BETWEEN, BETWEEN)):
                rows.append(common | {"against": against, "value": scores[name]})
    if not rows:
        raise UserError("nothing was compared: no encoder here has what these probes compare")
    table = pandas.DataFrame(rows).astype({"value": float})
    found = table.groupby([*KEYS, "measure", "layer"], sort=False)["value"].agg(["mean", "min", "max", "count"])
    return found.reset_index().rename(columns={"min": "low", "max": "high", "count": "seeds"})


def _title(key: tuple, spec: dict, several: bool, found) -> str:
    """Return a panel's title: task and probe, the encoder and the subset where there are several."""
    task, subset, encoder, probe = key
    labels = spec["labels"]
    told = [wording.task_name(labels.get("tasks", {}), task), spec["probes"].get(probe, probe)]
    told += [labels.get("encoders", {}).get(encoder, encoder)] * several
    told += [labels.get("subsets", {}).get(subset, subset)] * (found["subset"].nunique() > 1)
    return "\n".join([told[0], ", ".join(told[1:])])
