"""Figure: which layer serves which task best, a row for each task and score, a column for each layer."""

from pathlib import Path

import numpy as np

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.frame.collection import shown_split, value

ROW = ["task", "subset", "probe", "measure"]
PANEL = ["encoder", "run"]
# Scores beside a probe's main one that have a row of their own.
MORE = {"uuas": ["dspr", "nspr", "root"]}


def heat_figure(paths: list[Path], spec: dict, prefix) -> None:
    """Draw the scores of probes as a map, a panel for each encoder, colours from each row's least to its greatest.

    Args: paths, the metrics.json of probes; spec as step `figure` gets it. Numbers are means over seeds x 100; the
    best layer of a row is bold. Raises UserError where there is no result.
    """
    if not paths:
        raise UserError("no probe of this experiment has a result yet; run the workflow first")
    found = scores([read_json(path) for path in paths], paths, spec["split"])
    panels = list(found.groupby(PANEL, sort=False))
    layers = sorted(found["layer"].unique())
    rows = max(len(part[ROW].drop_duplicates()) for _, part in panels)
    with figure_style.panels([_title(key, spec) for key, _ in panels], wide=1) as (figure, axes):
        figure.set_size_inches(2.6 + 0.5 * len(layers), (1.1 + 0.27 * rows) * len(panels))
        for axis, (_, part) in zip(axes, panels, strict=True):
            _map(axis, part, layers, spec, found)
        figure_style.save(figure, prefix)
    numbers = found.round({name: 4 for name in ("mean", "sd", "share")})
    write_text(f"{prefix}.csv", numbers.to_csv(index=False, lineterminator="\n"))


def scores(records: list[dict], paths: list[Path], split: str):
    """Return a row for each score and layer: mean and sd over seeds x 100, their number, and `share`.

    That is how far the mean lies from the least layer (0) to the greatest (1) of its row.
    """
    import pandas

    rows = []
    for record, path in zip(records, paths, strict=True):
        of, main, task = value(record, path, "spec", "of"), value(record, path, "main"), record["spec"]["task"]
        run = of.get("run", {})
        cell = {"task": of["task"], "subset": of["subset"], "encoder": of["encoder"], "probe": of["probe"]}
        cell["run"] = " ".join([run["strategy"], run["variant"]]) if run else ""
        shown = shown_split(task, split)
        for end in value(record, path, "layers"):
            for measure in [main, *MORE.get(main, [])]:
                score = end["scores"][shown][measure]
                told = {"measure": measure, "split": shown, "layer": end["layer"]}
                rows.append(cell | told | {"value": None if score is None else 100 * score})
    keys = [*ROW, *PANEL, "split", "layer"]
    table = pandas.DataFrame(rows).astype({"value": float})
    found = table.groupby(keys, sort=False)["value"].agg(["mean", "std", "count"]).reset_index()
    found.columns = [*keys, "mean", "sd", "seeds"]
    of_row = found.groupby([*ROW, *PANEL], sort=False)["mean"]
    least, greatest = of_row.transform("min"), of_row.transform("max")
    spread = (greatest - least).where(greatest > least)
    return found.assign(share=((found["mean"] - least) / spread).fillna(0.0))


def _map(axis, part, layers: list[int], spec: dict, found) -> None:
    """Draw one encoder's map."""
    names, grid, numbers = [], [], []
    for key, row in part.groupby(ROW, sort=False):
        by_layer = row.set_index("layer")
        names.append(_name(key, spec, found))
        grid.append([by_layer["share"].get(layer, np.nan) for layer in layers])
        numbers.append([by_layer["mean"].get(layer, np.nan) for layer in layers])
    axis.imshow(grid, cmap="Blues", vmin=0, vmax=1.25, aspect="auto")
    for line, row in enumerate(numbers):
        for column, number in enumerate(row):
            if np.isfinite(number):
                look = {"color": "white"} if grid[line][column] > 0.75 else {"color": "#1b1e22"}
                look |= {"fontweight": "bold"} if number == np.nanmax(row) else {}
                axis.text(column, line, f"{number:.1f}", ha="center", va="center", fontsize=7, **look)
    axis.set_yticks(range(len(names)), names)
    axis.set_xticks(range(len(layers)), layers)
    axis.set_xlabel("Layer; 0: embeddings")
    axis.grid(False)
    for side in axis.spines.values():
        side.set_visible(False)
    axis.tick_params(length=0)


def _name(key: tuple, spec: dict, found) -> str:
    """Return a row's name: its task, its subset and probe where several have the same score, and what is scored."""
    labels = spec["labels"]
    names = [wording.task_name(labels.get("tasks", {}), key[0])]
    if found["subset"].nunique() > 1:
        names.append(labels.get("subsets", {}).get(key[1], key[1]))
    alike = found[(found["task"] == key[0]) & (found["measure"] == key[3])]
    if alike["probe"].nunique() > 1:
        names.append(spec["probes"].get(key[2], key[2]))
    return f"{', '.join(names)}: {wording.metric_name(labels, key[3])}"


def _title(key: tuple, spec: dict) -> str:
    """Return a panel's title: the encoder, and the strategy that adapted it."""
    labels, strategy = spec["labels"], key[1].partition(" ")[0]
    name = labels.get("encoders", {}).get(key[0], key[0])
    return f"{name}, {labels.get('strategies', {}).get(strategy, strategy)}" if strategy else name
