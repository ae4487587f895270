"""Distillation: each formula against another one, a teacher's outputs against its model, students against both."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from test_progress import Stopped, stop_after
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.features.store import FeatureStore
from thaw.papers.theseus import ReplaceConfig, Replacement, Replacing, replacing_rate
from thaw.schema.distillation import DistilConfig
from thaw.steps import train as train_step
from thaw.training import progress
from thaw.training.distillation_losses import relation_distance, soft_targets
from thaw.training.distilled import Distilled
from thaw.training.progress import Progress
from thaw.training.task_model import BatchLoader, TaskModel, resumed
from thaw.training.taught import LOGITS, Teacher, TeacherOutputs
from thaw.training.training_run import TrainingRun, train
from tiny import tiny_encoder
from tiny_corpus import Bench, small_berts
from tiny_own import STATED
from trained import equal, losses, tensors

bench_of = pytest.fixture(scope="module")(small_berts)
TYPES = ("classification", "regression", "pair_classification", "separate", "spans")


def logits(seed: int, classes: int = 3) -> torch.Tensor:
    return torch.randn(7, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_soft_targets_are_what_torch_computes(temperature):
    student, teacher = logits(1), logits(2)
    loss = torch.nn.KLDivLoss(reduction="batchmean")
    expected = loss((student / temperature).log_softmax(-1), (teacher / temperature).softmax(-1)) * temperature**2
    assert soft_targets(student, teacher, temperature).item() == pytest.approx(expected.item(), rel=1e-5)
    assert soft_targets(teacher, teacher, temperature).item() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_gradient_of_soft_targets_has_a_closed_form(temperature):
    """It is t times the difference of the probabilities, by the number of examples (Hinton et al. 2015, section 2)."""
    student, teacher = logits(1).float().requires_grad_(), logits(2).float()
    soft_targets(student, teacher, temperature).backward()
    share = (student / temperature).softmax(-1) - (teacher / temperature).softmax(-1)
    assert torch.allclose(student.grad, temperature * share / len(student), atol=1e-6)


def test_of_a_head_of_label_sets_each_label_is_compared_by_itself():
    """As it would be by the cross-entropies of all labels: shares of yes and no, and not of one label among others."""
    student, teacher = torch.tensor([[0.3, -1.0, 2.0]]), torch.tensor([[1.0, 0.5, -0.2]])
    head = SimpleNamespace(words=False, scores=False, label_sets=True)
    taught = SimpleNamespace(logits_of=lambda rows, batch: teacher)
    distil = DistilConfig.model_validate({"logits": {"temperature": 2}})
    objective = Distilled(None, distil, taught, {}, width=4, seed=1)
    found = objective._of_logits(objective.distil.logits, head, student, [0], None)
    ours, theirs = (logits / 2 for logits in (student, teacher))
    shares = theirs.sigmoid()
    entropies = [functional.binary_cross_entropy_with_logits(one, shares) for one in (ours, theirs)]
    crossed = entropies[0] - entropies[1]
    assert found == pytest.approx(4 * crossed.item(), rel=1e-5)


def test_relations_of_another_width_are_minilms_formula():
    """1 / (A |x|) times the sum over heads and tokens of KL(teacher || student), Wang W. et al. 2020, equation 2."""
    draw, lengths, heads = torch.Generator().manual_seed(5), [4, 2], 3
    student, teacher = (torch.randn(2, 4, heads * size, generator=draw) for size in (2, 5))
    mask = torch.arange(4) < torch.tensor(lengths)[:, None]
    total = 0.0
    for text, length in enumerate(lengths):
        for head in range(heads):
            rows = [x[text, :length, head * d : (head + 1) * d] for x, d in ((student, 2), (teacher, 5))]
            ours, theirs = ((x @ x.T / x.shape[1] ** 0.5).softmax(-1) for x in rows)
            total += (theirs * (theirs / ours).log()).sum().item()
    values = (student, student), (teacher, teacher)
    assert relation_distance(*values, mask, heads, "shares").item() == pytest.approx(
        total / (heads * sum(lengths)), rel=1e-4
    )


def test_relations_are_the_attention_that_transformers_gives(tmp_path):
    """With the encoder's heads, the shares of qk are those of `output_attentions`, and padding changes nothing."""
    from transformers import AutoModel

    ids = torch.randint(5, 40, (2, 5), generator=torch.Generator().manual_seed(3))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    taken, maps = [], []
    for name in ("one", "two"):
        folder = tiny_encoder("bert", tmp_path / name, layers=2)
        model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        encoder = Encoder.load(folder)
        if name == "two":
            for one in (model, encoder.model):
                for parameter in one.parameters():
                    parameter.data.mul_(1.1)
        with torch.no_grad(), encoder.recording([2]) as recorded:
            encoder.states(Batch(ids, mask, None, None, torch.arange(2)), [2])
        taken.append([x.transpose(1, 2).flatten(2) for x in recorded[2]])
        with torch.no_grad():
            given = model(input_ids=ids, attention_mask=mask.long(), output_attentions=True)
        maps.append(given.attentions[1])
    ours = relation_distance(taken[0][:2], taken[1][:2], mask, 4, "shares")
    each = torch.special.xlogy(maps[1], maps[1]) - torch.special.xlogy(maps[1], maps[0])
    expected = each.sum(-1).transpose(1, 2)[mask].mean()
    assert ours.item() == pytest.approx(expected.item(), rel=1e-4) and ours.item() > 0
    assert relation_distance(taken[1][:2], taken[1][:2], mask, 4, "shares").item() == pytest.approx(0, abs=1e-6)
    for x in taken[0]:
        x[~mask] = 9.0
    again = relation_distance(taken[0][:2], taken[1][:2], mask, 4, "shares")
    assert again.item() == pytest.approx(ours.item(), rel=1e-6)
    scores = [q.unflatten(-1, (2, 16)).transpose(1, 2) for q in (taken[0][2], taken[1][2])]
    products = [x @ x.transpose(-1, -2) / 4 for x in scores]
    both = (mask[:, :, None] & mask[:, None, :])[:, None].expand_as(products[0])
    expected = (products[0] - products[1])[both].square().mean()
    values = [(one[2], one[2]) for one in taken]
    assert relation_distance(*values, mask, 2, "scores").item() == pytest.approx(expected.item(), rel=1e-5)


