"""Parts from outside: docs/howto/extend.md in a real plan and training, their hash, and every mistake."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import HOME, MESSAGES
from plans import plan_of
from test_probes import spec_of as probe_spec_of
from thaw.core import plugins
from thaw.core.digests import canonical, file_sha256
from thaw.core.errors import UserError
from thaw.outputs.figures.probe_curves import points
from thaw.outputs.frame.probe_frame import ProbeRecord
from tiny_corpus import Bench, small_bert


@pytest.fixture
def my(tmp_path):
    """A folder with the examples of docs/howto/extend.md, as a reader would copy them."""
    text = (HOME / "docs/howto/extend.md").read_text(encoding="utf-8")
    for name, block in re.findall(r"```\w+\n# my/(\S+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(block)
    yield tmp_path
    plugins.set_folders([])


def planned(my: Path, **changes):
    """Return the plan of an experiment that uses all three parts beside Thaw's own."""
    mine = {"tasks": ["my_acceptability", "entities"], "heads": ["linear", "gated"], "catalogues": [str(my)]}
    mine |= {"strategies": [{"top_k": [1]}, "every_second"], "seeds": [1], "outputs": ["main_table"]}
    mine |= {"probes": ["norm"]}
    return plan_of(**mine | changes)


def replace(path: Path, old: str, new: str) -> None:
    """Change a file."""
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_spec_holds_the_hash_of_the_parts_that_it_uses_and_no_path(my):
    plan = planned(my)
    specs = {run.folder: plan.job(run.step, run.key).spec for run in plan.runs}
    run = "runs/my_acceptability/all/minilm/gated/every_second/base/seed1"
    names = ("my_heads", "my_metrics", "my_selectors")
    assert specs[run]["parts"] == {name: file_sha256(my / f"{name}.py") for name in names}
    assert specs[run]["phases"][0]["components"] == ["head", "layer.2", "layer.4", "layer.6"]
    assert specs[run]["phases"][0]["boundary"] == 1
    assert "parts" not in specs["runs/entities/all/minilm/linear/top_k/k01/seed1"]
    assert set(plan.job("baseline", "my_acceptability/all/majority").spec["parts"]) == {"my_metrics"}
    assert set(plan.job("probe", "my_acceptability/all/minilm/norm/pretrained").spec["parts"]) == {
        "my_metrics",
        "my_probes",
    }
    assert not any("entities" in key for key in plan.jobs["probe"]), "norm is not for tags"
    assert not any(str(my) in canonical(spec) for spec in specs.values())
    assert plan.job("table", "demo/main_table").spec["labels"]["metrics"] == {"my_metrics:kappa": "Cohen's kappa"}


def test_an_edited_part_changes_the_specs_of_exactly_its_runs(my):
    def digests():
        plan = planned(my)
        return {key: job.digest for step in ("train", "baseline") for key, job in plan.jobs[step].items()}

    before = digests()
    replace(my / "my_heads.py", "64", "65")
    changed = {key for key, found in digests().items() if found != before[key]}
    assert changed == {key for key in before if "/gated/" in key}


def test_a_plan_loads_no_torch_for_an_own_head(my):
    code = f"import sys; sys.path.insert(0, {str(HOME / 'tests')!r}); "
    code += "from thaw.planning.configuration import read_config; "
    code += "from thaw.planning.configuration import load_plan; "
    code += f"load_plan(read_config([{str(HOME / 'tests/base.yaml')!r}], dict(heads=['gated'], strategies=['full'], "
    code += f"catalogues=[{str(my)!r}])), __import__('pathlib').Path({str(HOME)!r})); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": f"{HOME}/scripts"}
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("mistake", MESSAGES["a part of your own"])
def test_a_mistake_is_one_sentence_with_its_place(my, recorded, mistake):
    file, old, new = re.fullmatch(r"(\S+): (.*) -> (.*)", mistake, re.DOTALL).groups()
    replace(my / file, old, new)
    with pytest.raises(UserError) as caught:
        planned(my)
    recorded("a part of your own", mistake, str(caught.value).replace(str(my), "my"))


def test_an_own_head_cannot_be_fitted_by_lbfgs(my):
    with pytest.raises(UserError, match="lbfgs fits Thaw's linear head, and gated is your own; use frozen_sgd"):
        planned(my, strategies=["frozen"])


bench = pytest.fixture(scope="module")(small_bert)


