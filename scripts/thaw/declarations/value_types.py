"""Types of values that options of all kinds share, and what a key carries besides its type."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

ID = r"^[a-z0-9_]{1,60}$"
Id = Annotated[str, Field(pattern=ID)]
Text = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class Key:
    """How a field reads in a Methods text, and how else it may be written.

    `says` is a text in which {} is replaced by the value, a mapping of values to texts, or a function of the value, the
    model and a Context (`thaw.schema.keys`); an empty text is left out, and one that ends with a full stop is a
    sentence by itself.
    `name` is what a search or a sweep calls it; `aliases` are further names, the first one for the documentation.
    """

    says: str | dict | Callable[[Any, Any, Any], str] = ""
    name: str = ""
    aliases: tuple[str, ...] = ()
    unit: str = ""
