"""What a paper would advise, as something that the plan can look up."""

from typing import Literal

from pydantic import Field

from thaw.declarations.task_types import TASK_TYPES
from thaw.schema.entry import CatalogueEntry, Id, Text


class AdviceConfig(CatalogueEntry):
    """A rule: for tasks of some types and encoders of some objective, take this strategy."""

    paper: Text = Field(description="authors and year")
    says: Text = Field(description="the advice in a few words")
    strategies: list[Id] = Field(min_length=1, description="the first that the experiment has stands for the advice")
    types: list[Literal[TASK_TYPES]] = Field([], description="of tasks; unless stated all")
    objective: Text | None = Field(None, description="the encoder's objective must have these words")
    depth: float | None = Field(None, ge=0, le=1, description="of a sweep over layers: this share of the encoder's")


class GuidelineConfig(CatalogueEntry):
    """What a paper advises in general: an answer about tasks of some types and encoders of an objective."""

    paper: Text = Field(description="authors and year")
    question: Literal["adaptation", "features", "tuning"] = Field(
        description="adaptation: freeze or fine-tune; features, tuning: which head on a frozen, a fine-tuned encoder"
    )
    answer: Literal["frozen", "fine-tuned", "large head", "small head", "either"]
    types: list[Literal[TASK_TYPES]] = Field([], description="of tasks; unless stated all")
    objective: Text | None = Field(None, description="the encoder's objective must have these words")
