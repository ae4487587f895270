"""Figure: what a probe reads off each layer, from the embeddings to the last.

A line for each encoder and probe, as it was pretrained and as runs left it.
"""

from pathlib import Path

from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.frame.collection import shown_split, value

PRETRAINED = "pretrained"
LINE = ["encoder", "probe", "run"]
PANEL = ["task", "subset", "measure"]
CHANCE = {"uuas": "Chain of words"}  # what the broken line is, where it is no majority
MEASURES = {"selectivity": ("Selectivity × 100", 100), "compression": ("Compression, times", 1)}
MEASURES |= {"logme": ("LogME, nats a vector", 1)}


def probe_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw the scores by layer, a panel for each task, subset and measure, with a band over seeds.

    Args: paths, the metrics.json of probes; spec as step `figure` gets it. Scores of unlike kinds share no axis. A
    broken line is what the most frequent answer scores. Raises UserError where there is no result.
    """
    from matplotlib.lines import Line2D

    records = read(paths)
    found, majority = points(records, paths, spec["split"])
    panels = list(found.groupby(PANEL, sort=False))
    marks = figure_style.marks([" ".join(key) for key in found[LINE].drop_duplicates().itertuples(index=False)])
    with figure_style.panels([_title(key, spec, found) for key, _ in panels]) as (figure, axes):
        for axis, (key, rows) in zip(axes, panels, strict=True):
            for line, part in rows.groupby(LINE, sort=False):
                colour, marker = marks[" ".join(line)]
                axis.plot(part["layer"], part["mean"], color=colour, marker=marker, zorder=4)
                axis.fill_between(part["layer"], part["low"], part["high"], color=colour, alpha=0.2, linewidth=0)
            if majority.get(key) is not None:
                axis.axhline(majority[key], color=figure_style.GREY, linestyle=figure_style.BROKEN[0], linewidth=0.9)
            axis.set_ylabel(_axis(key[2], spec["labels"])[0])
            axis.set_xlabel("Layer; 0: embeddings")
            axis.set_xticks(ticks(int(rows["layer"].max())))
        runs = run_names(records, spec["labels"])
        names = {line: _name(line, spec, found, runs) for line in found[LINE].drop_duplicates().itertuples(index=False)}
        looks = {line: marks[" ".join(line)] for line in names}
        handles = [Line2D([], [], color=c, marker=m, label=names[line]) for line, (c, m) in looks.items()]
        if majority:
            look = {"color": figure_style.GREY, "linestyle": figure_style.BROKEN[0], "linewidth": 0.9}
            names = dict.fromkeys(CHANCE.get(key[2], wording.BASELINE_LABELS["majority"]) for key in majority)
            handles.append(Line2D([], [], label="; ".join(names), **look))
        figure_style.legend(figure, handles)
        figure_style.save(figure, prefix)
    numbers = found.round({name: 4 for name in ("mean", "sd", "low", "high")})
    write_text(f"{prefix}.csv", numbers.to_csv(index=False, lineterminator="\n"))


def read(paths: list[Path]) -> list[dict]:
    """Return the records of probes. Raises UserError where there is none."""
    if not paths:
        raise UserError("no probe of this experiment has a result yet; run the workflow first")
    return [read_json(path) for path in paths]


def run_key(of: dict) -> str:
    """Return which runs left an encoder, as one word, from what a record says of itself.

    Their task is told where they were trained on another one than is probed, so that runs of one strategy, each probed
    on its own task, are one line of a figure.
    """
    if "run" not in of:
        return PRETRAINED
    return ".".join(value for name, value in of["run"].items() if name != "task" or value != of["task"])


def run_names(records: list[dict], labels: dict) -> dict[str, str]:
    """Return the names of pretrained and adapted encoders in print, by `run_key`, pretrained first.

    The task that runs were trained on is told where it is not the one that is probed, and the head where there are
    several.
    """
    found = {run_key(record["spec"]["of"]): record["spec"]["of"] for record in records}
    runs = {key: of for key, of in found.items() if "run" in of}
    heads = {of["run"]["head"] for of in runs.values()}
    names = {PRETRAINED: "Pretrained"} if PRETRAINED in found else {}
    for key, of in runs.items():
        run = of["run"]
        name = wording.strategy_name(labels.get("strategies", {}), run["strategy"], run["variant"])
        name += f", {labels.get('heads', {}).get(run['head'], run['head'])}" * (len(heads) > 1)
        elsewhere = f" on {wording.task_name(labels.get('tasks', {}), run['task'])}"
        names[key] = name + elsewhere * (run["task"] != of["task"])
    return names


def points(records: list[dict], paths: list[Path], split: str):
    """Return a row for each line and layer with mean, sd, low, high and number of seeds, and {panel: majority}.

    Low and high are mean less and more the deviation from three seeds on, else the range. Scores are x 100, but for
    those that are no share. split: "test" (the first of a task) or "validation"; what a probe scores on one split alone
    is taken from there.
    """
    import pandas

    rows, majority = [], {}
    for record, path in zip(records, paths, strict=True):
        of, main = value(record, path, "spec", "of"), value(record, path, "main")
        task, factor = record["spec"]["task"], _axis(main, {})[1]
        wanted = shown_split(task, split)
        for end in value(record, path, "layers"):
            shown = wanted if wanted in end["scores"] else next(iter(end["scores"]))
            score = end["scores"][shown][main]
            score = None if score is None else factor * score
            rows.append(
                {**of, "run": run_key(of), "measure": main, "split": shown, "layer": end["layer"], "value": score}
            )
        score = record["majority"].get(wanted, {}).get(main)
        majority |= {} if score is None else {(of["task"], of["subset"], main): factor * score}
    keys = ["task", "subset", "measure", *LINE, "split", "layer"]
    return over_seeds(pandas.DataFrame(rows).astype({"value": float}), keys), majority


def over_seeds(table, keys: list[str]):
    """Return a row for each of the keys: mean, sd, low, high and number of seeds of the column `value`.

    Low and high are mean less and more the deviation from three seeds on, else the range.
    """
    found = table.groupby(keys, sort=False)["value"].agg(["mean", "std", "min", "max", "count"]).reset_index()
    found.columns = [*keys, "mean", "sd", "low", "high", "seeds"]
    spread = found["seeds"] >= 3
    found["low"] = found["low"].where(~spread, found["mean"] - found["sd"])
    found["high"] = found["high"].where(~spread, found["mean"] + found["sd"])
    return found


def _title(key: tuple, spec: dict, found) -> str:
    """Return a panel's title: the task, and the subset where there are several."""
    labels = spec["labels"]
    name = wording.task_name(labels.get("tasks", {}), key[0])
    several = found["subset"].nunique() > 1
    return f"{name}\n{labels.get('subsets', {}).get(key[1], key[1])}" if several else name


def _name(line, spec: dict, found, runs: dict[str, str]) -> str:
    """Return a line's name: of its encoder, its probe and the runs that adapted it what others have otherwise."""
    parts = {
        "probe": spec["probes"].get(line.probe, line.probe),
        "encoder": spec["labels"].get("encoders", {}).get(line.encoder, line.encoder),
        "run": runs[line.run],
    }
    told = [name for part, name in parts.items() if found[part].nunique() > 1]
    return "; ".join(told) or parts["probe"]


def _axis(measure: str, labels: dict) -> tuple[str, int]:
    """Return what the vertical axis shows of a measure, and its factor: 100 for metrics, 1 for one's own."""
    if measure in wording.METRIC_LABELS or plugins.is_plugin(measure):
        return f"{wording.metric_name(labels, measure)} × 100", 100
    return MEASURES.get(measure, (measure, 1))


def ticks(layers: int) -> list[int]:
    """Return the layers that are named on the axis."""
    return list(range(0, layers + 1, 1 if layers <= 6 else 2 if layers <= 12 else 4))
