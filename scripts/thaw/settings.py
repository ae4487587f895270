"""The shape of every catalogue entry and of an experiment: what a key means, its default, its limits.

A spec holds an entry without its display keys and without values equal to the default (`spec_of`), so that a new
option orphans no finished result. Unknown keys are errors; `thaw.catalogue` names the near misses.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Id = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,60}$")]
Text = Annotated[str, Field(min_length=1)]
Rate = Annotated[float, Field(gt=0, lt=10)]
Share = Annotated[float, Field(gt=0, lt=1)]

TASK_TYPES = ("classification", "pair_classification", "regression", "pair_regression", "tagging", "spans")
METRICS = ("accuracy", "f1", "f1_macro", "mcc", "pearson", "spearman", "span_f1")
METRICS_OF_TYPE = {
    "classification": ("accuracy", "f1", "f1_macro", "mcc"),
    "pair_classification": ("accuracy", "f1", "f1_macro", "mcc"),
    "regression": ("pearson", "spearman"),
    "pair_regression": ("pearson", "spearman"),
    "tagging": ("accuracy",),
    "spans": ("span_f1", "accuracy"),
}
TARGET_OF_TYPE = {
    "classification": "label",
    "pair_classification": "label",
    "regression": "score",
    "pair_regression": "score",
    "tagging": "tags",
    "spans": "tags",
}
GRAMMARS = ("acceptability", "sentiment", "entities", "inference", "paraphrase", "similarity")
BASELINES = ("majority", "bag_of_words")


class Entry(BaseModel):
    """Anything that stands in a catalogue: it may carry a label for print, and forbids keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    label: Text | None = Field(None, description="name in tables and figures; never part of a spec")


class View(Entry):
    """How a corpus is fed to an encoder."""

    pairs: Literal["joint"] = Field("joint", description="joint: both texts of a pair in one sequence")
    max_length: int = Field(128, ge=4, le=8192, description="longest sequence in tokens, special tokens included")


class Source(BaseModel):
    """What files and Hub data sets have in common: which of their columns and values are which of ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    splits: dict[Id, Text] = Field(description="our split name: their file below data_dir, or their split")
    columns: dict[Id, str | int] = Field({}, description="our column: theirs, by name or by position from 0")
    rename: dict[Id, dict[str, str]] = Field({}, description="column: {their label: our label}")
    scheme: Literal["bio", "iob1"] = Field("bio", description="how their span tags are written; ours are bio (IOB2)")


class Files(Source):
    """A corpus in local files, as published."""

    format: Literal["csv", "tsv", "jsonl", "parquet", "conll", "conllu"]
    quoting: Literal["none", "double"] | None = Field(None, description="csv and tsv must say: are quotes quotes?")
    header: bool = Field(True, description="csv and tsv: the first line names the columns")
    encoding: str = "utf-8"

    @model_validator(mode="after")
    def _quoting_is_stated(self):
        if self.format in ("csv", "tsv") and self.quoting is None:
            raise ValueError(f"a {self.format} source must state quoting: none or quoting: double")
        return self


class Hub(Source):
    """A corpus on the Hugging Face Hub."""

    id: Text
    config: str | None = Field(None, description="the Hub's configuration name, as mrpc in nyu-mll/glue")
    revision: str | None = Field(None, description="a commit or branch; the commit found is recorded either way")


class Size(BaseModel):
    """How large a corpus is over all splits, as measured: `plan` predicts the store's bytes from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    examples: int = Field(gt=0)
    tokens: int = Field(gt=0, description="word pieces of BERT's uncased vocabulary, special tokens included")


