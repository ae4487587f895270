"""Further pretraining: masked-language-model training of a whole encoder on the training text of one corpus.

Task-adaptive pretraining of Gururangan et al. 2020 (section 4), within-task further pretraining of Sun et al. 2019
(section 5.4). No label is read, and no text but that of the split `train`.

The loss is reported on rows that are held out.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from thaw.adaptation.selectors import block, renumbered
from thaw.adaptation.stages import stages_of
from thaw.compute_cost.flops import Shape, encoder_flops, training_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.devices import computed_in, use_precision
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.runtime import derive_seed, log, seeded
from thaw.encoders.masked_model import MaskedModel
from thaw.encoders.registry import load_tokenizer
from thaw.encoders.shortening import starting_tensors
from thaw.encoders.transformers import Encoder
from thaw.features.store import FeatureStore
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.training.masking import (
    MaskedBatchLoader,
    MaskingVocabulary,
    NextSentence,
    PairedBatchLoader,
    SpecialTokenIds,
    mean_loss,
)
from thaw.training.model_trainer import ModelTrainer
from thaw.training.objectives import MaskedAndNextSentence, MaskedAndTaught, MaskedLanguageModel
from thaw.training.phase_loop import PhaseTraining
from thaw.training.run_state import RunState

CPU = torch.device("cpu")
HELD_OUT = 20  # one row in so many of train is not trained on


class Pretraining:
    """One further pretraining: settings, store of the corpus' tokens, folder of the encoder, device."""

    def __init__(self, entry: FurtherPretrainingConfig, store: FeatureStore, folder: Path, device: torch.device = CPU):
        """Open the encoder and hold out some training rows. Raises UserError for a tokenizer without a mask token."""
        self.entry, self.store, self.device = entry, store, device
        tokenizer = load_tokenizer(folder)
        self.model = MaskedModel(folder, entry.seed)
        if tokenizer.mask_token_id is None:
            raise UserError(f"{folder}: its tokenizer has no mask token, so nothing can be masked for it")
        self.vocabulary = MaskingVocabulary(tokenizer.mask_token_id, len(tokenizer))
        self.shape = Shape.of(read_json(folder / "config.json"))
        precision = computed_in(entry.phase.precision, device)
        self.reported = self.objective = MaskedLanguageModel(precision)
        if entry.next_sentence:
            self.specials = SpecialTokenIds.of(tokenizer, folder)
            with seeded(entry.seed, "next sentence"):
                self.model.next_sentence = NextSentence(folder, self.shape.width)
            self.objective = MaskedAndNextSentence(precision)
        self.model.to(device)
        self.teacher, self.kept = None, list(range(1, self.shape.layers + 1))
        if entry.cosine:
            self.teacher = Encoder.load(folder)
            self.objective = MaskedAndTaught(precision, self.teacher, entry.cosine)
        if shape := entry.kept(self.shape.layers):
            self.kept, start = shape
            student = {"layers": self.kept, "start": {str(layer): source for layer, source in start.items()}}
            self.model.encoder.put(starting_tensors(folder, student, {}, entry.seed))
            self.model.shorten(self.kept)
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
        if self.teacher:
            self.teacher.to(device)
        return self

    def train(self, watch: Stopwatch) -> tuple[dict, dict]:
        """Train to the last update; return the facts for the card, and the cost without what the step measures.

        Raises UserError where the loss becomes NaN or infinite.
        """
        phase, trained = self.entry.phase, ["embeddings", *(f"layer.{n}" for n in self.kept)]
        components = ["head", *(name for name in self.model.encoder.components() if block(name) in trained)]
        use_precision(phase.precision, self.device)
        state = RunState(1, phase, self.entry.seed)
        training, phase_log = PhaseTraining([state], stages_of(phase, {}), len(self.rows)), state.phase_log
        losses = [self._loss(watch)]
        log(f"held-out masked-language-model loss before: {losses[0]:.4f} nats")

        def evaluate():
            if phase_log.diverged:
                raise UserError("the loss of the further pretraining became NaN or infinite; lower its learning rate")
            losses.append(self._loss(watch))
            loss = f"loss {phase_log.mean_loss(training.epoch):#.3g}, on held-out rows {losses[-1]:.4f} nats"
            log(f"{training.place}: {loss}")

        trainer = ModelTrainer(self.model, self._loader("masks", self.entry.next_sentence), self.rows, self.objective)
        training.enter(trainer, components, self.shape.layers, self.kept if self.entry.student else None)
        training.run(watch, evaluate)
        facts: dict = {"rows": len(self.rows), "predictor": "published" if self.model.came else "new"}
        facts["held_out"] = {"rows": len(self.held_out), "loss": [round(loss, 6) for loss in losses]}
        size = sum(parameter.numel() for parameter in self.model.parameters())
        shape, names = replace(self.shape, layers=len(self.kept)), [renumbered(name, self.kept) for name in components]
        flops = training_flops(shape, phase_log.lengths, None, names) + 3 * phase_log.head_flops
        if self.teacher:
            flops += encoder_flops(self.shape, phase_log.lengths)
        cost = {"flops": flops, "parameters": {"trained": size, "total": size}}
        return facts, cost | {"tokens": phase_log.tokens, "steps": phase_log.steps}

    def _loader(self, name: str, pairs: bool = False) -> MaskedBatchLoader:
        of_masks = self.store, self.device, self.entry.mask, self.vocabulary, self.entry.seed, name
        return PairedBatchLoader(self.specials, *of_masks) if pairs else MaskedBatchLoader(*of_masks)

    def _loss(self, watch: Stopwatch) -> float:
        with watch("evaluate"):
            loader = self._loader("held-out masks")
            return mean_loss(self.model, self.reported, loader, "train", self.held_out)