class Taught3:
    """A bench with a finished run that has trained its last two layers, and what it gives on train."""

    def __init__(self, bench, folder):
        self.bench, self.folder = bench, folder
        self.spec = bench.spec({"train": ["head", {"top": 2}], "epochs": 3}, keep=True)
        self.run = bench.step("train", self.spec, folder / "teacher") / "metrics.json"
        self.card = self.teach("taught", 1, 2, 3, "attention2")

    def teach(self, name: str, *boundaries, **changes):
        spec = {key: self.spec[key] for key in ("version", "task", "subset", "compute", "data", "encoder", "features")}
        spec |= {"run": read_json(self.run)["digest"], "dtype": "fp32"} | changes
        more = ("--run", self.run, "--boundaries", *boundaries)
        return self.bench.step("teach", spec, self.folder / name, *more) / "card.json"

    def student(self, distil: dict | None, pairs=(), train=("all",), unfreeze=None, **changes) -> dict:
        phase = {"train": list(train)} | ({"distil": distil} if distil else {})
        phase |= {"unfreeze": unfreeze} if unfreeze else {}
        spec = self.bench.spec(phase, **changes)
        if pairs:
            spec["phases"][0]["pairs"] = [list(pair) for pair in pairs]
        return spec | ({"teacher": {"taught": read_json(self.card)["digest"]}} if distil else {})

    def objective(self, pairs=(), card=None, **distil) -> tuple[Distilled, object]:
        """Return an objective and the teacher's own model."""
        inputs = self.bench.inputs()
        teacher = Teacher(inputs, self.run, read_json(self.run)["digest"])
        taught = TeacherOutputs(card or self.card, [*sorted({n for _, n in pairs}), "attention2"])
        gold = inputs.corpus.targets(teacher.context.task, "train")
        entry = DistilConfig.model_validate(distil)
        phase = {"pairs": [list(pair) for pair in pairs], "attended": [[2, 2]]}
        return Distilled(gold, entry, taught, phase, 32, 1), teacher

    def loss(self, pairs=(), card=None, **distil) -> float:
        """Return the loss of the teacher's own model on rows 3 to 8."""
        objective, teacher = self.objective(pairs, card, **distil)
        rows = np.arange(3, 9)
        batch, stored = BatchLoader(self.bench.store, [], torch.device("cpu"))("train", rows)
        with torch.no_grad():
            return objective.loss(teacher.model, rows, batch, stored).item()


