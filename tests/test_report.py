"""What the report says, on the invented results: what was run, flagged, missing or made otherwise, and the numbers."""

import html
import json
import re
import shlex
import shutil

import pandas
import pytest

import invented
from thaw.core.errors import UserError
from thaw.outputs.frame import aggregate, runs_frame
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.report import methods, provenance, report_page
from thaw.outputs.tables import scores


def text_of(page: str) -> str:
    """Return what a page says, without its markup, styles and scripts."""
    bare = re.sub(r"<(style|script|template)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r" (?=[,.)])", "", html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", bare))))


@pytest.fixture(scope="module")
def page(invented_results, tmp_path_factory) -> str:
    return invented.draw_report(invented_results, tmp_path_factory.mktemp("report")).read_text()


@pytest.fixture(scope="module")
def known_content(invented_frame, invented_results, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("content")
    invented.draw_report(invented_results, folder)
    return report_page.content(invented_frame, invented.report_spec(), invented_results, folder)


def test_the_report_loads_nothing(page):
    assert not re.search(r"""\s(src|srcset|poster|data)\s*=\s*["'](?!data:|#)""", page)
    assert not re.search(r"""href\s*=\s*["']([a-z]+:|/)""", page), "a link leads beyond the results folder"
    assert "@import" not in page and "url(" not in page and "default-src 'none'" in page


def test_the_report_tells_what_was_run_and_flagged(page):
    text = text_of(page)
    for expected in (
        "4 strategies were run on 2 tasks with 1 encoder and 2 seeds (1, 2)",
        "20 runs and 3 preparatory",
        "SYNTHETIC data. Entities:",
        "Pretrained by masked words, on a corpus and another.",
        "train: [head], optimizer: lbfgs",
        "after: frozen_sgd",
        "optimizer: lbfgs l2: [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1]",
        "Bi-encoder for R&D_50%, selected on validation: Frozen. Cross-encoder: Top k, Full and Stack.",
        "For comparison: majority class; bag of words; cosine similarity (no training); and random weights, frozen.",
        "Table 1. SYNTHETIC All scores.",
        "Figure 1. SYNTHETIC By layers.",
        "1 run of 20 has warnings and is included in all numbers.",
        "1 000 dev",
        "50 (25.0 %)",
        "torch 2.13.0 and 2.12.0",
        "500 examples of train (draw 2) and 300 of validation and of each test split.",
    ):
        assert expected in text, expected
    assert "nan" not in text.lower().split() and "Incomplete" not in text


def test_draws_that_an_output_shows_together_are_one_subset_of_the_report(invented_frame, invented_results, tmp_path):
    invented.draw_report(invented_results, tmp_path)
    second = invented_frame[invented_frame["subset"] == "all"].assign(subset="few")
    frame = pandas.concat([invented_frame, second], ignore_index=True)
    apart = report_page.content(frame, invented.report_spec(), invented_results, tmp_path)
    spec = invented.report_spec() | {"first_draws": {"all": "all", "few": "all"}}
    found = report_page.content(frame, spec, invented_results, tmp_path)
    assert found["counts"]["runs"] == apart["counts"]["runs"]
    assert len(found["subsets"]) < len(apart["subsets"]) and found["counts"]["subset"] == 1
    both = 2 * len(invented.SEEDS)
    assert f"over {both} runs" in found["caution"] and found["counts"]["most"] == both
    own = frame.assign(folder=frame["folder"] + "-" + frame["subset"])
    ways = [report_page.cell_files(own, "results", first) for first in (spec["first_draws"], {})]
    runs = [sorted(path for paths in files.values() for path in shlex.split(paths)) for files in ways]
    assert 2 * len(ways[0]) == len(ways[1]) and runs[0] == runs[1], "a mean has the runs of all draws"
    text = text_of(report_page.page(found, "snakemake --"))
    assert "Each draw of the training rows counts as further seeds: 2 from all on." in text


@pytest.mark.parametrize(
    ("seeds", "caution"),
    [
        ([1, 1], "Means are over 1 seed. With fewer than 3 "),
        ([2, 2], "Means are over 2 seeds. With"),
        ([8, 1], "Means are over 1 to 8 seeds. With"),
        ([8, 8], "Means are over 8 seeds."),
    ],
)
def test_means_are_said_to_be_over_the_seeds_that_they_have(seeds, caution, invented_frame, known_content):
    summary = aggregate.summarise(invented_frame, "test", {})
    summary["seeds"] = [seeds[row.strategy == "full"] for row in summary.itertuples()]
    assert methods.caution(summary).startswith(caution)
    assert methods.seeds_of(summary.assign(seeds=summary["seeds"] + 2, undefined=2)) == methods.seeds_of(summary)
    content = known_content | {"counts": known_content["counts"] | methods.seeds_of(summary)}
    ci = report_page.paper(content).partition(r"Intervals are 95\,\% CI (")[2].partition("). ")[0]
    assert ("Student" in ci) == (max(seeds) > 2) and ("alone" in ci) == (min(seeds) < 3 <= max(seeds))


def test_a_task_whose_choices_are_made_on_the_reported_split_is_named(known_content):
    clean, paper = known_content["tasks"][0], known_content["tasks"][1] | {"protocol": "paper"}
    said = methods.choices([clean, paper])
    assert said.endswith(f"except on {paper['label']}: there choices were made on the split that is reported.")
    assert "validation" not in methods.choices([paper]) and "except" not in methods.choices([clean])
    content = known_content | {"choices": said}
    assert said in text_of(report_page.page(content, "snakemake --"))
    assert "except on R\\&D" in report_page.paper(content)


def test_of_runs_with_two_optimizers_both_are_cited(invented_results, invented_frame, tmp_path):
    invented.draw_report(invented_results, tmp_path)
    frame = invented_frame.assign(optimizer="adamw+lbfgs")
    content = report_page.content(frame, invented.report_spec(), invented_results, tmp_path)
    assert content["optimizers"] == ["loshchilov2019adamw", "liu1989lbfgs"]
    assert "trained with AdamW and L-BFGS" in report_page.paper(content)


def test_bold_takes_no_maximum_on_test(invented_frame):
    """The frozen encoder is made the highest on test, and full the highest on validation."""
    runs, test = invented_frame["kind"] == "run", invented_frame["role"] == "test"
    lucky = runs & test & (invented_frame["strategy"] == "frozen")
    chosen = runs & (invented_frame["role"] == "validation") & (invented_frame["strategy"] == "full")
    frame = invented_frame.assign(value=invented_frame["value"].mask(lucky, 0.99).mask(chosen, 0.95))
    table = scores.build(OutputData("", frame), invented.shown("main", "strategy_table"))
    bold = {row.name for row in table.groups[0].rows if any(cell and cell.best for cell in row.cells)}
    assert bold == {"Full"} and "Bold: the highest mean on validation of each column." in table.notes


def test_each_cell_has_the_command_that_makes_its_runs_again_and_each_output_has_one(page):
    known = json.loads(re.search(r'id="commands">(.*?)</script>', page)[1])
    results = re.search(r"(\S+)/runs/", known["files"]["odd.run.all.tiny.linear.frozen.base"])[1]
    seeds = " ".join(
        f"{results}/runs/odd/all/tiny_random/linear/frozen/base/seed{seed}/metrics.json" for seed in (1, 2)
    )
    assert known["command"] == "snakemake --" and len(known["files"]) == 5 * 2 + 3 + 4 + 1
    assert known["files"]["odd.baseline.all.tiny.-.random_encoder.base"] == seeds
    assert known["files"]["odd.ensemble.all.-.-.all_full.base"] == f"{results}/ensembles/odd/all/all_full/metrics.json"
    assert set(re.findall(r'runs\.html#([^"]+)"', page)) == set(known["files"])
    assert re.search(r"snakemake -- \S+/tables/main\.html", text_of(page))
    assert re.search(r"snakemake -- \S+/figures/layers\.svg", text_of(page))


def test_captions_are_numbered_in_the_order_of_the_page(page):
    numbers = re.findall(r"<(?:strong|summary)>(Table|Figure) (\d+)\.", page)
    tables_, figures_ = ([int(n) for word, n in numbers if word == what] for what in ("Table", "Figure"))
    assert tables_ == list(range(1, 6)) and figures_ == [1]
    assert set(re.findall(r'href="#([\w.-]+)"', page)) <= set(re.findall(r'id="([\w.-]+)"', page))


def test_runs_that_were_made_otherwise_are_named_in_plain_view(page):
    expected = "They differ in torch: 2.13.0 (19 runs), 2.12.0 (1 run: runs/odd/all/tiny/linear/full/base/seed2)."
    head, _, _ = text_of(page).partition("Contents")
    assert expected in head


def test_other_machines_precisions_and_protocols_are_told_too(invented_frame, invented_results):
    frame = invented_frame[invented_frame["kind"] == "run"].copy()
    frame.loc[frame["strategy"] == "full", "precision"] = "bf16"
    frame.loc[frame["task"] == "odd", "protocol"] = "paper"
    made_with = provenance.circumstances(frame, invented_results)
    made_with[0]["facts"]["machine"] = "a GPU"
    found = {d["what"]: d for d in provenance.differences(made_with)}
    assert set(found) == {"torch", "protocol", "machine"}, "each strategy has one precision, which is a setting"
    next(run for run in made_with if run["strategy"] == "full")["facts"]["precision"] = "fp32"
    precision = {d["what"]: d for d in provenance.differences(made_with)}["precision"]
    assert [(o["value"], len(o["folders"]), o["anchor"]) for o in precision["others"]] == [("bf16", 3, None)]
    assert [found[what]["others"][0]["anchor"] for what in ("machine", "protocol")] == [None, "protocol_0"]


def test_a_fit_that_seeds_share_is_counted_once(invented_frame, invented_results):
    frame = invented_frame[(invented_frame["kind"] == "run") & (invented_frame["task"] == "odd")].copy()
    frame = frame[frame["strategy"].isin(["frozen", "full"])].assign(total_seconds=60.0, train_seconds=52.0)
    made_with = provenance.circumstances(frame, invented_results)
    lengths = {run["folder"]: (run["ended"] - run["started"]).total_seconds() for run in made_with}
    fits = [folder for folder in lengths if "/frozen/" in folder]
    assert len(fits) == 2 and len(lengths) == 4
    assert provenance.span(made_with)["summed"] == sum(lengths.values()) - lengths[fits[0]]


def test_the_report_has_the_tables_own_numbers(page, invented_frame):
    for row in scores.build(OutputData("", invented_frame), invented.shown("main", "strategy_table")).groups[0].rows:
        for cell in row.cells:
            assert cell.text in page


def test_the_report_names_what_is_missing(invented_results, tmp_path):
    frame = runs_frame.read_runs(invented_results / "outputs/invented/runs.csv")
    with pytest.raises(UserError, match=r"tables/main\.json is missing"):
        report_page.content(frame, invented.report_spec(), invented_results, tmp_path)


def test_an_incomplete_report_lists_each_missing_result_with_its_reason(invented_results, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(invented_results, results)
    for seed in invented.SEEDS:
        shutil.rmtree(results / f"runs/odd/all/tiny/linear/full/base/seed{seed}")
    shutil.rmtree(results / "runs/odd/all/tiny/cosine")
    log = results / "logs/train/odd/all/tiny/linear/full/base/seed2.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: the disk is full\n")
    text = text_of(page := invented.draw_report(results, tmp_path, missing=True).read_text())
    assert "Incomplete. 4 results of this experiment are missing" in text and "18 of 20 runs are present." in text
    assert "R&D_50% Full Tiny, linear, all 2 train: the disk is full" in text and text.count("not run") == 3
    assert text.count("‡ A run is missing") == 2 and re.search(r'<td data-value=""><a [^>]*>‡</a></td>', page)


def test_a_scaled_down_experiment_says_what_was_left_out(invented_frame, invented_results, tmp_path):
    assert "Scaled down." not in invented.draw_report(invented_results, tmp_path).read_text()
    spec = invented.report_spec() | {"left_out": ["Task far was left out.", "Seeds: 1 in the place of 1, 2."]}
    text = text_of(
        report_page.page(report_page.content(invented_frame, spec, invented_results, tmp_path), "snakemake --")
    )
    assert "Scaled down." in text and "Task far was left out. Seeds: 1 in the place of 1, 2." in text
