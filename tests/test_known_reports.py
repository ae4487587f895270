"""What the report says where the right answer is known, and whether each of its numbers is in a CSV."""

import csv
import html
import re
from itertools import permutations

import numpy as np
import pytest

from known_reports import KnownReport
from thaw.decision import record
from thaw.words import wording

SEEDS = np.arange(6) * 0.0025  # one example more for each seed


def part(page: str, start: str, end: str) -> str:
    """Return the words of a part of a page."""
    inner = page.partition(start)[2].partition(end)[0]
    text = html.unescape(re.sub(r"<[^>]+>", " ", inner))
    return re.sub(r"[ \n]+", " ", text)


def first_screen(report: KnownReport) -> str:
    return part(report.page, 'aria-label="Recommendation">', "</section>")


@pytest.fixture(scope="module")
def winner(tmp_path_factory):
    """Full fine-tuning is 20 points ahead, with six seeds on real text."""
    rates = {"frozen": list(0.70 + SEEDS), "full": list(0.90 + SEEDS)}
    return KnownReport(tmp_path_factory.mktemp("winner"), rates)


@pytest.fixture(scope="module")
def tie(tmp_path_factory):
    """The linear probe is a tenth of a point behind, on the same examples."""
    rates = {"frozen": list(0.90 + SEEDS), "full": list(0.90 + SEEDS + 0.0025 * (np.arange(6) % 2))}
    return KnownReport(tmp_path_factory.mktemp("tie"), rates)


def test_bold_and_marks_follow_validation(winner, tie):
    rows = {name: report.page.partition("Table 2.")[2] for name, report in (("winner", winner), ("tie", tie))}
    assert "<strong>90.6 ± 0.5</strong>" in rows["winner"] and "≈" not in rows["winner"].partition("notes")[0]
    assert "<strong>9" in rows["tie"].partition("</table>")[0] and "≈" in rows["tie"].partition("</table>")[0]
    assert "≈: open against it, since the 95 % interval of their difference on validation" in rows["tie"]


def test_a_clear_winner_is_taken_with_its_score_and_what_the_cheaper_one_loses(winner):
    text = first_screen(winner)
    assert re.search(r"Take Full fine-tuning\. It scores 90\.6 \[\d\d\.\d, \d\d\.\d\] on test", text)
    assert re.search(r"400 validation rows cannot show less than \d\.\d points\.", text)
    assert re.search(
        r"Linear probe is expected to lose \d\d\.\d points more, for 3\.1\u202fs instead of 1\.5\u202fmin\.", text
    )
    article = winner.article.partition(r"\begin{abstract}")[2].partition(r"\end{abstract}")[0]
    assert "Take Full fine-tuning. It scores 90.6 [" in article


def test_of_a_tie_the_expected_losses_are_small_and_equal_scores_are_taken_at_the_lower_price(tie, tmp_path):
    (answer,) = record.read(tie.folder)
    assert all(arm.loss < 0.5 for arm in answer.decision.arms) and answer.decision.taken == "full"
    equal = KnownReport(tmp_path, {"frozen": [0.9] * 6, "full": [0.9] * 6})
    assert "Take Linear probe." in first_screen(equal)


def test_the_counts_are_the_plans(winner):
    assert "12 runs and 3 preparatory" in part(winner.page, "<header>", "</header>")
    assert "12 runs and 3 preparatory" in part(winner.page, 'id="provenance"', "</section>")
    assert "in 12 runs and 3 preparatory ones" in winner.article


NUMBER = re.compile(r"(?<![\w.])−?\d[\d\u202f]*(?:\.\d+)?(?:\u202f(?:s|min|h)\b|\u202f?[kMGT]B?\b)?")
CONSTANTS = {
    "95",
    "100",
    "1",
    "2",
    "3",
    "4",
    "6",
    "7",
    "0.05",
    "10",
}  # of sentences: CI, ×, seeds, margins, numbers of tables


def known_numbers(report: KnownReport) -> set[str]:
    """Return all numbers of the CSVs as they may be printed: those of tables, of runs.csv, and means over its seeds."""
    numbers, costs = [], []
    for path in sorted(report.folder.rglob("*.csv")):
        with open(path, encoding="utf-8") as file:
            for line in csv.DictReader(file):
                values = {key: float(v) for key, v in line.items() if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", v)}
                numbers += values.values()
                numbers += [100 * values["chance"]] if "chance" in values else []
                costs += [[values[name] for name in values if name in COMPARED]] if path.stem == "advice" else []
    frame = report.frame.assign(percent=100 * report.frame["value"])
    main = frame[frame["main"].astype(bool)]
    means = main.groupby(["strategy", "split"])[["percent", "flops", "trained_parameters"]].mean()
    medians = main.groupby(["strategy", "split"])["price_seconds"].median()
    numbers += [
        *main["percent"],
        *medians,
        *means.to_numpy().ravel(),
        *frame.drop_duplicates("folder")["train_seconds"],
    ]
    runs = frame.drop_duplicates("folder")
    numbers += [runs["train_seconds"].sum(), runs["extraction_seconds"].sum()]
    shown = set()
    for value in numbers:
        shown |= {wording.number(value), wording.number(value, 2), wording.number(value, 0), wording.count(abs(value))}
        shown |= {wording.seconds(value), wording.short(value), f"{wording.short(1e6 * value)}B", f"{value:g}"}
    pairs = [pair for one, other in permutations(costs, 2) for pair in zip(one, other, strict=True)]
    ratios = {f"{one / other:,.{digits}f}" for one, other in pairs if other for digits in (0, 1)}
    return shown | ratios | {wording.number(one - other) for one, other in pairs} | CONSTANTS


COMPARED = ("price", "expected_loss")


def unknown(report: KnownReport, page: str) -> list[str]:
    """Return the numbers of a page's results that no CSV has."""
    allowed, text = known_numbers(report), ""
    for start, end in (
        ('aria-label="Recommendation">', "</section>"),
        ('id="abstract">', 'id="setup"'),
        ('id="results">', 'id="warnings"'),
    ):
        inner = page.partition(start)[2].partition(end)[0]
        inner = re.sub(r"<(style|script|template)\b.*?</\1>", " ", inner, flags=re.DOTALL)  # copies for buttons
        inner = re.sub(r'<details class="again">.*?</details>', " ", inner, flags=re.DOTALL)
        inner = re.sub(r"<code>.*?</code>|×\u202f?100|L2|k = \d|Nobody 2020", " ", inner)
        text += html.unescape(re.sub(r"<[^>]+>", " ", inner))
    return [number for number in NUMBER.findall(text) if number.strip("\u202f") not in allowed]


@pytest.mark.parametrize("name", ["winner", "tie"])
def test_every_number_of_the_results_is_in_a_csv(name, request):
    report = request.getfixturevalue(name)
    assert unknown(report, report.page) == []
    assert unknown(report, report.page.replace("90.6", "91.7")) != [], "a number from nowhere is seen"
