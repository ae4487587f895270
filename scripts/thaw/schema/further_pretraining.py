"""Further pretraining: an encoder's own objective, once more, on the training text of a task."""

from pydantic import Field, field_validator

from thaw.schema.entry import CatalogueEntry, Id, Share
from thaw.schema.phases import PhaseConfig

ABSENT = {"train", "insert", "unfreeze", "one_by_one", "reinit_top", "patience", "stop", "pick", "frozen_dropout", "l2"}


class FurtherPretrainingConfig(CatalogueEntry):
    """Masked-language-model training of a whole encoder, which strategies start `from:`."""

    phase: PhaseConfig = Field(description="rates, schedule, epochs and batches, as in a strategy; everything trains")
    mask: Share = Field(0.15, description="share of a text's tokens that are to be predicted")
    view: Id = Field("joint", description="how the corpus' training text is read")
    seed: int = Field(1, ge=0, description="of masks, order, dropout, and of a head that is made anew")

    @field_validator("phase")
    @classmethod
    def _everything_trains_to_the_last_epoch(cls, phase: PhaseConfig) -> PhaseConfig:
        for key in sorted(phase.model_fields_set & ABSENT):
            raise ValueError(f"{key} has no meaning in further pretraining; leave it out")
        if phase.optimizer == "lbfgs":
            raise ValueError("optimizer lbfgs fits a head alone; take adamw")
        return phase
