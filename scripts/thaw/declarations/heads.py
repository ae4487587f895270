"""The kinds of heads: the types of task that each serves, its own options with their defaults, and where its class is.

This module imports no torch: a class is imported when it is asked for, `HEAD_KINDS["mlp"].load()`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from thaw.core import plugins
from thaw.core.errors import suggestion
from thaw.declarations.lazy_import import LazyImport
from thaw.declarations.task_types import EXTRACTION_TYPES, PAIR_TYPES, PREDICTED_TYPES, TEXT_TYPES, WORD_TYPES

Probability = Annotated[float, Field(ge=0, lt=1)]


class HeadOptions(BaseModel):
    """The options of a kind of head; this one has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MlpOptions(HeadOptions):
    """A hidden layer."""

    size: Annotated[int, Field(ge=1)] | Literal["encoder"] = Field(
        300, description="width of the hidden layer; encoder: that of the encoder"
    )
    activation: Literal["relu", "tanh"] = Field("relu", description="what the hidden layer's values go through")


class BiLstmOptions(HeadOptions):
    """Layers of a BiLSTM; 2 of 200 are those of AllenNLP's tagger for CoNLL-2003."""

    size: int = Field(200, ge=1, description="width of each direction")
    layers: int = Field(2, ge=1, description="layers on top of each other")


class StartEndOptions(HeadOptions):
    """How an answer is found, as in Devlin et al. 2019."""

    max_answer_length: int = Field(30, ge=1, description="tokens of the longest answer that is predicted")


NAMES_OF_TYPES = {
    PREDICTED_TYPES: "labels, scores and tags",
    EXTRACTION_TYPES: "span extraction",
    WORD_TYPES: "tagging and spans",
    PAIR_TYPES: "pairs of texts",
    TEXT_TYPES: "texts and pairs of texts",
}


@dataclass(frozen=True)
class HeadKind(LazyImport):
    """A kind of head.

    Attributes: source, its class; the types of task that it serves; the model of its options; whether `pooling` has a
    meaning for it; constant_vectors, whether nothing learned is between the encoder and the vectors that it reads,
    unless in pooling or layers, so that these are the same in every pass, and it may pool in several ways at once;
    linear, whether it is no more than a matrix on such vectors, so that it can be fitted to convergence;
    compares_texts, whether it needs the texts of a pair encoded separately; in_print, its name there, where it is not
    its id; version, raised where the results of its runs change and those of other kinds do not.
    """

    task_types: tuple[str, ...] = PREDICTED_TYPES
    options: type[HeadOptions] = HeadOptions
    pools: bool = True
    constant_vectors: bool = False
    linear: bool = False
    compares_texts: bool = False
    in_print: str = ""
    version: int = 1

    @property
    def serves(self) -> str:
        return NAMES_OF_TYPES[self.task_types]


EXPORTED = ("linear", "cosine")  # kinds of head that run without Thaw

HEAD_KINDS = {
    "linear": HeadKind("thaw.heads.linear:LinearHead", constant_vectors=True, linear=True),
    "cosine": HeadKind(
        "thaw.heads.linear:CosineHead", PAIR_TYPES, constant_vectors=True, linear=True, compares_texts=True
    ),
    "mlp": HeadKind("thaw.heads.linear:MlpHead", options=MlpOptions, constant_vectors=True, in_print="MLP"),
    "bilstm": HeadKind("thaw.heads.bilstm:BiLstmHead", options=BiLstmOptions, in_print="BiLSTM"),
    "crf": HeadKind("thaw.heads.crf:CrfHead", WORD_TYPES, pools=False, in_print="CRF"),
    "bilstm_crf": HeadKind(
        "thaw.heads.crf:BiLstmCrfHead", WORD_TYPES, BiLstmOptions, pools=False, in_print="BiLSTM-CRF"
    ),
    "start_end": HeadKind(
        "thaw.heads.start_end:StartEndHead", EXTRACTION_TYPES, StartEndOptions, pools=False, in_print="start and end"
    ),
}
HEAD_KINDS |= plugins.shipped("HEADS")
POOLING_KINDS = tuple(kind for kind, declared in HEAD_KINDS.items() if declared.constant_vectors)
LINEAR_KINDS = tuple(kind for kind, declared in HEAD_KINDS.items() if declared.linear)


def options_of(kind: str, given: dict) -> HeadOptions:
    """Return the options of a kind of head, defaults filled in; one that is unknown or impossible is a ValueError."""
    model = HEAD_KINDS[kind].options
    known = list(model.model_fields)
    for name in given:
        if name not in known:
            raise ValueError(f"{kind} has no option '{name}'" + (suggestion(name, known) if known else "; it has none"))
    try:
        return model.model_validate(given)
    except ValidationError as error:
        mistake = error.errors()[0]
        message = mistake["msg"].removeprefix("Value error, ")
        where = f"{mistake['loc'][0]}: " if mistake["loc"] else ""
        raise ValueError(f"{where}{message[0].lower()}{message[1:]}") from error
