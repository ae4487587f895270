"""One run: its phases in turn, what each leaves to the next, and the answers at the end.

L layers, d width, C outputs.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from thaw import settings
from thaw.analysis.cost import Shape, Stopwatch, training_flops
from thaw.analysis.further import Further, joined
from thaw.analysis.metrics import score
from thaw.analysis.results import Answers, assess, scored_splits, scored_training_rows, take, whole_task
from thaw.boundaries import taken
from thaw.data.corpus import subset_rows
from thaw.encoders.loading import load_pooler
from thaw.features.store import Store
from thaw.heads.base import Head, word_targets
from thaw.heads.pooling import Pooler
from thaw.heads.registry import build
from thaw.records import UserError, read_json
from thaw.runtime import log, seeded
from thaw.strategies.inserts import Inserts, grown
from thaw.training.inputs import Inputs
from thaw.training.model import Feed, Model, resumed
from thaw.training.phase import Course, PhaseTraining, Task


@dataclass
class Start:
    """What an earlier run left: the head's tensors and the encoder's trained ones, both by name, and its inserts.

    A run on another task leaves no head.
    """

    head: dict[str, torch.Tensor]
    encoder: dict[str, torch.Tensor]
    inserts: Inserts | None = None


@dataclass
class Trained:
    """What a run leaves: its head, the encoder's trained tensors, its answers, and what is told about it."""

    head: Head
    encoder: dict[str, torch.Tensor]
    inserts: Inserts | None
    answers: dict[str, Answers]
    further: list[tuple[Further, dict[str, Answers]]]
    outcome: dict  # scores, rows, flags, chosen: as they stand in metrics.json
    history: list[dict]
    cost: dict


