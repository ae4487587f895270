"""Early exit: each text leaves at the first layer whose linear probe is sure enough of it, and runs no layer above.

Schuster et al. 2022 (CALM) and Xin et al. 2020 (DeeBERT) train exits with the encoder. Here a linear probe of each
layer is an exit, and nothing else is trained. A probe is sure where its largest probability reaches a threshold. The
last exit is the layer that scores highest on validation: layers above it would cost and not gain.

K layers that are read, N texts, C labels.
"""

from pydantic import Field

from thaw.declarations.probes import VECTORS, LinearOptions, ProbeKind
from thaw.declarations.task_types import TARGET_OF_TYPE


class ExitOptions(LinearOptions):
    """Linear probes, and what leaving early may cost."""

    within: float = Field(1.0, ge=0, description="points that the chosen threshold may lose on validation")


PROBES = {
    "early_exit": ProbeKind(
        "thaw.papers.early_exit:early_exit",
        ExitOptions,
        VECTORS,
        ("exit_table",),
        types=tuple(name for name, target in TARGET_OF_TYPE.items() if target == "label"),
        serves="labels of texts",
        version=2,
    )
}


import numpy as np

from thaw.evaluation.exits import NEVER, THRESHOLDS, Exits, loses, lowest
from thaw.evaluation.metrics import score
from thaw.evaluation.weighted_metrics import scorer
from thaw.heads.convex import Solution
from thaw.probes.reading import Reading
from thaw.statistics.bootstrap import RowDraws, resampled

SHOWN = {"0": 0.0, "0.5": 0.5, "0.6": 0.6, "0.7": 0.7, "0.8": 0.8, "0.9": 0.9, "0.95": 0.95, "never": NEVER}


def fitted_probes(reading: Reading, seed: int) -> list[Solution]:
    """Return the probe of each layer."""
    fitted, held = reading.divided(seed)
    return [reading.best(held, layer, solutions) for layer, solutions in enumerate(reading.fit(fitted))]


def early_exit(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each split and threshold; and each layer's scores, the last exit with what the table shows."""
    probes, ends, metric = fitted_probes(reading, seed), [], reading.main_metric
    for layer, (number, probe) in enumerate(zip(reading.numbers, probes, strict=True)):
        scores = {name: reading.scores(reading.splits[name], layer, probe) for name in reading.scored}
        ends.append({"layer": number, "seed": seed, "scores": scores})
    by_layer = {layer: end["scores"][reading.validation][metric] for layer, end in enumerate(ends)}
    last = max(by_layer, key=lambda layer: (-np.inf if by_layer[layer] is None else by_layer[layer], -layer))
    exits, rows, place = {}, [], {"layer": reading.numbers[last], "seed": seed}
    for name in reading.scored:
        exits[name] = exits_of(reading, name, probes[: last + 1])
        for threshold in THRESHOLDS:
            executed, answers = exits[name].leave(threshold)
            value = score(reading.task, reading.splits[name].gold, answers, reading.labels)[metric]
            point = {"threshold": threshold, "score": value, "executed": float(executed.mean())}
            rows.append(place | {"split": name} | point)
    curve = {row["threshold"]: row["score"] for row in rows if row["split"] == reading.validation}
    within = reading.entry.within
    rules = SHOWN | {"chosen": lowest(curve, curve[NEVER], within)}
    one = min(layer for layer, value in by_layer.items() if layer == last or not loses(value, by_layer[last], within))
    ends[last]["exits"] = [row for name in reading.scored for row in _shown(reading, name, exits[name], rules, one)]
    return rows, ends


def exits_of(reading: Reading, split: str, probes: list[Solution]) -> Exits:
    """Return the exits of a split's texts, with the probes of the lowest layers that are read."""
    pairs = zip(probes, reading.splits[split].layers, strict=False)
    found = [probe.logits(vectors.values).softmax(1).cpu().numpy() for probe, vectors in pairs]
    return Exits(np.stack(found), reading.numbers)


def _shown(reading: Reading, name: str, exits: Exits, rules: dict[str, float], one: int) -> list[dict]:
    """Return what a split's texts score and execute by each rule, and lose to never leaving early, with 95 % CIs."""
    split = reading.splits[name]
    left = {rule: exits.leave(threshold) for rule, threshold in rules.items()}
    left["one layer"] = np.full(len(split.rows), reading.numbers[one]), exits.best[one]
    draws = RowDraws(reading.corpus.frame(name)["group"].to_numpy()[split.rows])
    scorers = [scorer(reading.task, reading.main_metric, split.gold, best, reading.labels) for _, best in left.values()]
    drawn = dict(zip(left, 100 * draws.scores(scorers), strict=True))
    values = {rule: 100 * of(np.ones((1, len(split.rows)))) for rule, of in zip(left, scorers, strict=True)}
    shown = []
    for rule, (executed, _) in left.items():
        score_ci = resampled(values[rule], drawn[rule][None], len(split.rows)).ci
        away, by_row = values["never"] - values[rule], (drawn["never"] - drawn[rule])[None]
        lost_ci = resampled(away, by_row, len(split.rows), paired=True).ci
        row = {"executed": executed.mean(), "threshold": rules.get(rule, np.nan)}
        row |= {"score": score_ci.value, "low": score_ci.low, "high": score_ci.high}
        row |= {"lost": lost_ci.value, "lost_low": lost_ci.low, "lost_high": lost_ci.high}
        numbers = {key: float(value) if np.isfinite(value) else None for key, value in row.items()}
        shown.append({"split": name, "rule": rule} | numbers)
    return shown
