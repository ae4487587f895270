"""Labels of points that overlap neither each other nor the points nor a line.

Boxes are rows of a float array [n, 4]: left, bottom, right, top, in pixels; a "bead" is a small box on a line.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DISTANCES = (5, 8, 13, 19, 26, 34, 44, 56)
NEAR = 8
DARK = 0.42  # lightness of a coloured text, 0 to 1
LOOK = {"fontsize": 7, "color": "#30353b", "ha": "center", "va": "center", "zorder": 6}
LEADER = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}


@dataclass
class Scene:
    """What a panel holds: the points [n, 2], the boxes taken so far, the frame, and pixels per typographic point."""

    centres: np.ndarray
    taken: np.ndarray
    frame: np.ndarray
    scale: float

    def take(self, boxes) -> None:
        """Keep later texts off these boxes."""
        self.taken = np.concatenate([self.taken, boxes])


def label_points(axis, points: Sequence[tuple[float, float]], texts: list[str], paths=(), colours=()) -> None:
    """Label points so that no label covers another label, a point, or a line through the corners of one of `paths`.

    Greedy: each label takes the cheapest position around its point, in the order given. A thin line connects a distant
    label with its point. With `colours`, of the points, each text and its line has that of its point, dark enough to be
    read. Call it when layout and limits are final.
    """
    scale = axis.get_figure().dpi / 72
    centres = np.array([axis.transData.transform(point) for point in points])
    scene = Scene(centres, _squares(centres, 4 * scale), axis.get_window_extent().extents, scale)
    for path in paths:
        for start, end in itertools.pairwise(axis.transData.transform(corner) for corner in path):
            scene.take(_beads(start, end, scale))
    for i in (i for i, text in enumerate(texts) if text):
        label = axis.annotate(texts[i], points[i], **LOOK | ({"color": _dark(colours[i])} if colours else {}))
        extent = label.get_window_extent()
        positions = list(_positions(centres[i], extent.width, extent.height, scale))
        box, distance = min(positions, key=lambda one: _cost(one[0], one[1], centres[i], scene))
        label.anncoords = "offset points"
        label.xyann = tuple(((box[:2] + box[2:]) / 2 - centres[i]) / scale)
        scene.take(box[None])
        if distance > NEAR:
            end = _nearest(box, centres[i])
            scene.take(_beads(centres[i], end, scale))
            offset = tuple((end - centres[i]) / scale)
            look = LEADER | {"color": label.get_color()}
            axis.annotate("", points[i], xytext=offset, textcoords="offset points", arrowprops=look)


def _dark(colour: str) -> tuple:
    """Return a colour as dark as text has to be on white."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    light = float(rgb @ (0.299, 0.587, 0.114))
    return tuple(rgb * min(1.0, DARK / light)) if light else tuple(rgb)


def _nearest(box, points):
    """Return the point of a box that is nearest to a point, or to each of several [n, 2]."""
    return points.clip(box[:2], box[2:])


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


def _cost(box, distance: float, centre, scene: Scene) -> float:
    """Return the cost of a position, about in square points.

    What it covers, or has outside the frame, counts most; then each other point that it is nearer to than to its own,
    whose name it would seem to be; then its distance.
    """
    parts = box[None]
    if distance > NEAR:
        parts = np.concatenate([parts, _beads(centre, _nearest(box, centre), scene.scale)])
    outside = np.maximum(0, [*(scene.frame[:2] - box[:2]), *(box[2:] - scene.frame[2:])]).sum() / scene.scale
    gaps = np.linalg.norm(scene.centres - _nearest(box, scene.centres), axis=1)
    rivals = (gaps < np.linalg.norm(centre - _nearest(box, centre)) - 1e-6).sum()
    return _shared_area(parts, scene.taken) / scene.scale**2 + 20 * outside + 12 * rivals + 0.5 * distance


def _shared_area(a, b) -> float:
    """Return the area that boxes [n, 4] and [m, 4] share, over all pairs."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    return np.maximum(0, high - low).prod(axis=2).sum()
