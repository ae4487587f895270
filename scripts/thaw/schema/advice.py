"""What a paper would advise, as something that the plan can look up."""

from typing import Literal

from pydantic import Field

from thaw.declarations.task_types import TASK_TYPES
from thaw.schema.entry import CatalogueEntry, Id, Text
from thaw.schema.findings import SubjectsConfig


class AdviceConfig(CatalogueEntry):
    """A rule: for tasks of some types and encoders of some objective, take this strategy."""

    paper: Text = Field(description="authors and year")
    says: Text = Field(description="the advice in a few words")
    strategies: list[Id] = Field(min_length=1, description="the first of these that the experiment has is compared")
    types: list[Literal[TASK_TYPES]] = Field([], description="types of tasks that it is about; default: all")
    objective: Text | None = Field(None, description="words that the encoder's pretraining objective must contain")
    depth: float | None = Field(
        None, ge=0, le=1, description="of a sweep over layers: the point nearest to this share of the layers"
    )
    encoder: SubjectsConfig = Field(
        SubjectsConfig(), description="encoders like the paper's; results of another one do not contradict it"
    )


class GuidelineConfig(CatalogueEntry):
    """What a paper advises in general: an answer about tasks of some types and encoders of an objective."""

    paper: Text = Field(description="authors and year")
    question: Literal["adaptation", "features", "tuning"] = Field(
        description="adaptation: freeze or fine-tune; features, tuning: which head on a frozen, a fine-tuned encoder"
    )
    answer: Literal["frozen", "fine-tuned", "large head", "small head", "either"] = Field(
        description="what the paper recommends"
    )
    types: list[Literal[TASK_TYPES]] = Field([], description="types of tasks that it is about; default: all")
    objective: Text | None = Field(None, description="words that the encoder's pretraining objective must contain")
