"""Fine-tuning, all of the encoder or its top layers, against a loop that one writes by hand in torch and transformers.

Both make the same updates on the same batches of an encoder without dropout. They share no code: the loop here has the
heads' formulas, the schedules, Adam, the decay of matrices alone and the clipping of gradients once more.
"""

import json
import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.errors import UserError
from thaw.training.objectives import Supervised
from thaw.training.training_run import train
from tiny import tiny_encoder
from tiny_corpus import Bench, tiny_corpus
from tiny_own import STATED

ROWS, SIZE, EPOCHS = 24, 5, 3
UPDATES = 5 * EPOCHS
TARGETS = {"classification": "label", "regression": "score", "spans": "tags"}
MEAN, MLP = {"pooling": "mean"}, {"kind": "mlp", "options": {"size": 8}}
BERT = {"optimizer": "bert_adam", "rate": 2e-4, "head_rate": 1e-3}  # its first updates are three times as large
CASES = {  # type of task, head, what the phase says
    "all layers": ("classification", {}, {}),
    "no clipping": ("classification", MEAN, {"clip": None}),
    "clipped to little": ("classification", MEAN, {"clip": 0.05} | BERT),
    "long warm-up": ("classification", MEAN, {"warmup": 0.4}),
    "cosine": ("classification", {}, {"schedule": "cosine", "warmup": 0.2}),
    "constant rate": ("classification", {}, {"schedule": "constant"}),
    "much decay": ("classification", MEAN, {"weight_decay": 0.5}),
    "other betas": ("classification", {}, {"betas": [0.5, 0.9]}),
    "first BERT's Adam": ("classification", {}, {"warmup": 0.2, "weight_decay": 0.1} | BERT),
    "a rate per layer": ("classification", {}, {"layer_decay": 0.5}),
    "pulled to the start": ("classification", {}, {"l2_to_start": 0.5}),
    "top layer": ("classification", MEAN, {"train": ["head", {"top": 1}]}),
    "top two layers, words": ("spans", {}, {"train": ["head", {"top": 2}]}),
    "hidden layer": ("classification", MLP, {}),
    "scores": ("regression", MEAN, {}),
    "words": ("spans", {}, {}),
    "in parts": ("classification", MEAN, {"batch_gib": 6e-4}),
    "top two layers, words, in parts": ("spans", {}, {"train": ["head", {"top": 2}], "batch_gib": 6e-4}),
}
USUAL = {"rate": 1e-3, "head_rate": 5e-3, "schedule": "linear", "warmup": 0.1, "weight_decay": 0.01, "clip": 1.0}
USUAL |= {"train": ["all"], "epochs": EPOCHS, "batch_size": SIZE, "optimizer": "adamw", "betas": [0.9, 0.999]}


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """A small BERT without dropout, by type of task."""
    folder = tmp_path_factory.mktemp("plain")
    torch.set_num_threads(1)
    return {kind: Bench(folder / kind, undropped, tiny_corpus(folder / kind / "data", kind), kind) for kind in TARGETS}


def noted(monkeypatch, objective) -> list[tuple]:
    """Return a list into which all rows and losses of an objective will be written."""
    seen, loss = [], objective.loss

    def note(self, model, rows, batch, stored):
        value = loss(self, model, rows, batch, stored)
        seen.append((rows, value.item()))
        return value

    monkeypatch.setattr(objective, "loss", note)
    return seen


