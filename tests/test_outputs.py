"""Tables, figures and the report, on a results folder of invented records that is built in tmp_path."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from thaw.catalogue import Catalogue
from thaw.outputs import figures, formats, report, runs, summary, tables, words
from thaw.records import UserError, canonical, read_json, write_json
from thaw.settings import Encoder, Task

ROOT = Path(__file__).parents[1]
SEEDS = [1, 2]
TASKS = {
    "entities": ("grammar", "spans", "span_f1"),
    "odd": ("real", "classification", "accuracy"),
}
POINTS = [  # strategy, variant, thawed layers, embeddings, score in hundredths, seconds
    ("frozen", "base", 0, False, 60, 2.0),
    ("top_k", "k01", 1, False, 70, 20.0),
    ("top_k", "k03", 3, False, 80, 40.0),
    ("full", "base", 6, True, 80, 90.0),
    ("stack_then_finetune", "base", 6, True, 75, 80.0),
]
LABELS = {
    "tasks": {"entities": "Entities (synthetic)", "odd": "R&D_50%"},
    "encoders": {"tiny": "Tiny"},
    "heads": {"linear": "linear"},
    "subsets": {"all": "all"},
    "strategies": {"frozen": "Frozen", "top_k": "Top k", "full": "Full", "stack_then_finetune": "Stack"},
}


def score(points: int, seed: int, task: str) -> float:
    """An invented score: the point's own, one hundredth apart between seeds (not for the convex fit)."""
    spread = 0 if points == 60 else seed
    return (points + spread - (5 if task == "odd" else 0)) / 100


def metrics(task: str, value: float | None, flags=(), phases=None) -> dict:
    """A metrics.json with four scored splits."""
    _, kind, metric = TASKS[task]
    entry = {"id": task, "type": kind, "target": "label", "metrics": [metric]}
    scores = {split: {metric: value} for split in ("train", "validation", "test", "test_unseen")}
    rows = {"train": 1000, "validation": 100, "test": 200, "test_unseen": 150}
    spec = {"task": entry, "phases": phases or []}
    return {"spec": spec, "digest": "0" * 16, "scores": scores, "rows": rows, "flags": list(flags)}


def cost(seconds: float, thawed: int) -> dict:
    """A cost.json."""
    return {
        "seconds": {"load": 1.0, "train": seconds, "evaluate": 1.0, "total": seconds + 2},
        "flops": 1e9 * (1 + thawed),
        "peak_memory_mb": 500.0,
        "parameters": {"trained": 1000 * (1 + thawed), "total": 10000},
        "versions": {"python": "3.11", "torch": "2.13.0"},
        "hardware": {"device": "cpu", "cpu": "a processor", "threads": 2},
        "date": "2026-01-02T03:04:05+00:00",
    }


def write_runs(results: Path) -> None:
    """Write every run and baseline; top_k k01 of seed 1 is flagged on `odd`."""
    for task in TASKS:
        for name, value in (("majority", None if task == "odd" else 0.0), ("bag_of_words", 0.5)):
            flags = ["undefined"] if value is None else []
            write_json(results / f"baselines/{task}/all/{name}/metrics.json", metrics(task, value, flags))
        for strategy, variant, thawed, embeddings, points, seconds in POINTS:
            phase = {"components": ["head"], "boundary": None if embeddings else 6 - thawed}
            phase |= {"optimizer": "lbfgs"} if strategy == "frozen" else {}
            for seed in SEEDS:
                folder = results / f"runs/{task}/all/tiny/linear/{strategy}/{variant}/seed{seed}"
                flags = ["one_class"] if (task, variant, seed) == ("odd", "k01", 1) else []
                write_json(folder / "metrics.json", metrics(task, score(points, seed, task), flags, [phase]))
                write_json(folder / "cost.json", cost(seconds, thawed))


def write_cards(results: Path) -> None:
    """Write the cards of corpora, encoder and boundaries; all boundaries come from one pass of six seconds."""
    split = {"rows": 1000, "duplicates": 1, "carved_from": None}
    for task, (corpus, *_) in TASKS.items():
        splits = {name: dict(split) for name in ("train", "validation", "test")}
        splits["validation"]["carved_from"] = "train"
        splits["test"]["overlap_train"] = {"rows": 50, "share": 0.25}
        card = {"corpus": corpus, "synthetic": task == "entities", "labels": {}, "splits": splits}
        write_json(results / f"data/{corpus}/card.json", card | {"source": {"kind": "files"}, "digest": "d" * 16})
        for n in (3, 5, 6):
            write_json(results / f"features/tiny/{corpus}/joint/b{n}.json", {"boundary": n, "seconds": 6.0})
    card = {"architecture": "BertModel", "layers": 6, "width": 32, "parameters": 10000, "source": "a folder"}
    write_json(results / "encoders/tiny/card.json", card | {"revision": None, "sha256": "a" * 64, "digest": "e" * 16})


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_runs(folder)
    write_cards(folder)
    return folder


