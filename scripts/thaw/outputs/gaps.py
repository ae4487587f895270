"""The placeholder of an output that could not be drawn, with the reason."""

import textwrap
import traceback
from collections.abc import Callable

from thaw.core.errors import UserError
from thaw.core.failed_outputs import note_failure, note_success
from thaw.core.runtime import explain_error, log
from thaw.outputs.figures import panels
from thaw.outputs.render.typed_table import Table

WIDTH, LETTERS = 6.4, 100  # inches, and letters of a line in them


def draw_or_gap(draw: Callable[[], None], draw_gap: Callable[[str], None], prefix) -> None:
    """Draw an output; if that fails, draw a placeholder with the reason, and record it for the next run.

    Args: what builds and writes it; what writes the gap, from the reason; the path of its files without endings.
    """
    try:
        draw()
    except Exception as error:  # whatever it is: one output must not take the report with it
        why = str(error) if isinstance(error, UserError) else explain_error(error)
        if not why:
            traceback.print_exception(error)
            why = f"{type(error).__name__}: {error}; its log says where"
        log(f"FAILED, a placeholder is drawn instead: {prefix}: {why}")
        draw_gap(why)
        note_failure(prefix, why)
    else:
        note_success(prefix)


def table(spec: dict, why: str) -> Table:
    """Return a table without rows, with the reason as its note."""
    return Table(spec["id"], spec["caption"], [], [], [f"This table could not be drawn: {why}"], failed=why)


def figure(spec: dict, why: str) -> panels.Figure:
    """Return a figure with the reason as its text."""
    import pandas

    text = "\n".join(textwrap.wrap(f"This figure could not be drawn: {why}", LETTERS))

    def draw(axis) -> None:
        axis.set_axis_off()
        axis.text(0, 1, text, va="top", parse_math=False, transform=axis.transAxes)

    size = (WIDTH, 0.5 + 0.16 * (text.count("\n") + 1))
    drawn = panels.compose([panels.Panel("", draw)], pandas.DataFrame([{"failed": why}]), wide=1, size=size)
    drawn.failed = why
    return drawn