@pytest.fixture(scope="module")
def taught_of(bench_of, tmp_path_factory):
    made = {}

    def of(kind: str) -> Taught3:
        if kind not in made:
            bench = bench_of("pair_classification", True) if kind == "separate" else bench_of(kind)
            made[kind] = Taught3(bench, tmp_path_factory.mktemp(f"taught_{kind}"))
        return made[kind]

    return of


SAME = [(1, 1), (2, 2), (3, 3)]


def by_hand(taught: Taught3, teacher: Teacher, student: TaskModel, rows: np.ndarray) -> dict[str, float]:
    """Return each term of a student's loss from its teacher's own pass, now, with nothing but torch."""
    batch, stored = BatchLoader(taught.bench.store, [], torch.device("cpu"))("train", rows)
    with torch.no_grad():
        (ours, own, heads), (theirs, other, taken) = (
            model.with_states(batch, stored, [1, 2, 3], [2]) for model in (student, teacher.model)
        )
    if student.head.words:
        ours, theirs = ours[batch.first_pieces >= 0], theirs[batch.first_pieces >= 0]
    terms = {"mse": functional.mse_loss(ours, theirs)}
    if not student.head.scores:
        parts = (ours / 2).log_softmax(-1), (theirs / 2).softmax(-1)
        terms["kl"] = 4 * functional.kl_div(*parts, reduction="batchmean")
    first = [[functional.normalize(states[n][:, 0]) for n in (1, 2)] for states in (own, other)]
    terms["pkd"] = functional.mse_loss(torch.stack(first[0]), torch.stack(first[1]))
    last = (states[3][batch.mask] for states in (own, other))
    terms["cosine"] = functional.cosine_embedding_loss(*last, torch.ones(int(batch.mask.sum())))
    kinds = []
    for a, b in ((0, 1), (2, 2)):
        products = [x[a] @ x[b].transpose(-1, -2) / x[a].shape[-1] ** 0.5 for x in (heads[2], taken[2])]
        shares = [x.masked_fill(~batch.mask[:, None, None], -1e30).softmax(-1) for x in products]
        each = (torch.special.xlogy(shares[1], shares[1]) - torch.special.xlogy(shares[1], shares[0])).sum(-1)
        kinds.append(each.transpose(1, 2)[batch.mask].mean())
    return {name: term.item() for name, term in terms.items()} | {"minilm": torch.stack(kinds).mean().item()}


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_stored_of_a_teacher_gives_the_loss_of_the_teacher_itself(taught_of, kind):
    """Each term of another model's loss, on rows in another batch than the teacher read them in."""
    taught, rows = taught_of(kind), np.array([7, 2, 11, 5])
    hidden = {"hidden": {"of": "tokens", "loss": "cosine"}}
    entries = {
        "kl": ((), {"logits": {"temperature": 2}}),
        "mse": ((), {"logits": {"loss": "mse"}}),
        "pkd": ([(1, 1), (2, 2)], {"hidden": {"normalise": True}}),
        "cosine": ([(3, 3)], hidden),
        "minilm": ((), {"attention": {"of": ["qk", "vv"]}}),
    }
    _, teacher = taught.objective(logits={})
    head = taught.bench.run(taught.student(None, seed=2)).head
    student = TaskModel(Encoder.load(taught.bench.encoder), head, "fp32").eval()
    expected = by_hand(taught, teacher, student, rows)
    batch, stored = BatchLoader(taught.bench.store, [], torch.device("cpu"))("train", rows)
    for name in expected:
        pairs, entry = entries[name]
        objective, _ = taught.objective(pairs, hard=0, **entry)
        with torch.no_grad():
            loss = objective.loss(student, rows, batch, stored).item()
        assert loss == pytest.approx(expected[name], rel=1e-4, abs=1e-7) and loss > 1e-6, name
    weighted = {"logits": {"temperature": 2, "weight": 0.3}, "attention": {"of": ["qk", "vv"], "weight": 3}}
    weighted["hidden"] = hidden["hidden"] | {"weight": 7}
    objective, _ = taught.objective([(3, 3)], hard=0.5, **weighted)
    with torch.no_grad():
        own = head.loss(student(batch, stored), objective.targets(head, rows, batch)).item()
        loss = objective.loss(student, rows, batch, stored).item()
    total = 0.5 * own + 0.3 * expected.get("kl", expected["mse"]) + 7 * expected["cosine"] + 3 * expected["minilm"]
    assert loss == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("kind", ["classification", "regression", "spans"])