def collect_spec() -> dict:
    points = [
        {
            "strategy": s,
            "variant": v,
            "thawed": k,
            "embeddings": e,
            "after": [["frozen", "base"]] if "stack" in s else [],
        }
        for s, v, k, e, _, _ in POINTS
    ]
    return {
        "version": 1,
        "experiment": "invented",
        "tasks": {task: {"corpus": c, "view": "joint", "type": t, "metrics": [m]} for task, (c, t, m) in TASKS.items()},
        "subsets": ["all"],
        "heads": ["linear"],
        "grid": [{"encoder": "tiny", "strategies": points}],
        "seeds": SEEDS,
        "baselines": ["majority", "bag_of_words"],
        "digest": "0" * 16,
    }


def shown(id: str, kind: str, **options) -> dict:
    order = {"tasks": list(TASKS), "strategies": [list(point[:2]) for point in POINTS]}
    caption = f"What {id} shows."
    common = {"version": 1, "labels": LABELS, "order": order, "title": "Invented", "notes": {"tiny": "A stand-in."}}
    return {**common, "id": id, "kind": kind, "caption": caption, **options}


def step(name: str, *arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", f"thaw.steps.{name}", *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin", "HOME": "/tmp"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def frame(results):
    out = results / "outputs/invented/runs.csv"
    done = step("collect", "--spec", canonical(collect_spec()), "--results", results, "--out", out)
    assert done.returncode == 0, done.stderr
    return runs.read_runs(out)


@pytest.fixture(scope="module")
def table(frame):
    return tables.strategy_table(frame, shown("main", "strategy_table"))


def rows_of(table) -> dict:
    return {row.name: row.cells for row in table.baselines + table.groups[0].rows}


# --- runs.csv ----------------------------------------------------------------------------------------------------


def test_runs_csv_holds_every_score_and_cost(frame):
    assert list(frame.columns) == runs.COLUMNS
    assert len(frame) == len(TASKS) * (len(POINTS) * len(SEEDS) + 2) * 4
    stack = frame[frame["strategy"] == "stack_then_finetune"]
    assert set(stack["after_seconds"]) == {2.0} and set(stack["extraction_seconds"]) == {0.0}
    assert set(frame.loc[frame["task"] == "odd", "synthetic"]) == {False}


def test_the_extraction_is_shared_equally_among_its_readers(frame):
    each = frame.drop_duplicates(["task", "strategy", "variant", "seed"]).groupby("task")["extraction_seconds"]
    assert each.sum().to_dict() == pytest.approx({"entities": 6.0, "odd": 6.0})
    assert each.max().to_dict() == pytest.approx({"entities": 1.0, "odd": 1.0})


def test_a_missing_result_is_one_sentence(results, tmp_path):
    spec = collect_spec() | {"seeds": [3]}
    done = step("collect", "--spec", canonical(spec), "--results", results, "--out", tmp_path / "runs.csv")
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert "seed3/metrics.json is missing" in done.stderr
    assert not (tmp_path / "runs.csv").exists()


@pytest.mark.parametrize("broken, message", [('{"spec"', "not valid JSON"), ("{}", "is missing")])
def test_a_broken_result_names_its_file(tmp_path, broken, message):
    write_runs(tmp_path)
    write_cards(tmp_path)
    path = tmp_path / "runs/odd/all/tiny/linear/full/base/seed2/cost.json"
    path.write_text(broken)
    with pytest.raises(UserError, match=message) as error:
        runs.collect(collect_spec(), tmp_path)
    assert str(path) in str(error.value)


def test_a_runs_csv_of_another_shape_is_refused(tmp_path):
    (tmp_path / "runs.csv").write_text("task,value\na,1\n")
    with pytest.raises(UserError, match="column subset is missing"):
        runs.read_runs(tmp_path / "runs.csv")


# --- tables ------------------------------------------------------------------------------------------------------


def test_cells_are_the_means_and_deviations_of_the_runs(table, results):
    for strategy, variant, *_ in POINTS:
        name = words.strategy_name(LABELS["strategies"], strategy, variant)
        for place, (task, (_, _, metric)) in enumerate(TASKS.items()):
            folder = results / f"runs/{task}/all/tiny/linear/{strategy}/{variant}"
            values = [read_json(folder / f"seed{s}/metrics.json")["scores"]["test"][metric] * 100 for s in SEEDS]
            cell = rows_of(table)[name][place]
            assert cell.mean == pytest.approx(sum(values) / 2) and cell.seeds == 2
            if strategy != "frozen":
                assert cell.sd == pytest.approx(abs(values[0] - values[1]) / 2**0.5)


def test_the_best_is_bold_ties_too_and_no_baseline(table):
    best = {name for name, cells in rows_of(table).items() if cells[0].best}
    assert best == {"Top k (k = 3)", "Full"}
    assert r"\textbf{81.5 $\pm$ 0.7}" in formats.to_tex(table)
    assert "**81.5 ± 0.7**" in formats.to_markdown(table)
    assert "<strong>81.5 ± 0.7</strong>" in formats.to_html(table)


def test_undefined_scores_shared_fits_and_flags_are_told(table):
    rows, notes = rows_of(table), " ".join(table.notes)
    assert rows["Majority class"][1].text == "–"
    assert rows["Frozen"][0].text == "60.0" and "Frozen: one convex fit" in notes
    assert rows["Top k (k = 1)"][1].text.endswith("†") and "predicts a single class" in notes
    assert "25.0 %" in notes and "Tiny: A stand-in." in notes and "2 seeds" in notes


def test_latex_is_escaped_and_whole(table):
    text = formats.to_tex(table)
    assert r"R\&D\_50\%" in text and not re.search(r"(?<!\\)[&%]D|±|†|(?<!\\)_50", text)
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == len(TASKS) for line in lines)
    assert text.count("{") == text.count("}")


