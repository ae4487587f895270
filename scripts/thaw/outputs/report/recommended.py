"""What the report recommends, task by task, in sentences: read from the CSV of the tables of recommendations.

A CSV has a line for each candidate strategy (see `tables/recommendation.py`). Nothing is computed here but ratios of
costs, so that no sentence can differ from the table.
"""

import csv
from pathlib import Path

from thaw.core import layout
from thaw.core.advice_tables import ADVISED
from thaw.core.failed_outputs import reason
from thaw.declarations.decision import FEWEST_OF_INTERVAL, FEWEST_SEEDS
from thaw.declarations.output_kind import Use
from thaw.declarations.outputs import kinds_for
from thaw.outputs import wording
from thaw.outputs.frame.busy_machine import BUSY_SECONDS
from thaw.outputs.frame.result_links import cell_anchor
from thaw.outputs.tables.recommendation import NOT_WORSE, UNDECIDED
from thaw.statistics.significance import TOO_FEW_SEEDS

NAMED = 2  # undecided strategies that are named
COSTS = {  # column: in print, the unit's factor, the words after the number
    "training_flops": (wording.operations, 1, "of training"),
    "seconds_shared": (wording.seconds, 1, "of training"),
    "memory_mb": (lambda value: f"{wording.short(value)}B", 1e6, "of memory"),
    "trained_parameters": (wording.short, 1, "trainable parameters"),
}


def recommendations(outputs: list[dict], folder: Path, columns, groups: dict, labels: dict) -> list[dict]:
    """Return an entry for each task, split and group of runs of the tables of recommendations, in the page's order.

    Keys: task, split and group; title, metric, synthetic, of (the group in print), margin; whether a strategy is
    recommended, if not `why`; name, validation, score and anchor (where its runs are listed) of that strategy or of the
    highest on validation; `lines`, what is said, each with a part of it and the anchor to which that leads (empty where
    it leads nowhere), and `abstract`, the part of it that the abstract says. Args: the outputs of the report's spec and
    their folder; columns and groups as `aggregate` gives them.
    """
    by_place: dict[tuple, list[dict]] = {}
    for output in (output for output in outputs if output["kind"] in kinds_for(Use.ADVICE)):
        prefix = layout.output(folder, "table", output["id"]).with_suffix("")
        if not reason(prefix):
            with open(f"{prefix}.csv", encoding="utf-8", newline="") as file:
                for line in csv.DictReader(file):
                    group = line["subset"], line["encoder"], line["head"]
                    by_place.setdefault((line["task"], line["split"], group), []).append(line)
    entries, alone = [], len({group for *_, group in by_place}) == 1
    for column in columns:
        for group in groups:
            if lines := by_place.get((column.task, column.split, group)):
                about = {"task": column.task, "split": column.split, "group": group}
                about |= {"title": column.label, "metric": column.metric, "synthetic": column.synthetic}
                about |= {"of": "" if alone else groups[group], "margin": wording.points(float(lines[0]["margin"]))}
                entries.append(about | _entry(lines, labels))
    return entries


def _entry(lines: list[dict], labels: dict) -> dict:
    """Return what is said of one task and group: name, score, lines. Args: the lines of its candidates."""
    best = next(line for line in lines if line["highest"] == "1")
    taken = next((line for line in lines if line[ADVISED] == "1"), None)
    if taken is None:
        return _none(lines, best, labels)
    away, sure = _difference(taken, best, labels), _sure(taken)
    plain = [(text, "", "") for text in (_cheaper(taken, best, lines, labels), sure, _open(lines, taken, labels))]
    return _shown(taken, labels) | {"recommended": True, "lines": [away, *plain], "abstract": [away[0], sure]}


def _shown(line: dict, labels: dict) -> dict:
    """Return a strategy in print, its score on test, and where its runs are listed."""
    return {
        "name": _name(line, labels),
        "validation": _number(line, "validation"),
        "score": _score(line),
        "anchor": _anchor(line),
    }


