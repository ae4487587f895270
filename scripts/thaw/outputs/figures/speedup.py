"""Figure: speed-up of training only the head over full fine-tuning, compared with the claim of ten times."""

from functools import partial

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.runs_frame import RUN, head_alone

CLAIM = 10
WIDTH = 6.4  # inches, as are the height of a panel's title and axis and that of one of its lines
FRAME, LINE = 1.0, 0.3
WAYS = {"alone": "Alone: with the whole extraction", "shared": "Shared: with a share of the extraction"}
NAMES = [*aggregate.GROUP, "task", "strategy", "variant"]  # of a line, as its row of the CSV begins


def build(data, spec: dict) -> panels.Figure:
    """Return the speed-up of each strategy that trains only the head over full fine-tuning, a line per task.

    Args: spec with `reference`, the strategy that trains everything. Raises UserError where no task has both.
    """
    frame = savings(data.runs, spec["reference"])
    if frame.empty:
        raise UserError(
            f"a saving_figure needs runs of {spec['reference']} and of a strategy that trains only the head"
        )
    several = frame[["strategy", "variant"]].drop_duplicates().shape[0] > 1
    looks = dict(zip(WAYS, figure_style.marks(WAYS).values(), strict=True))

    def draw(axis, rows) -> None:
        _ratios(axis, rows, looks)
        axis.set_yticks(range(len(rows)), [_line_name(row, spec["labels"], several) for row in rows.itertuples()])
        axis.set_ylim(len(rows) - 0.5, -0.5)

    groups = aggregate.group_names(frame.assign(fitted=True), spec["labels"])
    shown = {name: frame[(frame[aggregate.GROUP] == list(group)).all(axis=1)] for group, name in groups.items()}
    drawn = [panels.Panel(name, partial(draw, rows=rows)) for name, rows in shown.items()]
    legend = [panels.entry(WAYS[way], mark) for way, mark in looks.items()]
    legend.append(panels.entry("Ten times", **panels.REFERENCE))
    size = WIDTH, FRAME + LINE * max(map(len, shown.values()))
    return panels.compose(drawn, panels.csv_of(frame), legend, wide=1, size=size)


def savings(runs, whole: str):
    """Return a row for each task and strategy that trains only the head, with its speed-up over the full model.

    Columns besides NAMES: seconds_whole, seconds_alone, seconds_shared (medians over seeds), and for both ways
    the ratio of the medians with the lowest and highest ratio of a seed. Seconds include the runs that a run starts
    from and feature extraction, but no search.
    """
    present = runs[(runs["kind"] == "run") & (runs["missing"] == "")].drop_duplicates(RUN)
    own = present["train_seconds"] + present["after_seconds"]
    spent = {"shared": own + present["extraction_seconds"], "alone": own + present["extraction_whole_seconds"]}
    present = present.assign(**spent)
    keys = [*aggregate.GROUP, "task", "seed"]
    full = present.loc[present["strategy"] == whole, [*keys, "shared"]].rename(columns={"shared": "whole"})
    both = head_alone(present).merge(full, on=keys)
    both = both.assign(**{f"ratio_{way}": both["whole"] / both[way] for way in WAYS})
    frame = both.groupby(NAMES, sort=False).agg(
        seconds_whole=("whole", "median"),
        **{f"seconds_{way}": (way, "median") for way in WAYS},
        **{f"{end}_{way}": (f"ratio_{way}", of) for way in WAYS for end, of in (("low", "min"), ("high", "max"))},
        seeds=("seed", "size"),
        synthetic=("synthetic", "first"),
    )
    frame = frame.assign(**{way: frame["seconds_whole"] / frame[f"seconds_{way}"] for way in WAYS})
    return frame.reset_index()


def _ratios(axis, rows, looks: dict) -> None:
    """Draw the lines of one encoder, head and subset; bars go from the lowest seed to the highest."""
    for index, row in enumerate(rows.itertuples()):
        for way, (colour, marker) in looks.items():
            value = getattr(row, way)
            ends = [[max(0, value - getattr(row, f"low_{way}"))], [max(0, getattr(row, f"high_{way}") - value)]]
            axis.errorbar(value, index, xerr=ends, fmt=marker, color=colour, elinewidth=1, zorder=4)
    axis.axvline(CLAIM, **panels.REFERENCE)
    panels.log_axis(axis)
    values = rows[[f"{end}_{way}" for end in ("low", "high") for way in WAYS]].to_numpy()
    axis.set_xlim(min(0.7, values.min() / 1.3), max(14, values.max() * 1.3))
    axis.grid(axis="x")
    few = "\nsome runs train on a subset; features are extracted for the whole dataset"
    axis.set_xlabel("Speed-up over full fine-tuning (log scale)" + few * bool((rows["subset"] != "all").any()))


def _line_name(row, labels: dict, several: bool) -> str:
    """Return the name of a line: its task, and its strategy where there are several."""
    task = wording.task_name(labels, row.task) + f" ({wording.SYNTHETIC})" * bool(row.synthetic)
    name = wording.strategy_name(labels, row.strategy, row.variant)
    return f"{task}: {name}" if several else task
