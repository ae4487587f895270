"""The options of outputs: one model for each set of keys that a kind of table or figure has of its own."""

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thaw.declarations.value_types import Id


class OutputOptions(BaseModel):
    """The options of a kind of output; this one has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SplitOptions(OutputOptions):
    """An output that shows one split."""

    split: Literal["test", "validation"] = Field("test", description="the scores that are shown")


class SizeOptions(SplitOptions):
    """Scores by the number of training rows."""

    train: bool = Field(False, description="whether the scores on the training rows are shown too")


class LayerOptions(SplitOptions):
    """Scores by the number of layers that train."""

    minus: Id | None = Field(
        None,
        description="a strategy without a sweep, whose mean score is taken off all others: the difference is shown",
    )


class RunSplitOptions(OutputOptions):
    """An output that shows the scores of runs on one split, which may be the rows that subsets reserve."""

    split: Literal["test", "validation", "reserved"] = Field(
        "test", description="the scores that are shown; reserved: on the rows of train that subsets reserve for testing"
    )


class DrawsOptions(OutputOptions):
    """An output that may put draws together."""

    draws: Literal["together"] | None = Field(
        None,
        description="together: draws of the training rows of one size count as further seeds; by default each subset "
        "is shown by itself",
    )


class ScoresOptions(RunSplitOptions, DrawsOptions):
    """Scores of a split."""

    intervals: bool = Field(
        True,
        description="the 95 % CI of each score, and marks of what is not shown to be below the highest on validation; "
        "false: that one in bold, and no predictions are read",
    )
    costs: list[Literal["seconds", "parameters"]] = Field(
        [], description="columns of costs, means over the tasks; seconds: the price"
    )


class CostOptions(RunSplitOptions, DrawsOptions):
    """Scores against a cost."""

    intervals: bool = Field(True, description="bars: the 95 % CI of each score; false: no predictions are read")
    cost: Literal["seconds", "flops", "parameters", "inference"] = Field(
        "seconds",
        description="the horizontal axis: the price in seconds, FLOPs of training, trainable parameters, or the "
        "operations of one prediction (inference)",
    )


class PaperOptions(OutputOptions):
    """A paper."""

    paper: Id = Field(description="a file of reference/, as lee2019")


class PrintedOptions(PaperOptions):
    """A paper's table."""

    table: Id = Field(description="one of that file's tables")


class AdviceOptions(DrawsOptions):
    """How a recommendation weighs scores and prices."""

    within: float = Field(
        0.0,
        ge=0,
        description="points: the cheapest strategy whose expected loss is at most so many; 0: the least expected loss",
    )
    price_weight: float = Field(
        0.0, ge=0, description="points of the score that a second of training has to gain; 0: the price does not count"
    )

    machine_hour: float | None = Field(
        None,
        gt=0,
        description="price of an hour of the machine that serves, with the threads of `compute`: the table then has "
        "the price of a million texts",
    )
    currency: str = Field("", description="of machine_hour, as EUR")

    @model_validator(mode="after")
    def _keys_that_belong_together(self):
        if bool(self.currency) != bool(self.machine_hour):
            raise ValueError("machine_hour and currency go together, as machine_hour: 0.4 and currency: EUR")
        if self.within and self.price_weight:
            raise ValueError("within and price_weight are two rules; state one")
        return self


class FindingOptions(DrawsOptions):
    """Claims and the answers to them."""

    by_task: Literal["test", "reserved"] | None = Field(
        None,
        description="a column for each task: answer and difference on its test splits, or on reserved rows; by default "
        "all answers to a claim are one text",
    )


class ReferenceOptions(OutputOptions):
    """A comparison with the full model."""

    hints: ClassVar[dict[str, str]] = {"whole": "reference"}
    reference: Id = Field(description="the strategy that trains everything, which the others are compared with")


class ReferenceSplitOptions(ReferenceOptions, RunSplitOptions, DrawsOptions):
    """A comparison with the full model on a split."""


class RelativeOptions(ReferenceSplitOptions):
    """A comparison with the full model, and where the way to it starts."""

    start: Id = Field(description="a strategy that thaws nothing, from which the way to the full model is counted")
