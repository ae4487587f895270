"""What all entries share: ids, words, numbers, display keys, and the form of an entry in a spec."""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from thaw.core.errors import suggestion
from thaw.declarations.value_types import Id as Id
from thaw.declarations.value_types import Text as Text
from thaw.schema.keys import ConfigModel

Rate = Annotated[float, Field(gt=0, lt=10)]
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]

IMPORT_PATH = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


def plugin_or(kind: str, words: tuple[str, ...]):
    """Return the type of a key that takes one of Thaw's words, or a plug-in by import path."""

    def known(word: str) -> str:
        if word not in words and not re.fullmatch(IMPORT_PATH, word):
            raise ValueError(f"'{word}' is no {kind} and no import path, as my_{kind}s:name{suggestion(word, words)}")
        return word

    forms = [{"enum": list(words)}, {"type": "string", "pattern": IMPORT_PATH}]
    return Annotated[str, AfterValidator(known), WithJsonSchema({"anyOf": forms})]


def one_of(kind: str, words: tuple[str, ...]):
    """Return the type of a key that takes one of Thaw's words."""

    def known(word: str) -> str:
        if word not in words:
            raise ValueError(f"'{word}' is no {kind}{suggestion(word, words)}")
        return word

    return Annotated[str, AfterValidator(known), WithJsonSchema({"enum": list(words)})]


def id_of(name: str, otherwise: str) -> str:
    """Return an id that reads like a name; letters lose their marks, so that größe is grosse.

    Args: otherwise, the id where nothing of the name is left.
    """
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    return re.sub("[^a-z0-9]+", "_", plain).strip("_")[:50] or otherwise


def free_id(name: str, taken) -> str:
    """Return an id like another one that nobody has: my_<name>, my_<name>_2, ..."""
    free, number = f"my_{name}", 2
    while free in taken:
        free, number = f"my_{name}_{number}", number + 1
    return free


DISPLAY_KEYS = {"label", "note", "about", "caption", "size", "licence", "cite", "published", "copies", "url"} | {
    "parameters",  # of an encoder
    "languages",
}


class UrlConfig(BaseModel):
    """A public address of local files, from which `thaw fetch` downloads them."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    address: Annotated[str, Field(pattern=r"^https?://", description="of a file, or of a zip or tar archive")]
    to: Text | dict[Text, Text] = Field(
        description="where the file belongs, as `files` or the encoder names it; of an archive {place: member}"
    )
    sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="of what the address has; thaw fetch prints it where it is left out",
    )


Url = Annotated[list[UrlConfig], Field(description="addresses of local files, for `thaw fetch`; never part of a spec")]

Cite = Annotated[
    list[Text], Field(description="what to cite for it: keys of config/references.bib; never part of a spec")
]


class CatalogueEntry(ConfigModel):
    """Anything that a catalogue holds: it may carry a label for print."""

    label: Text | None = Field(None, description="name in tables and figures; never part of a spec")


def spec_of(entry: BaseModel, drop: frozenset = frozenset()) -> dict:
    """Return an entry in the form that specs store: no display keys, no values equal to the default."""
    return entry.model_dump(mode="json", exclude_defaults=True, exclude=DISPLAY_KEYS | drop)
