"""A table of comparisons: every strategy against one, with 95 % CI, effect size and p adjusted for all of them."""

from thaw.core.errors import UserError
from thaw.declarations.decision import FEWEST_SEEDS
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import Contrast, Contrasts, plain
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.frame.undefined import undefined_note
from thaw.outputs.tables.claims import underfit
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.significance import HIGHER, LOWER, PairedTest, compare
from thaw.statistics.verdicts import NOT_TESTABLE

MARK = "†"  # of differences that are not testable
HEADER = "task split subset encoder head strategy variant seeds difference low high effect p p_adjusted answer"


def build(data, spec: dict) -> TextTable:
    """Return every strategy's difference to `reference` on every task, within each encoder, head and subset.

    Args: spec with `reference`, the strategy that all others are compared with. Raises UserError where nothing can be
    compared.
    """
    labels = spec["labels"]
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    columns, names = aggregate.columns(summary, labels), aggregate.group_names(summary, labels)
    kept = _contrasts(
        summary[summary["fitted"]], Contrasts(data.runs, spec["split"], data.predictions), spec["reference"]
    )
    if not kept:
        raise UserError(
            f"a comparison_table needs runs of {spec['reference']} and of another strategy with the same seeds"
        )
    contrasts = [contrast for _, contrast in kept.values()]
    tests = compare([one.by_seed for one in contrasts], [one.resampled for one in contrasts])
    compared = dict(zip(kept, tests, strict=True))
    weak = {key for key, (row, _) in kept.items() if _underfit(data.runs, row, spec)}
    groups = []
    for group, name in names.items():
        rows: dict[tuple, Row] = {}
        for key, (row, contrast) in kept.items():
            if (row.subset, row.encoder, row.head) == group:
                line = Row({}, aggregate.row_name(row, labels), [None] * len(columns))
                line = rows.setdefault((row.strategy, row.variant), line)
                line.cells[aggregate.column_index(columns, row.task, row.split)] = _cell(
                    contrast, compared[key], row_anchor(row), key in weak
                )
        groups += [Group(name, [], list(rows.values()))] if rows else []
    lines = [_line(row, contrast, compared[key], key in weak) for key, (row, contrast) in kept.items()]
    notes = _notes(wording.label(labels, "strategies", spec["reference"]), contrasts, weak)
    notes += undefined_note(data.runs, labels, "Differences leave these runs out")
    return text_table(spec, [column.title for column in columns], groups, notes, HEADER, lines, sentences=True)


def _underfit(runs, row, spec: dict) -> bool:
    """Tell whether half of the runs or more of a strategy, or of the one that it is compared with, are underfit."""
    terms = [(1, row.head, row.strategy, row.variant), (-1, row.head, spec["reference"], "base")]
    test = {"task": row.task, "subset": row.subset, "split": row.split, "metric": row.metric, "terms": terms}
    return bool(underfit(runs, row.encoder, test, spec["labels"]))


def _contrasts(fitted, contrasts: Contrasts, whole: str) -> dict[tuple, tuple]:
    """Return {cell and split: (its row of the summary, its contrast to `whole`)}."""
    by_cell = {}
    for row in fitted[fitted["strategy"] != whole].itertuples():
        first = (row.task, row.subset, row.encoder, row.head, row.strategy, row.variant)
        contrast = contrasts.between(first, (*first[:4], whole, "base"), row.split)
        if contrast:
            by_cell[*first, row.split] = row, contrast
    return by_cell


def _cell(contrast: Contrast, tested: PairedTest, link: str, weak: bool) -> TextCell:
    """Return a difference in print, bold if it is significant; marked and never bold between underfit runs."""
    effect = f", d_z {wording.number(tested.effect)}" if tested.effect is not None else ""
    test = f", p {wording.number(tested.adjusted, 3)}" if tested.seeds >= FEWEST_SEEDS else ""
    significant = _answer(tested, weak) in (HIGHER, LOWER)
    mark = MARK if weak else ""
    return TextCell(contrast.text + effect + test + mark, contrast.mean, best=significant, link=link)


def _line(row, contrast: Contrast, tested: PairedTest, weak: bool) -> list:
    cell = [row.task, row.split, row.subset, row.encoder, row.head, row.strategy, row.variant, tested.seeds]
    effect = "" if tested.effect is None else f"{tested.effect:.4f}"
    return [
        *cell,
        *plain(contrast.resampled.ci),
        effect,
        f"{tested.p:.4f}",
        f"{tested.adjusted:.4f}",
        _answer(tested, weak),
    ]


def _answer(tested: PairedTest, weak: bool) -> str:
    return NOT_TESTABLE if weak else tested.answer


def _notes(whole: str, contrasts: list[Contrast], weak: set) -> list[str]:
    fewest, sets = min(len(one.differences) for one in contrasts), len({frozenset(one.by_seed) for one in contrasts})
    notes = [
        f"Difference to {whole} in points, with the same encoder, head, examples and seeds; in brackets the 95 % CI "
        f"({wording.CI}); d_z: the mean difference in standard deviations of the paired differences.",
        f"p: sign-flip test over seeds, adjusted for the {wording.plural(len(contrasts), 'comparison')} of this table "
        "by step-down max-T. Bold: p at most 0.05 and an interval on one side of 0, of 95 % for all comparisons "
        "together; all other differences are not significant.",
    ]
    if sets > 1:
        notes.append("Sets of other seeds or draws share the error by Holm's rule, weighted by their numbers of tests.")
    if weak:
        notes.append(
            f"{MARK} Not testable: half of the runs or more of the strategy, or of {whole}, are underfit, "
            "so that the difference is one of lengths of training too."
        )
    if fewest < FEWEST_SEEDS:
        notes.append(
            f"With fewer than {wording.plural(FEWEST_SEEDS, 'seed')} no p is given: over n seeds it cannot be below "
            "2 / 2ⁿ, so that no difference can be significant."
        )
    return notes + wording.few_seeds(fewest)
