"""The answer of a decision in sentences: the same in report, table, command line and model card."""

from thaw.core.phrases import listing
from thaw.decision.arms import BELOW_BASELINE, COLLAPSED, UNDERTRAINED
from thaw.decision.decide import Judged
from thaw.decision.record import NO_PREDICTIONS, NOT_SELECTED, NOT_TRAINED, OTHER_ROWS, UNDEFINED, TaskAnswer
from thaw.words.wording import count, interval, number, points, seconds, short

PRIOR_FROM = "other datasets with 800 rows, docs/results/grid.md"
FLAGS = {
    UNDERTRAINED: "Undertrained, still learning when training ended",
    COLLAPSED: "Collapsed to one class, or below the majority class",
    BELOW_BASELINE: "Below a baseline that uses no encoder",
}
LEFT_OUT = {
    NOT_SELECTED: "Not run on this task",
    NOT_TRAINED: "Not trained",
    NO_PREDICTIONS: "Left out, without predictions on validation",
    UNDEFINED: "Left out, with an undefined score on validation",
    OTHER_ROWS: "Left out, scored on other rows of validation",
}
UNITS = {  # title of the column, and its note
    "milliseconds": (
        "ms a text",
        "Milliseconds: operations of one prediction, without a cache, at the rate of the encoder's passes here.",
    ),
    "megabytes": (
        "MB a task",
        "MB: what a further task adds to an encoder that tasks share, its head and what it trains, in fp32.",
    ),
    "million": ("{} a million texts", "A million texts: at this rate, in batches, by your price of an hour."),
}
NO_MILLION = "The price of a million texts is left out: no pass of the encoder was timed."


def headline(answer: TaskAnswer) -> str:
    """Return what to take, in one sentence."""
    taken = answer.decision.answer
    if taken.encoder:
        return f"Take {answer.names[taken.name]}."
    return f"Take no encoder: {answer.names[taken.name]} is the best choice."


def reasons(answer: TaskAnswer) -> list[str]:
    """Return what a more expensive arm may gain, what the data can show, and what keeps the answer provisional."""
    decision, lines = answer.decision, []
    other, most = decision.promising, 100 - decision.answer.estimate  # no score is above 100
    if other is not None and (gained := min(other.difference.high, most)) > 0:
        gain = f"{answer.names[other.name]} may gain up to {number(gained)} points"
        lines.append(f"{gain}{_for_times(decision.answer, other)}.")
    if len(decision.arms) > 1:
        what = "rows" if decision.rows == decision.folded else "validation rows"
        lines.append(f"{count(decision.rows)} {what} cannot show less than {number(decision.resolution)} points.")
    if decision.within:
        lines.append(f"It is the cheapest that is expected to lose at most {points(decision.within)}.")
    if decision.price_weight:
        lines.append(f"A second of training is asked to gain {decision.price_weight:g} points.")
    if prior := [arm.expected for arm in decision.arms if arm.expected]:
        gain = " to ".join(dict.fromkeys([number(min(prior)), number(max(prior))]))
        lines.append(f"Expected beforehand of training layers: {gain} points ({PRIOR_FROM}).")
    lines += _labels_or_thawing(answer)
    lines += [*_calibrated(answer), *_served(answer)]
    if decision.seeds == 1 and not decision.answer.converged:
        lines.append("Provisional: one seed.")
    if answer.single_class:
        lines.append("Validation has a single class or value, so that no score on it says anything.")
    concerned = [(arm.name, flag) for arm in decision.arms for flag in arm.flags] + list(answer.left_out)
    for what, said in (FLAGS | LEFT_OUT).items():
        names = [answer.names.get(name, name) for name, why in concerned if why == what]
        lines += [f"{said}: {listing(names)}."] if names else []
    return lines


def cheaper(answer: TaskAnswer) -> list[str]:
    """Return a sentence on the cheaper arm of the price list that loses least, if there is one."""
    taken = answer.decision.answer
    return [
        f"{answer.names[arm.name]} is expected to lose {number(arm.loss - taken.loss)} points more,"
        f" for {price(arm.price)} instead of {price(taken.price)}."
        for arm in answer.decision.price_list[-1:]
    ]


def scale(answer: TaskAnswer) -> str:
    """Return on which rows the scores are."""
    decision = answer.decision
    if not decision.folded:
        return f"Scores are on {count(decision.rows)} rows of validation."
    return (
        f"Scores of linear probes and of the bag of words are out of fold on {count(decision.folded)} rows of training "
        "and validation. "
        "Those of the others are on validation, as differences between the two are."
    )


def price(value: float) -> str:
    """Return a price in print; a baseline has none."""
    return seconds(value) if value else "nothing"


