"""Gradient boosting on sentence vectors, scikit-learn's with its defaults, against the linear probe on all layers."""

from dataclasses import replace

from ..options import Options
from .all_layers import compare, prepared

ROWS = [100, 300, 1000]
DRAWS = 3


def measure(options: Options) -> dict:
    """Return the seconds of both sides and their accuracies on test, by number of rows."""
    options = replace(options, rows=max(ROWS), quick=True)  # one task
    place, told, cells = prepared("boosting", options, ROWS, DRAWS)
    job = {"cells": cells, "boosting": True, "bf16": False}
    found, _ = compare(place, told, {"boosting": ("sentence_vectors", job)})
    return found | {"used": {"seeds": 1, "rows": options.rows}, "cells": len(cells)}
