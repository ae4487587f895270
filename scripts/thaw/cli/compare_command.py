"""Compare two results example by example: what in their settings differs, which predictions flipped, and where.

thaw compare results/runs/<task>/.../linear_probe/base results/runs/<task>/.../full/base
thaw compare FIRST SECOND --split test --out flipped.csv

A result is a run's folder (seed<n>), the folder above it for all its seeds, or one of baselines/, external/ and
ensembles/.
"""

from pathlib import Path

from thaw.api import run_comparison
from thaw.cli.selection import parser_of
from thaw.core.files import write_text
from thaw.declarations.task_types import SCORE_TYPES
from thaw.words import wording


def main(words: list[str]) -> None:
    """Read both results and print Markdown; write the examples that differ where --out names a file."""
    parser = parser_of("compare", __doc__)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--split", help="a scored split; default: the task's first test split")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write the examples on which the two differ")
    arguments = parser.parse_args(words)
    sides = [run_comparison.ComparedRun.open(folder) for folder in (arguments.first, arguments.second)]
    split = arguments.split or sides[0].task["test"][0]
    frame = run_comparison.compared(sides[0], sides[1], split)
    print("\n".join([*_settings(sides), "", *_scores_and_flips(sides, frame, split)]))
    if not _is_same(sides):
        print("\n".join(["", *_slices(sides[0], frame)]))
    if arguments.out:
        differing = frame[frame["first"] != frame["second"]]
        write_text(arguments.out, differing.to_csv(index=False, lineterminator="\n"))


def _is_same(sides) -> bool:
    """Return whether a result is compared with itself, of which slices show nothing."""
    return sides[0].folder == sides[1].folder


def _settings(sides) -> list[str]:
    """Return the settings that differ as a table."""
    if _is_same(sides):
        return [f"The same result twice: {sides[0].folder}"]
    rows = [f"| {key} | {first} | {second} |" for key, first, second in run_comparison.settings(*sides)]
    heads = [f"first: {sides[0].folder}  ", f"second: {sides[1].folder}", "", "| setting | first | second |"]
    return [*heads, "|:--|:--|:--|", *rows] if rows else [*heads[:2], "", "No setting differs."]


def _scores_and_flips(sides, frame, split: str) -> list[str]:
    """Return the scores of both and how many predictions flipped."""
    metric, counts = sides[0].task["metrics"][0], run_comparison.flips(frame)
    scores = [wording.number(None if score is None else 100 * score) for score in (side.score(split) for side in sides)]
    seeds = wording.listing(wording.plural(len(side.records), "seed") for side in sides)
    return [
        f"{wording.metric_name({}, metric)} on {split}: {scores[0]} and {scores[1]} ({seeds}).",
        f"Of {len(frame)} examples the first does {counts['first']} better, the second {counts['second']}, "
        f"{counts['same']} are the same.",
    ]


def _slices(result, frame) -> list[str]:
    """Return the mean credit of both by slice as a table."""
    corpus = result.corpus
    texts = corpus.texts or [corpus.words]
    is_distance = result.task["type"] in SCORE_TYPES
    scale, unit = (1, "mean distance, negative") if is_distance else (100, "right, %")
    by_slice = run_comparison.slices(frame, texts, result.task["target"], bounded=not is_distance)
    rows = [
        f"| {of} | {name} | {size} | {wording.number(scale * first, 2)} | {wording.number(scale * second, 2)} "
        f"| {wording.number(scale * (second - first), 2)} {_interval(second - first, half, size, scale)} |"
        for of, name, size, first, second, half in by_slice
    ]
    return [f"| slice | | examples | first ({unit}) | second | difference |", "|:--|:--|--:|--:|--:|--:|", *rows]


def _interval(difference: float, half: float | None, size: int, scale: int) -> str:
    """Return an interval in print, or why there is none.

    Args: the difference and half of its interval; examples; by how much a credit is multiplied.
    """
    if half is None:
        return "(too few)" if size < run_comparison.FEWEST_EXAMPLES else "(the same for each example)"
    return wording.interval(scale * (difference - half), scale * (difference + half), 2)
