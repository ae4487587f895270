"""What probes are tried on: small corpora and a small encoder that have what is awkward for a probe.

A label that validation and test lack; a target that names two domains; a feature of the encoder that is constant at
every layer; and runs of two seeds that adapted the encoder.
"""

import functools
import random
from pathlib import Path

import torch

from conftest import HOME
from corpora import prepared
from thaw.core import boundaries
from thaw.core.files import read_json
from thaw.declarations.probes import ProbeKind
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.training.run_inputs import Inputs, open_adapted
from tiny import tiny_encoder
from tiny_corpus import ENTRIES, METRICS, Bench, rows
from tiny_own import STATED
from tiny_trees import ENTRY, row

LAYERS, CONSTANT = 2, 0  # layers of the encoder, and the feature that is constant
SIZES = {"train": 100, "validation": 24, "test": 24}
SUBSET = {"rows": 50}  # of the runs; a probe of what they left is fitted to as many others
TREES = ("edges", "tagging")  # types of task on the corpus with trees
TARGETS = {"edges": ("arcs", "edge_f1"), "tagging": ("upos", "accuracy")}
SMALL = {"l2": [1e-3, 1e-1], "epochs": 2, "portions": [0.5], "clusters": [2, 3], "rows": 20, "tokens": 60}
SMALL |= {"examples": 12, "projection": 6, "hidden": 5}


def pretrained_bert(folder: Path) -> dict:
    """Write a BERT with what came with its pretraining, one feature of all its layers constant; return its entry."""
    from transformers import BertConfig, BertForPreTraining, BertModel

    tiny_encoder("bert", folder, LAYERS)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        whole = BertForPreTraining(BertConfig.from_pretrained(folder))
    whole.bert.load_state_dict(BertModel.from_pretrained(folder).state_dict())
    for norm in [whole.bert.embeddings.LayerNorm, *(layer.output.LayerNorm for layer in whole.bert.encoder.layer)]:
        norm.weight.data[CONSTANT], norm.bias.data[CONSTANT] = 0.0, 0.5
    whole.save_pretrained(folder)
    return {"folder": str(folder), "layers": LAYERS} | STATED


def text_rows(kind: str, split: str) -> list[dict]:
    """Return examples of two genres; of labels and tags one occurs in train alone."""
    found = rows(kind, SIZES[split], len(split))
    for number, example in enumerate(found):
        example["genre"] = "songs" if number % 2 else "rivers"
        if split == "train" and number % 5 == 0 and "label" in example:
            example["label"] = "rare"
        if split != "train" and "tags" in example:
            example["tags"] = [tag if tag != "B-LOC" else "O" for tag in example["tags"]]
    return found


def tree_rows(split: str) -> list[dict]:
    """Return sentences with trees; one relation, that of a second verb, occurs in train alone."""
    draw, found = random.Random(len(split)), []
    while len(found) < SIZES[split]:
        example = row(draw)
        if split == "train" or not any(arc["label"] == "aux" for arc in example["arcs"]):
            found.append(example)
    return found


class ProbeBench(Bench):
    """One corpus with the encoder's features, and the specs of probes on it."""

    def __init__(self, folder: Path, task_type: str, catalogues=()):
        """Prepare the corpus of a type of task and read it. Args: catalogues, folders of plugins for the steps."""
        (folder / "data").mkdir(parents=True)
        text = ENTRIES.get(task_type, {})
        entry = ENTRY if task_type in TREES else text | {"targets": text["targets"] | {"genre": "label"}}
        made = {split: tree_rows(split) if task_type in TREES else text_rows(task_type, split) for split in SIZES}
        super().__init__(folder, pretrained_bert, prepared(folder / "data", entry, **made), task_type)
        self.folder, self.runs, self.cards, self.plugins = folder, [], [], ("--catalogues", *catalogues)

    def task(self, task_type: str) -> dict:
        """Return a task as it stands in a spec."""
        target, metric = TARGETS.get(task_type) or (next(iter(ENTRIES[task_type]["targets"])), METRICS[task_type])
        return {"id": "t", "corpus": "mine", "target": target, "type": task_type, "metrics": [metric]}

    def probe_spec(self, entry: dict, task_type: str, **changes) -> dict:
        """Return the spec of a probe of the pretrained encoder. Args: the probe's entry; type of task."""
        every = list(range(self.layers + 1))
        return {
            "version": 1,
            "of": {"task": "t", "subset": "all", "encoder": "e", "probe": entry["kind"]},
            "task": self.task(task_type),
            "subset": {},
            "probe": entry,
            "layers": self.layers,
            "read": every,
            "phases": [boundaries.resume_plan(every, self.layers, [n]) for n in every],
            "seeds": [1, 2],
            "compute": {"threads": 1},
            **self.upstream,
            **changes,
        }

    def adapted(self, spec: dict, inputs: Inputs | None = None) -> dict[int, Inputs]:
        """Return by seed what two runs made of the encoder; they are trained when they are first asked for.

        Args: spec; what the probe reads of the pretrained one, by default on the CPU.
        """
        for seed in (1, 2) if not self.runs else ():
            train = self.spec({"train": ["head", {"top": 1}]}, subset=SUBSET, keep=True, seed=seed)
            self.runs.append(self.step("train", train, self.folder / f"seed{seed}", *self.plugins) / "metrics.json")
            read = {key: spec[key] for key in ("version", "task", "layers", "compute", *self.upstream)}
            read |= {"subset": SUBSET, "rows": "outside", "dtype": "fp32", "run": read_json(self.runs[-1])["digest"]}
            out = self.folder / f"states{seed}"
            self.cards.append(
                self.step("features_adapted", read, out, "--run", self.runs[-1], *self.plugins) / "card.json"
            )
        digests = {str(seed): read_json(card)["digest"] for seed, card in enumerate(self.cards, 1)}
        return open_adapted(spec | {"adapted": digests}, self.cards, self.runs, inputs or self.inputs())


def entry_of(word: str, kind: ProbeKind, folders) -> dict:
    """Return the first entry of the catalogues (and of further folders) that names a kind, with small sizes."""
    stated = _first_entries(tuple(folders)).get(word, {"kind": word})
    small = {key: value for key, value in SMALL.items() if key in kind.options.model_fields}
    return stated | small | dict.fromkeys(kind.targets, "genre")


@functools.cache
def _first_entries(folders: tuple[str, ...]) -> dict[str, dict]:
    """Return by kind the first entry of the catalogues and of further folders; their files do not change meanwhile."""
    catalogue = Catalogue([HOME / "config", *folders])
    entries = [catalogue.get("probes", name, "contract") for name in catalogue.ids("probes")]
    return {entry.kind: spec_of(entry, frozenset({"layers"})) for entry in reversed(entries)}