def test_synthetic_is_said_in_every_format(table):
    for name in ("tex", "md", "html"):
        text = formats.FORMATS[name](table)
        assert text.count("SYNTHETIC") >= 3, name
        assert "(synthetic)" not in text
    assert [column.title for column in table.columns] == ["Entities (SYNTHETIC)", "R&D_50%"]


def test_html_escapes_labels(table):
    assert "R&amp;D_50%" in formats.to_html(table)


def test_several_encoders_make_groups_each_with_its_best(frame):
    import pandas

    other = frame[frame["encoder"] != ""].assign(encoder="second")
    spec = shown("main", "strategy_table")
    table = tables.strategy_table(pandas.concat([frame, other]), spec)
    assert [group.name for group in table.groups] == ["Tiny", "second"]
    assert all(any(row.cells[0].best for row in group.rows) for group in table.groups)
    assert len(table.baselines) == 2 and r"\emph{second}" in formats.to_tex(table)


def test_a_split_that_nothing_was_scored_on_is_an_error(frame):
    with pytest.raises(UserError, match="no run has a score on split validation"):
        summary.summarise(frame[frame["role"] != "validation"], shown("main", "strategy_table", split="validation"))


# --- figures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["layer_figure", "cost_figure"])
def test_figures_have_the_tables_numbers_and_the_same_bytes_twice(frame, table, tmp_path, kind):
    for name in ("one", "two"):
        figures.draw(frame, shown("figure", kind), tmp_path / name / "figure")
    for ending in ("pdf", "svg", "png", "csv"):
        first, second = ((tmp_path / name / f"figure.{ending}").read_bytes() for name in ("one", "two"))
        assert first == second and len(first) > 300
    with open(tmp_path / "one/figure.csv") as file:
        numbers = {(row["task"], row["strategy"], row["variant"]): row for row in csv.DictReader(file)}
    for row in table.groups[0].rows:
        for (task, _), cell in zip(TASKS.items(), row.cells, strict=True):
            drawn = numbers[task, row.key["strategy"], row.key["variant"]]
            assert float(drawn["mean"]) == pytest.approx(cell.mean, abs=1e-4)


def test_the_pareto_front_has_what_nothing_beats(frame):
    found = summary.summarise(frame, shown("cost", "cost_figure"))
    here = found[(found["task"] == "odd") & ~found["baseline"]]
    front = here.loc[figures.pareto(here, "seconds")]
    assert list(front["strategy"] + front["variant"]) == ["frozenbase", "top_kk01", "top_kk03"]


