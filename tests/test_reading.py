"""Reading results in a notebook: the examples of docs/howto/notebook.md, and what the reader says of gaps."""

import json
import re
import shutil
from pathlib import Path

import pytest

from conftest import HOME
from thaw.api import results
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import write_json
from tiny_corpus import Bench, run_in_process, tiny_corpus

KIND, CORPUS = "pair_classification", "paraphrase"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Results of a small encoder: a run in each view, and a baseline."""
    home = tmp_path_factory.mktemp("reading")
    corpus = tiny_corpus(home / "source", KIND)
    found = home / "results"
    for view in ("joint", "separate"):
        bench = Bench(home / view, "bert", corpus, KIND, layers=6, pairs=view)
        shutil.copytree(bench.features, found / "features/minilm" / CORPUS / view)
        spec = bench.spec({"train": ["head", {"top": 2}], "epochs": 1})
        bench.step("train", spec, found / f"runs/p/all/minilm/linear/top_k/{view}/seed1")
    spec = {key: spec[key] for key in ("task", "subset", "data")} | {"version": 1, "baseline": "majority"}
    baseline = found / "baselines/p/all/majority"
    run_in_process("baseline", "--spec", canonical(spec), "--data", corpus.folder, "--out", baseline)
    return found


def test_the_example_of_the_document_runs_as_it_stands(folder, monkeypatch, capsys):
    text = (HOME / "docs/howto/notebook.md").read_text(encoding="utf-8")
    monkeypatch.chdir(folder.parent)
    (block,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "results.table" in code]
    exec(compile(block, "docs/howto/notebook.md", "exec"), {})
    assert "top_k" in capsys.readouterr().out


def test_the_table_says_of_each_score_where_it_belongs(folder):
    table = results.table(folder)
    assert list(table.columns) == results.COLUMNS
    run = table[(table.variant == "separate") & (table.split == "test") & table.main].iloc[0]
    metrics = json.loads(Path(run.path, "metrics.json").read_text())
    assert run.value == metrics["scores"]["test"]["accuracy"] and run.digest == metrics["digest"]
    assert (run.kind, run.pairs, run.role, run.thawed, run.embeddings, run.seed, run.n) == (
        "run", "separate", "test", 2, False, 1, 8,
    )  # fmt: skip
    baseline = table[(table.kind == "baseline") & (table.split == "train")].iloc[0]
    assert (baseline.strategy, baseline.encoder, baseline.role) == ("majority", "", "train")
    assert table.value.dtype == float and table.seed.isna().sum() == (table.kind == "baseline").sum()


def test_an_undefined_score_is_nan_and_a_broken_record_is_named(folder, tmp_path):
    record = json.loads((folder / "baselines/p/all/majority/metrics.json").read_text())
    record["scores"]["test"]["accuracy"] = None
    write_json(tmp_path / "baselines/p/all/majority/metrics.json", record)
    table = results.table(tmp_path)
    assert table.set_index("split").value.isna().to_dict()["test"]
    write_json(tmp_path / "baselines/p/all/broken/metrics.json", {})
    with pytest.raises(UserError, match="broken/metrics.json: 'spec' is missing"):
        results.table(tmp_path)


def test_a_folder_without_results_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="holds no results; run the workflow"):
        results.table(tmp_path)
