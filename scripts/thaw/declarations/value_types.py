"""Types of values that options of all kinds share."""

from typing import Annotated

from pydantic import Field

ID = r"^[a-z0-9_]{1,60}$"
Id = Annotated[str, Field(pattern=ID)]
Text = Annotated[str, Field(min_length=1)]
