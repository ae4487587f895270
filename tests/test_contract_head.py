"""The contract of a head.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, W words, d width, C outputs.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from conftest import HOME
from pretended import OnCuda, pretended
from thaw.adaptation.optimizers import optimizer
from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.declarations.heads import HEAD_KINDS
from thaw.declarations.task_types import TASK_TYPES
from thaw.features.batch import Batch
from thaw.heads.base import NO_TAG
from thaw.heads.registry import build, logit_shape
from thaw.heads.start_end import ANSWERS
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.head import HeadConfig
from thaw.schema.layers import LAST_LAYER
from thaw.schema.phases import PhaseConfig
from thaw.training.model_trainer import ModelTrainer
from thaw.training.objectives import Supervised
from thaw.training.task_model import BatchLoader, TaskModel
from tiny_corpus import ENTRIES, small_berts
from trained import TRAINS, check_training

WIDTH, OUTPUTS, EXAMPLES, WORDS = 6, 3, 4, 3
TRAINED = [("classification", False), ("spans", False), ("pair_classification", True)]  # with a whole small model


def pytest_generate_tests(metafunc):
    """Try each shipped head; or each entry of the user's catalogues that names the given one, else a bare entry."""
    given, folders = metafunc.config.getoption("part"), metafunc.config.getoption("catalogues")
    mine = [folder for folder in folders if Path(folder, "heads.yaml").is_file()]
    catalogue = Catalogue([HOME / "config", HOME / "config/papers", *mine])
    # A head sees one state, whichever layers that is made of: tests/test_layers.py is about those.
    last = {"layers": LAST_LAYER}
    entries = {n: catalogue.get("heads", n, "contract").model_copy(update=last) for n in catalogue.ids("heads")}
    if given:
        entries = {name: head for name, head in entries.items() if head.kind == given} or {
            given: HeadConfig(kind=given)
        }
    else:
        entries = {name: quick(head) for name, head in entries.items()}
        first = {head.model_dump_json(): name for name, head in reversed(entries.items())}
        entries = {name: head for name, head in entries.items() if name in first.values()}
    chosen = cases if given else each_once
    found = [(name, head, *case) for name, head in entries.items() for case in chosen(head)]
    if metafunc.function is test_training:
        taken = [case for case in found if case[2:] in TRAINED] or [case for case in found if case[2] in ENTRIES][:1]
        last = {name: (name, *case) for name, *case in taken}  # of a shipped one this case; linear stands for the rest
        found = [case for case in taken if given or case[0] == "linear" or case == last[case[0]]]
    usual = found if given or metafunc.function is test_training else some_of_each(found)
    params = [
        pytest.param(
            *case[1:],
            id=f"{case[0]}, {case[2]}{', separate' if case[3] else ''}",
            marks=[] if case in usual else pytest.mark.slow,
        )
        for case in found
    ]
    metafunc.parametrize("head, task_type, separate_encoding", params)


def some_of_each(found: list[tuple]) -> list[tuple]:
    """Return all cases of the linear head, and of each other one three: on texts, on words and on pairs where it can.

    Types take turns. What each asks for is in the classes that heads derive from.
    """
    by_name: dict[str, list[tuple]] = {}
    for case in found:
        by_name.setdefault(case[0], []).append(case)
    kept = by_name.pop("linear", [])
    for number, mine in enumerate(by_name.values()):
        turned = mine[number % len(mine) :] + mine[: number % len(mine)]
        first = {("pair" in case[2], case[2] in ("tagging", "spans")): case for case in reversed(turned)}
        kept += [*first.values(), *(case for case in turned if case not in first.values())][:3]
    return kept


def quick(head: HeadConfig) -> HeadConfig:
    """Return a shipped head with small layers and the usual dropout and start: the sizes of papers take minutes."""
    kept = {"kind", "pooling", "separate_pooling"}
    sized = {"options": {"size": 8}} if "size" in HEAD_KINDS[head.kind].options.model_fields else {}
    return HeadConfig.model_validate(head.model_dump(include=kept, exclude_defaults=True) | sized)


def cases(head: HeadConfig) -> list[tuple[str, bool]]:
    """Return the types of task that a head takes, and those on pairs also with their texts read apart."""
    own = plugins.is_plugin(head.kind)
    stated = (
        plugins.parse_plugin(head.kind).stated("task_types", TASK_TYPES) if own else HEAD_KINDS[head.kind].task_types
    )
    together = [] if head.kind == "cosine" else [(task_type, False) for task_type in stated]
    return together + [(task_type, True) for task_type in stated if task_type.startswith("pair_")]


