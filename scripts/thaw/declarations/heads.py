"""The kinds of heads: the types of task that each serves, its own options with their defaults, and where its class is.

This module imports no torch: a class is imported when it is asked for, `HEAD_KINDS["mlp"].load()`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

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


class DenseNetOptions(HeadOptions):
    """Convolutions of one width."""

    size: int = Field(100, ge=1, description="channels of each convolution")
    kernel: int = Field(3, ge=1, description="tokens that a convolution sees at a time")


class BcnOptions(HeadOptions):
    """Sizes of AllenNLP's network for SST."""

    size: int = Field(300, ge=1, description="width of the first layer and of each direction of both BiLSTMs")
    pool: int = Field(4, ge=1, description="values of which a maxout unit takes the largest")
    states_dropout: Probability | None = Field(
        None, description="of what it reads; default: the head's dropout, as below"
    )
    first_dropout: Probability | None = Field(None, description="after the first layer")
    pooled_dropout: Probability | None = Field(None, description="of the poolings")
    between_dropout: Probability | None = Field(None, description="between the maxout layers")
    last_dropout: Probability | None = Field(None, description="below the output")
    output: Literal["matrix", "maxout"] = Field(
        "matrix", description="the last layer; AllenNLP has a third maxout layer"
    )


class EsimOptions(HeadOptions):
    """Sizes of Chen et al. 2017 and AllenNLP."""

    size: int = Field(300, ge=1, description="width of each direction of both BiLSTMs, and of the layers between")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of the last hidden layer; AllenNLP has relu")
    masks: Literal["token", "text"] = Field(
        "token", description="what dropout below a BiLSTM is drawn for, each token or, as AllenNLP has it, each text"
    )


class MatchingOptions(HeadOptions):
    """What all heads with a matching layer share."""

    perspectives: int = Field(20, ge=1, description="weighted cosines of each matching strategy")
    size: int = Field(100, ge=1, description="width of each direction of a BiLSTM, and of the hidden layer")


class SimTransformerOptions(MatchingOptions):
    """A matching layer and a transformer."""

    size: int = Field(200, ge=1, description="width of the transformer and of the hidden layer")
    layers: int = Field(1, ge=1, description="layers of the transformer")
    heads: int = Field(4, ge=1, description="its attention heads; they divide its size")
    reading: Literal["states", "bilstm"] = Field(
        "states", description="what is matched: the encoder's states, or those of BiMPM's first BiLSTM"
    )

    @model_validator(mode="after")
    def _heads_divide_the_size(self):
        if self.size % self.heads or self.size % 2:
            raise ValueError(f"size {self.size} is not even and divisible by {self.heads} heads")
        return self


class StartEndOptions(HeadOptions):
    """How an answer is found, as in Devlin et al. 2019."""

    max_answer_length: int = Field(30, ge=1, description="tokens of the longest answer that is predicted")
    n_best: int = Field(5, ge=1, description="answers to each question in predictions.parquet, the best first")


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
        """What the kind is for, in words."""
        return NAMES_OF_TYPES[self.task_types]


EXPORTED = ("linear", "cosine")  # kinds of head that run without Thaw

HEAD_KINDS = {
    "linear": HeadKind("thaw.heads.linear:LinearHead", constant_vectors=True, linear=True),
    "cosine": HeadKind(
        "thaw.heads.linear:CosineHead", PAIR_TYPES, constant_vectors=True, linear=True, compares_texts=True
    ),
    "mlp": HeadKind("thaw.heads.mlp:MlpHead", options=MlpOptions, constant_vectors=True, in_print="MLP"),
    "bilstm": HeadKind("thaw.heads.bilstm:BiLstmHead", options=BiLstmOptions, in_print="BiLSTM"),
    "crf": HeadKind("thaw.heads.crf:CrfHead", WORD_TYPES, pools=False, in_print="CRF"),
    "bilstm_crf": HeadKind(
        "thaw.heads.bilstm_crf:BiLstmCrfHead", WORD_TYPES, BiLstmOptions, pools=False, in_print="BiLSTM-CRF"
    ),
    "highway_lstm": HeadKind("thaw.heads.highway_lstm:HighwayLstmHead", options=BiLstmOptions, in_print="highway LSTM"),
    "densenet": HeadKind("thaw.heads.densenet:DenseNetHead", options=DenseNetOptions, in_print="DenseNet"),
    "bcn": HeadKind("thaw.heads.bcn:BcnHead", TEXT_TYPES, BcnOptions, pools=False, in_print="BCN"),
    "esim": HeadKind("thaw.heads.esim:EsimHead", PAIR_TYPES, EsimOptions, pools=False, in_print="ESIM"),
    "bimpm": HeadKind(
        "thaw.heads.bimpm:BiMpmHead", PAIR_TYPES, MatchingOptions, pools=False, in_print="BiMPM", version=2
    ),
    "bimpm_no_lstm": HeadKind(
        "thaw.heads.bimpm_no_lstm:BiMpmNoLstmHead",
        PAIR_TYPES,
        MatchingOptions,
        pools=False,
        in_print="BiMPM without LSTM",
        version=2,
    ),
    "sim_transformer": HeadKind(
        "thaw.heads.sim_transformer:SimTransformerHead",
        PAIR_TYPES,
        SimTransformerOptions,
        pools=False,
        in_print="Sim-Transformer",
        version=2,
    ),
    "bi_attention": HeadKind(
        "thaw.heads.bi_attention:BiAttentionHead", PAIR_TYPES, pools=False, in_print="bi-attention"
    ),
    "start_end": HeadKind(
        "thaw.heads.start_end:StartEndHead", EXTRACTION_TYPES, StartEndOptions, pools=False, in_print="start and end"
    ),
}
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
