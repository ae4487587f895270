"""What the report says where the right answer is known."""

import html
import re

import numpy as np
import pytest

from known_reports import KnownReport
from thaw.decision import record

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
