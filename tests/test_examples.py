"""The page of examples: errors with known answers, and links that resolve."""

import html
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas
import pytest

import invented
from thaw.core.files import read_json, write_json, write_parquet, write_text
from thaw.data.corpus import Corpus
from thaw.outputs.evidence import evidence_blocks, examples_page
from thaw.outputs.evidence.task_predictions import TaskPredictions, read_cell
from thaw.outputs.frame import runs_frame

PAIRS = [  # two texts, label, group, seen in train
    ("a red stone", "a red stone", "yes", 0, True),
    ("a red stone", "no stone is red", "no", 1, False),
    ("the river", "the river runs in the night", "yes", 2, False),
    ("the river", "the sea", "no", 3, False),
    ("one two", "one three", "no", 4, True),
    ("one two", "one two three four five six", "yes", 4, False),
]
SENTENCES = [  # words and tags
    ("Ann met Bob Lee".split(), "B-PER O B-PER I-PER".split()),
    ("in New York City today".split(), "O B-LOC I-LOC I-LOC O".split()),
    ("nothing here".split(), "O O".split()),
]
TAGS = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
WRONG = {"frozen": [0, 1, 3], "top_k": [1, 3], "full": [1], "stack_then_finetune": [1]}  # pairs, by strategy
FOUND = {  # tags, by strategy
    "full": ["B-PER O B-PER I-PER", "O B-LOC I-LOC I-LOC O", "O O"],
    "frozen": ["B-LOC O B-PER O", "O O O O O", "B-PER O"],
}


def write_evidence(results: Path) -> None:
    """Write the rows of the invented datasets' test splits, and what each run predicts for them."""
    pairs = pandas.DataFrame(PAIRS, columns=["one", "two", "label", "group", "seen"])
    sentences = pandas.DataFrame({"words": [words for words, _ in SENTENCES], "label": [tags for _, tags in SENTENCES]})
    shapes = {
        "real": ("dev", pairs, {"texts": ["one", "two"], "labels": {"label": ["no", "yes"]}}, "label"),
        "grammar": ("test", sentences.assign(group=range(3)), {"words": "words", "labels": {"label": TAGS}}, "tags"),
    }
    for corpus, (split, frame, more, kind) in shapes.items():
        card = read_json(results / f"data/{corpus}/card.json") | more | {"targets": {"label": kind}}
        write_json(results / f"data/{corpus}/card.json", card)
        write_parquet(results / f"data/{corpus}/{split}.parquet", frame.assign(row=range(len(frame))))
    for folder in (results / "runs").glob("*/all/tiny/linear/*/*/seed*"):
        strategy = folder.parts[-3]
        if "odd" in folder.parts:
            wrong = [n in WRONG[strategy] for n in range(len(PAIRS))]
            given = np.where(wrong, np.where(pairs["label"] == "yes", "no", "yes"), pairs["label"])
            parts = {"split": "dev", "row": range(len(PAIRS)), "prediction": given}
        else:
            tags = FOUND.get(strategy, FOUND["full"])
            parts = {"split": "test", "row": range(3), "prediction": [line.split() for line in tags]}
        write_parquet(folder / "predictions.parquet", pandas.DataFrame(parts))
        log = "fit_heads" if strategy == "frozen" else "train"
        own = folder.relative_to(results / "runs")
        write_text(results / f"logs/{log}" / (own.parent if log == "fit_heads" else own).with_suffix(".log"), "done\n")


@pytest.fixture(scope="module")
def results(invented_results, tmp_path_factory) -> Path:
    """The invented results with examples, predictions and logs."""
    folder = tmp_path_factory.mktemp("examples") / "results"
    shutil.copytree(invented_results, folder)
    write_evidence(folder)
    return folder


@pytest.fixture(scope="module")
def report(results) -> Path:
    """The report with its page of examples, in the place where the workflow writes them."""
    return invented.draw_report(results, results / "outputs/invented")


