"""Further pretraining: an encoder's own objective, once more, on the training text of a task."""

from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from thaw.schema.entry import CatalogueEntry, Id, Share
from thaw.schema.keys import Inner, Key, both_names
from thaw.schema.phases import PhaseConfig
from thaw.schema.student import StudentConfig

# The keys of a phase that further pretraining reads. Everything trains, and nothing is scored but the loss on held-out
# rows, after each epoch or tenth of the updates.
READ = {"optimizer", "betas", "rate", "head_rate", "layer_decay", "weight_decay", "l2_to_start"}
READ |= {"schedule", "warmup", "warmup_of", "clip", "precision"}
READ |= {"epochs", "updates", "batch_size", "order"}


class FurtherPretrainingConfig(CatalogueEntry):
    """Masked-language-model training of a whole encoder, which strategies start `from:`."""

    inner: ClassVar[Inner] = Inner(PhaseConfig, "under phase:")
    phase: PhaseConfig = Field(
        description="learning rate, schedule, epochs and batches, as in a strategy; everything trains"
    )
    mask: Annotated[Share, Key(unit="share of the tokens")] = Field(
        0.15, description="share of the tokens of a text that are chosen for prediction"
    )
    next_sentence: bool = Field(
        False,
        description="predict in addition whether the second text of a pair follows the first; a single text is cut in "
        "the middle",
    )
    student: StudentConfig | None = Field(
        None,
        description="the layers that are kept and train, for strategies with the same student; the others stay as they "
        "were. null: the whole encoder trains",
    )
    cosine: float = Field(
        0.0,
        ge=0,
        description="weight of one minus the cosine of the last hidden states to those of the whole encoder as it was "
        "(Sanh et al. 2019); masked tokens have 1",
    )
    view: Id = Field("joint", description="the view in which the training text of the corpus is read")
    seed: int = Field(
        1, ge=0, description="seed of masks, order and dropout, and of a newly initialised masked-language-model head"
    )

    @model_validator(mode="after")
    def _one_objective_next_to_the_masks(self):
        if self.next_sentence and self.cosine:
            raise ValueError(
                "cosine and next_sentence are two objectives in addition to the masked tokens; leave one out"
            )
        return self

    def computed(self, settings: dict) -> "FurtherPretrainingConfig":
        """Return it with its phase as `PhaseConfig.computed`, by the keys that it reads."""
        read = {key: value for key, value in settings.items() if key in READ}
        return self.model_copy(update={"phase": self.phase.computed(read)})

    def kept(self, layers: int) -> tuple[list[int], dict[int, int | str]] | None:
        """Return the layers that are kept of L, and whose weights they start from; None where all train."""
        return self.student.shape(layers, {}) if self.student else None

    @field_validator("phase")
    @classmethod
    def _everything_trains_to_the_last_epoch(cls, phase: PhaseConfig) -> PhaseConfig:
        for key in sorted(phase.model_fields_set - READ):
            raise ValueError(f"{both_names(PhaseConfig, key)} has no meaning in further pretraining; leave it out")
        if isinstance(phase.rate, dict):
            raise ValueError("learning_rate by width is for strategies; write the rate of this encoder")
        if phase.schedule == "plateau":
            raise ValueError("schedule plateau follows validation scores, and there are none here; take linear")
        if phase.fits_to_convergence:
            raise ValueError("optimizer lbfgs fits a head alone; take adamw")
        return phase
