"""Parts of a strategy: the run that it starts from, the one that teaches it, and the grid of a search."""

import re
from itertools import product
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from thaw.core.errors import suggestion
from thaw.schema.entry import Id
from thaw.schema.head import HeadConfig, Poolings
from thaw.schema.keys import ConfigModel, Key, documented, fields_by_name
from thaw.schema.layers import Layers
from thaw.schema.phases import PhaseConfig


class ReadsConfig(ConfigModel):
    """The layers that a head reads under a strategy, and how it pools the tokens of a text."""

    layers: Layers | None = Field(
        None, description="which layers the head reads, and how they are combined; null: as its entry says"
    )
    pooling: Poolings | None = Field(
        None,
        description="how the tokens of a text become one vector, of pairs in both readings; of a list, "
        "[mean, max, first], the vectors are concatenated; null: as its entry says",
    )

    @model_validator(mode="after")
    def _something_is_read(self):
        if self.layers is None and self.pooling is None:
            raise ValueError("say layers: or pooling:, or leave it out")
        return self

    @property
    def searched(self) -> bool:
        """Whether validation chooses the layer, after a fit on each."""
        return self.layers is not None and self.layers.searched

    def of(self, head: HeadConfig) -> HeadConfig:
        """Return a head's entry with what it reads replaced; what its kind cannot read is a ValueError.

        A kind that pools in its own way keeps it.
        """
        changes: dict = {} if self.layers is None else {"layers": self.layers.model_dump(exclude_unset=True)}
        if self.pooling is not None and "pooling" in head.meaningful():
            changes |= {"pooling": self.pooling, "separate_pooling": self.pooling}
        return HeadConfig.model_validate(head.model_dump(exclude_unset=True) | changes)


PHASE_NAMES = fields_by_name(PhaseConfig)
# The keys of a phase that a search may choose.
SEARCHED = tuple(
    "rate head_rate layer_decay epochs updates batch_size weight_decay warmup l2_to_start insert_size".split()
)
_SEARCHED_NAMES = [word for word, name in PHASE_NAMES.items() if name in SEARCHED]
_GRID_SCHEMA = {"type": "string", "pattern": rf"^([1-9]\.)?({'|'.join(_SEARCHED_NAMES)})$"}


def written_key(key: str) -> str:
    """Return a key of a grid as it is documented: `2.rate` is 2.learning_rate."""
    number, dot, name = key.rpartition(".")
    return number + dot + documented(PhaseConfig, name)


def _point(variant):
    if isinstance(variant, int):
        raise ValueError(f"{variant} is a number; write the id of the point, as k{variant:02d}")
    return variant


Variant = Annotated[Id, BeforeValidator(_point)]


class StartConfig(ConfigModel):
    """The run that a strategy starts from."""

    strategy: Id = Field(description="id of the strategy")
    variant: Variant = Field("base", description="a point of its sweep, as k03; base where it has none")
    epoch: Annotated[Literal["last", "best"], Key(aliases=("checkpoint",))] = Field(
        "last", description="which weights of its last phase: of the last epoch, or of the best on validation"
    )
    task: Id | None = Field(
        None, description="an intermediate task: the encoder of its run is the start, with a new head; null: the same"
    )
    subset: Id = Field("all", description="training examples of the intermediate task")

    def meaningful(self) -> set[str]:
        """Return the keys that are read: without an intermediate task the subset is the run's own."""
        return set(type(self).model_fields) - (set() if self.task else {"subset"})

    def refused_with(self, name: str) -> str:
        """Return the setting under which a key has no meaning."""
        return "without task:"


class TeacherConfig(ConfigModel):
    """The run that a strategy's runs are trained towards: of the same task, subset, head and, unless said, encoder."""

    strategy: Id = Field(description="id of the strategy")
    variant: Variant = Field(
        "base", description="a point of its sweep, as k03; the variable of this strategy's own sweep: the same point"
    )
    encoder: Id | None = Field(
        None,
        description="another encoder of the catalogue, whose logits alone can be targets; null: the student's own",
    )
    seed: int | None = Field(
        None, ge=0, description="one seed whose run teaches all seeds; null: each seed has the run of its own seed"
    )
    dropout: bool = Field(
        False,
        description="whether the teacher has its dropout, as in some papers' code; its logits, the only target then, "
        "are computed in each update and not stored",
    )
    subset: Id | None = Field(
        None,
        description="another subset of the training rows that the teacher was trained on; with hard: 0 the other "
        "rows of the student are text without labels (Turc et al. 2019); null: the student's own",
    )


class SearchConfig(ConfigModel):
    """A grid of settings, of which validation chooses one."""

    grid: dict[Annotated[str, WithJsonSchema(_GRID_SCHEMA)], list[int | float]] = Field(
        min_length=1,
        description="key of a phase: values to try; all combinations are trained. 2.learning_rate is that of phase 2",
    )
    seeds: list[int] = Field(
        [1], min_length=1, description="seeds of each trial; the mean of their validation scores decides"
    )
    penalty: Literal["gap"] | None = Field(
        None,
        description="gap: a trial counts by its validation score less what its score on the training rows is above it; "
        "of settings that score alike the one that overfits less is chosen; null: by the validation score",
    )

    @field_validator("grid", mode="before")
    @classmethod
    def _stored_keys(cls, grid):
        """Store each key of a phase under the field's own name."""
        if not isinstance(grid, dict):
            return grid
        by_field = {}
        for written_key, values in grid.items():
            number, _, word = str(written_key).rpartition(".")
            name = PHASE_NAMES.get(word)
            if name not in SEARCHED or not re.fullmatch(r"[1-9]?", number):
                known = [documented(PhaseConfig, name) for name in SEARCHED]
                raise ValueError(f"{written_key} is no key that a search can choose{suggestion(word, known)}")
            key = f"{number}.{name}" if number else name
            if key in by_field:
                raise ValueError(f"{written_key} is here twice, under two names; leave one out")
            by_field[key] = values
        return by_field

    @model_validator(mode="after")
    def _something_to_choose(self):
        for key, values in self.grid.items():
            if not values or len(set(values)) < len(values):
                raise ValueError(f"grid: {written_key(key)} needs one value or more, each once")
        return self

    def trials(self) -> list[dict]:
        """Return the settings of each trial: all combinations, the last key's values changing fastest."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]