def test_annealing_goes_from_the_teacher_alone_to_labels_alone(taught_of, kind):
    """BAM (Clark et al. 2019): with mixed targets the gradient is that of the two losses, mixed."""
    taught, rows = taught_of(kind), np.array([7, 2, 11, 5])
    head = taught.bench.run(taught.student(None, seed=2)).head
    student = TaskModel(Encoder.load(taught.bench.encoder), head, "fp32").eval()
    batch, stored = BatchLoader(taught.bench.store, [], torch.device("cpu"))("train", rows)

    def gradient(share: float, **distil) -> tuple[float, torch.Tensor]:
        objective, _ = taught.objective(**distil)
        objective.at_step(round(100 * share), 100)
        head.zero_grad()
        loss = objective.loss(student, rows, batch, stored)
        loss.backward()
        return loss.item(), head.output.weight.grad.clone()

    labels, soft = gradient(0, hard=1), gradient(0, hard=0, logits={})
    for share in (0.0, 0.25, 1.0):
        loss, found = gradient(share, anneal=True, logits={})
        assert loss == pytest.approx(share * labels[0] + (1 - share) * soft[0], rel=1e-6)
        assert torch.allclose(found, share * labels[1] + (1 - share) * soft[1], atol=1e-7)
    if kind == "classification":
        objective, _ = taught.objective(logits={})
        logits = student(batch, stored)
        gold = functional.one_hot(objective.targets(head, rows, batch), logits.shape[-1]).float()
        target = 0.25 * gold + 0.75 * objective.taught.logits_of(rows, batch).softmax(-1)
        head.zero_grad()
        functional.cross_entropy(logits, target).backward()
        assert torch.allclose(head.output.weight.grad, gradient(0.25, anneal=True, logits={})[1], atol=1e-6)


def test_only_training_rows_are_read_by_a_teacher(taught_of):
    folder = taught_of("classification").card.parent
    splits = read_json(folder / "tokens.json")["splits"]
    assert splits["train"]["kept"] == 24
    assert all(facts["tokens"] == 0 for split, facts in splits.items() if split != "train")


def test_with_weight_0_nothing_of_the_teacher_is_left(taught_of):
    taught = taught_of("classification")
    _, plain = taught.bench.train(taught.student(None))
    spec = taught.student({"logits": {"weight": 0}, "hidden": {"weight": 0}}, SAME)
    run = TrainingRun(spec, taught.bench.inputs(), taught=TeacherOutputs(taught.card, [1, 2, 3]))
    left = train([run], Stopwatch())[0]
    assert left.history == plain.history
    assert left.outcome == plain.outcome


@pytest.mark.parametrize("kind", TYPES)
def test_a_student_is_trained_from_the_files_of_its_teacher(taught_of, kind, tmp_path):
    taught = taught_of(kind)
    hidden = {"normalise": True, "weight": 10, "project": True}
    spec = taught.student({"logits": {"temperature": 2}, "hidden": hidden}, [(1, 1)], student={"layers": [1, 3]})
    spec["phases"][0]["components"].remove("layer.2")
    need = ("--need", "teacher", taught.card)
    out = taught.bench.step("train", spec, tmp_path / "student", *need)
    record = read_json(out / "metrics.json")
    assert record["flags"] == [] or "diverged" not in record["flags"]
    assert not any("projection" in name for name in record)
    cost = read_json(out / "cost.json")
    assert cost["inference"]["layers"] == 2
    again = taught.bench.step("train", spec, tmp_path / "again", *need)
    assert read_json(again / "metrics.json")["scores"] == record["scores"]


