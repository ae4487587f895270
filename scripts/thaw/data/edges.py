"""Labelled spans and pairs of spans of a sentence: as they are written, as they are checked, and those of a tree.

They are written as in jiant's data for edge probing (Tenney et al. 2019; https://github.com/nyu-mll/jiant, as of July
2020, probing/data): {"span1": [first word, word after the last], "span2": the same where two spans are labelled,
"label": a label, or a list of labels of which all hold}. Here an edge is {"start1", "end1", "start2", "end2",
"labels"}, with -1 for both ends of a second span that is not there.
"""

from thaw.core.errors import UserError, suggestion
from thaw.data.rows_table import RowsTable

ARCS = "arcs"  # the column with the edges of a dependency tree
ENDS = ("start1", "end1", "start2", "end2")
NONE = [-1, -1]


def arcs(heads: list[int], relations: list[str]) -> list[dict]:
    """Return the arcs of a dependency tree as they are written: each word and its head, labelled with the relation.

    Args: the position of each word's head, from 0; -1 for the root's, which is paired with itself as in jiant;
    relations, one a word.
    """
    edges = []
    for word, (head, relation) in enumerate(zip(heads, relations, strict=True)):
        above = word if head < 0 else head
        edges.append({"span1": [word, word + 1], "span2": [above, above + 1], "label": relation})
    return edges


def checked(value, table: RowsTable, row: int, column: str) -> list[dict]:
    """Return the edges of a row in canonical form. Raises UserError for one that is not written as it should be."""
    if not isinstance(value, list) or not all(isinstance(edge, dict) for edge in value):
        raise table.mistake(row, column, f"expected a list of labelled spans, this is {value!r:.40}")
    canonical = []
    for number, edge in enumerate(value, 1):
        ends = []
        for name in ("span1", "span2"):
            span = edge.get(name)
            if name == "span2" and span is None:
                span = NONE
            elif not isinstance(span, list) or len(span) != 2 or not all(type(end) is int for end in span):
                example = '{"span1": [0, 2], "label": "NP"} is one'
                raise table.mistake(row, column, f"edge {number}: {name} is {span!r:.40}; {example}")
            ends += span
        labels = edge.get("label")
        labels = labels if isinstance(labels, list) else [labels]
        if not all(isinstance(label, (str, int)) and str(label) for label in labels):
            raise table.mistake(
                row, column, f"edge {number}: label is {labels!r:.40}; expected a text or a list of texts"
            )
        canonical.append(dict(zip(ENDS, ends, strict=True)) | {"labels": list(map(str, labels))})
    return canonical


def check_within(edges: list[dict], words: list[str], table: RowsTable, row: int, column: str) -> None:
    """Raise UserError for the first edge of a row with a span outside of its sentence, or with an empty one."""
    for number, edge in enumerate(edges, 1):
        for name in ("1", "2"):
            start, end = edge[f"start{name}"], edge[f"end{name}"]
            if [start, end] != NONE and not 0 <= start < end <= len(words):
                count = f"the sentence has {len(words)} words, counted from 0"
                raise table.mistake(row, column, f"edge {number}: span{name} [{start}, {end}] is no span; {count}")


def encoded(edges, index: dict[str, int]) -> list[tuple]:
    """Return the edges of a row as (start1, end1, start2, end2, indices of their labels)."""
    return [(*(edge[end] for end in ENDS), [index[label] for label in edge["labels"]]) for edge in edges]


def renamed(edges: list[dict], name) -> list[dict]:
    """Return edges whose labels are changed by a function."""
    return [edge | {"labels": [name(label) for label in edge["labels"]]} for edge in edges]


def labels_of(value) -> list[str]:
    """Return the labels in a row of a target: its one label, its tags, or those of its edges."""
    if isinstance(value, str):
        return [value]
    return [label for item in value for label in (item["labels"] if isinstance(item, dict) else [item])]


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
