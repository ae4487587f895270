"""The plan of encoders of every kind: their files' checksums, what is said where they are missing, what is left out."""

from plans import plan_of
from thaw.core.digests import file_sha256
from thaw.declarations.encoders import ENCODER_KINDS
from thaw.planning.job_request import request
from tiny_own import OWN, vector_lines

ENTRY = """encoders:
  mine: {{kind: word_vectors, file: {}, layers: 0, width: 32, cased: false, objective: o, pretraining: [p]}}
"""


def wanted(home, folder, encoder, **changes):
    """Return the plan of one task on an encoder, with a catalogue of one's own."""
    changes = {"tasks": ["acceptability"], "strategies": ["linear_probe"], "baselines": [], "seeds": [1]} | changes
    return plan_of(encoders=[encoder], catalogues=[str(folder)] if folder else [], **changes)


def test_a_changed_file_is_another_encoder(home, tmp_path):
    """The spec holds the sha256 of a file of vectors; what is computed with it follows."""
    path = tmp_path / "vectors.txt"
    (tmp_path / "encoders.yaml").write_text(ENTRY.format(path))
    digests = []
    for lines in (vector_lines(), vector_lines()[:5]):
        path.write_text("\n".join(lines) + "\n")
        plan = wanted(home, tmp_path, "mine")
        assert plan.job("fetch", "mine").spec["files"] == {str(path): file_sha256(path)}
        digests.append(plan.job("fetch", "mine").digest)
    assert digests[0] != digests[1]


def test_fixed_vectors_have_a_head_alone_above_and_no_words(home):
    """Strategies that thaw, and tagging, are left out on a sentence encoder."""
    tasks, strategies = (
        ["acceptability", "entities", "paraphrase"],
        ["linear_probe", "frozen_separate", "top_k", "full"],
    )
    plan = wanted(home, None, "minilm_sentence", tasks=tasks, strategies=strategies, outputs=["main_table"])
    runs = {(run.task, run.strategy, run.variant) for run in plan.runs}
    due = {
        (task, name, "base") for task in ("acceptability", "paraphrase") for name in ("linear_probe", "frozen_separate")
    }
    due |= {(task, "top_k", "k00") for task in ("acceptability", "paraphrase")}
    assert runs == due - {("acceptability", "frozen_separate", "base")}
    rows = [entry["row"] for entry in plan.job("collect", "demo").spec["results"] if entry["row"]["kind"] == "run"]
    assert {(row["task"], row["strategy"], row["variant"]) for row in rows} == runs


def test_word_vectors_are_tuned_by_full(home, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(vector_lines()) + "\n")
    (tmp_path / "encoders.yaml").write_text(ENTRY.format(path))
    plan = wanted(home, tmp_path, "mine", tasks=["entities"], strategies=["linear_probe", "top_k", "full"])
    phases = {run.strategy: plan.job(run.step, run.key).spec["phases"][0] for run in plan.runs}
    assert {name: (phase["components"], phase["boundary"]) for name, phase in phases.items()} == {
        "linear_probe": (["head"], 0),
        "top_k": (["head"], 0),
        "full": (["head", "embeddings"], None),
    }
    assert all(request(plan, run.step, run.key)["mem_mb"] > 0 for run in plan.runs), "without layers too"


def test_each_kind_but_that_of_transformers_is_tried():
    assert set(ENCODER_KINDS) == {"transformers", *OWN}
