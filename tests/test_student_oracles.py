"""Students against other ways to the same answer: a shorter encoder, a loop in plain torch, labels that are wrong."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoModel

from test_plain_loop import USUAL, Plain, noted, undropped
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.files import read_json
from thaw.training.distilled import Distilled
from thaw.training.task_model import BatchLoader
from thaw.training.taught import LiveTeacher, TeacherOutputs
from thaw.training.training_run import TrainingRun, train
from tiny import tiny_encoder
from tiny_corpus import Bench, rows, tiny_corpus
from tiny_own import STATED
from tiny_students import teach
from trained import equal, losses, tensors

LAYERS = 3


def lowest_two(folder: Path) -> dict:
    """Write the two lowest layers of that encoder, cut off by transformers alone, and return the entry."""
    whole = tiny_encoder("bert", folder / "whole", LAYERS)
    model = AutoModel.from_pretrained(whole)
    model.encoder.layer = model.encoder.layer[:2]
    model.config.num_hidden_layers = 2
    model.save_pretrained(folder / "short")
    for path in whole.glob("tokenizer*"):
        shutil.copyfile(path, folder / "short" / path.name)
    return {"folder": str(folder / "short"), "layers": 2} | STATED


def test_dropping_the_top_is_training_a_shorter_encoder(tmp_path):
    """As an entry of the catalogue whose encoder was cut before: losses, scores and tensors agree to the bit."""
    corpus = tiny_corpus(tmp_path / "corpus", "spans")
    whole = Bench(tmp_path / "whole", "bert", corpus, "spans", layers=LAYERS)
    short = Bench(tmp_path / "short", lowest_two, corpus, "spans")
    spec = whole.spec({"train": ["all"]}, student={"layers": [1, 2]})
    spec["phases"][0]["components"].remove("layer.3")
    _, dropped = whole.train(spec)
    _, expected = short.train(short.spec({"train": ["all"]}))
    assert losses(dropped) == losses(expected) and dropped.outcome == expected.outcome
    assert equal(tensors(dropped), tensors(expected))


class Taught(Plain):
    """A student of two layers and its teacher, which is read anew in each update, at a temperature of 2."""

    def __init__(self, bench: Bench, teacher: Path, head: dict[str, torch.Tensor], phase: dict):
        """Load both. Args: folder of the teacher's run; the student's head before the first update; the phase."""
        super().__init__(bench, "classification", {}, head, phase, layers=2)
        self.teacher = AutoModel.from_pretrained(bench.encoder).eval()
        missing, unknown = self.teacher.load_state_dict(load_file(teacher / "encoder.safetensors"), strict=False)
        assert not unknown and len(missing) < len(self.teacher.state_dict())
        self.taught = load_file(teacher / "head.safetensors")

    def loss(self, rows) -> torch.Tensor:
        """Return the loss of labels, and that of the teacher's logits."""
        given = self.tokenizer(list(rows["text"]), padding=True, truncation=True, max_length=64, return_tensors="pt")
        ours = self.logits(self.encoder(**given).last_hidden_state[:, 0])
        with torch.no_grad():
            states = self.teacher(**given).last_hidden_state[:, 0]
            theirs = functional.linear(states, self.taught["output.weight"], self.taught["output.bias"])
        soft = functional.kl_div((ours / 2).log_softmax(-1), (theirs / 2).softmax(-1), reduction="batchmean")
        return super().loss(rows) + 4 * soft


def test_ten_updates_are_those_of_a_plain_loop(tmp_path, monkeypatch):
    """The same batches without dropout; the teacher's logits are computed in each update there, and cached here."""
    bench = Bench(tmp_path / "bench", undropped, tiny_corpus(tmp_path / "corpus", "classification"), "classification")
    spec = bench.spec({"train": ["all"]}, keep=True)
    metrics = bench.step("train", spec, tmp_path / "teacher") / "metrics.json"
    phase = USUAL | {"warmup": 0, "schedule": "constant", "epochs": 2, "distil": {"logits": {"temperature": 2}}}
    student = bench.spec(phase, head={"dropout": 0.0}, student={"layers": [1, 2]})
    student["phases"][0]["components"].remove("layer.3")
    run = bench.run(student, taught=TeacherOutputs(teach(bench, metrics, student["phases"], tmp_path / "taught"), []))
    seen = noted(monkeypatch, Distilled)
    plain = Taught(bench, tmp_path / "teacher", run.head.state_dict(), phase)
    train([run], Stopwatch())
    assert len(seen) == 10
    ours = [value for _, value in seen]
    assert ours == pytest.approx([plain.update(rows) for rows, _ in seen], rel=1e-5) and ours[0] > ours[-1]


def changed(share: float) -> list[dict]:
    """Return the bench's training rows of which this share has another score."""
    made = rows("regression", 24, 1)
    for row in made[: int(share * len(made))]:
        row["score"] = 10.0 - 3 * row["score"]
    return made


