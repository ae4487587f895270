"""The step merge on real runs of small encoders, what is drawn of it, and the plan of an experiment."""

import contextlib
import csv
import io
import re

import pandas
import pytest
from matplotlib.colors import to_hex

import invented
from read_again import reader
from test_merge import FROZEN, rooms, runs, top  # noqa: F401 - fixtures
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.exporting.checking import FreshProcess
from thaw.merging.merge_runs import select
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.outputs.tables import merged as tables
from thaw.papers import merged_load
from thaw.planning.configuration import load_plan, read_config
from tiny_corpus import run_in_process


@pytest.fixture(scope="module")
def made(rooms, runs):  # noqa: F811
    """Run the step on two tasks, one of which has two candidates.

    Return the results folder, the spec of the merge, and the records of its runs.
    """
    low = rooms().run("sings", "classification", FROZEN, "low")
    results, place = runs["sings"].parents[7], "n/e/one"
    files = [run / "metrics.json" for run in (runs["rivers"], low, runs["sings"])]
    digests = [read_json(file)["digest"] for file in files]
    points = [("base", 1, 2), ("low", 3, 0), ("base", 2, 1)]
    every = [
        {"strategy": name, "variant": "base", "frozen": frozen, "own": own, "runs": [digest]}
        for (name, frozen, own), digest in zip(points, digests, strict=True)
    ]
    spec = {"version": 1, "merge": "one", "choose": "best", "margin": 1.0, "seed": 1, "seeds": [1]}
    spec["tasks"] = {"sings": every[1:], "rivers": every[:1]}
    out = results / "merges" / place
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("thaw.merging.proof.FreshProcess", lambda threads: contextlib.nullcontext(reader()))
        run_in_process("merge", "--spec", canonical(spec), "--runs", *files, "--out", out)
    return results, spec, files


def data_of(results) -> OutputData:
    record = results / "merges/n/e/one/merge.json"
    shown = [one["run"] for one in read_json(record)["tasks"].values()][:2]
    return OutputData(results, runs=pandas.DataFrame({"folder": shown}), merges=[record])


def test_the_step_takes_the_best_on_validation_and_counts(made):
    results, spec, files = made
    record = read_json(results / "merges/n/e/one/merge.json")
    scores = [read_json(file)["scores"]["validation"]["accuracy"] for file in files[1:]]
    own = record["tasks"]["sings"]["own"]
    assert own == (0 if scores[0] >= scores[1] else 1)
    frozen = record["tasks"]["sings"]["frozen"]
    assert record["layers"]["executed"] == max(frozen, 1) + own + 2 and record["layers"]["of"] == 6
    assert record["spec"] == spec and list(record["layers"]["by_input"]) == ["text, at most 64 tokens"]
    stored = sum(file.stat().st_size for file in results.glob("merges/n/e/one/**/*.safetensors"))
    assert record["bytes"] == stored and record["parameters"]["merged"] < record["parameters"]["separate"]
    assert read_json(results / "merges/n/e/one/check.json")["passed"]


def test_a_run_that_diverged_is_not_taken(made, tmp_path):
    _, spec, files = made
    copies = []
    for number, file in enumerate(files):
        record = read_json(file)
        copies.append(tmp_path / str(number) / "metrics.json")
        write_json(copies[-1], record | {"flags": ["diverged"] if number == 2 else []})
    assert select(spec, copies)["sings"].strategy == "low"
    write_json(copies[0], read_json(files[0]) | {"flags": ["diverged"]})
    with pytest.raises(UserError, match="rivers: every run that a branch may come from diverged"):
        select(spec, copies)


ENDS = """
import os, signal, sys

class Model:
    def __init__(self, folder):
        {}
"""
ENDINGS = [
    ("os.kill(os.getpid(), signal.SIGKILL)", "it printed no error (killed by SIGKILL, usually because memory ran out)"),
    ("os.kill(os.getpid(), 40)", "it printed no error (killed by signal 40)"),
    ("os._exit(3)", "it printed no error (exit code 3)"),
    ("raise RuntimeError('no layer')", "RuntimeError: no layer (exit code 1)"),
]


@pytest.mark.parametrize("code, sentence", ENDINGS)
def test_how_a_fresh_process_ended_is_said(tmp_path, code, sentence):
    (tmp_path / "model.py").write_text(ENDS.format(code))
    with FreshProcess(1) as process, pytest.raises(UserError) as raised:
        process.ask(["a"], tmp_path)
    assert str(raised.value) == f"the folder fails in a fresh process: {sentence}"


def test_a_fresh_process_that_was_killed_before_a_request_is_said_too(tmp_path):
    """The request is larger than the pipe, so that some of it is left when the process is closed."""
    with FreshProcess(1) as process, pytest.raises(UserError, match="killed by SIGKILL"):
        process._process.kill()
        process.ask(["a" * 2**20], tmp_path)