def test_a_smaller_encoder_learns_the_logits_of_another(taught_of, tmp_path):
    """Its loss is that of the teacher's own pass over the same rows, which it reads as other tokens."""
    taught = taught_of("classification")
    small = Bench(tmp_path / "small", "distilbert", taught.bench.corpus, "classification", layers=2)
    spec = small.spec({"train": ["all"], "distil": {"hard": 0, "logits": {}}})
    spec |= {"teacher": {"taught": read_json(taught.card)["digest"]}}
    out = small.step("train", spec, tmp_path / "student", "--need", "teacher", taught.card)
    assert "diverged" not in read_json(out / "metrics.json")["flags"]
    run, rows = TrainingRun(spec, small.inputs(), taught=TeacherOutputs(taught.card, [])), np.array([7, 2, 11, 5])
    model = TaskModel(Encoder.load(small.encoder), run.head, "fp32").eval()
    _, teacher = taught.objective(logits={})
    feeds = (BatchLoader(bench.store, [], torch.device("cpu"))("train", rows) for bench in (small, taught.bench))
    (batch, stored), theirs = feeds
    with torch.no_grad():
        parts = model(batch, stored).log_softmax(-1), teacher.model(*theirs).softmax(-1)
        loss = run.objective_of(run.phases[0]).loss(model, rows, batch, stored)
    assert loss.item() == pytest.approx(functional.kl_div(*parts, reduction="batchmean").item(), rel=1e-4)


def narrow(folder) -> dict:
    """Write a BERT of half the bench's width with the same tokenizer, and return its catalogue entry."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(tiny_encoder("bert", folder, layers=2))
    config.hidden_size = config.intermediate_size = config.hidden_size // 2
    AutoModel.from_config(config).save_pretrained(folder)
    return STATED | {"folder": str(folder), "layers": 2, "width": config.hidden_size}


def test_states_and_attention_of_a_wider_encoder_teach_where_tokens_are_the_same(taught_of, tmp_path):
    """Each term is that of the teacher's own pass over the same rows; other tokens are refused."""
    taught, rows = taught_of("classification"), np.array([7, 2, 11, 5])
    small = Bench(tmp_path / "small", narrow, taught.bench.corpus, "classification")
    distil = {"hard": 0, "hidden": {"of": "tokens", "project": True}, "attention": {"heads": 2, "of": ["qk", "vv"]}}
    spec = small.spec({"train": ["all"], "distil": distil})
    spec["phases"][0] |= {"pairs": [[1, 2]], "attended": [[1, 2]]}
    spec |= {"teacher": {"taught": read_json(taught.card)["digest"]}}
    out = small.step("train", spec, tmp_path / "student", "--need", "teacher", taught.card)
    assert "diverged" not in read_json(out / "metrics.json")["flags"]
    run = TrainingRun(spec, small.inputs(), taught=TeacherOutputs(taught.card, [2, "attention2"]))
    model = TaskModel(Encoder.load(small.encoder), run.head, "fp32").eval()
    objective, (_, teacher) = run.objective_of(run.phases[0]), taught.objective(logits={})
    feeds = (BatchLoader(bench.store, [], torch.device("cpu"))("train", rows) for bench in (small, taught.bench))
    (batch, stored), theirs = feeds
    with torch.no_grad():
        loss = objective.loss(model, rows, batch, stored)
        _, own, taken = model.with_states(batch, stored, [1], [1])
        _, other, wide = teacher.model.with_states(*theirs, [2], [2])
        (matrix,) = objective.projections.parameters()
        states = functional.mse_loss(own[1][batch.mask] @ matrix.T, other[2][batch.mask])
        every = [tuple(x.transpose(1, 2).flatten(2) for x in one) for one in (taken[1], wide[2])]
        pairs = [[tuple(one[i] for i in which) for one in every] for which in ((0, 1), (2, 2))]
        attention = torch.stack([relation_distance(*both, batch.mask, 2, "shares") for both in pairs]).mean()
    assert matrix.shape == (32, 16)
    assert loss.item() == pytest.approx((states + attention).item(), rel=1e-4) and attention > 1e-6
    store = FeatureStore(small.features)
    flat = store._columns("train")["input_ids"]
    flat.flat = flat.flat + 1
    store.card["tokenizer"] = "another"
    with pytest.raises(UserError, match="the teacher's tokens of some texts are not the student's"):
        TeacherOutputs(taught.card, [2]).check_rows(np.arange(24), store)
    TeacherOutputs(taught.card, []).check_rows(np.arange(24), store)