def test_panels_say_synthetic(frame):
    found = summary.summarise(frame, shown("layers", "layer_figure"))
    titles = [title for title, *_ in figures._panels(found, LABELS)]
    assert titles == ["Entities\nSYNTHETIC", "R&D_50%"]


# --- report ------------------------------------------------------------------------------------------------------


def report_spec() -> dict:
    outputs = [
        {"id": "main", "kind": "strategy_table", "step": "table", "caption": "All scores.", "label": "main"},
        {"id": "layers", "kind": "layer_figure", "step": "figure", "caption": "By layers.", "label": "layers"},
    ]
    strategies = Catalogue([ROOT / "config"])
    tasks = {
        id: Task(corpus=corpus, target="label", type=kind, metrics=[metric])
        for id, (corpus, kind, metric) in TASKS.items()
    }
    encoder = Encoder(
        folder="x", layers=6, width=32, cased=False, objective="masked words", pretraining=["a corpus", "another"]
    )
    return {
        **{key: value for key, value in shown("", "").items() if key not in ("id", "kind", "caption")},
        "experiment": "invented",
        "outputs": outputs,
        "tasks": {id: task.model_dump(mode="json") for id, task in tasks.items()},
        "encoders": {"tiny": encoder.model_dump(mode="json")},
        "strategies": {
            id: strategies.get("strategies", id, "test").model_dump(mode="json") for id in LABELS["strategies"]
        },
        "store": {"dtype": "bf16", "max_gib": 20.0},
        "compute": {"threads": 2},
    }


@pytest.fixture(scope="module")
def page(frame, results) -> str:
    folder = results / "outputs/invented"
    done = step(
        "table", "--spec", canonical(shown("main", "strategy_table")), "--runs", folder / "runs.csv",
        "--out", folder / "tables/main",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = step(
        "figure", "--spec", canonical(shown("layers", "layer_figure")), "--runs", folder / "runs.csv",
        "--out", folder / "figures/layers",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    arguments = ["--runs", folder / "runs.csv", "--results", results, "--out", folder / "report.html"]
    done = step("report", "--spec", canonical(report_spec()), *arguments)
    assert done.returncode == 0, done.stderr
    return (folder / "report.html").read_text()


def test_the_report_loads_nothing(page):
    assert not re.search(r"""(src|href|srcset|poster|data)\s*=\s*["'](?!data:|#)""", page)
    assert "<script" not in page and "@import" not in page and "url(" not in page


def test_the_report_tells_what_was_run_and_flagged(page):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    for expected in (
        "4 strategies were run on 2 tasks with 1 encoder and 2 seeds (1, 2)",
        "SYNTHETIC data. Entities:",
        "Pretrained by masked words, on a corpus and another.",
        "Fits the head to convergence by L-BFGS",
        "Starts from the run of “frozen_sgd” (last epoch). Trains everything, embeddings included for 2 epochs",
        "Table 1. SYNTHETIC All scores.",
        "Figure 1. SYNTHETIC By layers.",
        "1 run of 20 was flagged and is kept in all numbers.",
        "50 (25.0 %)",
        "torch 2.13.0",
    ):
        assert expected in text, expected
    assert "nan" not in text.lower().split()


def test_the_report_has_the_tables_own_numbers(page, table):
    for row in table.groups[0].rows:
        for cell in row.cells:
            assert cell.text in page


def test_the_report_names_what_is_missing(frame, results, tmp_path):
    with pytest.raises(UserError, match=r"tables/main\.html is missing"):
        report.page(frame, report_spec(), results, tmp_path)


# --- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made, expected",
    [
        (words.number(-0.04), "0.0"),
        (words.number(-3.14), "−3.1"),
        (words.number(None), "–"),
        (words.point("k03"), "k = 3"),
        (words.point("base"), ""),
        (words.short(22_713_216), "22.7\u202fM"),
        (words.short(999_960), "1\u202fM"),
        (words.seconds(0.41), "0.41\u202fs"),
        (words.seconds(252), "4.2\u202fmin"),
        (words.rate(5e-5), "5e-5"),
        (words.listing(["a", "b", "c"]), "a, b and c"),
        (words.tex("a_b & 50% #1 ~^\\"), r"a\_b \& 50\% \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}"),
    ],
)
def test_words(made, expected):
    assert made == expected