def opened(results: Path, task: str, strategies: list[str]) -> tuple:
    """Return the examples of a task and the cells of some strategies."""
    entry = {"id": task, **invented.TASKS[task].model_dump(mode="json")}
    data = TaskPredictions(entry, Corpus(results / f"data/{entry['corpus']}"), entry["test"][0])
    cells = []
    for strategy in strategies:
        variant = "k01" if strategy == "top_k" else "base"
        runs = [f"runs/{task}/all/tiny/linear/{strategy}/{variant}/seed{seed}" for seed in invented.SEEDS]
        cells.append(read_cell(data, results, strategy, {"strategy": strategy, "variant": variant}, runs))
    return data, cells


def test_confusions_and_scores_by_label_are_those_of_the_predictions(results):
    data, (frozen,) = opened(results, "odd", ["frozen"])
    matrix = evidence_blocks.confusion(data, frozen)
    assert matrix.tolist() == [[2, 4], [2, 4]], "three of each label, two seeds; wrong: a yes and two no"
    no, yes = evidence_blocks.label_scores(matrix)
    assert (no.precision, no.recall, no.f1) == pytest.approx((2 / 4, 2 / 6, 0.4))
    assert (yes.precision, yes.recall) == pytest.approx((4 / 8, 4 / 6))
    assert evidence_blocks.frequent_confusions([matrix]) == [(0, 1), (1, 0)]


def test_spans_have_scores_by_type(results):
    data, (full, frozen) = opened(results, "entities", ["full", "frozen"])
    assert all(one.f1 == 1 for one in evidence_blocks.span_scores(data, full).values())
    types = evidence_blocks.span_scores(data, frozen)
    assert types["PER"].recall == 0 and types["LOC"].precision == 0
    assert data.credits(frozen).tolist() == [0.5, 0.4, 0.5]


def test_the_examples_shown_are_those_on_which_strategies_differ(results):
    data, cells = opened(results, "odd", ["frozen", "top_k", "full"])
    shown = evidence_blocks.differing(data, cells, 5)
    assert [example.row for example in shown] == [0, 3], "row 1 all get wrong, and the others all get right"
    assert [given.text for given in shown[0].predictions] == ["no", "yes", "yes"] and shown[0].gold == "yes"
    assert [given.credit for given in shown[1].predictions] == [0, 0, 1]
    assert [example.row for example in evidence_blocks.always_wrong(data, cells)] == [1]
    data, cells = opened(results, "entities", ["frozen", "full"])
    first = evidence_blocks.differing(data, cells, 1)[0]
    assert first.gold == "New/B-LOC York/I-LOC City/I-LOC"
    assert [given.text for given in first.predictions] == ["New/O, York/O, City/O", "as gold"]


def test_examples_of_a_score_are_neither_right_nor_wrong(results, report):
    """Their credit is the distance to gold, less than nothing: 0 is exact."""
    data, cells = opened(results, "odd", ["frozen", "full"])
    data.task["type"], data.gold = "pair_regression", np.linspace(0, 5, len(PAIRS))
    for cell, off in zip(cells, (0.0, 1.0), strict=True):
        cell.values = np.stack([data.gold + off] * 2)
    runs = runs_frame.read_runs(report.with_name("runs.csv"))
    content = examples_page.content(runs, invented.report_spec(), results, None, report.parent)
    said = []
    for blocks in ({}, evidence_blocks.blocks(data, cells, 5)):
        sections = [section | {"errors": None} | blocks for section in content["sections"]]
        said.append(examples_page.page(content | {"sections": sections[-1:]}))
    assert ["Green: right" in page for page in said] == [True, False]
    assert ['"text right"' in page or '"text wrong"' in page for page in said] == [True, False]


def test_only_one_of_the_examples_that_share_a_text_is_shown(results):
    data, cells = opened(results, "odd", ["full", "frozen"])
    assert evidence_blocks._one_of_each(data, [5, 4, 0], 5) == [5, 0]


