"""What is wanted: outputs, the store, what the numbers depend on beside the method, and the experiment."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.declarations.probes import PROBES
from thaw.schema.entry import CatalogueEntry, Id, Text
from thaw.schema.keys import ConfigModel, names
from thaw.schema.phases import PhaseConfig
from thaw.schema.trainer_keys import EXPERIMENT_ANSWERS, keys_of_a_phase

IN_A_STRATEGY = "in phases: of a strategy of your own (config/strategies.yaml)"

BASELINES = ("majority", "bag_of_words")  # without an encoder
# runs beside the selected ones: head, strategy, and what is added to the encoder's id
RUN_BASELINES = {"cosine": ("cosine", "frozen_separate", ""), "random_encoder": ("linear", "frozen", "_random")}

BESIDE_WHOLE = (
    "serving_table",
    "saving_figure",
    "gain_figure",
    "comparison_table",
    "relative_table",
)  # what compares with one strategy, that which trains everything


class OutputConfig(CatalogueEntry):
    """A table or a figure."""

    kind: Literal[
        "strategy_table",
        "transfer_table",
        "paper_table",
        "finding_table",
        "advice_table",
        "serving_table",
        "spread_table",
        "comparison_table",
        "guideline_table",
        "relative_table",
        "parameter_table",
        "layer_figure",
        "cost_figure",
        "size_figure",
        "trial_figure",
        "saving_figure",
        "gradient_figure",
        *dict.fromkeys(figure for probe in PROBES.values() for figure in probe.figures),
    ]
    caption: Text
    split: Literal["test", "validation"] = "test"
    cost: Literal["seconds", "flops", "parameters"] = Field("seconds", description="cost_figure: the horizontal axis")
    last: bool | None = Field(
        None, description="information_figure: what a layer shares with the last one, not with labels"
    )
    paper: Id | None = Field(None, description="paper_table: a file of reference/, as lee2019")
    table: Id | None = Field(None, description="paper_table: one of that file's tables")
    margin: float = Field(
        1.0,
        gt=0,
        description="advice_table, serving_table: points that a cheaper one may lose; guideline_table: that are none",
    )
    sweep: Id | None = Field(None, description="serving_table: a strategy with a sweep over thawed layers")
    whole: Id | None = Field(None, description=f"{', '.join(BESIDE_WHOLE)}: what trains everything")
    negative: Literal["keep", "zero", "running_max"] | None = Field(
        None, description="mix_figure: what a layer that takes away from the score counts as; keep unless stated"
    )

    @model_validator(mode="after")
    def _some_kinds_name_what_they_show(self):
        if (self.kind == "paper_table") != bool(self.paper) or bool(self.paper) != bool(self.table):
            raise ValueError("paper and table belong to kind paper_table, which needs both")
        if (self.kind == "serving_table") != bool(self.sweep):
            raise ValueError("sweep belongs to kind serving_table, which needs it")
        if (self.kind in BESIDE_WHOLE) != bool(self.whole):
            raise ValueError(f"whole belongs to the kinds {', '.join(BESIDE_WHOLE)}, which need it")
        return self


class StoreConfig(BaseModel):
    """How frozen features are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    dtype: Literal["bf16", "fp32"] = "bf16"
    max_gib: float = Field(20.0, ge=0, description="most GiB for one encoder and corpus; above it fewer boundaries")
    free: bool = Field(False, description="delete the states of a store when all that read them here are done")


class ComputeConfig(BaseModel):
    """What the numbers depend on beside the method."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    threads: int = Field(2, ge=1, le=256)


class ScaleDownConfig(BaseModel):
    """How an experiment is cut to what is at hand; the key of the overlay config/experiments/offline.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    stand_in: Id | None = Field(None, description="this encoder in the place of all")
    local_only: bool = Field(False, description="no Hub: tasks without local files or a grammar are left out")
    subsets: list[Id] = Field([], description="in the place of the experiment's")
    seeds: list[Annotated[int, Field(ge=0)]] = Field([], description="in the place of the experiment's")
    search_seeds: int | None = Field(None, ge=1, description="in the place of the experiment's")