def _none(lines: list[dict], best: dict, labels: dict) -> dict:
    """Return what is said where nothing can be recommended."""
    shown, left = _shown(best, labels), []  # where a baseline is as good, deciding among strategies changes nothing
    why = short = f"{best['reason'][:1].upper()}{best['reason'][1:]}."
    if best["reason"] == TOO_FEW_SEEDS:
        short = f"{wording.plural(int(best['seeds']), 'seed')} cannot support one."
        needs = f"an interval over seeds needs {FEWEST_OF_INTERVAL}, a significance test {FEWEST_SEEDS}"
        why = f"{short.removesuffix('.')}: {needs}."
        left = [_near(lines, best, labels), (_open(lines, None, labels), "", "")]
    highest = f"Highest on validation: {shown['name']} ({shown['validation']}); on test it scores {shown['score']}."
    return shown | {
        "recommended": False,
        "why": why,
        "lines": left,
        "abstract": [short, highest],
    }


def _anchor(line: dict) -> str:
    """Return where the page of examples lists the runs of a line."""
    return cell_anchor(line["task"], {"kind": "run"} | line)


def _near(lines: list[dict], best: dict, labels: dict) -> tuple[str, str, str]:
    """Return the highest on validation of the strategies that train for less time than the highest of all.

    Cheaper is by seconds wherever the report says it; on a busy machine FLOPs are printed as well.
    """
    cheaper = [line for line in lines if float(line["seconds_shared"]) < float(best["seconds_shared"])]
    if not cheaper:
        return f"No other strategy trains for less time{f' ({BUSY_SECONDS})' if _busy(best) else ''}.", "", ""
    near = max(cheaper, key=lambda line: float(line["validation"]))
    away = _interval(near, "difference", "low", "high")
    text = f"Next on validation and cheaper: {_name(near, labels)} (distance to the best: {away} points);"
    return f"{text} {_cheaper(near, best, lines, labels)}", away, _anchor(near)


def _difference(taken: dict, best: dict, labels: dict) -> tuple[str, str, str]:
    if taken is best:
        return "It is the highest on validation too.", "", ""
    validated = _interval(taken, "difference", "low", "high")
    tested = _interval(taken, "test_difference", "test_difference_low", "test_difference_high")
    name, tied = _name(best, labels), float(taken["difference"]) == 0
    text = (
        f"Distance to the best on validation: {validated}; difference to {name}, "
        f"{'as high' if tied else 'the highest'} there, on test: {tested}."
    )
    return text, tested, _anchor(best)


def _cheaper(taken: dict, best: dict, lines: list[dict], labels: dict) -> str:
    """Return its costs next to those of the highest on validation, or of what trains most where that is the same."""
    other = best if taken is not best else max(lines, key=lambda line: float(line["trained_parameters"]))
    if other is taken:
        return "No other strategy trains more parameters."
    parts, busy = [], _busy(taken)
    for column in (column for column in COSTS if column != ("seconds_shared" if busy else "training_flops")):
        printed, factor, of = COSTS[column]
        own, theirs = (float(line[column]) * factor for line in (taken, other))
        both = printed(own) == printed(theirs)
        parts.append(
            f"{printed(own)} {of} {'in both' if both else f'instead of {printed(theirs)}'}{_times(own, theirs)}"
        )
    than = "" if other is best else f" Compared with {_name(other, labels)}:"
    measured = ""
    if busy:
        own, theirs = (wording.seconds(float(line["seconds_shared"])) for line in (taken, other))
        measured = f" Seconds were {BUSY_SECONDS} and cannot be compared: {own} and {theirs}."
    else:
        parts[0] += _whole(taken, other)
    return f"{than} {'; '.join(parts)}.{measured}".strip()


def _busy(line: dict) -> bool:
    """Tell whether the seconds of a line cannot be compared; tables of before they said so do not know."""
    return line.get("busy") == "1"


def _whole(taken: dict, other: dict) -> str:
    """Return the seconds of two strategies with the whole feature extraction, where that makes much of a difference."""
    shared, alone = ([float(line[f"seconds_{way}"]) for line in (taken, other)] for way in ("shared", "alone"))
    if not any(all_ >= wording.MUCH * part > 0 for all_, part in zip(alone, shared, strict=True)):
        return ""
    own, theirs = map(wording.seconds, alone)
    return f", with the whole feature extraction {own} {'too' if own == theirs else f'instead of {theirs}'}"


