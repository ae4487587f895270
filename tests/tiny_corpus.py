"""A corpus of a few dozen sentences, and a bench on which small encoders are trained on it, as the rules do."""

import functools
import importlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from corpora import prepared
from thaw.adaptation.selectors import components
from thaw.adaptation.stages import chain_thaw_order, phases_to_spec
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical
from thaw.data.corpus import Corpus
from thaw.encoders.weight_sources import local_files
from thaw.evaluation.transfer_sets import TransferSet
from thaw.features.store import FeatureStore
from thaw.schema.encoder import EncoderConfig
from thaw.schema.phases import PLANNED, PhaseConfig
from thaw.training.run_inputs import Inputs
from thaw.training.training_run import TrainingRun, train
from tiny import WORDS, tiny_encoder
from tiny_own import OWN, STATED

ENTRIES = {
    "classification": {"texts": ["text"], "targets": {"label": "label"}},
    "multi_label_classification": {"texts": ["text"], "targets": {"labels": "label_set"}},
    "pair_classification": {"texts": ["a", "b"], "targets": {"label": "label"}},
    "pair_multi_label_classification": {"texts": ["a", "b"], "targets": {"labels": "label_set"}},
    "pair_regression": {"texts": ["a", "b"], "targets": {"score": "score"}},
    "regression": {"texts": ["text"], "targets": {"score": "score"}},
    "spans": {"words": "words", "targets": {"tags": "tags"}},
    "span_extraction": {"texts": ["question", "context"], "targets": {"answers": "answers"}},
}
METRICS = {"classification": "accuracy", "pair_classification": "accuracy", "spans": "span_f1"}
METRICS |= {"multi_label_classification": "f1_micro", "pair_multi_label_classification": "f1_micro"}
METRICS |= {"span_extraction": "answer_f1"}
METRICS |= {"regression": "pearson", "pair_regression": "pearson"}
NAMES = {"Anna": "B-PER", "Karl": "B-PER", "Berlin": "B-LOC", "Oslo": "B-LOC"}


def run_in_process(step: str, *arguments) -> None:
    """Run a step's main() here: what a rule does, without the seconds that a new Python takes."""
    module, before = importlib.import_module(f"thaw.steps.{step}"), sys.argv
    sys.argv = [step, *map(str, arguments)]
    try:
        module.main()
    finally:
        sys.argv = before


def _labelled(words: list[str], number: int, texts: list[str]) -> dict:
    """Return an example with a label for singing, one for rivers, and one for both: any of the four sets.

    Of two texts the first one sings, and the river is in the second.
    """
    song, water = number % 2 == 1, number // 2 % 2 == 1
    labels = ["song"] * song + ["water"] * water + ["both"] * (song and water)
    parts = [words + ["sings"] * 4 * song, ["river"] * 4 * water]
    parts = [parts[0] + parts[1]] if len(texts) == 1 else [parts[0], words[:1] + parts[1]]
    return {**{name: " ".join(part) for name, part in zip(texts, parts, strict=True)}, "labels": labels}


def question(words: list[str], number: int, draw: random.Random, answered: bool = True) -> dict:
    """Return a question for a person or a place, the name of which is somewhere in a context of words."""
    name = draw.choice(["Anna", "Karl Anna"] if number % 2 else ["Berlin", "Oslo Berlin"])
    words = [word for word in words if word not in NAMES] * 2
    place = draw.randrange(len(words) + 1)
    before = " ".join(words[:place])
    context = " ".join([*words[:place], *([name] if answered else []), *words[place:]])
    answers = {"text": [name] * answered, "answer_start": [len(before) + bool(before)] * answered}
    asked = ["teacher" if number % 2 else "house", *(draw.choice(WORDS[:12]) for _ in range(3))]
    return {"question": " ".join(asked), "context": context, "answers": answers}


def rows(kind: str, count: int, seed: int) -> list[dict]:
    """Return examples whose answer is whether it is about singing or about rivers, how much, or who and where."""
    draw, found = random.Random(seed), []
    for number in range(count):
        words = [draw.choice(WORDS) for _ in range(draw.randint(2, 12))]
        if kind == "span_extraction":
            found.append(question(words, number, draw, answered=number % 4 != 3))
            continue
        if "multi_label" in kind:
            found.append(_labelled(words, number, ENTRIES[kind]["texts"]))
            continue
        words += ["sings" if number % 2 else "river"] * 4
        text = " ".join(words)
        found.append(
            {
                "classification": {"text": text, "label": "yes" if number % 2 else "no"},
                "pair_classification": {"a": text, "b": draw.choice(WORDS), "label": "yes" if number % 2 else "no"},
                "regression": {"text": text, "score": 2.0 + number % 2 + 0.01 * len(words)},
                "spans": {"words": [*words, "Anna"], "tags": [NAMES.get(word, "O") for word in [*words, "Anna"]]},
            }[kind]
        )
    return found