def test_one_projection_serves_all_layers_where_it_is_shared(taught_of):
    """As TinyBERT's `fit_dense`: the term is the mean of squared distances after the same matrix."""
    taught, rows = taught_of("classification"), np.arange(3, 9)
    entry = {"of": "tokens", "project": "shared"}
    objective, teacher = taught.objective([(1, 1), (2, 2)], hard=0, hidden=entry)
    each, _ = taught.objective([(1, 1), (2, 2)], hard=0, hidden=entry | {"project": True})
    ((_, matrix),) = objective.projections.named_parameters()
    assert len(list(each.projections.parameters())) == 2
    batch, stored = BatchLoader(taught.bench.store, [], torch.device("cpu"))("train", rows)
    with torch.no_grad():
        loss = objective.loss(teacher.model, rows, batch, stored)
        _, states, _ = teacher.model.with_states(batch, stored, [1, 2])
        real = [states[n][batch.mask] for n in (1, 2)]
        expected = torch.stack([functional.mse_loss(one @ matrix.T, one) for one in real]).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4) and loss.item() > 0


def staged(taught: Taught3, distil: dict, from_text: bool = False):
    """Train with gradual unfreezing, which reads stored states in early stages; return the run and what it leaves."""
    spec = taught.student(distil, SAME, unfreeze={"layers": 1})
    for stage in spec["phases"][0]["stages"] if from_text else ():
        stage["boundary"] = None
    return taught.bench.train(spec, taught=TeacherOutputs(taught.card, [1, 2, 3]))


def test_of_each_stage_what_trains_is_compared(taught_of, monkeypatch):
    """From the store as from text: below the boundary that a stage resumes from, the encoder has no states."""
    taught, compared, loss = taught_of("classification"), [], Distilled.loss

    def noted(self, *inputs):
        compared.append([own for own, _ in self.pairs])
        return loss(self, *inputs)

    monkeypatch.setattr(Distilled, "loss", noted)
    distil = {"hidden": {"weight": 100, "normalise": True, "last": True}}
    (_, stored), (_, computed) = staged(taught, distil), staged(taught, distil, from_text=True)
    assert losses(stored) == pytest.approx(losses(computed), rel=1e-4)
    assert list(dict.fromkeys(map(tuple, compared))) == [(), (3,), (2, 3), (1, 2, 3)]


def test_projections_go_on_from_stage_to_stage(taught_of, monkeypatch):
    """They train on where the optimizer's memory of them does; TinyBERT's is a part of its student."""
    taught, begun, ended = taught_of("classification"), [], []
    join, end = Distilled.join, TrainingRun.end_stage

    def kept(objective: Distilled) -> list:
        return [value.clone() for value in objective.projections.state_dict().values()]

    def joined(self, model, run):
        begun.append(kept(self))
        join(self, model, run)

    def stage_ended(self, stage):
        ended.append(kept(self.evaluator.objective))
        end(self, stage)

    monkeypatch.setattr(Distilled, "join", joined)
    monkeypatch.setattr(TrainingRun, "end_stage", stage_ended)
    staged(taught, PROJECTED)
    assert len(begun) == len(ended) == 5
    for before, after in pairwise(zip(begun, ended, strict=True)):
        assert all(map(torch.equal, before[1], after[0]))
    assert not any(map(torch.equal, begun[0], ended[-1]))


def test_another_boundary_makes_no_logits_again(taught_of):
    """What students name is the digest of the card, which says nothing of boundaries."""
    taught = taught_of("classification")
    fewer = taught.teach("fewer", 2)
    assert read_json(fewer) == read_json(taught.card)
    assert (fewer.parent / LOGITS).read_bytes() == (taught.card.parent / LOGITS).read_bytes()
    assert (fewer.parent / "b2.safetensors").read_bytes() == (taught.card.parent / "b2.safetensors").read_bytes()


def test_a_teacher_of_some_rows_teaches_no_others(taught_of):
    taught = taught_of("classification")
    few = TeacherOutputs(taught.teach("few", subset={"rows": 5}), [])
    with pytest.raises(UserError, match="has not read all rows that its student trains on"):
        few.check_rows(np.arange(24), taught.bench.store)