def test_tables_and_figures_are_drawn_of_the_records(made):
    data, record = data_of(made[0]), read_json(made[0] / "merges/n/e/one/merge.json")
    spec = invented.shown("m", "merge_table") | {"merges": {"one": "One trunk"}}
    header, line = csv.reader(io.StringIO(table_formats.to_csv(tables.build(data, spec))))
    links = re.findall(r'runs\.html#([^"]+)', table_formats.to_html(tables.build(data, spec)))
    shown = {link for link in links if not link.startswith("merge.")}
    one = tables.build(data, spec).groups[0]
    assert one.name.startswith("One trunk, ")
    share = 100 * record["parameters"]["merged"] / record["parameters"]["separate"]
    by_name = {row.name: [cell.text for cell in row.cells] for row in one.rows}
    assert by_name["Parameters stored"][-1] == f"{share:.1f} %", "no share is in a column of scores"
    assert "merge.n.e.one" in links and len(shown) == 2, "a run that the experiment does not show is no link"
    row = dict(zip(header, line, strict=True))
    assert row["layers"] == str(record["layers"]["executed"]) and row["tasks"] == " ".join(record["tasks"])
    figure = merged_load.build(data, spec)
    stored = figure.drawn.axes[1]
    texts = [text.get_text() for text in stored.texts if text.get_text()]  # others are lines that lead to them
    named = {text: to_hex(line.get_color()) for text, line in zip(texts, stored.lines, strict=True)}
    assert list(named) == ["Full models", "Merged", "Adapters", "LoRA"] and len(set(named.values())) == 4
    drawn = pandas.DataFrame(figure.records)
    merged = drawn[(drawn["unit"] == "layers") & (drawn["way"] == "Merged")].set_index("tasks")["value"]
    assert merged[2] == record["layers"]["executed"]


def test_a_branch_with_a_flag_is_marked_in_the_table(made, tmp_path):
    record, place = read_json(made[0] / "merges/n/e/one/merge.json"), tmp_path / "merges/n/e/one/merge.json"
    for task, one in record["tasks"].items():
        assert one["flags"] == read_json(made[0] / one["run"] / "metrics.json")["flags"]
        one["flags"] = ["one_class"] if task == "rivers" else []
    place.parent.mkdir(parents=True)
    write_json(place, record)
    data = OutputData(tmp_path, runs=pandas.DataFrame({"folder": []}), merges=[place])
    table = tables.build(data, invented.shown("m", "merge_table") | {"merges": {}})
    validation = {row.name: row.cells[2].text for row in table.groups[0].rows[:2]}
    assert validation["rivers"].endswith("†") and "†" not in validation["sings"]
    assert table.notes[-1] == "† Warning: predicts a single class, or one set of labels, on validation."
    header, line = csv.reader(io.StringIO(table_formats.to_csv(table)))
    assert dict(zip(header, line, strict=True))["flags"] == "rivers:one_class"


def test_stored_parameters_by_way_are_the_closed_forms():
    tasks = {"a": {"frozen": 7, "own": 5}, "b": {"frozen": 4, "own": 8}}
    bert = {"embeddings": 23_837_184, "layer": 7_087_872, "layers": 12, "width": 768}
    whole = 23_837_184 + 12 * 7_087_872
    record = {"tasks": tasks, "encoder": bert, "parameters": {"separate": 2 * (whole + 10)}}
    found = merged_load.stored_by_way(record, 2)
    assert found["LoRA"] == whole + 2 * (2 * 147_456 + 10)  # in all 12 layers; 147,456 in six
    assert found["Merged"] == 23_837_184 + 20 * 7_087_872 + 20 and found["Full models"] == 2 * (whole + 10)
    assert found["Adapters"] == whole + 2 * (12 * 2 * (2 * 768 * 64 + 768 + 64) + 10)


def test_an_experiment_with_merges_is_planned(home):
    files = [str(home / "config/experiments/merge.yaml")]
    plan = load_plan(read_config(files, {"sources": ["hub"]}), home)
    spec = plan.job("merge", "n1000_d1/minilm/near").spec
    sizes = [(point["frozen"], point["own"]) for point in spec["tasks"]["trec6"]]
    assert sizes == [(6 - k, k) for k in range(7)] and spec["seeds"] == [1, 2, 3]
    kept = {key for key, job in plan.jobs["train"].items() if job.spec["keep"] and "/top_k/" in key}
    assert kept and all(key.endswith("seed1") for key in kept)
    assert len(plan.status.merged()) == 3 and len(plan.status.drawn_merges("table", "merges")) == 3
    assert plan.status.drawn_merges("table", "main_table") == []
