"""What is wanted: the store, what the numbers depend on besides the method, and the experiment."""

from functools import cached_property
from os.path import relpath
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator

from thaw.core.boundaries import cacheable_layers
from thaw.core.errors import UserError, suggestion
from thaw.schema.corpora import CorpusConfig
from thaw.schema.encoder import RANDOM_TWIN, EncoderConfig, EncoderName
from thaw.schema.entry import CatalogueEntry, Id, Text
from thaw.schema.keys import OF_AN_EXPERIMENT, ConfigModel, Inner
from thaw.schema.phases import PhaseConfig, Precision
from thaw.schema.yaml_files import Document, read_yaml


class SelectionFiles(Document):
    """A merged configuration that knows its files, which are read again only when a mistake needs its place.

    Args: the files, from left to right; the merged configuration.
    """

    def __init__(self, files, config: dict):
        super().__init__("--config" if files else "config", config)
        self.files = list(dict.fromkeys(map(_shown, files)))

    @cached_property
    def documents(self) -> list[Document]:
        return [read_yaml(file) for file in self.files]

    def has(self, keys: tuple) -> bool:
        return any(document.has(keys) for document in self.documents)

    def place(self, keys) -> str:
        """Return `file:line` of the deepest key on a path; of an item of a list where its index or id is next.

        A later file replaces what an earlier one has, except in a mapping. What is in no file was given by --config.
        """
        keys, place, documents = tuple(map(str, keys)), self.name, self.documents
        merged: Any = self.content
        if self.files and (not keys or keys[0] not in merged):  # a key that nobody wrote
            return self.files[0]
        for depth, key in enumerate(keys, 1):
            documents = [document for document in documents if document.has(keys[:depth])]
            if not documents:
                return place
            written, merged = _value(documents[-1].content, keys[:depth]), merged.get(key)
            if not isinstance(written, dict):
                return (
                    documents[-1].place((*keys[:depth], *_index(written, keys[depth:]))) if written == merged else place
                )
            place = documents[-1].place(keys[:depth])
        return place


def _shown(file) -> str:
    """Return a path as one types it here: Snakemake makes all of them absolute."""
    return relpath(file) if Path(file).is_absolute() and Path(file).is_relative_to(Path.cwd()) else str(file)


def _value(content: dict, keys: tuple[str, ...]):
    """Return what a path of keys leads to."""
    for key in keys:
        content = next(value for name, value in content.items() if str(name) == key)
    return content