def each_once(head: HeadConfig) -> list[tuple[str, bool]]:
    """Return each type of task that a head takes once, those on pairs read together and apart in turn."""
    apart = [task_type for task_type, separate_encoding in cases(head) if separate_encoding]
    separate = set(apart[::2]) if head.kind != "cosine" else set(apart)
    return [case for case in cases(head) if case[1] == (case[0] in separate)]


def outputs_of(task_type: str) -> int:
    """Return the number of a head's outputs: one score, start and end of an answer, or so many classes."""
    return 1 if "regression" in task_type else 2 if task_type == "span_extraction" else OUTPUTS


def made(head: HeadConfig, task_type: str, separate_encoding: bool, seed: int = 1):
    """Return a new head in eval mode; one of one's own may read texts together only."""
    torch.manual_seed(seed)
    try:
        return build(head, WIDTH, outputs_of(task_type), task_type, separate_encoding).eval()
    except UserError as error:
        if separate_encoding:
            pytest.skip(f"it does not read the texts of pairs apart: {error}")
        raise


def shaken(head, task_type: str, separate_encoding: bool):
    """Return a head whose parameters are all random, so that no zero of its start hides what it computes."""
    found = made(head, task_type, separate_encoding)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.normal_(std=0.3)
    return found


def batch_of(found, lengths: list[int], padding: int = 0, junk: float = 0.0) -> tuple[torch.Tensor, Batch]:
    """Return states and batch of examples of these lengths; what is padding holds `junk`.

    The states of an example are the same in each batch. Where a head reads words each example has three, the last of
    which was cut off; where it reads texts apart the second text of each is one token longer.
    """
    each = [size + text for size in lengths for text in range(2 if found.separate_encoding else 1)]
    longest = max(each) + padding
    mask = torch.arange(longest) < torch.tensor(each)[:, None]
    states = torch.stack([torch.randn(64, WIDTH, generator=torch.Generator().manual_seed(n)) for n in each])
    states = states[:, :longest].masked_fill(~mask.unsqueeze(-1), junk)
    pieces = torch.tensor([[0, size - 1, -1] for size in lengths]) if found.words else None
    windows = places = None
    if found.extracts:  # a window each; its first token is none of the context
        windows, places = torch.ones(len(lengths), dtype=torch.int64), torch.arange(longest)[:, None] + torch.arange(2)
        places = (
            places.expand(len(mask), -1, -1).masked_fill(~mask.unsqueeze(-1), -1).index_fill(1, torch.tensor(0), -1)
        )
    rows = torch.arange(len(lengths))
    return states, Batch(mask.long(), mask, None, pieces, rows, texts_of(found, mask), windows, places)


