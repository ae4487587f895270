"""Inserts: small trained modules that are put into frozen layers."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from thaw.schema.keys import ConfigModel, Key
from thaw.schema.trainer_keys import OF_AN_INSERT

KEYS = {
    "lora": {"rank", "alpha", "targets"},
    "ia3": set(),
    "adapters": {"size", "std", "place"},
}  # the keys that each kind reads


class InsertConfig(ConfigModel):
    """What is put into which layers; all phases of a run insert the same kind with the same options."""

    hints: ClassVar[dict[str, str]] = OF_AN_INSERT
    kind: Literal["lora", "ia3", "adapters"] = Field(
        description="lora: low-rank matrices; ia3: scaling vectors; adapters: bottlenecks, and the layer norms"
    )
    top: Annotated[int | str | None, Key(unit="layers")] = Field(
        None, description="number of layers from the top, or the variable of a sweep; null: all layers"
    )
    rank: Annotated[int, Key(aliases=("rank", "r"))] = Field(8, ge=1, description="lora: rank of the two matrices")
    alpha: Annotated[float, Key(aliases=("alpha", "lora_alpha"))] = Field(
        16, gt=0, description="lora: the product of the matrices is scaled by alpha / rank"
    )
    targets: Literal["query_value", "attention", "feed_forward", "all"] = Field(
        "query_value", description="lora: the matrices that it is added to"
    )
    size: Annotated[int, Key(unit="units")] = Field(64, ge=1, description="adapters: width of the bottleneck")
    std: float = Field(  # that of Houlsby et al.'s code, where the paper says 1e-2
        1e-3, gt=0, le=1, description="adapters: standard deviation of the first weights"
    )
    place: Literal["matrix", "dropout"] = Field(
        "matrix",
        description="adapters: on the output of a sublayer's last matrix, or, as Houlsby et al. have it, on that of "
        "the dropout which follows",
    )

    def meaningful(self) -> set[str]:
        """Return the keys that the kind reads."""
        return {"kind", "top"} | KEYS[self.kind]

    def refused_with(self, name: str) -> str:
        """Return the setting under which a key has no meaning."""
        return f"with insert: {self.kind}"

    def make(self) -> dict:
        """Return what the insert is, wherever it is put, in the form that specs store."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"top"})
