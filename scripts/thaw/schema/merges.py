"""What an experiment says of merging its runs on one trunk, and of measuring the merged folders."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from thaw.schema.entry import CatalogueEntry, Count, Id


class MergeConfig(CatalogueEntry):
    """Several tasks on one trunk, as one folder that serves: of each task one of the runs that are named."""

    tasks: list[Id] = Field([], description="default: all tasks of the experiment")
    strategies: list[Id | dict[Id, list[int]]] = Field(
        min_length=1, description="whose runs may be taken: an id, or {id: [points of its sweep]}"
    )
    choose: Literal["cheapest", "smallest", "best", "mixed"] = Field(
        "cheapest",
        description="by validation. cheapest: fewest executed layers of all tasks together within the margin of each "
        "task's best; smallest: the same task by task; best: the highest score; mixed: on the trunk of the task's best "
        "teacher a larger student is taken while it gains the margin; then the teacher, if it does (Wei et al. 2022)",
    )
    margin: float = Field(1.0, ge=0, description="points x 100; of the mean over the experiment's seeds")
    encoder: Id | None = Field(None, description="default: the only one of the experiment")
    head: Id | None = Field(None, description="default: the only one of the experiment")
    seed: Annotated[int, Field(ge=0)] | None = Field(
        None, description="of the runs that are served; default: the first"
    )


class LatencyConfig(BaseModel):
    """How merged folders are measured, against their runs as one model each."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tasks: list[Count] = Field(
        [1, 2, 4, 8], min_length=1, description="numbers of tasks; copies make up what is missing"
    )
    batch: list[Count] = Field([1, 32], min_length=1, description="texts at once")
    tokens: list[Count] = Field([32, 128], min_length=1, description="tokens of each text")
    calls: int = Field(200, ge=20, description="measured calls of each setting, after a tenth as many to warm up")
