"""Edge, structural and surface probes in a plan: the tasks that each is for, and what is refused."""

import shutil

import pytest

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


def test_each_probe_reads_the_tasks_that_it_is_for(home, data):
    plan = planned(home, probe_tasks=TASKS, probes=["edge", "structural", "surface", "linear"], **data)
    found = {probe: [] for probe in ("edge", "structural", "surface", "linear")}
    for key in plan.jobs["probe"]:
        found[key.split("/")[3]].append(key.split("/")[0])
    assert found == {
        "edge": ["ud_ewt_upos", "ud_ewt_arcs", "entities"],
        "structural": ["ud_ewt_arcs"],
        "surface": ["acceptability"],
        "linear": ["acceptability", "ud_ewt_upos", "entities", "similarity"],
    }
    assert {key.partition("/")[0] for key in plan.jobs["baseline"]} == {"acceptability"}
    assert {run.task for run in plan.runs["demo"]} == {"acceptability"}


def test_figures_take_the_probes_that_they_draw(home, data):
    outputs = ["layer_mixes", "layer_map"]
    plan = planned(home, probe_tasks=["entities"], probes=["edge", "control", "linear"], outputs=outputs, **data)
    kinds = {name: {path.split("/")[-3] for path in plan.probed("demo", "figure", name)} for name in outputs}
    assert kinds == {"layer_mixes": {"edge"}, "layer_map": {"edge", "linear"}}
    assert "negative" not in plan.job("figure", "demo/layer_mixes").spec


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tasks": ["ud_ewt_arcs"]}, r"tasks.ud_ewt_arcs.*: no head serves edges; name ud_ewt_arcs under probe_tasks"),
        (
            {"probes": ["structural"]},
            "structural is for edges of a corpus that keeps the heads of its words, and no task",
        ),
        ({"probes": ["edge"]}, "edge is for tags, spans and edges, and no task here has any"),
        ({"probes": ["surface"], "tasks": ["similarity"]}, "surface is for labels of single texts, and no task"),
    ],
)
def test_tasks_that_do_not_fit(home, data, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        planned(home, **(changes | data))


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("kind: edge, layers: [9]", "minilm has no layer 9; it has layers 1 to 6, and 0 below"),
        ("kind: edge, l2: [1.0]", "l2 has no meaning with kind edge; leave it out"),
        ("kind: structural, hidden: 3", "hidden has no meaning with kind structural; leave it out"),
        ("kind: edge, dropout: 1.0", "probes.mine.dropout: input should be less than 1"),
    ],
)
def test_mistakes_in_an_entry(home, data, tmp_path, key, sentence):
    (tmp_path / "probes.yaml").write_text(f"probes:\n  mine: {{{key}}}\n")
    with pytest.raises(UserError, match=sentence):
        planned(home, probe_tasks=["ud_ewt_arcs"], probes=["mine"], catalogues=[str(tmp_path)], **data)