class ExternalConfig(CatalogueEntry):
    """Predictions that were made elsewhere, scored and shown beside the runs."""

    predictions: dict[Id, Text] = Field(min_length=1, description="task: its .csv, .tsv, .jsonl or .parquet file")


class EnsembleMemberConfig(BaseModel):
    """Runs that an ensemble is made of: a strategy with its seeds."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    strategy: Id
    value: int | None = Field(None, description="the point of a strategy with a sweep")
    encoder: Id | None = Field(None, description="unless stated the experiment's only one")
    head: Id | None = Field(None, description="unless stated the experiment's only one")
    seeds: list[Annotated[int, Field(ge=0)]] = Field([], description="unless stated the experiment's")


class EnsembleConfig(CatalogueEntry):
    """Several runs whose answers are put together, shown beside them."""

    by: Literal["mean", "majority"] = Field("mean", description="of probabilities or scores; of labels or tags")
    tasks: list[Id] = Field([], description="unless stated all of the experiment's that its members are run on")
    members: list[EnsembleMemberConfig] = Field(min_length=1)


class ExperimentConfig(ConfigModel):
    """A selection: which runs and outputs are wanted."""

    answers: ClassVar[dict[str, str]] = keys_of_a_phase(names(PhaseConfig), IN_A_STRATEGY) | EXPERIMENT_ANSWERS
    experiment: Id = Field(description="its name, and its folder under results/outputs")
    title: Text
    tasks: list[Id] = Field(min_length=1)
    encoders: list[Id] = Field(min_length=1)
    strategies: list[Id | dict[Id, list[int]]] = Field(
        min_length=1, description="an id, or {id: [points of its sweep]}"
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    search_seeds: int | None = Field(None, ge=1, description="how many of a search's seeds are used, at most; else all")
    outputs: list[Id] = Field(min_length=1)
    optional: list[Id] = Field([], description="of the encoders: left out, and said so, where their files are missing")
    heads: list[Id] = ["linear"]
    subsets: list[Id] = ["all"]
    probes: list[Id] = Field([], description="of the encoders as they were pretrained, on every task that they serve")
    adapted: list[Id | dict[Id, list[int]]] = Field(
        [], description="of the strategies, or points of their sweeps: probes read what their runs leave, too"
    )
    probe_tasks: list[Id] = Field([], description="further tasks that probes read; nothing trains on them")
    gradients: bool = Field(False, description="runs note in each epoch how large the gradient of each layer was")
    baselines: list[Literal[BASELINES + tuple(RUN_BASELINES)]] = []
    external: dict[Id, ExternalConfig] = Field({}, description="id: predictions that were made elsewhere, by task")
    ensembles: dict[Id, EnsembleConfig] = Field({}, description="id: runs whose answers are put together")
    catalogues: list[str] = Field([], description="further folders with tasks.yaml, encoders.yaml, ... of your own")
    data_dir: str = Field("data", description="folder that file sources are relative to")
    sources: list[Literal["synthetic", "files", "hub"]] = Field(
        ["synthetic", "files", "hub"], min_length=1, description="order in which a corpus' sources are tried"
    )
    store: StoreConfig = StoreConfig()
    compute: ComputeConfig = ComputeConfig()
    scale_down: ScaleDownConfig | None = Field(None, description="cut the experiment to what is at hand")
    allow_missing: bool = Field(
        False, description="draw the outputs from the results that are there, and make no others"
    )
    budget: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?[smh]$")] | None = Field(
        None,
        description="2h, 45m, 90s: scripts/budget.py runs what fits, cheap first; Snakemake alone draws what is there",
    )
    pathvars: dict[str, str] = Field({}, description="Snakemake's own: where results and logs lie")

    @property
    def partial(self) -> bool:
        """Whether outputs are drawn from what is there."""
        return self.allow_missing or self.budget is not None
