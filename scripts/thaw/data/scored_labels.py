"""Which labels of a task of type edges its score counts. All are trained."""

from thaw.core.errors import UserError, suggestion

ANY = "*"  # at the end of a name: the labels that begin with it


def scored_labels(labels: list[str], unscored: list[str], place: str) -> list[int]:
    """Return the positions of the labels that the score counts.

    Args: the labels of a corpus; the names that a task leaves out, R-* for all labels that begin with R-; place of the
    key, for messages. Raises UserError for a name that no label has, and where no label is left.
    """
    for name in unscored:
        if not any(_is_named(label, name) for label in labels):
            what = f"label begins with {name.removesuffix(ANY)!r}" if name.endswith(ANY) else f"label is {name!r}"
            raise UserError(f"{place}: no {what}{suggestion(name, labels, 'the card.json of the dataset has all')}")
    counted = [number for number, label in enumerate(labels) if not any(_is_named(label, name) for name in unscored)]
    if not counted:
        raise UserError(f"{place}: no label is left to score; leave out fewer of {', '.join(labels)}")
    return counted


def _is_named(label: str, name: str) -> bool:
    return label.startswith(name.removesuffix(ANY)) if name.endswith(ANY) else label == name
