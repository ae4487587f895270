"""Words in print: names of metrics, baselines and strategies, numbers, and escapes per format."""

import re

from thaw.core import phrases
from thaw.declarations.task_types import METRIC_LABELS
from thaw.statistics.aggregation import FEWEST_OF_INTERVAL

listing, plural, rate = phrases.listing, phrases.plural, phrases.rate

BASELINE_LABELS = {
    "majority": "Majority class",
    "bag_of_words": "Bag of words",
    "cosine": "Cosine similarity (no training)",
    "random_encoder": "Random weights, frozen",
}
PAIR_LABELS = {"joint": "cross-encoder", "separate": "bi-encoder"}
SYNTHETIC = "SYNTHETIC"
CI_OF_ROWS = "bootstrap over test rows, those of one document or with a shared sentence together"
CI = f"Student's t over seeds or draws, {CI_OF_ROWS}"
PRICE = (
    "its training and the runs that it starts from; its share of the search for its settings, and of the feature "
    "extraction of rows that training and choosing read"
)
COST_RULE = (
    f"The price of a run, in seconds: {PRICE}. Seconds are those of the processor or device, medians over seeds; older "
    "results may have seconds by the clock. FLOPs are counted by formula, forward and backward, for training and the "
    "runs that it starts from."
)
COST_NOTE = f"Costs: means over the tasks that a strategy ran on. Price: the median over seeds of {PRICE}."
MISSING = "‡"
WARNINGS = "†§¶‖"  # marks of kinds of warnings; a fifth kind has two of the first
NOT_RUN = "not run"