def own_spec(bench: Bench, my: Path) -> dict:
    """Return the spec of a run with the examples' head and metric."""
    head = {"kind": "my_heads:Gated", "options": {"hidden": 8}}
    spec = bench.spec({"train": ["head", {"top": 1}], "epochs": 1}, head=head)
    spec["task"]["metrics"] = ["my_metrics:kappa", "accuracy"]
    return spec | plugins.in_spec(["my_heads:Gated", "my_metrics:kappa"])


def test_a_run_trains_an_own_head_and_scores_by_an_own_metric(bench, my, tmp_path):
    plugins.set_folders([my])
    spec = own_spec(bench, my)
    out = bench.step("train", spec, tmp_path / "run", "--catalogues", my)
    metrics = json.loads((out / "metrics.json").read_text())
    assert set(metrics["scores"]["test"]) == {"my_metrics:kappa", "accuracy"}
    assert metrics["scores"]["test"]["my_metrics:kappa"] is not None
    assert metrics["spec"]["parts"]["my_heads"] == file_sha256(my / "my_heads.py")


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        ("my_metrics.py", "beyond chance", "by chance", "my_metrics.py is not the file that was planned with"),
        ("my_heads.py", "states[:, 0]", "states", r"my_heads.py:8: my_heads:Gated: logits of shape \[2, 3, 2\] where"),
        ("my_heads.py", "hidden, outputs", "outputs, hidden", r"my_heads:Gated: .*my_heads.py:21: RuntimeError: mat1"),
    ],
)
def test_a_step_refuses_a_part_that_changed_or_breaks_the_interface(bench, my, tmp_path, file, old, new, message):
    plugins.set_folders([my])
    before = own_spec(bench, my)
    replace(my / file, old, new)
    spec = before if "planned" in message else own_spec(bench, my)
    with pytest.raises(UserError, match=message):
        bench.step("train", spec, tmp_path / "run", "--catalogues", my)
    assert not (tmp_path / "run").exists()


def probe_spec(bench: Bench) -> dict:
    """Return the spec of the example's probe."""
    spec = probe_spec_of(bench)
    return spec | {"probe": {"kind": "my_probes:norm"}} | plugins.in_spec(["my_probes:norm"])


def test_an_own_probe_is_run_and_its_measure_drawn(bench, my, tmp_path):
    plugins.set_folders([my])
    out = bench.step("probe", probe_spec(bench), tmp_path / "out", "--catalogues", my)
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["main"] == "length" and [end["layer"] for end in metrics["layers"]] == [0, 1, 2, 3] * 2
    found, majority = points([ProbeRecord(out / "metrics.json", metrics)], "test")
    assert found["mean"].tolist() == pytest.approx([e["scores"]["test"]["length"] for e in metrics["layers"][:4]])
    assert majority == {}


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("return rows, layer_scores", "return rows", "my_probes.py:1: my_probes:norm must return two lists of dicts"),
        ("norm(dim=1)", "norm(dim=2)", "my_probes:norm: .*my_probes.py:5: IndexError: Dimension out of range"),
    ],
)
def test_a_probe_that_breaks_the_interface_is_refused(bench, my, tmp_path, old, new, message):
    plugins.set_folders([my])
    replace(my / "my_probes.py", old, new)
    with pytest.raises(UserError, match=message):
        bench.step("probe", probe_spec(bench), tmp_path / "out", "--catalogues", my)
    assert not (tmp_path / "out").exists()


def contract(my: Path, kind: str, part: str) -> subprocess.CompletedProcess:
    """Run the contract on a part, as docs/howto/extend.md has it."""
    command = ["pytest", "-q", "-p", "no:cacheprovider", f"tests/test_contract_{kind}.py", "--part", part]
    return subprocess.run([*command, "--catalogues", my], cwd=HOME, capture_output=True, text=True)


def test_an_example_keeps_the_contract(my):
    done = contract(my, "selector", "my_selectors:every_other")
    assert done.returncode == 0, done.stdout


def test_a_broken_part_breaks_its_clause(my):
    replace(my / "my_metrics.py", 'if len(gold) else float("nan")', "* len(gold) / len(gold)")
    done = contract(my, "metric", "my_metrics:kappa")
    assert done.returncode == 1 and "my_metrics.py:6: " in done.stdout, done.stdout + done.stderr
    broken = {line.partition("::")[2].partition("[")[0] for line in done.stdout.splitlines() if line[:7] == "FAILED "}
    assert broken == {"test_undefined"}, done.stdout
