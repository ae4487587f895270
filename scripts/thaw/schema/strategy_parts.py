"""Parts of a strategy: the run that it starts from, the one that teaches it, and the grid of a search."""

import re
from itertools import product
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from thaw.core.errors import suggestion
from thaw.core.phrases import listing, plural
from thaw.schema.entry import Id
from thaw.schema.keys import ConfigModel, Context, Key, documented, fields_by_name, format_value, key_of
from thaw.schema.phases import PhaseConfig

PHASE_NAMES = fields_by_name(PhaseConfig)
# The keys of a phase that a search may choose.
SEARCHED = tuple(
    "rate head_rate layer_decay epochs updates batch_size weight_decay warmup l2_to_start insert_size".split()
)
_SEARCHED_NAMES = [word for word, name in PHASE_NAMES.items() if name in SEARCHED]
_GRID_SCHEMA = {"type": "string", "pattern": rf"^([1-9]\.)?({'|'.join(_SEARCHED_NAMES)})$"}


def _setting(key: str) -> str:
    """Return what a key of a grid is called: `2.rate` is the learning rate of phase 2."""
    number, _, name = key.rpartition(".")
    called = key_of(PhaseConfig, name).name
    return f"{called} of phase {number}" if number else called


def written_key(key: str) -> str:
    """Return a key of a grid as it is documented: `2.rate` is 2.learning_rate."""
    number, dot, name = key.rpartition(".")
    return number + dot + documented(PhaseConfig, name)


RunOf = Annotated[Id, Key(lambda id, _, context: f"the run of “{context.name('strategies', id)}”")]


def _point(variant):
    if isinstance(variant, int):
        raise ValueError(f"{variant} is a number; write the id of the point, as k{variant:02d}")
    return variant


Variant = Annotated[Id, BeforeValidator(_point), Key(lambda id, *_: f"variant {id}" if id != "base" else "")]


class StartConfig(ConfigModel):
    """The run that a strategy starts from."""

    strategy: RunOf = Field(description="id of the strategy")
    variant: Variant = Field("base", description="a point of its sweep, as k03; base where it has none")
    epoch: Annotated[
        Literal["last", "best"],
        Key({"last": "last epoch", "best": "best epoch on validation"}, aliases=("checkpoint",)),
    ] = Field("last", description="which weights of its last phase: of the last epoch, or of the best on validation")
    task: Annotated[Id | None, Key(lambda id, _, context: id and f"on the task {context.name('tasks', id)}")] = Field(
        None, description="an intermediate task: the encoder of its run is the start, with a new head; null: the same"
    )
    subset: Annotated[
        Id, Key(lambda id, start, context: f"on the subset {context.name('subsets', id)}" if start.task else "")
    ] = Field("all", description="training examples of the intermediate task")

    @model_validator(mode="after")
    def _subset_of_a_task(self):
        if self.task is None and "subset" in self.model_fields_set:
            raise ValueError("subset is for an intermediate task; without task: it is the run's own")
        return self


class TeacherConfig(ConfigModel):
    """The run that a strategy's runs are trained towards: of the same task, subset, head and, unless said, encoder."""

    strategy: RunOf = Field(description="id of the strategy")
    variant: Variant = Field(
        "base", description="a point of its sweep, as k03; the variable of this strategy's own sweep: the same point"
    )
    encoder: Annotated[Id | None, Key(lambda id, _, context: f"of {context.name('encoders', id)}" if id else "")] = (
        Field(
            None,
            description="another encoder of the catalogue, whose logits alone can be targets; null: the student's own",
        )
    )
    seed: Annotated[int | None, Key("seed {}")] = Field(
        None, ge=0, description="one seed whose run teaches all seeds; null: each seed has the run of its own seed"
    )
    dropout: Annotated[bool, Key({True: "with dropout, computed again in each update"})] = Field(
        False,
        description="whether the teacher has its dropout, as in some papers' code; its logits, the only target then, "
        "are computed in each update and not stored",
    )
    subset: Annotated[
        Id | None, Key(lambda id, _, context: f"trained on {context.name('subsets', id)}" if id else "")
    ] = Field(
        None,
        description="another subset of the training rows that the teacher was trained on: with hard: 0 the other "
        "rows of the student are text without labels (Turc et al. 2019); null: the student's own",
    )


def _grid(grid: dict, search, context: Context) -> str:
    settings = listing(f"{_setting(key)} in {{{', '.join(map(format_value, values))}}}" for key, values in grid.items())
    return settings + (f" ({len(search.trials())} combinations)" if len(grid) > 1 else "")


def _seeds(seeds: list, search, context: Context) -> str:
    used = seeds[: context.search_seeds]
    over = f"{plural(len(used), 'seed')} ({', '.join(map(str, used))})"
    return f"chosen by the best mean validation score over {over} and used for all seeds"


class SearchConfig(ConfigModel):
    """A grid of settings, of which validation chooses one."""

    grid: Annotated[dict[Annotated[str, WithJsonSchema(_GRID_SCHEMA)], list[int | float]], Key(_grid)] = Field(
        min_length=1,
        description="key of a phase: values to try; all combinations are trained. 2.learning_rate is that of phase 2",
    )
    seeds: Annotated[list[int], Key(_seeds)] = Field(
        [1], min_length=1, description="seeds of each trial; the mean of their validation scores decides"
    )
    penalty: Annotated[
        Literal["gap"] | None,
        Key({"gap": "the validation score less what the score on the training rows is above it"}),
    ] = Field(
        None,
        description="gap: a trial counts by its validation score less what its score on the training rows is above it, "
        "so that of settings that score alike the one that overfits less is chosen; null: by the validation score",
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
