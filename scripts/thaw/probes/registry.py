"""How a probe is run: on one encoder for each seed, or on a comparison of encoders; and what its function must return.

What there is, is declared in thaw.declarations.probes; a plugin is named by its import path. A probe's function returns
`rows, layer_scores`: rows of layers.csv, and for each layer a dict with `layer`, `seed`, and `scores`
{split: {measure: number or None}}.
"""

import math
from typing import Any

from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.declarations.probes import PROBES, ProbeKind, plugin_kind
from thaw.probes.reading import Reading
from thaw.training.run_inputs import Inputs


def kind_of(word: str) -> ProbeKind:
    """Return the declaration of a kind, which may be a plugin."""
    return plugin_kind(plugins.parse_plugin(word)) if plugins.is_plugin(word) else PROBES[word]


def measure(reading) -> str:
    """Return the name of the main score of a layer. Args: what a probe reads."""
    return kind_of(reading.entry.kind).measure or reading.task["metrics"][0]


def fit_probe(reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return rows and layer scores of a probe of one encoder. Raises UserError for a plugin that returns others.

    Args: reading, what its kind reads.
    """
    kind = reading.entry.kind
    result = kind_of(kind).load()(reading, seed)
    if plugins.is_plugin(kind) and not _is_valid(result, reading, seed):
        part = plugins.parse_plugin(kind)
        raise UserError(
            f"{part.place}: {kind} must return two lists of dicts: rows for layers.csv; and for each layer one "
            "dict with its layer, the seed, and scores {split: {measure: number}} that have "
            f"{measure(reading)!r}"
        )
    return result


def _is_valid(result, reading: Reading, seed: int) -> bool:
    """Tell whether a plugin's result can be written: scores of each layer that is read, with a number as measure."""
    try:
        rows, layer_scores = result
        scores = [score for one in layer_scores for score in one["scores"].values()]
        main_scores = [score[measure(reading)] for score in scores]
        keys = [(one["layer"], one["seed"]) for one in layer_scores]
        complete = keys == [(number, seed) for number in reading.numbers] and bool(main_scores)
        return complete and all(isinstance(row, dict) for row in rows) and all(map(_is_number, main_scores))
    except (TypeError, ValueError, KeyError, AttributeError):
        return False


def _is_number(value) -> bool:
    """Tell whether a value is a number that JSON keeps, or None."""
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def run(spec: dict, pretrained: Inputs, adapted: dict[int, Inputs]) -> tuple[list[dict], dict]:
    """Return the rows of layers.csv, and the content of metrics.json without the spec.

    Args: spec of a probe; inputs of the pretrained encoder; by seed, those of the adapted encoders. Where there are
    adapted encoders, they are probed, each with its own seed.
    """
    kind = kind_of(spec["probe"]["kind"])
    read = kind.reads.load()
    if kind.reads.runs:
        comparison = read(spec, pretrained, adapted)
        rows, layer_scores = kind.load()(comparison)
        return rows, {"main": measure(comparison), "layers": layer_scores, "majority": {}}
    rows, layer_scores = [], []
    reading: Any = None if adapted else read(spec, pretrained)
    for seed in spec["seeds"]:
        reading = read(spec, adapted[seed]) if adapted else reading
        rows_of_seed, scores_of_seed = fit_probe(reading, seed)
        rows, layer_scores = rows + rows_of_seed, layer_scores + scores_of_seed
    return rows, {"main": measure(reading), "layers": layer_scores, "majority": reading.majority()}
