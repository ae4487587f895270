"""Labels that are likely slips: of one row alone, nearly equal to another one, or one of several of the same text."""

from collections import Counter, defaultdict
from itertools import combinations

from thaw.core.phrases import plural

SHOWN = 40  # characters of a text that are shown


def label_slips(values: list) -> str:
    """Return what looks like a slip among the labels of a column, by row, in words; nothing where nothing does."""
    counts = Counter(map(str, values))
    said = []
    if rare := _rare(counts):
        said.append(f"{', '.join(rare)}: in one row only; correct the file if it is a slip")
    if pairs := _alike(counts):
        said.append(f"{', '.join(pairs)}; correct the file if they are the same")
    return "; ".join(said)


def contradictions(texts: list[tuple], labels: list) -> str:
    """Return in words which texts have several labels, and how many rows no model has right then; nothing without any.

    Args: by row its texts, and its label.
    """
    by_text: dict[tuple, Counter] = defaultdict(Counter)
    for row, label in zip(texts, labels, strict=True):
        if all(text not in (None, "") for text in (*row, label)):
            by_text[row][label] += 1
    several = {row: counts for row, counts in by_text.items() if len(counts) > 1}
    if not several:
        return ""
    lost = sum(counts.total() - max(counts.values()) for counts in several.values())
    first = " | ".join(map(str, next(iter(several))))
    shown = first if len(first) <= SHOWN else f"{first[:SHOWN]}..."
    has = f"{plural(len(several), 'text has', 'texts have')} several labels, the first '{shown}'"
    return f"{has}; {plural(lost, 'row is', 'rows are')} wrong whatever a model predicts"


def _rare(counts: Counter) -> list[str]:
    """Return the labels that one row has, in the order of the file, if all others are frequent."""
    rare = [repr(label) for label, count in counts.items() if count == 1]
    return rare if len(rare) <= len(counts) // 3 else []


def _alike(counts: Counter) -> list[str]:
    """Return the pairs of labels that differ by blanks alone, or by case, in the order of the alphabet."""
    pairs = []
    squeezed = {label: " ".join(label.split()) for label in sorted(counts)}
    folded = {label: text.casefold() for label, text in squeezed.items()}
    for one, other in combinations(squeezed, 2):
        if folded[one] == folded[other]:
            how = "blanks" if squeezed[one] == squeezed[other] else "case"
            pairs.append(f"{one!r} and {other!r} differ by {how} alone")
    return pairs
