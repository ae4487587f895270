"""What a paper claims, as something that runs can answer."""

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
