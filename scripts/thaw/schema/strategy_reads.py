"""What a head reads under a strategy, in the place of what its entry in heads.yaml says."""

from pydantic import Field, model_validator

from thaw.schema.head import HeadConfig, Poolings
from thaw.schema.keys import ConfigModel
from thaw.schema.layers import Layers


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
