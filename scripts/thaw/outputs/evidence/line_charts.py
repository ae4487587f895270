"""Small charts of lines as SVG text, which a page of hundreds can hold: no library draws them."""

import math
from dataclasses import dataclass

from markupsafe import Markup, escape

from thaw.outputs import wording

WIDTH, HEIGHT = 340, 190
LEFT, RIGHT, TOP, BOTTOM = 38, 8, 8, 34


@dataclass(frozen=True)
class Line:
    """A line of a chart: what a pointer on it reads, its colour, its points, how dark it is, whether it is broken."""

    name: str
    colour: str
    points: list[tuple[float, float]]
    opacity: float = 1.0
    broken: bool = False


def chart(lines: list[Line], across: str, up: str, square: bool = False) -> Markup:
    """Return a chart. Args: names of both axes; square: both axes go from 0 to 1, with the diagonal."""
    points = [point for line in lines for point in line.points]
    if not points:
        return Markup("")
    low, high = ([f(point[i] for point in points) for i in (0, 1)] for f in (min, max))
    low, high = ([0.0, 0.0], [1.0, 1.0]) if square else ([0.0, low[1]], high)
    ticks = [_ticks(low[i], high[i]) for i in (0, 1)]
    low, high = [min(low[i], ticks[i][0]) for i in (0, 1)], [max(high[i], ticks[i][-1]) for i in (0, 1)]

    def place(x: float, y: float) -> str:
        across_share, up_share = (x - low[0]) / (high[0] - low[0]), (y - low[1]) / (high[1] - low[1])
        return f"{LEFT + across_share * _room()[0]:.0f},{TOP + (1 - up_share) * _room()[1]:.0f}"

    parts = [_axes(ticks, place, across, up)]
    parts += [f'<path class="axis" d="M{place(0, 0)}L{place(1, 1)}"/>'] * square
    for line in lines:
        if not line.points:
            continue
        look = f' stroke-opacity="{line.opacity:.2f}"' * (line.opacity < 1) + ' stroke-dasharray="3 3"' * line.broken
        shape = "M" + "L".join(place(*point) for point in line.points)
        if len(line.points) == 1:  # a dot, as the ends of lines are round
            look, shape = look + ' stroke-width="6"', shape + "h0"
        title = f"<title>{escape(line.name)}</title>"
        parts.append(f'<path stroke="{line.colour}"{look} d="{shape}">{title}</path>')
    label = escape(f"{up} against {across}")
    return Markup(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>')


def _room() -> tuple[int, int]:
    return WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM


def _axes(ticks, place, across: str, up: str) -> str:
    """Return the grid, the numbers and the names of the axes."""
    parts = []
    for y in ticks[1]:
        x0, height = place(ticks[0][0], y).split(",")
        parts.append(f'<path class="axis" d="M{x0},{height}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{int(height) + 3}" text-anchor="end">{_text(y)}</text>')
    for x in ticks[0]:
        left, _ = place(x, ticks[1][0]).split(",")
        parts.append(f'<text x="{left}" y="{HEIGHT - BOTTOM + 13}" text-anchor="middle">{_text(x)}</text>')
    middle = LEFT + _room()[0] // 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(across)}</text>')
    turned = f"translate(9 {TOP + _room()[1] // 2})rotate(-90)"
    parts.append(f'<text transform="{turned}" text-anchor="middle">{escape(up)}</text>')
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Return two to six round numbers that reach over a range."""
    span = high - low or abs(high) or 1.0
    size = 10.0 ** math.floor(math.log10(span / 4))
    step = next(size * times for times in (1, 2, 5, 10, 20) if span / (size * times) <= 4.5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * place for place in range(first, max(last, first + 1) + 1)]


def _text(value: float) -> str:
    return wording.short(value).replace("\u202f", "") if abs(value) >= 1000 else f"{value:.4g}".replace("-", "−")
