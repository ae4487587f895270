"""Labels that are likely slips: those of one row alone, and those that differ from another by blanks or case alone."""

from collections import Counter
from itertools import combinations


def label_slips(values: list) -> str:
    """Return what looks like a slip among the labels of a column, by row, in words; nothing where nothing does."""
    counts = Counter(map(str, values))
    said = []
    if rare := _rare(counts):
        said.append(f"{', '.join(rare)}: in one row only; correct the file if it is a slip")
    if pairs := _alike(counts):
        said.append(f"{', '.join(pairs)}; correct the file if they are the same")
    return "; ".join(said)


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
