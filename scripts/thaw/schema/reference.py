"""What a paper claims and prints: contrasts that runs can answer, and numbers with those of our results beside them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.schema.encoder import EncoderConfig
from thaw.schema.entry import CatalogueEntry, Id, Text


class TermConfig(BaseModel):
    """One score of a contrast: a strategy's, times a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    times: float = Field(1.0, description="weight of the score; -1 subtracts it")
    strategy: Id = Field(description="the strategy whose score counts")
    head: Id | None = Field(None, description="default: the first of the experiment")
    depth: float | None = Field(
        None, ge=0, le=1, description="of a sweep over layers: the point nearest to this share of the layers"
    )
    variant: Id = Field("base", description="a point of its sweep, as k03")


class SubjectsConfig(BaseModel):
    """What an encoder must be for a claim to be tested on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    layers: int = Field(1, ge=1, description="smallest number of layers")
    not_objective: Text | None = Field(
        None, description="encoders whose objective begins with these words are left out"
    )

    def unlike(self, entry: EncoderConfig) -> str:
        """Return why an encoder is not one of these; empty where it is."""
        if entry.layers < self.layers:
            return f"it needs {self.layers} layers or more"
        if self.not_objective and entry.objective.startswith(self.not_objective):
            return f"the encoder was trained for {self.not_objective}"
        return ""


class FindingConfig(CatalogueEntry):
    """A claim, and the contrast of scores x 100 that it is about: their sum over the terms, seed by seed."""

    claim: Text = Field(description="the claim in one sentence")
    paper: Text = Field(description="authors and year")
    tasks: list[Id] = Field(min_length=1, description="tasks that it is about; each is tested by itself")
    metrics: dict[Id, Text] = Field({}, description="task: its metric, where it is not the main one")
    contrast: list[TermConfig] = Field(min_length=1, description="weighted sum of scores, seed by seed")
    above: float | None = Field(None, description="the contrast is claimed to be above this many points")
    within: float | None = Field(
        None, gt=0, description="the absolute contrast is claimed to be below this many points"
    )
    encoder: SubjectsConfig = Field(SubjectsConfig(), description="encoders that it is about")

    @model_validator(mode="after")
    def _one_margin(self):
        if (self.above is None) == (self.within is None):
            raise ValueError("a finding needs one of above and within: its margin")
        return self


PROVENANCES = (
    "table_image",
    "full_text",
    "dataset_copy",
    "text",
    "author_code",
    "author_notebook",
    "author_page",
    "secondary",
    "missing",
)


class Where(CatalogueEntry):
    """A part of the address of one of our results; table, column and row together make it whole."""

    task: Id | None = Field(None, description="the task")
    encoder: Id | None = Field(None, description="the encoder")
    head: Id | None = Field(None, description="a head or a set of heads; default: linear")
    strategy: Id | None = Field(None, description="the strategy")
    ensemble: Id | None = Field(None, description="in the place of a strategy: an ensemble of the paper's experiment")
    merge: Id | None = Field(None, description="in the place of a strategy: a merge of the paper's experiment")
    quantity: Literal["trained", "stored", "shared", "own", "executed", "test"] | None = Field(
        None,
        description="in the place of a metric. Of a strategy: `trained` parameters in per cent of those of `against`, "
        "or how many models it has `stored` for as many `models`. Of a merge: layers `shared`, those that tasks `own`, "
        "those `executed` in per cent of full models, the score on `test`",
    )
    against: Id | None = Field(None, description="with trained or stored: the strategy that trains the whole encoder")
    models: int | None = Field(None, ge=1, description="with stored: tasks, each with a model of its own")
    variant: Id | None = Field(None, description="the point of a sweep, as k03; default: base")
    metric: Text | None = Field(None, description="the metric; default: the main one of the task")
    split: Text | None = Field(None, description="split in Thaw; default: the first test split of the task")
    not_computed: Text | None = Field(None, description="why nothing here has a number of ours")

    def address(self) -> dict:
        """Return the parts that are stated."""
        stated = {key: getattr(self, key) for key in Where.model_fields if key not in ("label", "not_computed")}
        return {key: value for key, value in stated.items() if value is not None}


class PrintedColumn(Where):
    """A column of a printed table."""

    scale: Literal["hundred", "fraction", "error", "number"] = Field(
        "hundred", description="how it is printed: score x 100, score, 100 - score x 100, or something else"
    )
    over: Literal["mean", "most"] | None = Field(
        None, description="the mean, or the largest, of the row's other columns"
    )
    same_split: Literal["always", "files", "hub", "never", "unknown"] = Field(
        "unknown",
        description="whether ours is the printed split; files, hub: only if the corpus comes from there; unknown: the "
        "paper does not say, or was not available",
    )


class Favours(BaseModel):
    """What the numbers of a row of differences speak for, by the paper's own rule."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    beyond: float = Field(gt=0, description="a difference that is no larger, either way, speaks for neither")
    above: Text = Field(description="what one that is larger than `beyond` speaks for")
    below: Text = Field(description="what one that is smaller than its negative speaks for")


