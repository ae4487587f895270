"""Edge probes in a plan: the tasks that each is for, and what is refused."""

import shutil

import pytest

from conftest import MESSAGES
from test_probes_plan import planned
from thaw.core.errors import UserError

TASKS = ["ud_ewt_upos", "ud_ewt_arcs", "entities", "similarity"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files where the plan looks for UD English EWT; it reads no more than their checksums."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "ud_english_ewt").mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"ud_english_ewt/en_ewt-ud-{split}.conllu").write_text("\n")
    yield {"data_dir": str(folder), "sources": ["files", "synthetic"]}
    shutil.rmtree(folder)


def test_each_probe_reads_the_tasks_that_it_is_for(data):
    plan = planned(probe_tasks=TASKS, probes=["edge", "linear"], **data)
    found = {probe: [] for probe in ("edge", "linear")}
    for key in plan.jobs["probe"]:
        found[key.split("/")[3]].append(key.split("/")[0])
    assert found == {
        "edge": ["ud_ewt_upos", "ud_ewt_arcs", "entities"],
        "linear": ["acceptability", "ud_ewt_upos", "entities", "similarity"],
    }
    assert {key.partition("/")[0] for key in plan.jobs["baseline"]} == {"acceptability"}
    assert {run.task for run in plan.runs} == {"acceptability"}


def test_figures_take_the_probes_that_they_draw(home, data):
    outputs = ["layer_mixes", "probe_curves"]
    plan = planned(probe_tasks=["entities"], probes=["edge", "mutual_information", "linear"], outputs=outputs, **data)
    kinds = {name: {path.split("/")[-3] for path in plan.status.probed("figure", name)} for name in outputs}
    assert kinds == {"layer_mixes": {"edge"}, "probe_curves": {"edge", "mutual_information", "linear"}}


ARCS = "corpus: ud_english_ewt, target: arcs, type: edges, metrics: [edge_f1]"


def tasks_file(folder, task: str, labels: str = "") -> list[str]:
    """Write a catalogue with a task `mine`, and a corpus that states the labels of its edges if there are any."""
    corpora = "corpora: {stated: {base: ud_english_ewt, labels: {arcs: [det, obj, R-obj]}}}\n" if labels else ""
    (folder / "tasks.yaml").write_text(f"{corpora}tasks:\n  mine: {{{task}}}\n")
    return [str(folder)]


def test_only_specs_of_tasks_that_leave_out_labels_say_so(home, data, tmp_path):
    own = tasks_file(tmp_path, f"{ARCS}, unscored_labels: [punct, det*]")
    plan = planned(probe_tasks=["mine", "ud_ewt_arcs"], probes=["edge", "edge_tenney2019"], catalogues=own, **data)
    specs = {key.split("/")[0] + "/" + key.split("/")[3]: job.spec for key, job in plan.jobs["probe"].items()}
    assert {key for key, spec in specs.items() if "unscored_labels" in spec["task"]} == {
        "mine/edge",
        "mine/edge_tenney2019",
    }
    assert specs["mine/edge"]["task"]["unscored_labels"] == ["punct", "det*"]
    assert {key: spec["probe"].get("layer_0") for key, spec in specs.items() if key.startswith("ud")} == {
        "ud_ewt_arcs/edge": None,
        "ud_ewt_arcs/edge_tenney2019": "word_embeddings",
    }


@pytest.mark.parametrize("task", MESSAGES["labels that are left out"])
def test_labels_that_cannot_be_left_out(data, tmp_path, recorded, task):
    own = tasks_file(tmp_path, task, labels="stated" if "stated" in task else "")
    with pytest.raises(UserError) as caught:
        planned(probe_tasks=["mine"], probes=["edge"], catalogues=own, **data)
    recorded("labels that are left out", task, str(caught.value).replace(f"{tmp_path}/", ""))
