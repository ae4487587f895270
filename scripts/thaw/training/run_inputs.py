"""The inputs of a run: its corpus, the encoder, a store of features, and transfer sets with their stores.

Nothing is opened that was made for another spec than the run was planned with.
"""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from thaw.core import plugins
from thaw.core.boundaries import stored_parts_read
from thaw.core.devices import claim_device
from thaw.core.errors import UserError
from thaw.core.files import check_digest, read_json
from thaw.data.corpus import Corpus
from thaw.declarations.needs import stated_needs
from thaw.declarations.objective_kinds import texts_read
from thaw.encoders.registry import import_code
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import read_rows
from thaw.evaluation.transfer_sets import TransferSet
from thaw.features.extract import remake
from thaw.features.row_sets import RowMasks
from thaw.features.store import FeatureStore
from thaw.schema.multi_task import of_task
from thaw.training.adapted import AdaptedEncoder


@dataclass
class Inputs:
    """The inputs of a run in one view.

    `transfer_sets` holds other tasks' corpora, each with its store in that view; `auxiliary`, by id, the inputs of the
    tasks that train the encoder too; `vectors` the constant vectors that a head has read of the pretrained encoder, by
    folder of the store and split, for all runs that share these inputs; `inference` what a prediction of these runs
    costs; `adapted` the encoder as a run left it, where the store holds its states.
    """

    corpus: Corpus
    store: FeatureStore
    encoder: Path
    device: torch.device = torch.device("cpu")  # until the job's turn on one has come
    transfer_sets: list[tuple[TransferSet, FeatureStore]] = field(default_factory=list)
    auxiliary: dict[str, "Inputs"] = field(default_factory=dict)
    vectors: dict = field(default_factory=dict)
    inference: dict[tuple[str, int], dict] = field(default_factory=dict)
    adapted: AdaptedEncoder | None = None

    def on(self, device: torch.device) -> "Inputs":
        """Set the device that computes; return the same inputs."""
        self.device = device
        return self

    def whole_encoder(self) -> Encoder:
        """Return the encoder from text, as it was pretrained or as the run of `adapted` left it."""
        encoder = self.adapted.encoder() if self.adapted else Encoder.load(self.encoder)
        return encoder.to(self.device)

    def transfer_set(self, task: str) -> tuple[TransferSet, FeatureStore]:
        for other, store in self.transfer_sets:
            if other.task["id"] == task:
                return other, store
        raise UserError(f"{task} is none of the transfer sets of this run; name it in transfer_sets: of its task")

    def tokens(self) -> torch.Tensor:
        """Return the ids of all tokens that occur in the texts, padding included, ascending, int64 [U]."""
        return torch.from_numpy(np.unique(np.concatenate([store.vocabulary() for store in self.stores])))

    @property
    def stores(self) -> list[FeatureStore]:
        """All stores that are read, the task's own first."""
        return [
            self.store,
            *(store for _, store in self.transfer_sets),
            *(one.store for one in self.auxiliary.values()),
        ]


def open_inputs(spec: dict, arguments: Namespace) -> list[Inputs]:
    """Open what the parsed arguments name, one Inputs for each view that the run reads.

    No device is claimed, so that hashing keeps nobody from one, but where payloads were freed: they are made again.
    Raises UserError for a folder that was made for another spec.
    """
    plugins.verify_plugins(spec, arguments.catalogues)
    digests = spec["features"] if isinstance(spec["features"], list) else [spec["features"]]
    check_digest(arguments.data / "card.json", spec["data"])
    check_digest(arguments.encoder / "card.json", spec["encoder"])
    corpus = Corpus(arguments.data)
    target = spec["task"]["target"]
    rows = read_rows(spec, corpus)
    stores = [
        open_store(folder, expected, spec, arguments.encoder, rows)
        for folder, expected in zip(arguments.features, digests, strict=True)
    ]
    views = [Inputs(corpus, store, arguments.encoder) for store in stores]
    data, tokens = _by_digest(arguments.also_data), _by_digest(arguments.also_tokens)
    targets = texts_read(spec.get("phases", []))
    for entry in spec.get("also", []):
        other = TransferSet.of(entry, Corpus(data(entry["data"])), corpus.labels(target))
        read = other.rows(("train",) if entry["task"]["id"] in targets else ())
        for inputs, expected in zip(views, entry["features"], strict=True):
            inputs.transfer_sets.append((other, open_store(tokens(expected), expected, spec, arguments.encoder, read)))
    for entry in spec.get("auxiliary", []):
        folders = {"data": data(entry["data"]), "features": [tokens(one) for one in entry["features"]]}
        of_it = open_inputs(of_task(spec, entry), Namespace(**vars(arguments) | folders))
        views[0].auxiliary[entry["task"]["id"]] = of_it[0]
    return views