def test_a_teacher_that_diverged_or_kept_nothing_is_refused(taught_of, tmp_path):
    taught = taught_of("classification")
    record = read_json(taught.run)
    for flags, sentence in ((["diverged"], "there is nothing to teach"), ([], "encoder.safetensors is missing")):
        folder = tmp_path / f"run{len(flags)}"
        folder.mkdir()
        write_json(folder / "metrics.json", record | {"flags": flags})
        with pytest.raises(UserError, match=sentence):
            Teacher(taught.bench.inputs(), folder / "metrics.json", record["digest"])


def replaced(taught: Taught3, start: float, **changes) -> tuple[TrainingRun, object]:
    """Train layers 2 and 3 of a student, which take over from the teacher's; return the run and what it leaves."""
    phase = {"train": [{"top": 2}], "replace": {"start": start, "full": 1.0}, "epochs": 2, "weight_decay": 0} | changes
    if phase["replace"] is None:
        del phase["replace"]
    spec = taught.bench.spec(phase, student={"layers": [1, 3]}, after={"run": "r", "epoch": "last"})
    spec["phases"][0] |= {"components": ["layer.3"], "boundary": 1}
    torch.set_num_threads(1)
    run = TrainingRun(spec, taught.bench.inputs(), train_step.start(spec, {"start": taught.run}))
    return run, train([run], Stopwatch())[0]


def test_modules_that_are_all_the_students_are_no_replacement(taught_of):
    taught = taught_of("classification")
    _, always = replaced(taught, 1.0)
    _, plain = replaced(taught, 1.0, replace=None)
    assert equal(tensors(always), tensors(plain)) and always.history == plain.history
    assert always.outcome == plain.outcome
    _, seldom = replaced(taught, 0.1)
    assert seldom.history != plain.history


def test_a_predecessor_in_all_modules_is_the_teacher(taught_of):
    """Its states come out, no gradient reaches the student, and in eval mode the student alone computes."""
    taught = taught_of("classification")
    run, _ = replaced(taught, 1.0, epochs=1)
    folder, cpu = taught.bench.encoder, torch.device("cpu")
    start = train_step.start(run.spec, {"start": taught.run})
    whole, student = Encoder.load(folder), resumed(folder, 1, 3, {}, cpu, kept=[1, 3])
    whole.put(start.encoder)
    student.thaw({"layer.3"})
    replacement = Replacement(student, whole, [1, 3], 1, cpu)
    assert replacement.now == {3: False}, "below the boundary nothing is replaced"
    batch, stored = BatchLoader(taught.bench.store, [1], cpu)("train", np.arange(4))
    expected = whole.states(batch, [3])[3]
    student.train()
    replacement.now[3] = True
    state = student.compute_boundaries(batch, [3], stored[1])[3]
    assert torch.allclose(state[batch.mask], expected[batch.mask], atol=1e-5) and not state.requires_grad
    student.eval()
    alone = resumed(folder, 1, 3, {}, cpu, kept=[1, 3]).eval().compute_boundaries(batch, [3], stored[1])[3]
    assert torch.equal(student.compute_boundaries(batch, [3], stored[1])[3], alone)
    assert not torch.allclose(alone[batch.mask], expected[batch.mask], atol=1e-3)


def test_modules_are_drawn_at_their_rate(taught_of):
    """Of 2,000 updates the shares of two modules are within four standard errors, and both vary by themselves."""
    taught, drawn = taught_of("classification"), []
    run, _ = replaced(taught, 1.0, epochs=1)
    objective = Replacing(run.gold, ReplaceConfig(start=0.3, full=1.0, way="constant"), 1, 1)
    for step in range(2000):
        objective.at_step(step, 2001)
        drawn.append(objective.draw([2, 4]))
    shares = [np.mean([one[layer] for one in drawn]) for layer in (2, 4)]
    assert shares == pytest.approx([0.7, 0.7], abs=4 * (0.21 / 2000) ** 0.5)
    assert np.mean([one[2] == one[4] for one in drawn]) == pytest.approx(0.58, abs=4 * (0.58 * 0.42 / 2000) ** 0.5)