def tiny_corpus(folder: Path, kind: str, **splits) -> Corpus:
    """Prepare 24 training rows and 8 each of validation and test; `splits` may bring rows of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {"train": rows(kind, 24, 1), "validation": rows(kind, 8, 2), "test": rows(kind, 8, 3)}
    return prepared(folder, ENTRIES[kind], **(made | splits))


def quick(phase: PhaseConfig) -> dict:
    """Return what a phase says, of few updates and with the rates that a bench has (`Bench.phases`)."""
    said = phase.model_dump(exclude_defaults=True, exclude={"rate", "epochs", "batch_size"})
    if phase.optimizer == "lbfgs":
        return said
    updates = 24 if phase.distil else 12  # a student learns from its labels through its teacher alone
    length = {} if phase.updates is None else {"updates": updates, "judge": 2}
    return said | length | {"head_rate": phase.head_rate and 2e-3}


class Bench:
    """One corpus, one encoder and its features: what a run needs, and the spec of a run on it."""

    def __init__(self, folder: Path, family, corpus: Corpus, kind: str, dtype="fp32", layers=3, **view):
        """Fetch and read. Args: family, a name, or a function that writes an encoder and returns its entry."""
        self.kind, self.corpus, self.family = kind, corpus, family
        self.encoder, self.features = folder / "encoder", folder / "features"
        if callable(family):
            entry = family(folder / "source")
        elif family in OWN:
            entry = OWN[family](folder / "source")
        else:
            entry = {"folder": str(tiny_encoder(family, folder / "source", layers)), "layers": layers} | STATED
        self.layers = layers = entry["layers"]
        spec = {"version": 1, "encoder": "e", "entry": entry}
        spec["files"] = local_files(EncoderConfig.model_validate(entry), "e")
        run_in_process("fetch", "--spec", canonical(spec), "--out", self.encoder)
        card = json.loads((self.encoder / "card.json").read_text())
        view = {"max_length": 64} | ({"max_length": 24, "stride": 8} if kind == "span_extraction" else {}) | view
        spec = {"version": 1, "view": view, "dtype": dtype, "data": corpus.card["digest"], "encoder": card["digest"]}
        spec["compute"] = {"threads": 1}
        self.features_spec = spec
        self.extract(*range(layers + 1))
        self.store = FeatureStore(self.features)
        self.upstream = {"data": spec["data"], "encoder": spec["encoder"], "features": self.store.card["digest"]}
        self.others: dict[str, Bench] = {}  # transfer sets by task, for specs that say `also`

    def extract(self, *parts) -> None:
        """Write parts of the store: boundaries by number, pooled, words."""
        folders = ("--data", self.corpus.folder, "--encoder", self.encoder, "--out", self.features)
        run_in_process("features", "--spec", canonical(self.features_spec), "--boundaries", *parts, *folders)

    def linked(self, results: Path, view: str = "view") -> Path:
        """Let a results folder have corpus, encoder and store where the rules write them; return the folder."""
        made = {"data/mine": self.corpus.folder, "encoders/e": self.encoder, f"features/e/mine/{view}": self.features}
        for place, target in made.items():
            (results / place).parent.mkdir(parents=True, exist_ok=True)
            (results / place).symlink_to(target)
        return results

    def spec(self, *phases: dict, head: dict | None = None, **changes) -> dict:
        """Return the spec of a run; `train` in a phase stands for its components and boundary."""
        target = next(iter(ENTRIES[self.kind]["targets"]))
        task = {"id": "t", "corpus": "mine", "target": target, "type": self.kind, "metrics": [METRICS[self.kind]]}
        return {
            "version": 1,
            "task": task,
            "subset": {},
            "head": {"kind": "linear"} | (head or {}),
            "layers": self.layers,
            "phases": [entry for phase in phases for entry in self.phases(**phase)],
            "after": None,
            "keep": False,
            "seed": 1,
            "compute": {"threads": 1},
            **self.upstream,
            **changes,
        }

    def phases(self, train=("head",), k=1, **given) -> list[dict]:
        """Return what a phase becomes in a spec, with rates at which a small model learns in a few steps.

        What the plan would add may be stated instead, as {"boundary": None} for from text.
        """
        usual = {"rate": 1e-3, "head_rate": 1e-2, "epochs": 2, "batch_size": 4}
        absent = usual if given.get("optimizer") == "lbfgs" else {"epochs"} if "updates" in given else set()
        usual = {key: value for key, value in usual.items() if key not in absent}
        stated = {key: given.pop(key) for key in PLANNED & set(given)}
        phase = PhaseConfig.model_validate({"train": train} | usual | given)
        chosen = components(list(phase.train), self.layers, {"k": k}, phase.insert)
        every, top = list(range(self.layers + 1)), self.layers
        found = phases_to_spec([(phase, parts) for parts in chain_thaw_order(phase, chosen)], top, every, top, [top])
        return [entry | stated for entry in found]

    def also(self, task: str) -> dict:
        """Return what a spec says of a transfer set among `others`, under its task's name."""
        other = self.others[task]
        entry = {"task": other.spec()["task"] | {"id": task}, "rename": {}, "data": other.upstream["data"]}
        return entry | {"features": [other.upstream["features"]]}

    def auxiliary(self, task: str) -> dict:
        """Return what a spec says of another task of a training among `others`, with a linear head."""
        return {key: value for key, value in self.also(task).items() if key != "rename"} | {"head": {"kind": "linear"}}

    def inputs(self, store=None, spec: dict | None = None) -> Inputs:
        """Return what a run on this bench reads, with the transfer sets that its spec names."""
        inputs = Inputs(self.corpus, store or self.store, self.encoder, torch.device("cpu"))
        for entry in (spec or {}).get("also", []):
            other, labels = self.others[entry["task"]["id"]], self.corpus.labels(spec["task"]["target"])
            inputs.transfer_sets.append((TransferSet.of(entry, other.corpus, labels), other.store))
        for entry in (spec or {}).get("auxiliary", []):
            other = self.others[entry["task"]["id"]]
            inputs.auxiliary[entry["task"]["id"]] = Inputs(other.corpus, other.store, self.encoder)
        return inputs

    def run(self, spec: dict, start=None, store=None, taught=None) -> TrainingRun:
        """Return a run, not yet trained."""
        torch.set_num_threads(1)
        return TrainingRun(spec, self.inputs(store, spec), start, taught=taught)

    def train(self, spec: dict, start=None, store=None, taught=None):
        """Train a run; return it and what it leaves."""
        run = self.run(spec, start, store, taught)
        return run, train([run], Stopwatch())[0]

    def step(self, name: str, spec: dict, out: Path, *more) -> Path:
        """Run the step `train`, `fit_heads` or `teach` on this bench; return its folder."""
        run_in_process(name, *self.arguments(spec), "--out", out, *more)
        return out

    def arguments(self, spec: dict) -> tuple:
        """Return the arguments of a step but for where it writes."""
        folders = ("--data", self.corpus.folder, "--encoder", self.encoder, "--features", self.features)
        entries = [*spec.get("also", []), *spec.get("auxiliary", [])]
        if others := [self.others[entry["task"]["id"]] for entry in entries]:
            folders += ("--also-data", *(other.corpus.folder / "card.json" for other in others))
            folders += ("--also-tokens", *(other.features / "tokens.json" for other in others))
        return "--spec", canonical(spec), *folders


class ByType(dict):
    """Small BERTs by type of task, each made when it is asked for."""

    def __init__(self, made: Callable[..., Bench]):
        super().__init__()
        self.made = made

    def __missing__(self, task_type: str) -> Bench:
        """Make a bench."""
        self[task_type] = self.made(task_type)
        return self[task_type]


def by_type(tmp_path_factory) -> ByType:
    """Return small BERTs by type of task; for a fixture named `benches`."""
    return ByType(small_berts(tmp_path_factory))


def small_bert(tmp_path_factory) -> Bench:
    """Return a small BERT on a small classification task, states stored in fp32; for a fixture named `bench`."""
    return small_berts(tmp_path_factory)("classification")


def small_berts(tmp_path_factory) -> Callable[..., Bench]:
    """Return a function of (type of task, whether texts of pairs are encoded separately) that makes each bench once.

    Its encoder is a small BERT.
    """

    @functools.cache
    def bench(task_type: str, separate_encoding: bool = False) -> Bench:
        folder = tmp_path_factory.mktemp("small_bert")
        view = {"pairs": "separate"} if separate_encoding else {}
        return Bench(folder, "bert", tiny_corpus(folder / "data", task_type), task_type, **view)

    return bench
