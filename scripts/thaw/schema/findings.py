"""What a paper claims, as something that runs can answer."""

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.schema.entry import CatalogueEntry, Id, Text


class TermConfig(BaseModel):
    """One score of a contrast: a strategy's, times a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    times: float = Field(1.0, description="what the score counts; the second of a difference has -1")
    strategy: Id
    head: Id | None = Field(None, description="unless stated the first of the experiment")
    depth: float | None = Field(None, ge=0, le=1, description="of a sweep over layers: this share of the encoder's")
    variant: Id = "base"


class SubjectsConfig(BaseModel):
    """What an encoder must be for a claim to be tested on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    layers: int = Field(1, ge=1, description="at least so many")
    not_objective: Text | None = Field(None, description="its objective must not begin with these words")


class FindingConfig(CatalogueEntry):
    """A claim, and the contrast of scores x 100 that decides it: their sum over the terms, seed by seed."""

    claim: Text
    paper: Text = Field(description="authors and year")
    tasks: list[Id] = Field(min_length=1)
    metrics: dict[Id, Text] = Field({}, description="task: its metric, where it is not the main one")
    contrast: list[TermConfig] = Field(min_length=1)
    above: float | None = Field(None, description="it holds where the contrast lies above this many points")
    within: float | None = Field(None, gt=0, description="it holds where the contrast is smaller than this either way")
    encoder: SubjectsConfig = SubjectsConfig()

    @model_validator(mode="after")
    def _one_margin(self):
        if (self.above is None) == (self.within is None):
            raise ValueError("a finding needs one of above and within: the margin that decides it")
        return self