def test_replacing_rates_follow_their_schedules():
    def rates(way, *shares):
        return [replacing_rate(ReplaceConfig(start=0.2, full=0.5, way=way), share) for share in shares]

    assert rates("rising", 0, 0.25, 0.5, 1) == pytest.approx([0.2, 0.6, 1, 1])
    assert rates("constant", 0, 0.49, 0.5) == pytest.approx([0.2, 0.2, 1])
    assert rates("falling", 0, 0.25, 0.5) == pytest.approx([0.8, 0.4, 1])


PROJECTED = {"logits": {"temperature": 2}, "hidden": {"project": True, "weight": 5}}


@pytest.mark.parametrize("way", ["projections", "stages", "replacement"])
def test_a_student_that_goes_on_ends_as_one_that_was_never_stopped(way, taught_of, tmp_path, monkeypatch):
    taught = taught_of("classification")
    if way != "replacement":
        more = {"unfreeze": {"layers": 2}} if way == "stages" else {}
        spec, start = taught.student(PROJECTED, [(1, 1), (2, 2)], **more), None
    else:
        spec = replaced(taught, 0.3)[0].spec
        start = train_step.start(spec, {"start": taught.run})

    def trained(folder):
        watch = Stopwatch()
        run = TrainingRun(spec, taught.bench.inputs(), start, taught=TeacherOutputs(taught.card, [1, 2]))
        return train([run], watch, Progress(folder, spec, watch))[0]

    monkeypatch.setattr(progress, "SPACING", 0.0)
    whole = trained(tmp_path / "whole")
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        stop_after(patched, 3 if way == "stages" else 1)
        trained(tmp_path / "stopped")
    again = trained(tmp_path / "stopped")
    assert equal(tensors(again), tensors(whole)) and again.history == whole.history and again.cost == whole.cost


def test_layers_take_turns_from_below(taught_of):
    """Of three layers each has a third of the updates, alone or with those before it (Aguilar et al. 2020)."""
    taught = taught_of("classification")
    compared = {}
    for order in ("together", "progressive", "stacked"):
        objective, _ = taught.objective(SAME, hard=0, hidden={"loss": "cosine"}, attention={}, order=order)
        compared[order] = []
        for step in range(6):
            objective.at_step(step, 6)
            pairs, attended = objective.now()
            compared[order].append(([n for n, _ in pairs], [n for n, _ in attended]))
    # of attention layer 2 alone is matched here; the output, boundary 3, belongs to it as the highest layer
    assert compared["together"] == [([1, 2, 3], [2])] * 6
    assert compared["progressive"] == [([1], [])] * 3 + [([2, 3], [2])] * 3
    assert compared["stacked"] == [([1], [])] * 3 + [([1, 2, 3], [2])] * 3
    objective, _ = taught.objective(SAME, hard=0, hidden={}, order="progressive")
    turns = []
    for step in range(6):
        objective.at_step(step, 6)
        turns.append(objective.now()[0])
    assert turns == [[[1, 1]]] * 2 + [[[2, 2]]] * 2 + [[[3, 3]]] * 2


def test_the_loss_of_a_layer_whose_turn_it_is_leaves_those_above_alone(taught_of):
    """In its turn the lowest layer is matched, and no gradient reaches layers 2 and 3; stacked, later, it does."""
    taught, rows = taught_of("classification"), np.arange(3, 9)
    batch, stored = BatchLoader(taught.bench.store, [], torch.device("cpu"))("train", rows)
    head = taught.bench.run(taught.student(None, seed=2)).head
    moved = {}
    for order, step in (("progressive", 0), ("progressive", 5), ("stacked", 5)):
        objective, _ = taught.objective(SAME, hard=0, hidden={"of": "tokens"}, order=order)
        student = TaskModel(Encoder.load(taught.bench.encoder), head, "fp32").eval()
        student.encoder.model.requires_grad_(True)
        objective.at_step(step, 6)
        loss = objective.loss(student, rows, batch, stored)
        loss.backward()
        named = student.encoder.model.named_parameters()
        moved[order, step] = {name.split(".")[2] for name, p in named if "layer." in name and p.grad is not None}, loss
    assert moved["progressive", 0][0] == {"0"} and moved["progressive", 5][0] == {"0", "1", "2"}
    assert moved["stacked", 5][0] == {"0", "1", "2"} and moved["stacked", 5][1] != moved["progressive", 5][1]
