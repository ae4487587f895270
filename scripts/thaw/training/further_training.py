"""Further pretraining: masked-language-model training of a whole encoder on the training text of one corpus.

Task-adaptive pretraining of Gururangan et al. 2020 (section 4), within-task further pretraining of Sun et al. 2019
(section 5.4). No label is read, and no text but that of the split `train`.

S sequences, T tokens, M chosen tokens of a batch, V vocabulary.
"""

from pathlib import Path

import numpy as np
import torch

from thaw.compute_cost.flops import Shape, training_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.devices import use_precision
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.runtime import derive_seed, log
from thaw.encoders.masked_model import MaskedModel
from thaw.encoders.registry import load_tokenizer
from thaw.features.store import FeatureStore
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.training.masking import Marks, MaskedFeed, mean_loss
from thaw.training.model_trainer import ModelTrainer
from thaw.training.phase_loop import PhaseTraining
from thaw.training.run_state import RunState

CPU = torch.device("cpu")
HELD_OUT = 20  # one row in so many of train is not trained on


class TokenModel(torch.nn.Module):
    """A masked-language model as a phase trains it."""

    def __init__(self, model: MaskedModel, precision: str):
        """Take the model; precision "bf16" computes under autocast, "fp32" as it stands."""
        super().__init__()
        self.model, self.encoder, self.head, self.precision = model, model.encoder, model.head, precision

    def forward(self, batch, stored: dict) -> torch.Tensor:
        """Return logits [M, V] of the chosen tokens; nothing is stored."""
        with torch.autocast(batch.mask.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            return self.model(batch)

    def components(self, names: list[str]) -> dict:
        """Return the named parameters of head, embeddings and layers; a tied decoder is the embeddings'."""
        parts = {"head": list(self.head.named_parameters())} | self.encoder.components()
        return {name: parts[name] for name in names}


class Pretraining:
    """One further pretraining in the making: settings, store of the corpus' tokens, folder of the encoder, device."""

    def __init__(self, entry: FurtherPretrainingConfig, store: FeatureStore, folder: Path, device: torch.device = CPU):
        """Open the encoder and part the training rows. Raises UserError for an encoder that knows no mask."""
        self.entry, self.store, self.device = entry, store, device
        tokenizer = load_tokenizer(folder)
        self.model = MaskedModel(folder, entry.seed)
        if tokenizer.mask_token_id is None:
            raise UserError(f"{folder}: its tokenizer has no mask token, so nothing can be masked for it")
        self.marks = Marks(tokenizer.mask_token_id, len(tokenizer))
        self.shape = Shape.of(read_json(folder / "config.json"))
        self.model.to(device)
        self.tokens = TokenModel(self.model, entry.phase.precision)
        total = store.card["splits"]["train"]["examples"]
        order = np.random.default_rng(derive_seed(entry.seed, "held out")).permutation(total)
        held = max(1, total // HELD_OUT)
        self.held_out, self.rows = np.sort(order[:held]), np.sort(order[held:])
        if not len(self.rows):
            raise UserError(f"{store.card['corpus']} has {total} training row; further pretraining needs two or more")

    def on(self, device: torch.device) -> "Pretraining":
        """Let the encoder train on a device; return the same further pretraining."""
        self.device = device
        self.model.to(device)
        return self

    def train(self, watch: Stopwatch) -> tuple[dict, dict]:
        """Train all epochs; return what a card says of it, and its cost but for what the step measures.

        A loss that leaves the finite numbers is a UserError.
        """
        phase, components = self.entry.phase, ["head", *self.model.encoder.components()]
        use_precision(phase.precision, self.device)
        member = RunState(1, phase, self.entry.seed)
        training = PhaseTraining([member], [1] * phase.epochs)
        single = ModelTrainer(self.tokens, self._feed("masks"), self.rows, lambda rows, batch: batch.tokens)
        course, flops, losses = member.course, 0.0, [self._loss(watch)]
        log(f"held-out masked-language-model loss before: {losses[0]:.4f} nats")
        for epoch in range(1, phase.epochs + 1):
            training.enter(single, components, self.shape.layers)
            training.run([None], watch)  # no rule ends it, so nothing scores it
            if course.diverged:
                raise UserError("the loss of the further pretraining left the finite numbers; lower its rate")
            flops += training_flops(self.shape, course.lengths, None, components)
            losses.append(self._loss(watch))
            log(f"held-out masked-language-model loss after epoch {epoch}: {losses[-1]:.4f} nats")
        said = {"rows": len(self.rows), "predictor": "published" if self.model.came else "new"}
        said["held_out"] = {"rows": len(self.held_out), "loss": [round(loss, 6) for loss in losses]}
        size = sum(parameter.numel() for parameter in self.model.parameters())
        cost = {"flops": flops + 3 * course.head_flops, "parameters": {"trained": size, "total": size}}
        return said, cost | {"tokens": course.tokens, "steps": course.steps}

    def _feed(self, name: str) -> MaskedFeed:
        """Return a feed whose masks come from the stream of this name, from its beginning."""
        return MaskedFeed(self.store, self.device, self.entry.mask, self.marks, self.entry.seed, name)

    def _loss(self, watch: Stopwatch) -> float:
        """Return the loss on the held-out rows, whose masks are always the same."""
        with watch("evaluate"):
            return mean_loss(self.tokens, self._feed("held-out masks"), "train", self.held_out)