def _times(own: float, theirs: float) -> str:
    """Return how many times cheaper one cost is, where they differ by a tenth or more and not by a hundred times."""
    if not own > 0 or not theirs > 0:
        return ""
    word, ratio = ("less", theirs / own) if theirs > own else ("more", own / theirs)
    return f" ({ratio:.1f} times {word})" if 1.1 <= ratio < 100 else ""


def _sure(taken: dict) -> str:
    seeds = wording.plural(int(taken["seeds"]), "seed")
    margin = wording.points(float(taken["margin"]))
    if taken["answer"] == NOT_WORSE:
        return f"Shown on validation to be within {margin} of the best ({seeds}, 95 % bounds over all strategies)."
    return (
        f"Provisional: not shown to be within {margin} of the best with {seeds}. To show that it is: {_lacks(taken)}."
    )


def _open(lines: list[dict], taken: dict | None, labels: dict) -> str:
    """Return the undecided strategies that may be a better choice, with what would decide about them, and what.

    These are the cheaper ones, and all of them where it is not known how near the recommended one is to the best.
    """
    sure = taken is not None and taken["answer"] == NOT_WORSE
    cost = float(taken["seconds_shared"]) if sure else float("inf")
    others = [line for line in lines if line is not taken and line["answer"] == UNDECIDED]
    cheaper = [line for line in others if float(line["seconds_shared"]) < cost]
    if taken and not cheaper:
        return f"No {'cheaper' if sure else 'other'} strategy is undecided."
    lacks: dict[str, list[str]] = {}
    for line in sorted(cheaper, key=lambda line: float(line["seconds_shared"])):
        lacks.setdefault(_lacks(line), []).append(_name(line, labels))
    parts = []
    for needed, names in lacks.items():
        rest = len(names) - NAMED
        shown = names[:NAMED] + ([f"{rest} more"] if rest > 0 else []) if taken or len(lacks) > 1 else []
        parts.append((f"{wording.listing(shown)} – " if shown else "") + needed)
    what = "To decide"
    if taken:
        within = f"within {wording.points(float(taken['margin']))} of the best"
        what = f"To decide whether {'a cheaper one' if sure else 'another one'} is {within}"
    return f"{what}: {'; '.join(parts)}." if parts else ""


def _lacks(line: dict) -> str:
    """Return what decides an undecided strategy, from its line."""
    if line["rows_needed"]:
        seeds = int(line["more_seeds"])
        more = f" and {wording.plural(seeds, 'more seed')}" if seeds else ""
        return f"a validation set of {wording.count(float(line['rows_needed']))} rows{more}"
    if not line["more_seeds"]:
        return wording.TOO_MANY
    fewest = "at least " if int(line["seeds"]) < FEWEST_OF_INTERVAL else ""  # then it is all that is known
    return fewest + wording.plural(int(line["more_seeds"]), "more seed")


def _name(line: dict, labels: dict) -> str:
    return wording.strategy_name(labels, line["strategy"], line["variant"])


def _number(line: dict, column: str) -> str:
    return wording.number(float(line[column]))


def _interval(line: dict, *columns: str) -> str:
    if not line[columns[0]]:
        return "undefined"
    value, low, high = (float(line[column]) for column in columns)
    return f"{wording.number(value)} {wording.interval(low, high)}"


def _score(line: dict) -> str:
    """Return a score on test with its interval, which with few seeds is of the test rows alone."""
    few = " (over test rows only)" if line["test"] and int(line["seeds"]) < FEWEST_OF_INTERVAL else ""
    return f"{_interval(line, 'test', 'test_low', 'test_high')}{few}"


def sentence(entry: dict) -> str:
    """Return an entry as running text, for the abstract."""
    opening = (
        f"recommended is {entry['name']}, with {entry['score']} on test."
        if entry["recommended"]
        else "no recommendation."
    )
    return " ".join([opening, *entry["abstract"]])
