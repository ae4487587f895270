"""Figure: speed-up of training only the head over full fine-tuning, compared with the claim of ten times."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import OutputKind, Requirement

FIGURES = {
    "saving_figure": OutputKind(
        "thaw.papers.speedup:build",
        "how many times cheaper a head on the frozen encoder is than the full model, with a line at ten",
        options.ReferenceOptions,
        needs=(Requirement.FULL_AND_FROZEN,),
    ),
}


from functools import partial

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.price import price
from thaw.outputs.frame.runs_frame import RUN, head_alone

CLAIM = 10
WIDTH = 6.4  # inches, as are the height of a panel's title and axis and that of one of its lines
FRAME, LINE = 1.0, 0.3
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
    (look,) = figure_style.marks(["price"]).values()

    def draw(axis, rows) -> None:
        _ratios(axis, rows, look)
        axis.set_yticks(range(len(rows)), [_line_name(row, spec["labels"], several) for row in rows.itertuples()])
        axis.set_ylim(len(rows) - 0.5, -0.5)

    groups = aggregate.group_names(frame.assign(fitted=True), spec["labels"])
    shown = {name: frame[(frame[aggregate.GROUP] == list(group)).all(axis=1)] for group, name in groups.items()}
    drawn = [panels.Panel(name, partial(draw, rows=rows)) for name, rows in shown.items()]
    legend = [panels.entry("Ratio of prices", look), panels.entry("Ten times", **panels.REFERENCE)]
    size = WIDTH, FRAME + LINE * max(map(len, shown.values()))
    return panels.compose(drawn, frame, legend, wide=1, size=size)


def savings(runs, whole: str):
    """Return a row for each task and strategy that trains only the head, with its speed-up over the full model.

    Columns besides NAMES: whole and price, medians over seeds of both prices, and their ratio, with the lowest and the
    highest ratio of a seed.
    """
    runs = runs.assign(price=price(runs))
    present = runs[(runs["kind"] == "run") & (runs["missing"] == "")].drop_duplicates(RUN)
    keys = [*aggregate.GROUP, "task", "seed"]
    full = present.loc[present["strategy"] == whole, [*keys, "price"]].rename(columns={"price": "whole"})
    both = head_alone(present).merge(full, on=keys)
    frame = (
        both.assign(ratio=both["whole"] / both["price"])
        .groupby(NAMES, sort=False)
        .agg(
            whole=("whole", "median"),
            price=("price", "median"),
            low=("ratio", "min"),
            high=("ratio", "max"),
            seeds=("seed", "size"),
            synthetic=("synthetic", "first"),
        )
    )
    return frame.assign(ratio=frame["whole"] / frame["price"]).reset_index()


def _ratios(axis, rows, look: tuple) -> None:
    """Draw the lines of one encoder, head and subset; bars go from the lowest seed to the highest."""
    colour, marker = look
    for index, row in enumerate(rows.itertuples()):
        ends = [[max(0, row.ratio - row.low)], [max(0, row.high - row.ratio)]]
        axis.errorbar(row.ratio, index, xerr=ends, fmt=marker, color=colour, elinewidth=1, zorder=4)
    axis.axvline(CLAIM, **panels.REFERENCE)
    panels.log_axis(axis)
    axis.set_xlim(min(0.7, rows["low"].min() / 1.3), max(14, rows["high"].max() * 1.3))
    axis.grid(axis="x")
    axis.set_xlabel("Price of full fine-tuning by that of the head (log scale)")


def _line_name(row, labels: dict, several: bool) -> str:
    """Return the name of a line: its task, and its strategy where there are several."""
    task = wording.task_name(labels, row.task) + f" ({wording.SYNTHETIC})" * bool(row.synthetic)
    name = wording.strategy_name(labels, row.strategy, row.variant)
    return f"{task}: {name}" if several else task
