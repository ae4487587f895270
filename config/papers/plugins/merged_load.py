"""Figures of merged folders: layers and stored parameters against the number of tasks; score against storage."""

from thaw.declarations.output_kind import Addition, OutputKind, Requirement

FIGURES = {
    "load_figure": OutputKind(
        "thaw.papers.merged_load:build",
        "against the number of tasks: executed layers and stored parameters, by way to serve them",
        needs=(Requirement.MERGES,),
        adds=(Addition.MERGES,),
    ),
    "storage_figure": OutputKind(
        "thaw.papers.merged_load:build_storage",
        "mean score against stored parameters: each merge, and each strategy, merged where its runs may be branches, "
        "else as the encoder once and what each task trains",
        needs=(Requirement.MERGES,),
        adds=(Addition.MERGES,),
    ),
}


import textwrap
from functools import partial

from thaw.core import branch_choice
from thaw.core.branch_choice import BranchSize, EncoderSize
from thaw.outputs.figures import figure_style, label_placement, panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.probe_frame import Names
from thaw.words import wording

MOST = 16  # tasks that closed forms are drawn up to
LORA = 2 * 2 * 8  # numbers by unit of width in a layer: rank 8 on two matrices of d x d (Hu et al. 2021)
ADAPTER = 64  # size of the two adapters of a layer (Houlsby et al. 2019)
MIB_FP32 = 4 / 2**20
SEPARATE, MERGED = "Full models", "Merged"
LETTERS = 18  # of a line of a name next to a line