class Run:
    """A run in the making.

    Args: its spec; what it reads; what an earlier run left, where it starts after one; the settings that a search
    chose, with the number of the trial.
    """

    def __init__(self, spec: dict, inputs: Inputs, start: Start | None = None, chosen: dict | None = None):
        """Read targets and rows, and make the head: new from its own random stream, or the earlier run's."""
        self.spec, self.inputs, self.corpus, self.store = spec, inputs, inputs.corpus, inputs.store
        self.chosen = chosen or {}
        settings_chosen = {key: value for key, value in self.chosen.items() if key != "trial"}
        self.phases = [entry | settings_chosen for entry in spec["phases"]]
        self.folder, self.device, corpus = inputs.encoder, inputs.device, inputs.corpus
        self.task = whole_task(spec["task"])
        self.rows = subset_rows(corpus, self.task, settings.Subset.model_validate(spec["subset"]))
        self.shape = Shape.of(read_json(self.folder / "config.json"))
        self.labels = corpus.labels(self.task["target"])
        entry = settings.Head.model_validate(spec["head"])
        with seeded(spec["seed"], "initialisation"):
            outputs, layers = len(self.labels) or 1, spec["layers"]
            self.head = build(entry, self.shape.width, outputs, self.task["type"], self.store.apart, layers)
        self.highest = self.head.combination.read[-1]
        self.shape = replace(self.shape, layers=self.highest)
        self.gold = corpus.targets(self.task, "train")
        self.head.name_outputs(self.labels)
        self.head.start(take(self.gold, self.rows))
        for module in self.head.modules():
            if isinstance(module, Pooler):
                module.dense.load_state_dict(load_pooler(self.folder))
        if start is not None and start.head:
            self.head.load_state_dict(start.head)
        self.head.to(self.device)
        self.trained = dict(start.encoder) if start is not None else {}
        self.inserts = start.inserts if start is not None else None
        self.courses: list[Course] = []
        self.flops = 0.0
        self.counts: dict[str, int] = {}

    def train(self, watch: Stopwatch) -> Trained:
        """Train all phases, answer all splits, and return what the run leaves."""
        for number, entry in enumerate(self.phases, start=1):
            self._phase(number, entry, watch)
            if self.courses[-1].diverged:
                log(f"diverged: the loss of phase {number} is not finite; training ends here")
                break
        with watch("evaluate"):
            answers, further = self._answers(), [(f, self._further(f, store)) for f, store in self.inputs.further]
        outcome = assess(self.task, self.corpus, answers, self.courses[-1].diverged)
        outcome = joined(outcome, self.task, further)
        outcome["chosen"] = self.chosen | {"epochs": [course.epoch for course in self.courses]}
        if any("stop" in entry for entry in self.phases):
            outcome["chosen"]["stopped"] = [course.stopped for course in self.courses]
        history = [note for course in self.courses for note in course.history]
        main = self.task["metrics"][0]
        if history[-1]["validation"] is None:
            history[-1]["validation"] = outcome["scores"][self.task["validation"]][main]
        return Trained(self.head, self.trained, self.inserts, answers, further, outcome, history, self._cost())

    def _phase(self, number: int, entry: dict, watch) -> None:
        """Train one phase, stage by stage, and keep what each stage trained for the next."""
        phase, stages = settings.Phase.of_spec(entry), settings.Phase.stages_of_spec(entry)
        training = PhaseTraining(number, phase, [stage["epochs"] for stage in stages], self.spec["seed"])
        self.courses.append(training.course)
        task = Task(self.rows, self.targets, self._score)
        for stage in stages:
            with watch("load"):
                self._enter(training, stage)
            goes_on = training.run(task, self.feed, watch)
            self._keep(stage["components"])
            lengths = training.course.lengths
            inserted = sum(p.numel() for name, p in self._inserted() if p.ndim > 1 and ".ia3_" not in name)
            self.flops += training_flops(self.shape, lengths, stage["boundary"], stage["components"], inserted)
            if not goes_on:
                break
        if not training.course.head_flops:
            raise UserError(f"head {self.head.entry.kind} counts 0 operations; give it a method flops(batch)")
        self.flops += 3 * training.course.head_flops

    def _enter(self, training: PhaseTraining, stage: dict) -> None:
        """Make the model of a stage, with all that trained before it."""
        components, boundary, phase = stage["components"], stage["boundary"], training.phase
        self.inserts = grown(self.inserts, phase, components, self.spec["seed"])
        encoder = resumed(self.folder, boundary, self.highest, self.trained, self.device, self.inserts)
        if phase.reinit_top:
            with seeded(self.spec["seed"], f"reinitialisation:{training.number}"):
                encoder.reinitialise(phase.reinit_top)
        if "embeddings" in components:
            encoder.keep_rows(self.inputs.tokens())
        self.model = Model(encoder, self.head, phase.precision)
        self.feed = Feed(self.store, taken([stage]), self.device)
        training.enter(self.model, components, self.highest)
        origin = "text" if boundary is None else f"boundary {boundary}"
        what = f"trains {', '.join(components)}; starts from {origin}; {len(self.rows)} rows"
        log(f"phase {training.number}: {what}")

    def _keep(self, components: list[str]) -> None:
        """Keep what a stage trained, and count it."""
        for part, named in self.model.components(components).items():
            place = "head/" if part == "head" else "encoder/"
            self.counts.update({place + name: value.numel() for name, value in named})
        if self.model.encoder is not None:
            if self.model.encoder.unused:
                self.counts["unused"] = self.model.encoder.unused
            self.trained.update(self.model.encoder.tensors([part for part in components if part != "head"]))

    def _inserted(self) -> list:
        """Return the names and parameters of all that was inserted into the encoder."""
        return [] if self.model.encoder is None else self.model.encoder.inserted()

    def targets(self, rows, batch) -> torch.Tensor:
        """Return the targets of a batch of training rows, on its device: [B], or [B, W] for words."""
        chosen = take(self.gold, rows)
        if self.head.words:
            return word_targets(chosen, batch.first_pieces)
        return torch.as_tensor(chosen, device=batch.mask.device)

    def _score(self, name: str) -> float | None:
        """Return the main metric on "validation" or on the scored rows of "train", None where it is not defined."""
        if name == "train":
            split, rows = name, scored_training_rows(self.rows, self.spec["seed"])
        else:
            split = self.task["validation"]
            rows = range(len(self.corpus.frame(split)))
        gold = take(self.corpus.targets(self.task, split), rows)
        return score(self.task, gold, self._answer(split, rows).values, self.labels)[self.task["metrics"][0]]

    def _answers(self) -> dict[str, Answers]:
        """Return the answers to the scored training rows and to all of validation and test; of a trial none to test."""
        wanted = {"train": scored_training_rows(self.rows, self.spec["seed"])}
        for split in [self.task["validation"]] if self.spec.get("trial") else scored_splits(self.task):
            wanted[split] = range(len(self.corpus.frame(split)))
        return {split: self._answer(split, rows) for split, rows in wanted.items()}

    def _answer(self, split: str, rows) -> Answers:
        """Return the model's answers to some rows; tags are cut to each sentence's words."""
        rows = np.asarray(rows)
        words = None
        if self.head.words:
            words = [len(tags) for tags in take(self.corpus.targets(self.task, split), rows)]
        return self.model.answers(self.feed, split, rows, words)

    def _further(self, further: Further, store: Store) -> dict[str, Answers]:
        """Return the model's answers to the test splits of another corpus, by split."""
        feed = Feed(store, self.feed.boundaries, self.device)
        splits = further.rows().items()
        return {split: self.model.answers(feed, split, rows, further.words(split)) for split, rows in splits}

    def _cost(self) -> dict:
        """Return what the run cost, but for its seconds, memory and machine, which the step measures."""
        size = read_json(self.folder / "card.json")["parameters"]
        added = [*self.head.parameters(), *(parameter for _, parameter in self._inserted())]
        total = size + sum(parameter.numel() for parameter in added)
        return {
            "flops": self.flops,
            "parameters": {"trained": sum(self.counts.values()), "total": total},
            "tokens": sum(course.tokens for course in self.courses),
            "steps": sum(course.steps for course in self.courses),
        }
