"""What the report says where the right answer is known, and whether each of its numbers is in a CSV."""

import csv
import html
import re
from itertools import permutations

import numpy as np
import pytest

from known_reports import ROWS, KnownReport
from thaw.outputs import wording

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


def test_a_clear_winner_is_recommended_with_its_score_and_certainty(winner):
    text, abstract = first_screen(winner), part(winner.page, 'id="abstract"', "</h2>")
    assert re.search(r"Full fine-tuning 90\.6 \[\d\d\.\d, \d\d\.\d\] on test", text)
    assert "It is the highest on validation too. No other strategy trains more parameters." in text
    assert "Shown on validation to be within 1 point of the best (6 seeds" in text
    assert "No cheaper strategy is undecided." in text and "No recommendation" not in text
    abstract = part(winner.page, 'id="abstract">', 'id="setup"')
    assert "recommended is Full fine-tuning, with 90.6 [" in abstract
    assert "Nobody 2020: the head alone (contradicted, −20.0)" in winner.page


def test_bold_and_marks_follow_validation(winner, tie):
    rows = {name: report.page.partition("Table 2.")[2] for name, report in (("winner", winner), ("tie", tie))}
    assert "<strong>90.6 ± 0.5</strong>" in rows["winner"] and "≈" not in rows["winner"].partition("notes")[0]
    assert "<strong>9" in rows["tie"].partition("</table>")[0] and "≈" in rows["tie"].partition("</table>")[0]
    assert "≈: open against it, since the 95 % interval of their difference on validation" in rows["tie"]


def test_of_a_tie_the_cheaper_one_is_recommended_with_the_difference(tie):
    text = first_screen(tie)
    assert re.search(r"Linear probe 90\.6 \[", text)
    assert re.search(r"Distance to the best on validation: −0\.\d \[.*\] ?; difference to Full fine-tuning, ", text)
    assert (
        "3.4\u202fs of training instead of 1.5\u202fmin (26.3 times less), with the whole feature extraction "
        "8.4\u202fs instead of 1.5\u202fmin;" in text
    )
    assert "1\u202fk trainable parameters instead of 7\u202fk (7.0 times less)" in text
    assert "contradicted" not in tie.page
    section = tie.page.partition('aria-label="Recommendation">')[2].partition("</section>")[0]
    links = re.findall(r'href="examples.html#([^"]+)"', section)
    assert any(".full." in link for link in links), "the difference to the best leads to the best's runs"
    table = tie.page.partition('id="advice"')[2].partition("</figure>")[0]
    assert table.count('href="examples.html#') == 3, "what is recommended, its score, and the highest on validation"


def test_two_seeds_recommend_nothing_and_contradict_nobody(tmp_path):
    report = KnownReport(tmp_path, {"frozen": [0.70, 0.71], "full": [0.90, 0.91]})
    text = first_screen(report)
    assert (
        "No recommendation 2 seeds cannot support one: an interval over seeds needs 3, a significance test 6." in text
    )
    assert re.search(
        r"Highest on validation: Full fine-tuning \(90\.5\); on test it scores 90\.5 \[.*\] \(over test rows only\)",
        text,
    )
    assert re.search(
        r"Next on validation and cheaper: Linear probe \(distance to the best: ?−20\.0 \[.*\] points\); .* "
        r"To decide: at least 1 more seed\.",
        text,
    )
    assert "contradicted" not in report.page and "undecided, −20.0" in report.page
    assert "no recommendation. 2 seeds cannot support one" in report.article


def test_synthetic_text_is_said_first_and_contradicts_nobody(tmp_path):
    rates = {"frozen": list(0.70 + SEEDS), "full": list(0.90 + SEEDS)}
    report = KnownReport(tmp_path, rates, synthetic=True)
    head = report.page.partition('aria-label="Recommendation"')[0]
    assert "do not apply to natural text" in head and "SYNTHETIC" in first_screen(report)
    assert "differs here (6 seeds, SYNTHETIC), −20.0" in report.page and "contradicted" not in report.page


def test_a_leak_and_a_diverged_run_are_in_the_warnings_and_in_all_numbers(tmp_path):
    flags = {("full", 1): ["all_seen"], ("full", 2): ["diverged"]}
    rates = {"frozen": [0.7] * 6, "full": [0.9, 0.5, 0.9, 0.9, 0.9, 0.9]}
    report = KnownReport(tmp_path, rates, leaked=ROWS, flags=flags)
    warnings = part(report.page, 'id="warnings"', 'id="provenance"')
    assert "2 runs of 12 have warnings and are included in all numbers." in warnings
    assert "Full fine-tuning, seed 1 : evaluated on a split whose rows all share a sentence with train" in warnings
    assert "Full fine-tuning, seed 2 : loss became NaN or inf" in warnings
    assert "400 (100.0 %)" in part(report.page, 'id="tasks"', "</figure>"), "the overlap of test with train"
    assert "83.3 ± 16.3" in report.page, "the run that diverged counts"


def test_the_counts_are_the_plans(winner):
    assert "12 runs and 3 preparatory" in part(winner.page, "<header>", "</header>")
    assert "12 runs and 3 preparatory" in part(winner.page, 'id="provenance"', "</section>")
    assert "in 12 runs and 3 preparatory ones" in winner.article


NUMBER = re.compile(r"(?<![\w.])−?\d[\d\u202f]*(?:\.\d+)?(?:\u202f(?:s|min|h)\b|\u202f?[kMGT]B?\b)?")
CONSTANTS = {
    f"{wording.MUCH:g}",
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
                costs += [[values[name] for name in values if name in COSTS]] if path.stem == "advice" else []
    frame = report.frame.assign(
        percent=100 * report.frame["value"],
        seconds=report.frame["train_seconds"] + report.frame["after_seconds"] + report.frame["extraction_seconds"],
    )
    main = frame[frame["main"].astype(bool)]
    means = main.groupby(["strategy", "split"])[["percent", "flops", "trained_parameters"]].mean()
    medians = main.groupby(["strategy", "split"])["seconds"].median()
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
    return shown | {f"{one / other:,.1f}" for one, other in pairs if other} | CONSTANTS


COSTS = ("seconds_shared", "memory_mb", "trained_parameters")


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