def stored_by_way(record: dict, tasks: int) -> dict[str, int]:
    """Return the stored parameters of some tasks by way to serve them; branches are those of a merge, in turn.

    Heads count as in the merge, a mean one for each task. LoRA and adapters in all layers.
    """
    size, width, layers = _size(record), record["encoder"]["width"], record["encoder"]["layers"]
    known = len(record["tasks"])
    heads = [_parameters_of_heads(record) // known] * tasks
    lora, adapters = LORA * width * layers, 2 * (2 * ADAPTER * width + ADAPTER + width) * layers
    return {
        SEPARATE: branch_choice.stored_separate(size, heads),
        MERGED: branch_choice.stored_merged(_branches(record, tasks), size, heads),
        "Adapters": branch_choice.stored_inserted(size, [adapters] * tasks, heads),
        "LoRA": branch_choice.stored_inserted(size, [lora] * tasks, heads),
    }


def executed_by_way(record: dict, tasks: int) -> dict[str, int]:
    """Return the executed layers of some tasks on one text; what is inserted in all layers shares none of them."""
    whole = tasks * record["encoder"]["layers"]
    return {f"{SEPARATE}, LoRA, adapters": whole, MERGED: branch_choice.executed(_branches(record, tasks))}


def _branches(record: dict, tasks: int) -> list[BranchSize]:
    """Return the branches of some tasks: those of a merge, in turn."""
    sizes = [BranchSize(one["frozen"], one["own"]) for one in record["tasks"].values()]
    return [sizes[number % len(sizes)] for number in range(tasks)]


COUNTS = {  # by unit: name of the axis, factor, what counts
    "layers": ("Layers executed for a text", 1, executed_by_way),
    "MiB": ("Stored, MiB (fp32)", MIB_FP32, stored_by_way),
}


def build(data, spec: dict) -> panels.Figure:
    """Return two panels for each merge against the number of tasks: layers, and stored parameters."""
    import pandas

    drawn, rows, titles = [], [], _titles(list(data.merges), spec)
    for (subset, encoder, name), record in data.merges.items():
        title = titles[subset, encoder, name]
        for unit, (what, factor, counted) in COUNTS.items():
            values = {tasks: counted(record, tasks) for tasks in range(1, MOST + 1)}
            lines = {way: [factor * values[tasks][way] for tasks in values] for way in values[1]}
            draw, names = partial(_lines, x=list(values), lines=lines, name=what), partial(_names, lines=lines)
            drawn.append(panels.Panel(f"{title}: {unit}", draw, names))
            for way, ys in lines.items():
                rows += [[subset, encoder, name, unit, way, tasks, y] for tasks, y in zip(values, ys, strict=True)]
    header = "subset encoder merge unit way tasks value".split()
    return panels.compose(drawn, pandas.DataFrame(rows, columns=header), wide=2)


def build_storage(data, spec: dict) -> panels.Figure:
    """Return the mean test score over a merge's tasks against stored parameters: as merged, and by each strategy.

    A strategy whose runs may be branches stores what these would merged; another one stores what it trains for each
    task, and once the encoder, unless it trains all of that.
    """
    import pandas

    summary = aggregate.summarise(data.runs, "test", spec["order"])
    rows = []
    for (subset, encoder, name), record in data.merges.items():
        tasks = list(record["tasks"])
        known = [one["test"] for one in record["tasks"].values()]
        if None not in known:
            rows.append([subset, encoder, name, MERGED, sum(known) / len(known), record["parameters"]["merged"]])
        same = summary[(summary["subset"] == subset) & (summary["encoder"] == encoder) & summary["task"].isin(tasks)]
        for (strategy, variant), runs in same[same["fitted"]].groupby(["strategy", "variant"], sort=False):
            runs = runs.drop_duplicates("task")
            if set(runs["task"]) == set(tasks) and runs["mean"].notna().all():
                label = wording.strategy_name(spec["labels"], strategy, variant)
                size, heads = _size(record), [_parameters_of_heads(record)]
                whole = size.embeddings + size.layers * size.layer
                stored = runs["parameters"].sum() + whole * (not runs["embeddings"].all())
                if branches := _candidates(record, strategy, variant):
                    stored = branch_choice.stored_merged(branches, size, heads)
                rows.append([subset, encoder, name, label, runs["mean"].mean(), stored])
    frame = pandas.DataFrame(rows, columns="subset encoder merge way mean parameters".split())
    titles = _titles(list(data.merges), spec)
    drawn = [
        panels.Panel(titles[key], partial(_storage, rows=part), partial(_labels, rows=part))
        for key, part in frame.groupby(["subset", "encoder", "merge"], sort=False)
    ]
    return panels.compose(drawn, frame)


def _titles(merges: list[tuple[str, str, str]], spec: dict) -> dict[tuple[str, str, str], str]:
    """Return the title of each merge: its name, with rows and encoder where they differ. Args: subset, encoder, id."""
    import pandas

    cells = pandas.DataFrame(merges, columns=["subset", "encoder", "merge"])
    names = Names(spec, cells)
    return {
        tuple(cell.values()): ", ".join(
            [spec["merges"].get(cell["merge"], cell["merge"]), *names.several(cell, "subset", "encoder")]
        )
        for cell in cells.to_dict("records")
    }


def _size(record: dict) -> EncoderSize:
    """Return the numbers of parameters of a merge's encoder."""
    return EncoderSize(**{name: record["encoder"][name] for name in ("embeddings", "layer", "layers")})


def _parameters_of_heads(record: dict) -> int:
    """Return the parameters of all heads of a merge."""
    return record["parameters"]["separate"] - branch_choice.stored_separate(_size(record), [0] * len(record["tasks"]))


def _candidates(record: dict, strategy: str, variant: str) -> list[BranchSize]:
    """Return the branches, one a task, that a merge could have taken of a strategy; none where a task has none."""
    sizes = [
        BranchSize(point["frozen"], point["own"])
        for points in record["spec"]["tasks"].values()
        for point in points
        if (point["strategy"], point["variant"]) == (strategy, variant)
    ]
    return sizes if len(sizes) == len(record["spec"]["tasks"]) else []  # a task offers a strategy's point once


def _lines(axis, x: list[int], lines: dict[str, list[float]], name: str) -> None:
    for (_, ys), colour in zip(lines.items(), _colours(), strict=False):
        axis.plot(x, ys, color=colour)
    axis.set_xlabel("Tasks")
    axis.set_ylabel(name)


def _colours() -> list[str]:
    """Return the colours of the ways to serve several tasks, those of `stored_by_way` in order."""
    return [colour for colour, _ in figure_style.marks([SEPARATE, MERGED, "Adapters", "LoRA"]).values()]


def _names(axis, lines: dict[str, list[float]]) -> None:
    """Name the lines of a panel at their last points, in their colours."""
    ends = [(MOST, ys[-1]) for ys in lines.values()]
    paths = [list(enumerate(ys, start=1)) for ys in lines.values()]
    names = [textwrap.fill(way, LETTERS) for way in lines]
    label_placement.label_points(axis, ends, names, paths, _colours())


def _storage(axis, rows) -> None:
    for row in rows.itertuples():
        colour = _colours()[1] if row.way == MERGED else figure_style.GREY
        axis.plot(row.parameters * MIB_FP32, row.mean, marker="o", color=colour, zorder=3 if row.way == MERGED else 2)
    axis.margins(0.2)
    axis.set_xlabel("Stored for all tasks, MiB (fp32)")
    axis.set_ylabel("Mean score × 100, test")


def _labels(axis, rows) -> None:
    """Name the points of a panel; equal points have one name, since a merge may take one strategy's runs."""
    points: dict = {}
    for row in rows.itertuples():
        points.setdefault((row.parameters * MIB_FP32, round(row.mean, 6)), []).append(row.way)
    label_placement.label_points(axis, list(points), ["\n".join(ways) for ways in points.values()])