def logits_of(found, states: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return a head's logits of examples, or of the tokens of all windows."""
    logits = found(states, batch)
    return logits[batch.mask] if found.extracts else logits


def texts_of(found, mask: torch.Tensor) -> torch.Tensor:
    """Return which text each token belongs to: of a pair that is read jointly the second half is the second text's."""
    places, lengths = torch.arange(mask.shape[1]), mask.sum(1, keepdim=True)
    if found.separate_encoding:
        second = (torch.arange(len(mask)) % 2 == 1).unsqueeze(1)
    else:
        second = (places >= (lengths + 1) // 2) if found.pairs else torch.zeros_like(mask)
    return (1 + second.to(torch.int8)) * mask


def gold_of(found, batch: Batch) -> list:
    """Return the targets of a batch's examples, as a corpus gives them."""
    count = len(batch)
    if found.words:
        return [[i % OUTPUTS, (i + 1) % OUTPUTS, 0] for i in range(count)]
    if found.label_sets:
        return (np.arange(count)[:, None] + np.arange(OUTPUTS)) % 2
    if found.extracts:  # of a text of two tokens there is no answer
        return [[(1, "a" * (size - 1))] if size > 2 else [] for size in batch.mask.sum(1).tolist()]
    return np.arange(count) / 2 if found.scores else np.arange(count) % OUTPUTS


def targets_of(found, batch: Batch) -> torch.Tensor:
    """Return targets of a batch, encoded as training gives them."""
    return Supervised(gold_of(found, batch)).targets(found, np.arange(len(batch)), batch)


def fitted(found, steps: int = 15) -> list[float]:
    """Return the losses of a head that is trained on one small batch."""
    torch.set_num_threads(1)
    states, batch = batch_of(found, [2, 5, 3, 4])
    targets, losses = targets_of(found, batch), []
    found.init_from_targets(targets[targets >= 0].numpy())
    optimizer = torch.optim.Adam(found.parameters(), lr=0.02)
    for _ in range(steps):
        loss = found.loss(found(states, batch), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_shapes(head, task_type, separate_encoding):
    """its logits and its predictions have the shape of the type of task"""
    found = made(head, task_type, separate_encoding)
    states, batch = batch_of(found, [2, 5, 3, 4])
    logits = found(states, batch)
    expected = logit_shape(found, EXAMPLES, states.shape[1] if found.extracts else WORDS)
    assert tuple(logits.shape) == expected, f"logits of shape {list(logits.shape)} where {list(expected)} is expected"
    predictions = found.decode(logits, batch)
    expected = (EXAMPLES, WORDS) if found.words else (EXAMPLES, OUTPUTS) if found.label_sets else (EXAMPLES,)
    if found.extracts:  # the best answers: both ends, and how likely there is none
        expected = (EXAMPLES, ANSWERS, 3)
    assert tuple(predictions.shape) == expected, (
        f"predictions of shape {list(predictions.shape)} where {list(expected)} is expected"
    )
    if found.words:
        assert (predictions[:, 2] == NO_TAG).all(), "a word that was cut off has no tag: decode() must give -1"


def test_padding(head, task_type, separate_encoding):
    """an example has the same logits alone and in a padded batch, whatever stands in the padding"""
    found = shaken(head, task_type, separate_encoding)
    lengths = [2, 5, 3, 1]
    with torch.no_grad():
        alone = torch.cat([logits_of(found, *batch_of(found, [size])) for size in lengths])
        for padding, junk in ((0, 0.0), (3, 1e4), (1, -1e4)):
            together = logits_of(found, *batch_of(found, lengths, padding, junk))
            worst = ((together - alone).abs() / alone.abs().clamp(min=1)).max().item()
            assert worst < 1e-4, f"logits differ by {worst:.3g} in a batch padded by {padding} with {junk:g}"


def test_operations(head, task_type, separate_encoding):
    """its operations are counted, more for more examples"""
    found = made(head, task_type, separate_encoding)
    one, two = (found.flops(batch_of(found, lengths)[1]) for lengths in ([4], [4, 4]))
    assert 0 < one < two, f"{one:g} operations for one example, {two:g} for two"


def test_gradients(head, task_type, separate_encoding):
    """the gradient reaches every parameter and every text, and nothing of the padding"""
    found = shaken(head, task_type, separate_encoding)
    states, batch = batch_of(found, [2, 5, 3, 4], padding=2)
    states.requires_grad_(True)
    found.loss(found(states, batch), targets_of(found, batch)).backward()
    for name, parameter in found.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, f"no gradient reaches {name}"
    assert states.grad is not None and (states.grad.abs().sum((1, 2)) > 0).all(), "no gradient reaches some text"
    assert states.grad[~batch.mask].abs().sum() == 0, "a gradient reaches the padding"


def test_loss(head, task_type, separate_encoding):
    """its loss is one finite number in float32, and falls while it trains"""
    found = made(head, task_type, separate_encoding)
    states, batch = batch_of(found, [2, 5, 3, 4])
    loss = found.loss(found(states, batch).bfloat16(), targets_of(found, batch))
    assert loss.shape == () and loss.dtype == torch.float32, f"a loss of shape {list(loss.shape)} and {loss.dtype}"
    losses = fitted(found)
    assert all(value == value and abs(value) < float("inf") for value in losses), "the loss is not finite"
    assert losses[-1] < losses[0], f"the loss was {losses[0]:.4g} and is {losses[-1]:.4g} after {len(losses)} updates"


def test_same_seed(head, task_type, separate_encoding):
    """the same seed gives the same head and the same training, to the bit"""
    first, second = (made(head, task_type, separate_encoding, seed=3) for _ in range(2))
    states = zip(first.state_dict().items(), second.state_dict().values(), strict=True)
    assert [name for (name, a), b in states if not torch.equal(a, b)] == [], "these parameters start otherwise"
    assert fitted(first, 3) == fitted(second, 3), "two trainings of one seed have other losses"


def test_round_trip(head, task_type, separate_encoding):
    """its tensors, written to a file and read again, make the same head"""
    found = shaken(head, task_type, separate_encoding)
    inputs = batch_of(found, [2, 5, 3, 4])
    kept = load(save({name: tensor.contiguous() for name, tensor in found.state_dict().items()}))
    again = made(head, task_type, separate_encoding, seed=9)
    again.load_state_dict(kept)
    assert torch.equal(found(*inputs), again(*inputs)), "the head that was read again gives other logits"


def test_precision(head, task_type, separate_encoding):
    """it takes states of another precision under autocast, as precision: bf16 gives them"""
    found = made(head, task_type, separate_encoding)
    states, batch = batch_of(found, [2, 5, 3, 4])
    with torch.autocast("cpu", torch.bfloat16):
        logits = found(states.bfloat16(), batch)
    assert torch.isfinite(logits.float()).all(), "logits are not finite"


class OneBatch(BatchLoader):
    """Feeds one made-up batch, from the CPU, as a store would: states at boundaries 0 to 2."""

    def __init__(self, found, device):
        states, self.batch = batch_of(found, [2, 5, 3, 4])
        made = {n: states + n for n in range(3)}
        store = SimpleNamespace(
            batch=lambda split, rows: self.batch,
            states=lambda n, split: SimpleNamespace(gather=lambda rows, batch: made[n]),
            sizes=lambda split: self.batch.mask.sum(1).numpy(),
            lengths=lambda split: self.batch.mask.sum(1).numpy(),
        )
        super().__init__(store, [0, 1, 2], device)


def ready(device, head: HeadConfig, task_type: str, separate_encoding: bool, rate: float = 0.1, **phase):
    """Return a new head on a device, and what makes an update there by the code that a run uses: it returns losses."""
    found = build(head, WIDTH, outputs_of(task_type), task_type, separate_encoding, layers=2)
    loader, rows = OneBatch(found, device), np.arange(EXAMPLES)
    found.set_labels(["O", "B-PER", "I-PER"])
    gold = gold_of(found, loader.batch)
    found.init_from_targets(gold)
    single = ModelTrainer(TaskModel(None, found.to(device), "fp32"), loader, rows, Supervised(gold))
    single.begin(single.batches([(1, "order")], EXAMPLES))
    moved = [{"params": list(found.parameters()), "lr": rate, "weight_decay": 0.0}]
    steps = optimizer(PhaseConfig(train=["head"], **phase).optimizer, moved)

    def update() -> torch.Tensor:
        losses = single.losses(rows)
        steps.zero_grad()
        single.backward(losses)
        single.clip(1.0)
        steps.step()
        return losses

    return found, single, update


def trained_on(device, *case, **phase):
    """Train a head for two updates on a device; return it, the last losses, and its predictions. Args: see `ready`."""
    found, single, update = ready(device, *case, **phase)
    _, losses = update(), update()
    words = [WORDS] * EXAMPLES if found.words else None
    return found, losses, single.model.predict(single.loader, "train", np.arange(EXAMPLES), words)


def test_device(head, task_type, separate_encoding):
    """on a CUDA device, here a pretended one, it trains and predicts, and nothing of it stays on the CPU"""
    made(head, task_type, separate_encoding)
    with pretended() as device:
        found, losses, predictions = trained_on(device, head, task_type, separate_encoding)
    assert isinstance(losses, OnCuda) and losses.isfinite().all(), "losses are not finite numbers of the device"
    left = [name for name, tensor in found.state_dict().items() if not tensor.is_cuda]
    assert left == [], "these tensors did not go to the device"
    assert all(p.grad is not None and p.grad.is_cuda for p in found.parameters()), "a gradient is not on the device"
    assert len(predictions.values) == EXAMPLES


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """Small BERTs on small corpora, by type of task and reading of pairs."""
    return small_berts(tmp_path_factory)


def test_training(head, task_type, separate_encoding, benches):
    """trained with the top layer of a small BERT, it learns, moves whole, and moves nothing else"""
    made(head, task_type, separate_encoding)
    bench = benches(task_type, separate_encoding)
    check_training(bench, bench.spec({"train": TRAINS["top_k"], "epochs": 6}, head=spec_of(head)), again=False)