class PrintedRow(Where):
    """A row of a printed table: one of our runs, or what follows from other rows."""

    values: list[int | float | None] = Field([], description="by column as printed; null where it is not known")
    cells: dict[Id, Where] = Field({}, description="column: what the address of its cell has in place of the row's")
    minus: list[Id] = Field([], max_length=2, description="two rows: the first's numbers less the second's")
    favours: Favours | None = Field(None, description="with minus: what such differences speak for")
    least: float | None = Field(
        None, gt=0, lt=1, description="least k of its strategy that reaches this share of `full`"
    )
    full: Id | None = Field(None, description="with least: the strategy of the full model")
    seeds: int | None = Field(None, ge=1, description="how many the paper took")
    provenance: Literal[PROVENANCES] | None = Field(None, description="where it is not the table's")  # type: ignore[valid-type]
    note: Text | None = Field(None, description="a footnote")


class PrintedTable(Where):
    """A printed table or figure."""

    source: Text = Field(description="as the paper calls it: Table 2")
    provenance: Literal[PROVENANCES] = Field(description="how the numbers were read")  # type: ignore[valid-type]
    seeds: int | None = Field(None, ge=1, description="how many the paper took; null where it does not say")
    aggregation: Literal["mean", "lee2019"] = Field("mean", description="how seeds become one number")
    note: Text | None = Field(None, description="what else differs from ours, or must be known")
    columns: dict[Id, PrintedColumn] = Field(min_length=1, description="its columns")
    rows: dict[Id, PrintedRow] = Field(min_length=1, description="its rows")

    @model_validator(mode="after")
    def _rows_fit_the_columns(self):
        for name, row in self.rows.items():
            if row.values and len(row.values) != len(self.columns):
                raise ValueError(f"row {name} has {len(row.values)} values, and there are {len(self.columns)} columns")
            if unknown := set(row.cells) - set(self.columns):
                raise ValueError(f"row {name}: cells: there is no column {min(unknown)}")
            if row.minus and (len(row.minus) == 1 or set(row.minus) - set(self.rows)):
                raise ValueError(f"row {name}: minus takes two rows of the table, as [tuned, frozen]")
            if row.favours and not row.minus:
                raise ValueError(f"row {name}: favours is for a row of differences, with minus")
            if (row.least is None) != (row.full is None):
                raise ValueError(f"row {name}: least and full belong together")
        return self


class ProtocolItem(BaseModel):
    """A setting of a paper and ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    what: Text = Field(description="the setting, as learning rate of the head")
    paper: int | float | Text | list[int | float] = Field(description="as the paper or its code has it; or not stated")
    setting: Text | None = Field(
        None, description="where ours is in the catalogues, as strategies.lee_full.phases.1.batch_size"
    )
    here: Text | None = Field(None, description="ours in words, where it is no setting")
    why: Text | None = Field(None, description="why ours is another; needed where a setting differs")

    @model_validator(mode="after")
    def _setting_or_words(self):
        if (self.setting is None) == (self.here is None):
            raise ValueError(f"{self.what}: say either setting: or here:")
        return self


class Reference(BaseModel):
    """All that is known of one paper's numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    cite: Text = Field(description="authors and year")
    title: Text = Field(description="title of the paper")
    arxiv: Text = Field(description="its number on arXiv")
    tables: dict[Id, PrintedTable] = Field(min_length=1, description="its tables and figures")
    protocol: list[ProtocolItem] = Field([], description="its settings, and where ours differ")
