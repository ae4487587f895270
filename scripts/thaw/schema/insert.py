"""Inserts: small trained modules that are put into frozen layers."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

KEYS = {"lora": {"rank", "alpha", "targets"}, "ia3": set(), "adapters": {"size"}}  # the keys that each kind reads


class InsertConfig(BaseModel):
    """What is put into which layers; a run holds inserts of one make."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Literal["lora", "ia3", "adapters"]
    top: int | str | None = Field(None, description="into so many layers from the top; unless stated into all")
    rank: int = Field(8, ge=1, description="lora: rank of the two matrices")
    alpha: float = Field(16, gt=0, description="lora: their product counts alpha / rank times")
    targets: Literal["query_value", "attention", "feed_forward", "all"] = Field(
        "query_value", description="lora: the matrices that get one"
    )
    size: int = Field(64, ge=1, description="adapters: width of the bottleneck")

    @model_validator(mode="after")
    def _keys_of_the_kind(self):
        for key in sorted(self.model_fields_set - {"kind", "top"} - KEYS[self.kind]):
            raise ValueError(f"{key} has no meaning with insert: {self.kind}; leave it out")
        return self

    def make(self) -> dict:
        """Return what the insert is, wherever it is put, as it stands in a spec."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"top"})
