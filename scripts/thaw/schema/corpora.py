"""Texts and tasks: views, sources, corpora, tasks, subsets."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.declarations.splits import PARTS_OF_TRAIN, splits_of
from thaw.declarations.task_types import (
    EDGE_METRICS,
    METRICS,
    METRICS_OF_TYPE,
    PROBE_ONLY_TYPES,
    TARGET_OF_TYPE,
    TASK_TYPES,
)
from thaw.schema.entry import CatalogueEntry, Cite, Id, Share, Text, Url, plugin_or
from thaw.schema.keys import Key

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "conll", "conllu", "label_text", "squad")
GROUPINGS = ("sentence", "phrase", "row")
GRAMMARS = ("acceptability", "entities", "paraphrase", "similarity")


class ViewConfig(CatalogueEntry):
    """How a corpus is fed to an encoder."""

    pairs: Literal["joint", "separate"] = Field(
        "joint", description="joint: both texts of a pair in one sequence; separate: each in one of its own"
    )
    max_length: int = Field(128, ge=4, le=8192, description="longest sequence in tokens, special tokens included")
    stride: int | None = Field(
        None,
        ge=1,
        description="span extraction: a long context is read in windows, each of which begins so many tokens after the "
        "one before (Devlin et al. 2019: 128); at most as many as a window holds",
    )

    @model_validator(mode="after")
    def _windows_have_room(self):
        if self.stride is not None and self.pairs == "separate":
            raise ValueError("stride: a window has question and context in one sequence; leave out pairs: separate")
        return self


class SourceConfig(BaseModel):
    """What files and Hub data sets have in common: which of their columns and values are which of ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    splits: dict[Id, Text] = Field(description="split name in Thaw: file below data_dir, or split on the Hub")
    columns: dict[Id, str | int | list[str | int]] = Field(
        {},
        description="column in Thaw: column in the source, by name or by position from 0; a list is joined by blanks",
    )
    until: dict[Id, Text] = Field({}, description="column: the character that ends its label; the rest is removed")
    rename: dict[Id, dict[str, str]] = Field({}, description="column: {label in the source: label in Thaw}")
    separators: dict[Id, Text] = Field(
        {}, description="column of kind label_set: the characters between labels that are one text, as ';'"
    )
    indicators: dict[Id, list[str | int]] = Field(
        {},
        description="column of kind label or label_set: columns in the source with 1 where a row has the label of that "
        "name, else 0; they replace one column in `columns`",
    )
    scheme: Literal["bio", "iob1"] = Field(
        "bio",
        description="scheme of the span tags in the source; Thaw stores bio (IOB2), and `rename` turns others into it",
    )
    offsets: bool = Field(
        False,
        description="whether tags are [first character, end, label] of a text, whose words and marks become the words",
    )


class FilesConfig(SourceConfig):
    """A corpus in local files, as published."""

    format: Literal[FORMATS] = Field(description="format of the files")  # type: ignore[valid-type]
    quoting: Literal["none", "double", "single", "backslash"] | None = Field(
        None,
        description="none if quotation marks are plain characters, double if they quote, backslash if one inside a "
        "field has a backslash, single if apostrophes quote; csv: default double; tsv: required",
    )
    delimiter: str | None = Field(
        None, min_length=1, max_length=1, description="csv: the character between fields; default: a comma"
    )
    header: bool | list[Id] = Field(
        True, description="csv and tsv: whether the first line names the columns; a list: the splits whose files do so"
    )
    encoding: str = Field("utf-8", description="character encoding of the files")
    marks: dict[Id, Text] = Field(
        {},
        description="csv and tsv: split: value of the first column in its rows, where one file holds several splits",
    )
    split_column: str | int | None = Field(
        None,
        description="the column that `marks` are values of, in any format with columns; csv and tsv: default the first",
    )
    words_by: str | int | None = Field(
        None,
        description="where a row holds one word: the column that numbers its sentence, in each row or in the first",
    )

    @model_validator(mode="after")
    def _keys_that_the_format_has(self):
        if self.format == "tsv" and self.quoting is None:
            raise ValueError("a tsv source must state quoting: none or quoting: double")
        if self.delimiter and (self.format != "csv" or self.delimiter in '"\r\n'):
            raise ValueError("delimiter is one character of a csv file, as ';'; fields of a tsv file are split at tabs")
        if self.format.startswith("conll") and any(isinstance(theirs, list) for theirs in self.columns.values()):
            raise ValueError(f"columns: several columns cannot be joined in a {self.format} file")
        if self.marks and self.format not in ("csv", "tsv") and self.split_column is None:
            raise ValueError(f"marks has no meaning with format {self.format} without split_column")
        return self

    @model_validator(mode="after")
    def _splits_that_there_are(self):
        for key, named in (("header", [] if isinstance(self.header, bool) else self.header), ("marks", self.marks)):
            for split in (split for split in named if split not in self.splits):
                raise ValueError(f"{key}: there is no split {split}; there are {', '.join(self.splits)}")
        return self