class Corpus(Entry):
    """Texts with their columns and splits, as `prepare` writes them."""

    texts: list[Id] = Field([], max_length=2, description="one text column, or the two of a pair")
    words: Id | None = Field(None, description="instead of texts: the column that holds a list of words")
    targets: dict[Id, Literal["label", "score", "tags"]] = Field(min_length=1)
    labels: dict[Id, list[str]] = Field({}, description="target: its labels in order; else those of train, sorted")
    keep: list[Id] = Field([], description="further columns to carry along")
    synthetic: Literal[GRAMMARS] | None = Field(None, description="written by Thaw's own grammar of this name")
    files: Files | None = None
    hub: Hub | None = None
    empty: Literal["error", "drop", "keep"] = Field("error", description="what to do with an empty text")
    group_by: Id = Field("sentence", description="what keeps rows together when carving: sentence, row, or a column")
    carve: dict[Id, Share] = Field({}, description="split to carve from train: share of its rows")
    size: Size | None = None

    @model_validator(mode="after")
    def _one_kind_of_text(self):
        if bool(self.texts) == bool(self.words):
            raise ValueError("a corpus has either texts: [column, ...] or words: column")
        if not (self.synthetic or self.files or self.hub):
            raise ValueError("a corpus needs a source: files, hub or synthetic")
        return self


class Task(Entry):
    """A corpus and a target in it."""

    corpus: Id
    target: Id
    type: Literal[TASK_TYPES]
    metrics: list[Literal[METRICS]] = Field(min_length=1, description="the first is the main one")
    view: Id = "joint"
    validation: Id = "validation"
    test: list[Id] = Field(["test"], min_length=1)
    protocol: Literal["clean", "paper"] = Field("clean", description="paper: selected and reported on one split")

    @model_validator(mode="after")
    def _metrics_fit_the_type(self):
        for metric in self.metrics:
            if metric not in METRICS_OF_TYPE[self.type]:
                fitting = ", ".join(METRICS_OF_TYPE[self.type])
                raise ValueError(f"metric {metric} does not fit type {self.type}; it takes {fitting}")
        if self.protocol == "clean" and self.validation in self.test:
            raise ValueError("validation is also a test split: name another, or say protocol: paper")
        return self


class Subset(Entry):
    """A seeded list of training rows: the first `rows` of a stratified permutation, so that sizes are nested."""

    rows: int | None = Field(None, ge=1, description="how many; all rows where it is left out")
    draw: int = Field(1, ge=1, description="which of the permutations")


