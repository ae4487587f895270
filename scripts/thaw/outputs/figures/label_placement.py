"""Labels of points that overlap neither each other nor the points nor a line.

Boxes are rows of a float array [n, 4]: left, bottom, right, top, in pixels; a "bead" is a small box on a line.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

DISTANCES = (5, 8, 13, 19, 26, 34, 44, 56)
NEAR = 8
DARK = 0.42  # lightness of a coloured text, 0 to 1
LOOK = {"fontsize": 7, "color": "#30353b", "ha": "center", "va": "center", "zorder": 6}
LEADER = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}


def label_points(axis, points: Sequence[tuple[float, float]], texts: list[str], paths=(), colours=()) -> None:
    """Label points so that no label covers another label, a point, or a line through the corners of one of `paths`.

    Greedy: each label takes the cheapest position around its point, in the order given. A thin line connects a distant
    label with its point. With `colours`, of the points, each text and its line has that of its point, dark enough to be
    read. Call it when layout and limits are final.
    """
    scale, frame = axis.get_figure().dpi / 72, axis.get_window_extent().extents
    centres = np.array([axis.transData.transform(point) for point in points])
    taken = [_squares(centres, 4 * scale)]
    for path in paths:
        for start, end in itertools.pairwise(axis.transData.transform(corner) for corner in path):
            taken.append(_beads(start, end, scale))
    for i in (i for i, text in enumerate(texts) if text):
        label = axis.annotate(texts[i], points[i], **LOOK | ({"color": _dark(colours[i])} if colours else {}))
        extent, covered = label.get_window_extent(), np.concatenate(taken)
        positions = list(_positions(centres[i], extent.width, extent.height, scale))
        costs = [_cost(box, distance, covered, frame, scale) for box, distance in positions]
        box, distance = positions[int(np.argmin(costs))]
        label.anncoords = "offset points"
        label.xyann = tuple(((box[:2] + box[2:]) / 2 - centres[i]) / scale)
        taken.append(box[None])
        if distance > NEAR:
            end = centres[i].clip(box[:2], box[2:])
            taken.append(_beads(centres[i], end, scale))
            look = LEADER | {"color": label.get_color()}
            offset = tuple((end - centres[i]) / scale)
            axis.annotate("", points[i], xytext=offset, textcoords="offset points", arrowprops=look)


def _dark(colour: str) -> tuple:
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    light = float(rgb @ (0.299, 0.587, 0.114))
    return tuple(rgb * min(1.0, DARK / light)) if light else tuple(rgb)


def _squares(centres, half: float):
    """Return boxes around points [n, 2]."""
    return np.concatenate([centres - half, centres + half], axis=1)


def _beads(start, end, scale: float):
    """Return beads along a straight line, one about every three points."""
    count = max(2, int(math.dist(start, end) / (3 * scale)))
    return _squares(start + (end - start) * np.arange(1, count)[:, None] / count, scale)


def _positions(centre, width: float, height: float, scale: float):
    """Yield (box, distance in points) of the positions for a text around a point, near ones first."""
    size = np.array([width, height])
    for distance in DISTANCES:
        for step in range(16):
            direction = np.array([math.cos(math.pi * step / 8), math.sin(math.pi * step / 8)])
            middle = centre + direction * (distance * scale + size / 2)
            yield np.concatenate([middle - size / 2, middle + size / 2]), distance


def _cost(box, distance: float, taken, frame, scale: float) -> float:
    """Return the cost of a position, about in square points: what it covers or has outside the frame, then distance."""
    outside = np.maximum(0, [*(frame[:2] - box[:2]), *(box[2:] - frame[2:])]).sum() / scale
    low, high = np.maximum(box[:2], taken[:, :2]), np.minimum(box[2:], taken[:, 2:])
    covered = np.maximum(0, high - low).prod(axis=1).sum() / scale**2
    return covered + 20 * outside + 0.5 * distance