class HubConfig(SourceConfig):
    """A corpus on the Hugging Face Hub."""

    id: Text = Field(description="Hub id, as nyu-mll/glue")
    config: str | None = Field(None, description="the Hub's configuration name, as mrpc in nyu-mll/glue")
    revision: str | None = Field(None, description="a commit or branch; the commit found is recorded either way")


class SizeConfig(BaseModel):
    """How large a corpus is over all splits, as measured: `plan` predicts the store's bytes from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    examples: int = Field(gt=0, description="examples over all splits")
    tokens: int = Field(gt=0, description="word pieces of BERT's uncased vocabulary, special tokens included")
    train: float = Field(0.6, gt=0, le=1, description="share of both that is in train, before anything is carved of it")


def _or_a_list(schema: Any) -> None:
    schema["anyOf"].append({"type": "array", "items": schema["anyOf"][0]})


class CorpusConfig(CatalogueEntry):
    """Texts with their columns and splits, as `prepare` writes them."""

    texts: list[Id] = Field([], max_length=2, description="one text column, or the two of a pair")
    words: Id | None = Field(None, description="instead of texts: the column that holds a list of words")
    targets: dict[Id, Literal["label", "label_set", "score", "tags", "edges", "answers"]] = Field(
        min_length=1, description="column to predict: what it holds"
    )
    labels: dict[Id, list[str]] = Field({}, description="target: its labels in order; default: those of train, sorted")
    keep: list[Id] = Field([], description="further columns to keep")
    synthetic: Literal[GRAMMARS] | None = Field(None, description="written by Thaw's own grammar of this name")  # type: ignore[valid-type]
    files: FilesConfig | None = Field(None, description="local files, as published")
    hub: HubConfig | None = Field(
        None,
        description="a data set on the Hugging Face Hub, or a list of copies that are tried in this order",
        json_schema_extra=_or_a_list,
    )
    copies: list[HubConfig] = Field([], description="what a list at hub has after the first; never part of a spec")
    url: Url = []
    empty: Literal["error", "drop", "keep"] = Field("error", description="what to do with an empty text")
    only: dict[Id, list[str]] = Field({}, description="target: the labels whose rows are kept; default: all rows")
    group_by: Id = Field(
        "sentence",
        description="rows that stay together when a split is held out: those with the same sentence, phrase or column",
    )
    join: dict[Id, Annotated[list[Id], Field(min_length=2)]] = Field(
        {}, description="split: splits of the source that it replaces, their rows one after the other"
    )
    carve: dict[Id, Share] = Field({}, description="split: share of the training rows that is held out for it")
    cite: Cite = []
    licence: Text = Field("unknown", description="its licence, as its authors state it; never part of a spec")
    size: SizeConfig | None = Field(None, description="its size as measured, from which the plan predicts disk space")

    @model_validator(mode="before")
    @classmethod
    def _first_of_the_hub(cls, values):
        """Keep the first of a list at `hub` apart: it alone is in the spec, so that a further copy reruns nothing."""
        if isinstance(values, dict) and isinstance(hub := values.get("hub"), list) and hub:
            return values | {"hub": hub[0], "copies": hub[1:]}
        return values

    @property
    def text_columns(self) -> list[str]:
        return [self.words] if self.words else self.texts

    @property
    def on_hub(self) -> list[HubConfig]:
        return [self.hub, *self.copies] if self.hub else []

    @property
    def described_sources(self) -> list[FilesConfig | HubConfig]:
        return [*([self.files] if self.files else []), *self.on_hub]

    @model_validator(mode="after")
    def _has_texts_and_rows(self):
        if bool(self.texts) == bool(self.words):
            raise ValueError("a corpus has either texts: [column, ...] or words: column")
        if not (self.synthetic or self.files or self.hub):
            raise ValueError("a corpus needs a source: files, hub or synthetic")
        for source in self.described_sources:
            if "train" not in source.splits:
                raise ValueError(f"splits: name no train; there are {', '.join(source.splits)}")
        if (shares := sum(self.carve.values())) >= 1:
            raise ValueError(f"carve: the shares add up to {shares:g}; expected less than 1")
        return self

    @model_validator(mode="after")
    def _sources_fit_the_targets(self):
        for source in self.described_sources:
            for key in ("separators", "indicators"):
                for column in getattr(source, key):
                    if self.targets.get(column) not in ("label_set", *(["label"] if key == "indicators" else [])):
                        raise ValueError(f"{key}: {column} is no target of kind label_set")
            for column in source.indicators:
                if column in source.columns:
                    raise ValueError(f"indicators: {column} has columns already; state one of the two")
            if source.offsets and (not self.words or [*self.targets.values()] != ["tags"]):
                raise ValueError("offsets: expected words and one target, of kind tags")
        return self

    @model_validator(mode="after")
    def _texts_fit_the_targets(self):
        if "edges" in self.targets.values() and not self.words:
            raise ValueError("a target of kind edges needs words: the column whose words it counts")
        if "answers" in self.targets.values() and len(self.texts) != 2:
            raise ValueError("a target of kind answers needs texts: [question, context]")
        for column in self.only:
            if self.targets.get(column) != "label":
                raise ValueError(f"only: {column} is no target of kind label")
        if self.group_by == "phrase" and len(self.texts) != 1:
            raise ValueError("group_by: phrase is for a corpus with one text column")
        return self


class TransferSetConfig(BaseModel):
    """Another task on whose test splits every run of a task is scored too; nothing is trained or chosen on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    task: Id = Field(description="a task of the same type; scored by the metrics of this one")
    rename: dict[str, str] = Field(
        {}, description="label of this task: label of that one, where they differ; several may become one"
    )


