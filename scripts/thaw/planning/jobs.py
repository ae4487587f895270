"""Jobs as the plan knows them: what each step is asked to make, under which spec, from which files. No torch.

A job is stored under its step and a key, which is made of the names in its path.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import NamedTuple

from thaw.adaptation.selectors import thawed_layers
from thaw.core import layout
from thaw.core.digests import canonical, digest
from thaw.core.errors import UserError, suggestion
from thaw.core.steps import STEPS


def store_of(tokens: str) -> str:
    """Return the key of the store whose tokens a card lists; its results folder may be a copy."""
    names = layout.names_in_folder("features", PurePath(*PurePath(tokens).parts[-5:-1]))
    return layout.key("features", names)


def corpus_of(store: str) -> str:
    return layout.names_in_key("features", store)["corpus"]


def encoder_of(store: str) -> str:
    """Return the catalogue's encoder behind a store, by its key."""
    return layout.encoder_of(layout.names_in_key("features", store)["weights"])


def adapted_key(run: str, task: str) -> str:
    """Return the key of the hidden states that a run's encoder gives on a task. Args: the folder of the run."""
    return layout.key("features_adapted", layout.names_in_folder("train", run) | {"probed": task})


def result_folder(step: str, key: str) -> str:
    """Return the folder of a job's results below the results folder."""
    return layout.folder(step, layout.names_in_key(step, key))


class Result(NamedTuple):
    """A result of a job; `fit_heads` has one for each seed."""

    step: str
    key: str
    seed: int | None = None


class PlannedDigest(str):
    """The planned digest of a result that may be on record under another: a run, or what is made from runs."""

    result: Result

    @classmethod
    def of(cls, result: Result, digest: str) -> "PlannedDigest":
        """Return the digest of a result, which is known in every spec that names it."""
        named = cls(digest)
        named.result = result
        return named


@dataclass(frozen=True)
class Job:
    """One job of a step: its spec, and the made files that it reads, by name."""

    spec: dict
    inputs: dict[str, list[str]]

    @property
    def canonical(self) -> str:
        return canonical(self.spec)

    @property
    def store(self) -> str:
        """The key of the store that it reads; of several, the first."""
        return store_of(self.inputs["tokens"][0])

    @property
    def fits_to_convergence(self) -> bool:
        """Whether it fits a linear head to convergence, and trains nothing else."""
        return [phase.get("optimizer") for phase in self._phases] == ["lbfgs"]

    @property
    def trains_layers(self) -> bool:
        """Whether a phase trains layers of the encoder."""
        return any(thawed_layers(phase["components"]) for phase in self._phases)

    @property
    def _phases(self) -> list[dict]:
        return self.spec["phases"]

    @cached_property
    def named(self) -> list[PlannedDigest]:
        """The digests in its spec of results that may be on record under others."""
        return list(_named_in(self.spec))

    @cached_property
    def digest(self) -> str:
        return digest(self.spec)


def _named_in(value) -> Iterator[PlannedDigest]:
    if isinstance(value, PlannedDigest):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _named_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named_in(item)


class JobTable:
    """All jobs, by step and key.

    Attributes: results, their folder; jobs, {step: {key: Job}}; boundaries and vectors, {store: those that some run
    reads}; taught, {key of a teacher's outputs: the boundaries of its hidden states that some student is matched to};
    seeds, those that a fitted head is made with; executed, {step: {(head, strategy)}}.
    """

    def __init__(self, results: str, seeds: set[int]):
        self.results = results
        self.jobs: dict[str, dict[str, Job]] = {step: {} for step in STEPS}
        self.boundaries: dict[str, list[int]] = {}
        self.vectors: dict[str, list[str]] = {}
        self.taught: dict[str, set[int | str]] = {}
        self.seeds = set(seeds)
        self.executed: dict[str, set[tuple[str, str]]] = {step: set() for step in STEPS}

    def add(self, step: str, key: str, spec: dict, inputs: dict) -> Job:
        self.jobs[step][key] = Job(spec, inputs)
        return self.jobs[step][key]

    def job(self, step: str, key: str) -> Job:
        """Return one job; an unknown key is a UserError that lists what the plan holds."""
        if key not in self.jobs[step]:
            raise UserError(f"{step}: {key!r} is not in this plan{suggestion(key, list(self.jobs[step])[:20])}")
        return self.jobs[step][key]

    def digest(self, result: Result) -> PlannedDigest:
        job = self.job(result.step, result.key)
        return PlannedDigest.of(result, job.digest if result.seed is None else digest(job.spec | {"seed": result.seed}))

    def file(self, step: str, key: str, seed: int | None = None) -> str:
        """Return the file by which a job is known to be done. Args: as a `Result` has them."""
        names = layout.names_in_key(step, key) | ({} if seed is None else {"seed": str(seed)})
        return f"{self.results}/{layout.file(step, names)}"

    def result(self, folder: str, name: str = "metrics.json") -> str:
        """Return a file of a result. Args: its folder below the results folder."""
        return f"{self.results}/{folder}/{name}"

    def parts(self, store: str, parts: Iterable[int | str]) -> list[str]:
        """Return the cards of some parts of a store: boundaries by number, and vectors of all layers by name."""
        folder = f"{self.results}/{result_folder('features', store)}"
        return [layout.stored_part(folder, part) for part in parts]

    def files(self, step: str, key: str) -> list[str]:
        """Return the declared results by which a job is known to be done."""
        if step == "features":
            return self.cards(key)
        if step == "fit_heads":
            return [self.file(step, key, seed) for seed in sorted(self.seeds)]
        if step == "teach":
            card = self.file(step, key)
            folder = card.rpartition("/")[0]
            return [card, *(layout.stored_part(folder, n) for n in sorted(self.taught[key], key=str))]
        return [self.file(step, key)]

    def cards(self, key: str) -> list[str]:
        """Return the cards that a store declares: its tokens and each part that some run reads."""
        return [self.file("features", key), *self.parts(key, [*self.boundaries[key], *self.vectors[key]])]