def test_every_link_of_both_pages_resolves(report):
    anchors = {page.name: set(re.findall(r'\sid="([^"]+)"', page.read_text())) for page in report.parent.glob("*.html")}
    assert set(anchors) == {"report.html", "examples.html"}
    for page in anchors:
        links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', (report.parent / page).read_text())]
        assert len(links) > 50
        for link in links:
            path, _, anchor = link.partition("#")
            target = report.parent / unquote(path or page)
            assert target.exists(), link
            assert not anchor or anchor in anchors[target.name], link


def test_of_many_runs_each_task_has_a_page_and_the_first_leads_there(results, report, monkeypatch):
    runs = runs_frame.read_runs(report.with_name("runs.csv"))
    content = examples_page.content(runs, invented.report_spec(), results, None, report.parent)
    (whole,) = examples_page.pages(content).values()
    monkeypatch.setattr(examples_page, "ON_ONE_PAGE", 3)
    first, *others = (pages := examples_page.pages(content)).items()
    tasks = list(dict.fromkeys(section["column"].task for section in content["sections"]))
    assert [name for name, _ in others] == [f"examples-{task}.html" for task in tasks] and len(tasks) > 1
    anchors = {name: set(re.findall(r'\sid="([^"]+)"', page)) for name, page in pages.items()}
    links = re.findall(r'href="(examples-[^"#]+)#([^"]+)"', first[1])
    assert links and all(html.unescape(anchor) in anchors[name] for name, anchor in links)
    cells = set(re.findall(r'<tr id="([^"]+)"', whole))
    assert cells and all(cell in anchors[f"examples-{cell.split('.')[0]}.html"] for cell in cells), "as its script says"
    assert all(page in first[1].partition("const page")[2] for page, _ in others) and "const page" not in whole


def test_a_number_leads_to_its_runs_and_these_to_their_log_spec_and_predictions(report):
    page, examples = report.read_text(), report.with_name("examples.html").read_text()
    cell = re.search(r'<a href="examples\.html#(odd\.run\.all\.tiny\.linear\.top_k\.k03)">(?:<strong>)?76\.5', page)
    line = re.search(rf'<tr id="{re.escape(cell[1])}".*?</tr>', examples, re.DOTALL)[0]
    for seed in invented.SEEDS:
        folder = f"../../runs/odd/all/tiny/linear/top_k/k03/seed{seed}"
        for link in (f"{folder}/metrics.json", f"{folder}/predictions.parquet", f"{folder}/cost.json"):
            assert f'href="{link}"' in line
        assert f'href="../../logs/train/odd/all/tiny/linear/top_k/k03/seed{seed}.log"' in line
    frozen = re.search(r'<tr id="odd\.run\.all\.tiny\.linear\.frozen\.base".*?</tr>', examples, re.DOTALL)[0]
    assert frozen.count('href="../../logs/fit_heads/odd/all/tiny/linear/frozen/base.log"') == 2


def test_every_table_and_figure_has_links_to_its_formats(report):
    page = report.read_text()
    for name in ("main.csv", "main.tex", "main.md"):
        assert f'href="tables/{name}"' in page
    assert 'href="figures/layers.svg"' in page
    assert (report.parent / "tables/main.tex").read_text().split("\n")[2] in html.unescape(page), "the text to copy"


def test_what_cannot_be_read_leaves_the_rest_of_the_page(results, report, tmp_path):
    shutil.copytree(results, tmp_path / "results")
    (tmp_path / "results/data/real/dev.parquet").unlink()
    damaged = next((tmp_path / "results/runs/entities").rglob("predictions.parquet"))
    whole = damaged.read_bytes()
    folder, runs = tmp_path / "results/outputs/invented", runs_frame.read_runs(report.with_name("runs.csv"))
    content = examples_page.content(runs, invented.report_spec(), tmp_path / "results", None, folder)
    entities, odd = content["sections"]
    assert "is missing" in odd["why"] and odd["rows"] and not entities["why"] and entities["errors"]
    assert "No examples are shown: " in examples_page.page(content)
    damaged.write_bytes(whole[: len(whole) // 2])
    content = examples_page.content(runs, invented.report_spec(), tmp_path / "results", None, folder)
    assert f"{damaged} is damaged" in content["sections"][0]["why"]