def _by_digest(cards: list[Path]) -> Callable[[str], Path]:
    """Return what finds, by the digest of its card, the folder of another task's corpus or store.

    Snakemake gives each file once, whichever tasks and views read it, so that their order says nothing.
    """
    folders = {read_json(card)["digest"]: card.parent for card in cards}

    def folder_of(digest: str) -> Path:
        if digest not in folders:
            given = ", ".join(map(str, cards)) or "no file"
            raise UserError(f"none of {given} has the digest {digest} that was planned; run the workflow again")
        return folders[digest]

    return folder_of


def open_adapted(spec: dict, cards: list[Path], runs: list[Path], base: Inputs) -> dict[int, Inputs]:
    """Return by seed the encoder as a run left it, with its states; nothing without runs.

    Args: spec of a probe; card.json of these states and metrics.json of the runs, both in the order of its seeds;
    what is read of the pretrained encoder. Raises UserError where one of them is another than planned for.
    """
    by_seed = {}
    for seed, card, run in zip(spec["seeds"] if "adapted" in spec else [], cards, runs, strict=True):
        check_digest(card, spec["adapted"][str(seed)])
        store = FeatureStore(card.parent)
        store.require(spec["read"])
        adapted = AdaptedEncoder.of(base.encoder, run, read_json(card)["spec"]["run"])
        by_seed[seed] = Inputs(base.corpus, store, base.encoder, base.device, adapted=adapted)
    return by_seed


def open_needs(spec: dict, arguments: Namespace) -> dict[str, Path]:
    """Return the file of all that a run needs of other jobs, by role.

    Args: the run's spec; the parsed arguments. Raises UserError for what is missing, or was made for another spec.
    """
    given, needs = {role: [Path(file) for file in files] for role, *files in arguments.need}, {}
    for role, expected in stated_needs(spec).items():
        if not given.get(role):
            raise UserError(f"--need {role}: the spec names a result of digest {expected}, and no file was given")
        # of a training of several tasks each has a teacher
        files = [file for file in given[role] if len(given[role]) == 1 or read_json(file).get("digest") == expected]
        needs[role] = [*files, *given[role]][0]
        check_digest(needs[role], expected)
    return needs


def chosen(needs: dict[str, Path]) -> dict:
    """Return the settings that a search chose for a run, and the number of their trial; nothing without a search.

    Args: what `open_needs` gives.
    """
    if "settings" not in needs:
        return {}
    choice = read_json(needs["settings"])
    return {"trial": choice["trial"], **choice["settings"]}


def open_store(folder: Path, expected: str, spec: dict, encoder: Path, rows: dict[str, np.ndarray]) -> FeatureStore:
    """Open a store of a digest, its payloads made again where they were freed, with the rows that a job reads.

    The store is locked while a device is waited for, and never the other way round, so that no two jobs wait for each
    other.
    """
    check_digest(folder / "tokens.json", expected)
    store = FeatureStore(folder)

    def make_again(missing: list[int | str], masks: RowMasks) -> None:
        import_code(encoder)  # takes seconds, in which another job may compute
        with claim_device() as device:
            remake(store, encoder, missing, device, masks)

    store.require(stored_parts_read(spec.get("phases", [])), make_again, rows)
    return store