class TaskConfig(CatalogueEntry):
    """A corpus and a target in it."""

    corpus: Id = Field(description="the corpus with its texts")
    target: Id = Field(description="the column of the corpus to predict")
    type: Literal[TASK_TYPES + PROBE_ONLY_TYPES] = Field(description="what is predicted, of which kind of text")  # type: ignore[valid-type]
    metrics: list[plugin_or("metric", METRICS + EDGE_METRICS)] = Field(  # type: ignore[valid-type]
        min_length=1, description="the first is the main one"
    )
    unscored_labels: list[Text] = Field(
        [],
        description="edges: labels that are trained and that the score leaves out, in predictions and truths, as "
        "`[R-*, C-*]`; `*` at the end is for all labels that begin so",
    )
    class_weight: Literal["balanced"] | None = Field(
        None,
        description="classes: balanced weights each training example's loss by n / (k n_c), as scikit-learn does: "
        "k classes, n examples, n_c of the same class; null: all weigh the same",
    )
    view: Id = Field("joint", description="how texts become sequences: the view that strategies read it in")
    separate: Id = Field("separate", description="the view of bi-encoder strategies")
    also: Annotated[list[TransferSetConfig], Key(aliases=("transfer_sets",))] = Field(
        [], description="other tasks on whose test splits every run of this task is scored too"
    )
    validation: Id = Field("validation", description="the split on which everything is chosen")
    test: list[Id] = Field(["test"], min_length=1, description="the splits that are scored at the end")
    protocol: Literal["clean", "paper"] = Field("clean", description="paper: selected and reported on one split")

    @model_validator(mode="after")
    def _metrics_fit_the_type(self):
        for metric in self.metrics:
            fitting = METRICS_OF_TYPE.get(self.type, EDGE_METRICS)
            if metric in METRICS + EDGE_METRICS and metric not in fitting:
                fitting = ", ".join(fitting)
                raise ValueError(f"metric {metric} does not fit type {self.type}; it takes {fitting}")
        if self.unscored_labels and self.type not in PROBE_ONLY_TYPES:
            raise ValueError(f"unscored_labels is for type edges and has no meaning with {self.type}; leave it out")
        if self.class_weight and TARGET_OF_TYPE.get(self.type) != "label":
            raise ValueError(f"class_weight is for one label a text and has no meaning with {self.type}; leave it out")
        if taken := {self.validation, *self.test} & set(PARTS_OF_TRAIN):
            raise ValueError(f"{min(taken)} is the name of rows that a subset takes from train; rename the split")
        if self.protocol == "clean" and self.validation in self.test:
            raise ValueError("validation is also a test split: name another, or say protocol: paper")
        return self


class SubsetConfig(CatalogueEntry):
    """A seeded list of training rows: the first `rows` of a stratified permutation, so that sizes are nested."""

    rows: int | None = Field(None, ge=1, description="number of training rows; default: all")
    per_label: int | None = Field(
        None,
        ge=1,
        description="instead of rows: number of training rows of each label, those of a smaller number among them; for "
        "tasks with one label a text",
    )
    draw: int = Field(1, ge=1, description="which of the permutations")
    scored: int | None = Field(
        None, ge=2, description="number of rows of validation and of each test split that are scored; default: all"
    )
    validation: Share | None = Field(
        None,
        description="share of these rows by which everything is chosen and which does not train: the split held_out, "
        "in the place of the dataset's validation split",
    )
    reserved: int | None = Field(
        None,
        ge=2,
        description="number of rows of train that no draw takes, half of train at most: the split reserved, scored as "
        "one more test split",
    )

    @property
    def in_print(self) -> str:
        """How many rows are drawn, in words."""
        return f"{self.per_label:,} a label" if self.per_label else f"{self.rows:,}" if self.rows else "all"

    @model_validator(mode="after")
    def _one_number_of_rows(self):
        if self.rows and self.per_label:
            raise ValueError("rows and per_label both say how many rows are drawn; leave out one of them")
        return self

    def of_runs(self, task: TaskConfig) -> TaskConfig:
        """Return a task with the validation split and the test splits of runs on this subset."""
        return task.model_copy(update=splits_of({"test": task.test}, self.model_dump()))