class Encoder(Entry):
    """A pretrained model: weights, tokenizer, number of layers."""

    hub: Text | None = Field(None, description="Hub id")
    folder: Text | None = Field(None, description="local folder in Hugging Face form")
    package: Text | None = Field(None, description="name of an installed Python package that ships a model")
    path: str = Field("", description="folder of the model inside the package")
    revision: str | None = Field(None, description="Hub commit, where a source shows it; else resolved and recorded")
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="of the weights file, checked by fetch")
    layers: int = Field(gt=0)
    width: int = Field(gt=0)
    cased: bool
    objective: Text = Field(description="what it was pretrained to do")
    pretraining: list[str] = Field(min_length=1, description="corpora seen in pretraining")
    note: str | None = Field(None, description="a footnote for tables; never part of a spec")

    @model_validator(mode="after")
    def _one_source(self):
        given = [name for name in ("hub", "folder", "package") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError("an encoder needs exactly one of hub, folder and package")
        return self


class Head(Entry):
    """The task-specific module on top of the encoder."""

    kind: Literal["linear"]
    pooling: Literal["first", "mean", "max", "attention"] = Field(
        "first", description="how tokens become one vector; tagging reads each word's first piece instead"
    )
    dropout: float = Field(0.1, ge=0, lt=1)


class Phase(BaseModel):
    """Which parameters train, at which rates, on which schedule, until when."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    train: list[str | dict[Id, int | str]] = Field([], description="selectors: head, all, embeddings, {top: k}")
    optimizer: Literal["adamw", "lbfgs"] = Field("adamw", description="lbfgs: a linear head alone, to convergence")
    rate: Rate = Field(2e-5, description="peak learning rate")
    head_rate: Rate | None = Field(None, description="the head's own peak rate; else rate")
    schedule: Literal["linear", "constant", "cosine"] = "linear"
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps over which the rate rises")
    epochs: int = Field(3, ge=1, le=1000)
    batch_size: int = Field(32, ge=1)
    patience: int | None = Field(None, ge=1, description="stop after so many epochs without a better validation")
    pick: Literal["last", "best"] = Field("last", description="the epoch whose weights are kept, best by validation")
    weight_decay: float = Field(0.01, ge=0, description="on matrices; biases and norms have none")
    clip: float | None = Field(1.0, gt=0, description="largest gradient norm over the trained parameters")
    precision: Literal["fp32", "bf16"] = Field("fp32", description="bf16: autocast of the trained part")
    frozen_dropout: bool = Field(False, description="dropout stays on in frozen layers, as in some papers: no cache")
    l2: list[Annotated[float, Field(ge=0)]] = Field(
        [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0], min_length=1, description="lbfgs: strengths, chosen on validation"
    )

    @model_validator(mode="after")
    def _keys_of_the_optimizer(self):
        known = {"train", "optimizer", "l2"} if self.optimizer == "lbfgs" else set(type(self).model_fields) - {"l2"}
        for key in sorted(self.model_fields_set - known):
            raise ValueError(f"{key} has no meaning with optimizer {self.optimizer}; leave it out")
        return self


class After(BaseModel):
    """The run that a strategy starts from."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    strategy: Id
    variant: Id = "base"
    epoch: Literal["last", "best"] = "last"


class Strategy(Entry):
    """How the encoder is adapted: a list of phases."""

    about: str | None = Field(None, description="one sentence for people; never part of a spec")
    after: Id | After | None = Field(None, description="start from this strategy's run of the same task, head and seed")
    sweep: dict[Id, list[int] | Literal["layers"]] = Field(
        {}, max_length=1, description="one variable and its values; layers: 0 to L"
    )
    phases: list[Phase] = Field(min_length=1)
    keep: bool = Field(False, description="keep the encoder's trained tensors with the result")

    @model_validator(mode="after")
    def _lbfgs_stands_alone(self):
        solved = [phase for phase in self.phases if phase.optimizer == "lbfgs"]
        if solved and (len(self.phases) > 1 or self.after or self.sweep or list(solved[0].train) != ["head"]):
            raise ValueError("optimizer lbfgs fits a head alone: one phase, train: [head], no after, no sweep")
        return self


class Output(Entry):
    """A table or a figure."""

    kind: Literal["strategy_table", "layer_figure", "cost_figure"]
    caption: Text
    split: Literal["test", "validation"] = "test"
    cost: Literal["seconds", "flops"] = Field("seconds", description="cost_figure: the horizontal axis")


class Store(BaseModel):
    """How frozen features are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    dtype: Literal["bf16", "fp32"] = "bf16"
    max_gib: float = Field(20.0, ge=0, description="most GiB for one encoder and corpus; above it fewer boundaries")


class Compute(BaseModel):
    """What the numbers depend on beside the method."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    threads: int = Field(2, ge=1, le=256)


class Experiment(BaseModel):
    """A selection: which runs and outputs are wanted."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    experiment: Id = Field(description="its name, and its folder under results/outputs")
    title: Text
    tasks: list[Id] = Field(min_length=1)
    encoders: list[Id] = Field(min_length=1)
    strategies: list[Id | dict[Id, list[int]]] = Field(
        min_length=1, description="an id, or {id: [points of its sweep]}"
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    outputs: list[Id] = Field(min_length=1)
    heads: list[Id] = ["linear"]
    subsets: list[Id] = ["all"]
    baselines: list[Literal[BASELINES]] = []
    catalogues: list[str] = Field([], description="further folders with tasks.yaml, encoders.yaml, ... of your own")
    data_dir: str = Field("data", description="folder that file sources are relative to")
    sources: list[Literal["synthetic", "files", "hub"]] = Field(
        ["synthetic", "files", "hub"], min_length=1, description="order in which a corpus' sources are tried"
    )
    store: Store = Store()
    compute: Compute = Compute()
    pathvars: dict[str, str] = Field({}, description="Snakemake's own: where results and logs lie")


DISPLAY_KEYS = {"label", "note", "about", "caption", "size"}


def spec_of(entry: BaseModel, drop: frozenset = frozenset()) -> dict:
    """Return an entry as it stands in a spec: no display keys, no values equal to the default."""
    return entry.model_dump(mode="json", exclude_defaults=True, exclude=DISPLAY_KEYS | drop)
