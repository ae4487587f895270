"""What all entries share: ids, rates and shares, display keys, and how an entry stands in a spec."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,60}$")]
Text = Annotated[str, Field(min_length=1)]
Rate = Annotated[float, Field(gt=0, lt=10)]
Share = Annotated[float, Field(gt=0, lt=1)]

DISPLAY_KEYS = {"label", "note", "about", "caption", "size"}


class Entry(BaseModel):
    """Anything that stands in a catalogue: it may carry a label for print, and forbids keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    label: Text | None = Field(None, description="name in tables and figures; never part of a spec")


def spec_of(entry: BaseModel, drop: frozenset = frozenset()) -> dict:
    """Return an entry as it stands in a spec: no display keys, no values equal to the default."""
    return entry.model_dump(mode="json", exclude_defaults=True, exclude=DISPLAY_KEYS | drop)