def test_a_student_of_its_teacher_alone_is_the_same_on_scores_that_are_wrong(tmp_path):
    """To the bit, on a corpus with other labels on train; the head of scores begins at its teacher's mean."""
    right = Bench(tmp_path / "right", "bert", tiny_corpus(tmp_path / "a", "regression"), "regression")
    wrong = Bench(
        tmp_path / "wrong", "bert", tiny_corpus(tmp_path / "b", "regression", train=changed(0.5)), "regression"
    )
    assert right.corpus.card["digest"] != wrong.corpus.card["digest"]
    metrics = right.step("train", right.spec({"train": ["all"]}, keep=True), tmp_path / "run") / "metrics.json"
    card = teach(right, metrics, [{"distil": {"logits": {}}}], tmp_path / "taught")
    left = {}
    for hard in (0.0, 1.0):
        for bench in (right, wrong):
            spec = bench.spec({"train": ["all"], "distil": {"hard": hard, "logits": {}}})
            spec |= {"teacher": {"taught": read_json(card)["digest"]}}
            if not hard:
                spec |= {"unlabelled": True}
            run = TrainingRun(spec, bench.inputs(), taught=TeacherOutputs(card, []))
            left[hard, bench is right] = tensors(train([run], Stopwatch())[0])
    assert equal(left[0.0, True], left[0.0, False])
    assert not equal(left[1.0, True], left[1.0, False])


@pytest.fixture(scope="module")
def still(tmp_path_factory) -> tuple[Bench, Path]:
    """A bench whose encoder has no dropout, and a run on it that was kept."""
    folder = tmp_path_factory.mktemp("still")
    bench = Bench(folder / "bench", undropped, tiny_corpus(folder / "corpus", "classification"), "classification")
    spec = bench.spec({"train": ["all"]}, head={"dropout": 0.0}, keep=True)
    return bench, bench.step("train", spec, folder / "run") / "metrics.json"


def student_of(bench: Bench, taught, train: list) -> tuple[list, dict]:
    """Train a student whose head has dropout; return its history and tensors."""
    phase = {"train": train, "distil": {"logits": {"temperature": 2}}}
    _, left = bench.train(bench.spec(phase, head={"dropout": 0.3}), taught=taught)
    return left.history, tensors(left)


@pytest.mark.parametrize("parts", [["all"], ["head", {"top": 1}]], ids=["from text", "from boundary 2"])
def test_a_live_teacher_without_dropout_is_the_one_that_is_stored(still, parts, tmp_path):
    """So the student's own random numbers are those that they were: its head has dropout, and the teacher has none."""
    bench, metrics = still
    live = LiveTeacher(bench.inputs(), metrics, read_json(metrics)["digest"], 1)
    card = teach(bench, metrics, [{"distil": {"logits": {}}}], tmp_path / "taught")
    (ours, left), (stored, expected) = (
        student_of(bench, live, parts),
        student_of(bench, TeacherOutputs(card, []), parts),
    )
    assert [note["loss"] for note in ours] == pytest.approx([note["loss"] for note in stored], rel=1e-5)
    # of the encoder some biases have no gradient but rounding, which Adam makes as large as any other
    heads = [name for name in expected if name.startswith("head.")]
    assert heads and all(torch.allclose(left[name], expected[name], atol=1e-4) for name in heads)
    assert live.flops([9, 9]) > 0


def test_a_teacher_with_dropout_teaches_otherwise_and_the_same_again(tmp_path):
    """A teacher that is left in training mode is noticed in each loss; the same seed gives the same bits."""
    bench = Bench(tmp_path / "bench", "bert", tiny_corpus(tmp_path / "corpus", "regression"), "regression")
    metrics = bench.step("train", bench.spec({"train": ["all"]}, keep=True), tmp_path / "run") / "metrics.json"
    digest = read_json(metrics)["digest"]
    card = teach(bench, metrics, [{"distil": {"logits": {}}}], tmp_path / "taught")
    spec = bench.spec({"train": ["all"], "distil": {"hard": 0, "logits": {}}}, teacher={"run": digest, "dropout": True})
    need = ("--need", "live_teacher", metrics)
    one, two = (bench.step("train", spec, tmp_path / name, *need) for name in ("one", "two"))
    first, second = (read_json(folder / "metrics.json") for folder in (one, two))
    assert first == second and (one / "head.safetensors").read_bytes() == (two / "head.safetensors").read_bytes()
    stored = spec | {"teacher": {"taught": read_json(card)["digest"]}}
    other = bench.step("train", stored, tmp_path / "stored", "--need", "teacher", card)
    assert (other / "head.safetensors").read_bytes() != (one / "head.safetensors").read_bytes()
    rows = np.array([5, 2, 9])
    live = LiveTeacher(bench.inputs(), metrics, digest, 1)
    batch, _ = BatchLoader(bench.store, [], torch.device("cpu"))("train", rows)
    drawn = []
    for step in (0, 1, 0):
        live.at_step(1, step)
        drawn.append(live.logits_of(rows, batch))
    assert torch.equal(drawn[0], drawn[2]) and not torch.allclose(drawn[0], drawn[1], atol=1e-3)
    plain = TeacherOutputs(card, [])
    assert not torch.allclose(drawn[0], plain.logits_of(rows, batch), atol=1e-3)
    assert live.scores(rows) == pytest.approx(plain.scores(rows), abs=1e-5)
