"""The kinds of heads: the types of task that each serves, and its own options with their defaults."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from thaw.records import near
from thaw.settings.data import TASK_TYPES

WORDS = tuple(name for name in TASK_TYPES if name in ("tagging", "spans"))
PAIRS = tuple(name for name in TASK_TYPES if name.startswith("pair_"))
TEXTS = tuple(name for name in TASK_TYPES if name not in WORDS)  # one text, or a pair


class Options(BaseModel):
    """The options of a kind of head; this one has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Mlp(Options):
    """A hidden layer."""

    size: int = Field(300, ge=1, description="width of the hidden layer")


class BiLstm(Options):
    """Layers of a BiLSTM; 2 of 200 are those of AllenNLP's tagger for CoNLL-2003."""

    size: int = Field(200, ge=1, description="width of each direction")
    layers: int = Field(2, ge=1, description="layers on top of each other")


class DenseNet(Options):
    """Convolutions of one width."""

    size: int = Field(100, ge=1, description="channels of each convolution")
    kernel: int = Field(3, ge=1, description="tokens that a convolution sees at a time")


class Bcn(Options):
    """Sizes of AllenNLP's network for SST."""

    size: int = Field(300, ge=1, description="width of the first layer and of each direction of both BiLSTMs")
    pool: int = Field(4, ge=1, description="values of which a maxout unit takes the largest")


class Esim(Options):
    """Sizes of Chen et al. 2017 and AllenNLP."""

    size: int = Field(300, ge=1, description="width of each direction of both BiLSTMs, and of the layers between")


class Matching(Options):
    """What all heads with a matching layer share."""

    perspectives: int = Field(20, ge=1, description="weighted cosines of each matching strategy")
    size: int = Field(100, ge=1, description="width of each direction of a BiLSTM, and of the hidden layer")


class SimTransformer(Matching):
    """A matching layer and a transformer."""

    size: int = Field(200, ge=1, description="width of the transformer and of the hidden layer")
    layers: int = Field(1, ge=1, description="layers of the transformer")
    heads: int = Field(4, ge=1, description="its attention heads; they divide its size")

    @model_validator(mode="after")
    def _heads_divide_the_size(self):
        if self.size % self.heads or self.size % 2:
            raise ValueError(f"size {self.size} is not even and divisible by {self.heads} heads")
        return self


@dataclass(frozen=True)
class HeadKind:
    """A kind of head: the types of task that it serves, its options, and whether `pooling` has a meaning for it.

    `fixed` says that nothing learned lies between the encoder and the vectors it reads, unless in pooling or layers.
    """

    task_types: tuple[str, ...] = TASK_TYPES
    options: type[Options] = Options
    pools: bool = True
    fixed: bool = False

    @property
    def serves(self) -> str:
        """What the kind is for, in words."""
        return {WORDS: "tagging and spans", PAIRS: "pairs of texts", TEXTS: "texts and pairs of texts"}[self.task_types]


HEAD_KINDS = {
    "linear": HeadKind(fixed=True),
    "cosine": HeadKind(PAIRS, fixed=True),
    "mlp": HeadKind(options=Mlp, fixed=True),
    "bilstm": HeadKind(options=BiLstm),
    "crf": HeadKind(WORDS, pools=False),
    "bilstm_crf": HeadKind(WORDS, BiLstm, pools=False),
    "highway_lstm": HeadKind(options=BiLstm),
    "densenet": HeadKind(options=DenseNet),
    "bcn": HeadKind(TEXTS, Bcn, pools=False),
    "esim": HeadKind(PAIRS, Esim, pools=False),
    "bimpm": HeadKind(PAIRS, Matching, pools=False),
    "bimpm_no_lstm": HeadKind(PAIRS, Matching, pools=False),
    "sim_transformer": HeadKind(PAIRS, SimTransformer, pools=False),
    "bi_attention": HeadKind(PAIRS, pools=False),
}


def options_of(kind: str, given: dict) -> Options:
    """Return the options of a kind of head, defaults filled in; one that is unknown or impossible is a ValueError."""
    model = HEAD_KINDS[kind].options
    known = list(model.model_fields)
    for name in given:
        if name not in known:
            raise ValueError(f"{kind} has no option '{name}'" + (near(name, known) if known else "; it has none"))
    try:
        return model.model_validate(given)
    except ValidationError as error:
        mistake = error.errors()[0]
        message = mistake["msg"].removeprefix("Value error, ")
        where = f"{mistake['loc'][0]}: " if mistake["loc"] else ""
        raise ValueError(f"{where}{message[0].lower()}{message[1:]}") from error