def warning_marks(flags) -> dict[str, str]:
    """Return the mark of each kind of warning in a table, in their order. Args: flags, some more than once."""
    kinds = enumerate(dict.fromkeys(flags))
    return {flag: WARNINGS[i % len(WARNINGS)] * (1 + i // len(WARNINGS)) for i, flag in kinds}


def point(variant: str) -> str:
    """Return a variant in print: `k03` is `k = 3`, `base` is empty."""
    match = re.fullmatch(r"([a-z_]+?)(\d+)", variant)
    if match:
        return f"{match[1]} = {int(match[2])}"
    return "" if variant == "base" else variant


def label(labels: dict, block: str, id: str) -> str:
    """Return the name of an id in print, itself where it has none. Args: an output's labels, {block: {id: label}}."""
    return labels.get(block, {}).get(id, id)


def strategy_name(labels: dict, strategy: str, variant: str) -> str:
    """Return a strategy's name with its point, as `Top k (k = 3)`. Args: labels, see `label`."""
    name, shown = label(labels, "strategies", strategy), point(variant)
    return f"{name} ({shown})" if shown else name


def task_name(labels: dict, task: str) -> str:
    """Return a task's name without its SYNTHETIC mark, which is printed separately."""
    return re.sub(r"\s*\(synthetic\)$", "", label(labels, "tasks", task), flags=re.IGNORECASE)


def column_name(labels: dict, task: str, split: str, several: bool) -> str:
    """Return the name of a task's scores on a split: the split is named where a task has several.

    A split `<task>/<split>` of another task reads `SICK-R → STS-B, test`.
    """
    name = task_name(labels, task)
    other, _, rest = split.rpartition("/")
    if other:
        return f"{name} → {task_name(labels, other)}, {rest.replace('_', ' ')}"
    return f"{name}, {rest.replace('_', ' ')}" if several else name


def metric_name(labels: dict, metric: str) -> str:
    return METRIC_LABELS.get(metric) or label(labels, "metrics", metric)


def few_seeds(fewest: int) -> list[str]:
    """Return the note of a table with so few seeds that its intervals say nothing of seeds."""
    note = "With fewer than 3 seeds the 95 % CI is of the test rows alone: it says nothing of other seeds."
    return [note] * (fewest < FEWEST_OF_INTERVAL)


def joint_ci(count: int) -> str:
    """Return what the brackets of a table of differences are. Args: how many differences it has."""
    of = f"one 95 % interval that holds all {count} differences of the table together" if count > 1 else "its 95 % CI"
    return f"In brackets {of} ({CI})."


def ci_over(fewest: int, most: int) -> str:
    """Return what the 95 % CI of means is made by. Args: the fewest and the most seeds of such a mean."""
    if most < FEWEST_OF_INTERVAL:
        return CI_OF_ROWS
    return CI + f"; with fewer than {FEWEST_OF_INTERVAL} of them, over test rows alone" * (fewest < FEWEST_OF_INTERVAL)


def seed_range(fewest: int, most: int, unit: str = "seed") -> str:
    """Return over how many runs means are: 1 seed, 8 draws, 1 to 8 seeds. Args: unit, see `output_data.unit`."""
    return plural(most, unit) if fewest == most else f"{fewest} to {most} {unit}s"


def means_over(fewest: int, most: int, unit: str = "seed") -> str:
    """Return what the numbers of a table are, with their standard deviation, if any. Args: see `seed_range`."""
    if most < FEWEST_OF_INTERVAL:
        over = f"one {unit}" if most == 1 else f"mean over {seed_range(fewest, most, unit)}"
        return f"{over}, hence no standard deviation"
    more = f", from {FEWEST_OF_INTERVAL} on" * (fewest < FEWEST_OF_INTERVAL)
    return f"mean ± standard deviation (n − 1) over {seed_range(fewest, most, unit)}{more}"


def shown_sd(sd: float | None, seeds: int) -> float | None:
    """Return a standard deviation over seeds or draws, None of fewer than three, where it says little."""
    return float(sd) if seeds >= FEWEST_OF_INTERVAL and sd is not None and sd == sd else None


def spread(sd: float | None, seeds: int, digits: int = 1) -> str:
    """Return ± and a standard deviation over seeds or draws; nothing of fewer than three, where it says little."""
    return f" ± {number(sd, digits)}" if shown_sd(sd, seeds) is not None else ""


def seed(value: float) -> str:
    """Return the seed of a row of runs.csv; empty where it has none, as a baseline."""
    return "" if value != value else str(int(value))


_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": r"$-$",
    "ρ": r"$\rho$",
    "²": r"$^2$",
    "≈": r"$^\approx$",
    "ⁿ": r"$^n$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "§": r"$^\S$",
    "¶": r"$^\P$",
    "‖": r"$^\|$",
    "→": r"$\to$",
    "–": "--",
    "\u202f": r"\,",
    **{mark: f"$^{letter}$" for mark, letter in zip("ᵃᵇᶜᵈ", "abcd", strict=True)},
    "<": r"$<$",
    ">": r"$>$",
    **{character: "\\" + character for character in "&%$#_{}"},
}


def tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in text)


def markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


DASH = "–"


def points(margin: float) -> str:
    return f"{margin:g} {'point' if margin == 1 else 'points'}"


def number(value: float | None, digits: int = 1) -> str:
    """Return a number with a fixed count of decimals, a dash where it is undefined; never `-0.0`."""
    if value is None or value != value:
        return DASH
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Return both ends of an interval in print: [−2.0, −0.4]."""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def count(value: float) -> str:
    """Return a count with thin groups: 12 345."""
    return f"{int(value):,}".replace(",", "\u202f")


def short(value: float | None) -> str:
    """Return a large number in three digits with its unit: 22.7 M, 3.1 T."""
    if value is None or value != value:
        return DASH
    for size, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}\u202f{unit}"
    return f"{value:.3g}"


def seconds(value: float | None) -> str:
    """Return a duration: 0.4 s, 35 s, 4.2 min, 1.5 h."""
    if value is None or value != value:
        return DASH
    if value < 90:
        return f"{value:.2g}\u202fs" if value < 9.95 else f"{value:.0f}\u202fs"
    return f"{value / 60:.1f}\u202fmin" if value < 5400 else f"{value / 3600:.1f}\u202fh"