def _index(values, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path into a list whose first word may be an item, or the only key of one, in the place of an index."""
    if not keys or not isinstance(values, list):
        return keys
    names = [str(next(iter(value), "") if isinstance(value, dict) else value) for value in values]
    return (str(names.index(keys[0])) if keys[0] in names else keys[0], *keys[1:])


class MergeConfig(CatalogueEntry):
    """Several tasks on one trunk, as one folder that serves: of each task one of the runs that are named."""

    tasks: list[Id] = Field([], description="default: all tasks of the experiment")
    strategies: list[Id | dict[Id, list[int]]] = Field(
        min_length=1, description="whose runs may be taken: an id, or {id: [points of its sweep]}"
    )
    choose: Literal["cheapest", "best", "mixed"] = Field(
        "cheapest",
        description="by validation. cheapest: fewest executed layers of all tasks together within the margin of each "
        "task's best; best: the highest score; mixed: on the trunk of the task's best teacher a larger student is "
        "taken while it gains the margin; then the teacher, if it does (Wei et al. 2022)",
    )
    margin: float = Field(1.0, ge=0, description="points x 100; of the mean over the experiment's seeds")
    encoder: EncoderName | None = Field(None, description="default: the only one of the experiment")
    head: Id | None = Field(None, description="default: the only one of the experiment")
    seed: Annotated[int, Field(ge=0)] | None = Field(
        None, description="of the runs that are served; default: the first"
    )


BASELINES = ("majority", "bag_of_words")  # without an encoder
MOST_COUNTED = 20  # a larger number is a seed whose brackets are missing
# runs in addition to the selected ones: head, strategy, and what is added to the encoder's id
RUN_BASELINES = {
    "cosine": ("cosine", "frozen_separate", ""),
    "random_encoder": ("linear", "linear_probe", RANDOM_TWIN),
}


class StoreConfig(BaseModel):
    """How hidden states are computed and stored."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    dtype: Literal["bf16", "fp32"] = Field("bf16", description="data type of stored hidden states")
    precision: Literal["fp32", "bf16"] = Field(
        "fp32",
        description="how they are computed; bf16: autocast, as in a phase, which is faster where the processor or GPU "
        "computes in it",
    )
    max_gib: float = Field(
        20.0,
        ge=0,
        description="largest GiB of the token states of an encoder and corpus; above it fewer layers are cached",
    )
    free: bool = Field(
        False, description="delete stored hidden states when every run of the experiment that reads them is done"
    )

    @property
    def states(self) -> dict:
        """Return what a spec says of hidden states: their dtype, and the precision where it is not the default."""
        return {"dtype": self.dtype} | self.model_dump(include={"precision"}, exclude_defaults=True)

    def boundaries(self, encoder: EncoderConfig, corpus: CorpusConfig) -> list[int]:
        """Return the boundaries of an encoder on a corpus that fit the budget, by the sizes in the catalogue."""
        tokens = corpus.size.tokens if corpus.size else None
        return cacheable_layers(encoder.layers, encoder.width, tokens, self.dtype, self.max_gib)


class ComputeConfig(BaseModel):
    """Settings of the machine that change numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    threads: int = Field(2, ge=1, le=256, description="CPU threads of one job")
    precision: Precision = Field(
        "fp32",
        exclude=True,  # a spec has it in the phases
        description="precision of the phases that state none of their own, but for lbfgs",
    )
    batch_gib: float | None = Field(None, gt=0, exclude=True, description="that of the phases that state none, in GiB")

    @property
    def of_phases(self) -> dict[str, Any]:
        """What phases have that say nothing of their own, by their keys."""
        said = {"precision": self.precision, "batch_gib": self.batch_gib}
        return {name: value for name, value in said.items() if value not in (None, "fp32")}


def threads_of(spec: dict) -> int:
    """Return the threads with which a job computes, as its spec has them."""
    return ComputeConfig.model_validate(spec["compute"]).threads


class EnsembleMemberConfig(BaseModel):
    """Runs that an ensemble is made of: a strategy with its seeds."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    strategy: Id = Field(description="the strategy of the runs")
    value: int | None = Field(None, description="the point of a strategy with a sweep")
    encoder: EncoderName | None = Field(None, description="default: the only one of the experiment")
    head: Id | None = Field(None, description="default: the only one of the experiment")
    seeds: list[Annotated[int, Field(ge=0)]] = Field([], description="default: those of the experiment")


class EnsembleConfig(CatalogueEntry):
    """Several runs whose predictions are combined, shown with them."""

    by: Literal["mean", "weights", "interpolation"] = Field(
        "mean",
        description="mean of probabilities or scores; weights: one model with the mean of "
        "the runs' weights (a soup); interpolation: with weights between the mean of the first member's runs and that "
        "of the second's, the share chosen on validation (WiSE-FT)",
    )
    tasks: list[Id] = Field([], description="default: all tasks of the experiment that its members are run on")
    members: list[EnsembleMemberConfig] = Field(min_length=1, description="the runs that are combined")


class ExperimentConfig(ConfigModel):
    """A selection: which runs and outputs are wanted."""

    hints: ClassVar[dict[str, str]] = OF_AN_EXPERIMENT
    inner: ClassVar[Inner] = Inner(PhaseConfig, "in phases: of a strategy of your own (config/strategies.yaml)")
    experiment: Id = Field(description="its name, and its folder under results/outputs")
    title: Text = Field(description="title of the report")
    tasks: list[Id] = Field(min_length=1, description="tasks of config/tasks.yaml")
    encoders: list[EncoderName] = Field(
        min_length=1,
        description="encoders of config/encoders.yaml, owner/name of the Hub, or folders; bert_random is bert with "
        "random weights",
    )
    strategies: list[Id | dict[Id, list[int]]] = Field(
        min_length=1, description="strategies of config/strategies.yaml: an id, or {id: [points of its sweep]}"
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(
        min_length=1, description="one run for each seed; 3 means [1, 2, 3]"
    )
    search_seeds: int | None = Field(None, ge=1, description="most seeds of a search that are used; default: all")
    outputs: list[Id] = Field(min_length=1, description="tables and figures of config/outputs.yaml")
    optional: list[EncoderName] = Field(
        [], description="encoders that are left out, with a note, if their files are missing"
    )
    optional_tasks: list[Id] = Field(
        [], description="tasks that are left out, with a note, if their data have no source here"
    )
    heads: list[Id] = Field(["linear"], min_length=1, description="heads and sets of heads of config/heads.yaml")
    subsets: list[Id] = Field(["all"], min_length=1, description="training subsets of config/tasks.yaml")
    only: dict[EncoderName, list[EncoderName]] = Field(
        {},
        description="for a strategy, encoder, head or task those others that it is run with; a kind of which the list "
        "names none is not limited; default: all",
    )
    probes: list[Id] = Field(
        [], description="probes of config/probes.yaml, on the pretrained encoders and every task that they fit"
    )
    adapted: list[Id | dict[Id, list[int]]] = Field(
        [], description="strategies, or points of their sweeps, whose trained encoders are probed too"
    )
    probe_tasks: list[Id] = Field([], description="further tasks for probes; no strategy is trained on them")
    baselines: list[Literal[BASELINES + tuple(RUN_BASELINES)]] = Field([], description="baselines for comparison")  # type: ignore[valid-type]
    ensembles: dict[Id, EnsembleConfig] = Field({}, description="id: runs whose predictions are combined")
    merges: dict[Id, MergeConfig] = Field({}, description="id: runs of several tasks that are merged on one trunk")
    catalogues: list[str] = Field([], description="your own folders with tasks.yaml, encoders.yaml, ...")
    data_dir: str = Field("data", description="folder that file sources are relative to")
    sources: list[Literal["synthetic", "files", "hub"]] = Field(
        ["synthetic", "files", "hub"], min_length=1, description="where corpora may come from, in this order"
    )
    store: StoreConfig = Field(StoreConfig(), description="how hidden states are computed and stored")
    compute: ComputeConfig = Field(ComputeConfig(), description="settings of the machine that change numbers")
    allow_missing: bool = Field(
        False, description="make tables, figures and report from the finished runs, and train nothing"
    )
    pathvars: dict[str, str] = Field({}, description="Snakemake's own: folders of results and logs")

    @field_validator("subsets", mode="before")
    @classmethod
    def _subsets_are_ids(cls, subsets):
        numbers = [word for word in subsets if isinstance(word, int)] if isinstance(subsets, list) else []
        if numbers:
            raise ValueError(
                f"{numbers[0]} is no id; n1000_d1 is a draw of 1,000 examples, `thaw list subsets` has those that exist"
            )
        return subsets

    @field_validator("tasks", "encoders", "strategies", "outputs", "heads", "subsets", mode="before")
    @classmethod
    def _one_is_a_list(cls, ids):
        return [ids] if isinstance(ids, str) else ids

    @field_validator("seeds", mode="before")
    @classmethod
    def _count_is_a_list(cls, seeds):
        count = type(seeds) is int and 1 <= seeds <= MOST_COUNTED
        return list(range(1, seeds + 1)) if count else seeds

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, seeds):
        twice = [seed for seed in seeds if seeds.count(seed) > 1]
        if twice:
            raise ValueError(f"seed {twice[0]} is listed twice; each seed is one run")
        return seeds

    _written: SelectionFiles = PrivateAttr(default_factory=lambda: SelectionFiles((), {}))

    def written_in(self, files: SelectionFiles) -> "ExperimentConfig":
        """Return the experiment, which now knows where its keys were written."""
        self._written = files
        return self

    @property
    def folders(self) -> list[Path]:
        return list(dict.fromkeys(Path(file).parent for file in self._written.files))

    def meet(self, *parts: str) -> bool:
        """Return whether parts of a run (task, encoder, head, strategy) are run with each other, as `only` says."""
        for part in filter(self.only.__contains__, parts):
            allowed = set(self.only[part])
            strategies = [item if isinstance(item, str) else next(iter(item)) for item in self.strategies]
            kinds = (self.tasks, self.encoders, self.heads, strategies)
            for kind, other in zip(kinds, parts, strict=False):
                if allowed.intersection(kind) and other not in allowed:
                    return False
        return True

    def only_one(self, kind: str, place: str) -> str:
        """Return the only encoder or head. Raises UserError of several. Args: place of what names none."""
        known = getattr(self, f"{kind}s")
        if len(known) > 1:
            raise UserError(f"{place}: the experiment has several {kind}s; say {kind}: {known[0]}")
        return known[0]

    def tasks_of(self, named: list[str], place: str) -> list[str]:
        """Return those of its tasks that are named, all where none is. Raises UserError for another one."""
        if unknown := [task for task in named if task not in self.tasks]:
            raise UserError(f"{place}: the experiment has no task {unknown[0]!r}{suggestion(unknown[0], self.tasks)}")
        return [task for task in self.tasks if task in (named or self.tasks)]

    def with_ids(self, catalogue) -> "ExperimentConfig":
        """Return the experiment with the ids of a catalogue in the place of its aliases."""
        return type(self).model_validate(catalogue.with_ids(self._written.content)).written_in(self._written)

    def place(self, *keys: str, item: str | None = None) -> str:
        """Return `file:line: key.key` for a mistake noticed later. Args: keys; an item of the list there."""
        return f"{self._written.place([*keys, item] if item else keys)}: {'.'.join(keys)}"