@pytest.mark.parametrize("case", CASES)
def test_updates_are_those_of_a_plain_loop(case, benches, monkeypatch):
    kind, head, said = CASES[case]
    bench, phase = benches[kind], USUAL | said
    run = bench.run(bench.spec(phase, head={"dropout": 0.0} | head))
    plain = Plain(bench, kind, head, run.head.state_dict(), phase)
    seen = noted(monkeypatch, Supervised)
    (left,) = train([run], Stopwatch())
    epochs = [seen[start : start + UPDATES // EPOCHS] for start in range(0, UPDATES, UPDATES // EPOCHS)]
    assert [sorted(row for rows, _ in epoch for row in rows) for epoch in epochs] == [list(range(ROWS))] * EPOCHS
    assert [value for _, value in seen] == pytest.approx([plain.update(rows) for rows, _ in seen], rel=1e-5)
    for name, value in left.head.state_dict().items():  # what the last update has changed
        assert torch.allclose(value, plain.head[name], atol=1e-5), name


def first_update(bench: Bench, gib: float | None) -> tuple[dict[str, torch.Tensor], int, int]:
    """Return the gradients of a run's first update, the bytes that it keeps for the way back, and texts of a part."""
    kept, parts, gradients = [], [], {}
    run = bench.run(bench.spec(USUAL | {"clip": None} | ({"batch_gib": gib} if gib else {}), head={"dropout": 0.0}))

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(0 if gradients else tensor.nbytes)
        return tensor

    def loss(self, model, *given):
        if parts and not gradients:
            gradients.update({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
        if not parts:
            model.encoder.register_forward_pre_hook(lambda module, inputs: parts.append(len(inputs[0].mask)))
        return before(self, model, *given)

    with pytest.MonkeyPatch.context() as patched, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        before = Supervised.loss
        patched.setattr(Supervised, "loss", loss)
        train([run], Stopwatch())
    return gradients, sum(kept), parts[0]


def test_a_batch_in_parts_makes_the_same_update_and_keeps_less(benches):
    whole, kept, size = first_update(benches["classification"], None)
    in_parts, less, part = first_update(benches["classification"], 6e-4)
    assert size == SIZE > part and less < kept / 2
    assert max((whole[name] - in_parts[name]).abs().max().item() for name in whole) < 1e-6 and len(whole) > 40


def test_a_limit_that_holds_not_one_text_is_an_error(benches):
    with pytest.raises(
        UserError, match=r"^batch_gib: 1e-05 holds no text of \d+ tokens, which takes 0.0\d+ GiB; write more"
    ):
        first_update(benches["classification"], 1e-5)


def undropped(folder: Path) -> dict:
    """Write a small BERT without dropout and return its catalogue entry."""
    tiny_encoder("bert", folder, 3)
    path = folder / "config.json"
    no = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    path.write_text(json.dumps(json.loads(path.read_text()) | no))
    return {"folder": str(folder), "layers": 3} | STATED


class Plain:
    """Transformers' own model, the head's tensors by name, and updates by hand."""

    def __init__(self, bench: Bench, kind: str, head: dict, tensors: dict[str, torch.Tensor], phase: dict, layers=3):
        """Load the encoder. Args: bench; type of task; entry and tensors of the head; what the phase says; layers."""
        from transformers import AutoModel, AutoTokenizer

        self.kind, self.mean, self.phase, self.step = kind, head.get("pooling") == "mean", phase, 0
        self.tokenizer = AutoTokenizer.from_pretrained(bench.encoder)
        self.encoder = AutoModel.from_pretrained(bench.encoder).train()
        self.encoder.encoder.layer = self.encoder.encoder.layer[:layers]
        self.frame = bench.corpus.frame("train")
        self.labels = {} if kind == "regression" else list(bench.corpus.labels(TARGETS[kind]))
        self.head = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
        self.rates = {value: phase["head_rate"] for value in self.head.values()}
        top_down = [*reversed(self.encoder.encoder.layer), self.encoder.embeddings]
        count = phase["train"][1]["top"] if len(phase["train"]) > 1 else len(top_down)
        self.encoder.requires_grad_(False)
        for depth, part in enumerate(top_down[:count]):
            part.requires_grad_(True)
            self.rates |= dict.fromkeys(part.parameters(), phase["rate"] * phase.get("layer_decay", 1) ** depth)
        mine = {id(value) for value in self.head.values()}
        self.start = {value: value.detach().clone() for value in self.rates if id(value) not in mine}
        self.means = {value: (torch.zeros_like(value), torch.zeros_like(value)) for value in self.rates}

    def update(self, rows) -> float:
        """Make one update on some rows of train; return the loss before it."""
        loss = self.loss(self.frame.iloc[rows])
        for value in self.rates:
            value.grad = None
        loss.backward()
        with torch.no_grad():
            for value, start in self.start.items():
                if value.grad is not None and "l2_to_start" in self.phase:
                    value.grad += self.phase["l2_to_start"] * (value - start)
            moved = [value for value in self.rates if value.grad is not None]
            self.clip([value.grad for value in moved])
            for value in moved:
                self.move(value, self.rates[value] * self.share())
        self.step += 1
        return loss.item()

    def loss(self, rows) -> torch.Tensor:
        """Return the mean loss of some rows, by the formula of the head."""
        words = self.kind == "spans"
        texts = [list(each) for each in rows["words"]] if words else list(rows["text"])
        given = self.tokenizer(
            texts, is_split_into_words=words, padding=True, truncation=True, max_length=64, return_tensors="pt"
        )
        states = self.encoder(**given).last_hidden_state
        if words:
            return self.words_loss(states, [given.word_ids(row) for row in range(len(rows))], rows["tags"])
        mask = given["attention_mask"].unsqueeze(-1)
        found = self.logits((states * mask).sum(1) / mask.sum(1) if self.mean else states[:, 0])
        if self.kind == "regression":
            return ((found.squeeze(-1) - torch.tensor(rows["score"].tolist())) ** 2).mean()
        gold = torch.tensor([self.labels.index(label) for label in rows["label"]])
        return -found.log_softmax(-1)[torch.arange(len(gold)), gold].mean()

    def words_loss(self, states, places, tags) -> torch.Tensor:
        """Return the mean over all words of the batch; a word is read by its first piece."""
        losses = []
        for row, (of, said) in enumerate(zip(places, tags, strict=True)):
            for word, tag in enumerate(said):
                if word in of:  # else it was cut off
                    logits = self.logits(states[row, of.index(word)])
                    losses.append(-logits.log_softmax(-1)[self.labels.index(tag)])
        return torch.stack(losses).mean()

    def logits(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the output of the matrix, by way of the hidden layer where there is one."""
        if "hidden.weight" in self.head:
            vectors = torch.relu(functional.linear(vectors, self.head["hidden.weight"], self.head["hidden.bias"]))
        return functional.linear(vectors, self.head["output.weight"], self.head["output.bias"])

    def share(self) -> float:
        """Return the share of the rate at this update: a rise whose last update is at the peak, and the fall."""
        rise = min(round(self.phase["warmup"] * UPDATES), UPDATES - 1)
        if self.step < rise:
            return (self.step + 1) / rise
        left = (UPDATES - self.step) / (UPDATES - rise)
        fall = {"linear": left, "constant": 1.0, "cosine": (1 - math.cos(math.pi * left)) / 2}
        return fall[self.phase["schedule"]]

    def clip(self, gradients: list[torch.Tensor]) -> None:
        """Shorten the gradient to the length that it may have."""
        if (most := self.phase["clip"]) is None:
            return
        length = sum((one.double() ** 2).sum() for one in gradients).sqrt()
        if length > most:
            for one in gradients:
                one *= most / (length + 1e-6)  # as in torch

    def move(self, value: torch.Tensor, rate: float) -> None:
        """Move a tensor by AdamW (Loshchilov and Hutter 2019), or as the first BERT code did; matrices alone decay."""
        first, second = self.phase["betas"]
        mean, square = self.means[value]
        mean += (1 - first) * (value.grad - mean)
        square += (1 - second) * (value.grad**2 - square)
        bert = self.phase["optimizer"] == "bert_adam"
        unbiased = (1, 1) if bert else (1 - first ** (self.step + 1), 1 - second ** (self.step + 1))
        decay = self.phase["weight_decay"] * value if value.ndim > 1 else 0
        root = (square / unbiased[1]).sqrt() + (1e-6 if bert else 1e-8)
        value -= rate * (mean / unbiased[0] / root + decay)
