"""An entry of config/encoders.yaml: a pretrained encoder and where it comes from."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from thaw.declarations.encoders import ENCODER_KINDS
from thaw.schema.entry import CatalogueEntry, Cite, Text, Url

# How an experiment names an encoder: by its id, the Hub id of its model or the last part of that, or a folder.
EncoderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]+$")]
UNKNOWN = "unknown"
RANDOM_TWIN = "_random"  # what is appended to the id of an encoder to have random weights in its architecture


class EncoderConfig(CatalogueEntry):
    """A pretrained model: weights, tokenizer, number of layers."""

    kind: Literal[tuple(ENCODER_KINDS)] = Field(  # type: ignore[valid-type]
        "transformers", description="what it is and how it is loaded; config/encoders.yaml describes each kind"
    )
    hub: Text | None = Field(None, description="Hub id")
    folder: Text | None = Field(None, description="local folder, in the form of its kind")
    package: Text | None = Field(None, description="name of an installed Python package that ships a model")
    path: str = Field("", description="folder of the model inside the package")
    published: Text | None = Field(None, description="Hub id of the model in a package; never part of a spec")
    file: Text | None = Field(None, description="local file of vectors, for word_vectors and sentence")
    url: Url = []
    vocabulary: int | None = Field(
        None, ge=1, description="word_vectors: use only this many words from the top of the file"
    )
    revision: str | None = Field(None, description="Hub commit; default: the latest, which is recorded")
    weights: Literal["pretrained", "random"] = Field(
        "pretrained", description="random: the same architecture with random weights"
    )
    truncated: bool = Field(False, description="keep only the first `layers` layers of the model")
    sha256: str | None = Field(
        None, pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the weights file, checked after the download"
    )
    layers: int = Field(ge=0, description="number of layers; 0 for sentence and word_vectors")
    width: int = Field(gt=0, description="width of the hidden states")
    cased: bool | Literal["unknown"] = Field(
        "unknown", description="whether the vocabulary is cased; uncased encoders do worse on names"
    )
    objective: Text = Field(UNKNOWN, description="pretraining objective")
    pretraining: list[str] = Field(
        [UNKNOWN], min_length=1, description="corpora seen in pretraining, on which results are no evidence"
    )
    cite: Cite = []
    parameters: float | None = Field(
        None, gt=0, description="millions of parameters, as its authors state them; never part of a spec"
    )
    languages: Text = Field(UNKNOWN, description="languages of its pretraining; never part of a spec")
    licence: Text = Field(UNKNOWN, description="licence of its weights, as its authors state it; never part of a spec")
    note: str | None = Field(None, description="a footnote for tables; never part of a spec")

    @property
    def footnote(self) -> str | None:
        """Its footnote in tables; where nobody stated what it was pretrained on, that Thaw cannot warn."""
        if self.note or self.weights == "random":
            return self.note
        lacking = [key for key in ("objective", "pretraining") if UNKNOWN in getattr(self, key)]
        if not lacking:
            return None
        return (
            f"Its entry does not state {' and '.join(lacking)}, so that Thaw cannot warn if it was pretrained on a "
            "task, or on one like it."
        )

    @model_validator(mode="after")
    def _keys_of_the_kind(self):
        allowed = ENCODER_KINDS[self.kind].origins
        given = [name for name in ("hub", "folder", "package", "file") if getattr(self, name)]
        if len(given) != 1 or given[0] not in allowed:
            keys = " and ".join(filter(None, [", ".join(allowed[:-1]), allowed[-1]]))
            raise ValueError(f"an encoder of kind {self.kind} needs exactly one of {keys}")
        if (self.layers == 0) == ENCODER_KINDS[self.kind].layered:
            raise ValueError(f"layers: {self.layers} can not be: sentence and word_vectors have 0, other kinds more")
        if self.truncated and self.kind != "transformers":
            raise ValueError("truncated is for kind transformers; leave it out")
        if self.kind == "word_vectors" and self.cased == UNKNOWN:
            raise ValueError("the key 'cased' is missing; of kind word_vectors it decides how words are looked up")
        if self.vocabulary and self.kind != "word_vectors":
            raise ValueError("vocabulary is for kind word_vectors; leave it out")
        return self
