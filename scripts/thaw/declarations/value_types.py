"""Types of values that options of all kinds share."""

from typing import Annotated

from pydantic import Field

Id = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,60}$")]
Text = Annotated[str, Field(min_length=1)]