def tested(answer: TaskAnswer) -> str:
    """Return what is taken on test, with its 95 % CI; empty where it has no score there."""
    parts = [
        f"{number(made.value)} [{number(made.low)}, {number(made.high)}] on {split.replace('_', ' ')}"
        for split, made in answer.test.items()
        if made
    ]
    return ", ".join(parts)


def scored(arm: Judged) -> str:
    """Return the score of an arm with its 95 % CI, its price, and how many parameters it trained."""
    ends = interval(arm.low, arm.high)
    return f"{number(arm.estimate)} {ends}, {price(arm.price)}, {short(arm.parameters)} parameters trained"


def in_terminal(answer: TaskAnswer) -> str:
    """Return an answer as lines of a terminal: its arms from cheap to dear, then what to take and why."""
    decision, rows = answer.decision, []
    for arm in decision.arms:
        away = arm.difference
        ends = "" if arm.name == decision.taken else f"{number(away.value)} [{number(away.low)}, {number(away.high)}]"
        rows.append([answer.names[arm.name], number(arm.estimate), ends, number(arm.loss), price(arm.price)])
    titles = ["", "score", "difference", "expected loss", "price"]
    widths = [max(len(row[place]) for row in [titles, *rows]) for place in range(len(titles))]
    lines = [f"{answer.title}, {answer.metric} × 100"]
    for row in [titles, *rows]:
        cells = [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    score = tested(answer)
    said = [headline(answer), *([f"It scores {score}."] if score else []), *reasons(answer), *cheaper(answer)]
    said += [scale(answer)]
    return "\n".join([*lines, f"→ {said[0]}", *(f"  {line}" for line in said[1:])])


def not_run(
    answer: TaskAnswer, dear: list[tuple[str, float, float]], late: list[tuple[str, float]], command: str
) -> list[str]:
    """Return what was not run, why, and what runs it all the same.

    Args: the answer; what may gain too little, with the points that it may gain and has to; what has no time left, with
    its seconds; the command.
    """
    too_little = [f"{name} ({number(gain, 2)} of {number(least, 2)} points)" for name, gain, least in dear]
    too_long = [f"{name} ({seconds(needed)})" for name, needed in late]
    return [
        f"{answer.title}: not run, since {why}: {listing(names)}; {command} runs all."
        for why, names in (("it may gain less than it has to", too_little), ("it does not end in time", too_long))
        if names
    ]


def replayed(lost: dict[str, float]) -> str:
    """Return what such decisions lost where they were replayed. Args: points on both tests, and full trainings."""
    both = f"{number(lost['test'])} points on test and {number(lost['reserved'])} on reserved rows"
    return (
        f"On eight tasks with 1,000 rows and MiniLM such answers lost {both}. They took {number(lost['tried'])} full "
        "trainings. That is in sample, without folds (docs/results/grid.md)."
    )


def _calibrated(answer: TaskAnswer) -> list[str]:
    """Return how far the probabilities of what is taken are off, where they are by more than chance."""
    made = answer.calibration.get(answer.decision.taken)
    if made is None or not made.bad:
        return []
    lines = [f"Its probabilities are off by {number(100 * made.error)} points on test (expected calibration error)."]
    if made.mended:
        fitted = f"{number(made.temperature, 2)}, fitted on {count(made.fitted_on)} validation rows"
        lines.append(
            f"Logarithms of them divided by {fitted}, and a softmax, are off by {number(100 * made.tempered)}."
        )
    return lines


def _served(answer: TaskAnswer) -> list[str]:
    """Return what a million texts cost with what is taken, where the user stated the price of an hour."""
    made = answer.deployment.get(answer.decision.taken)
    if made is None or made.million is None:
        return []
    return [f"A million texts cost {made.million:.3g} {made.currency}, at {made.milliseconds:.3g} ms each."]


def _labels_or_thawing(answer: TaskAnswer) -> list[str]:
    """Return what the last doubling of the labels gave a probe, and what thawing layers gives on the same rows."""
    curve, arms = answer.curve, {arm.name: arm for arm in answer.decision.arms}
    if curve is None or curve.arm not in arms:
        return []
    more = f"{curve.half_rows} to {curve.rows} labelled rows gave {answer.names[curve.arm]}"
    line = f"{more} {number(curve.score - curve.half_score)} points"
    thawed = [arm for arm in arms.values() if arm.encoder and not arm.converged]
    if thawed:
        best = max(thawed, key=lambda arm: arm.difference.value)
        line += f"; {answer.names[best.name]} gives {number(best.difference.value - arms[curve.arm].difference.value)}"
    return [f"{line}."]


def _for_times(taken: Judged, other: Judged) -> str:
    """Return what a more expensive arm costs, as a multiple where what is taken costs anything."""
    if not taken.price > 0:
        return f" for {price(other.price)}"
    ratio = other.price / taken.price
    return f" for {number(ratio, 1 if ratio < 10 else 0)} times the price"
