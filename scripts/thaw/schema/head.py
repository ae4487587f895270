"""An entry of config/heads.yaml: a head, or one head for each type of task, and the layers that it reads."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from thaw.declarations.heads import HEAD_KINDS, HeadOptions, options_of
from thaw.declarations.task_types import TASK_TYPES
from thaw.schema.entry import CatalogueEntry, Id, plugin_or
from thaw.schema.keys import ConfigModel, Context, Key, clauses, prose, written

Pooling = Literal["first", "last", "mean", "max", "attention", "pooler"]
POOLED = {
    "first": "the first token",
    "last": "the last token",
    "mean": "the mean of the tokens",
    "max": "the maximum over the tokens",
    "attention": "learned attention over the tokens",
    "pooler": "the pretrained pooler on the first token",
}
KINDS = {
    "crf": "CRF",
    "bilstm_crf": "BiLSTM-CRF",
    "bilstm": "BiLSTM",
    "mlp": "MLP",
    "bcn": "BCN",
    "esim": "ESIM",
    "highway_lstm": "highway LSTM",
    "densenet": "DenseNet",
    "bimpm": "BiMPM",
    "bimpm_no_lstm": "BiMPM without LSTM",
    "sim_transformer": "Sim-Transformer",
    "bi_attention": "bi-attention",
}


def _layer(layer, mix, context) -> str:
    return "the last layer" if layer is None else "the embeddings" if layer == 0 else f"layer {layer}"


def _last(last, mix, context) -> str:
    return f"of the last {last} layers" if last else "of all layers and the embeddings"


def _every(every, mix, context) -> str:
    return f"of one layer in {every} from the top and the embeddings" if every > 1 else _last(None, mix, context)


def _layer_dropout(dropout, mix, context) -> str:
    return f"{'layer ' * (mix.combine == 'mix')}dropout {written(dropout)}" if dropout else ""


class LayerMixConfig(ConfigModel):
    """Which layers a head reads, and how they are combined."""

    combine: Annotated[
        Literal["one", "mix", "mean", "sum", "concat", "ladder"],
        Key(
            {
                "mix": "a learned scalar mix",
                "mean": "the mean",
                "sum": "the sum",
                "concat": "the concatenation",
                "ladder": "through a ladder side network (Sung et al. 2022) the states",
            }
        ),
    ] = Field(
        "one",
        description="one: a single layer; mix: learned scalar mix (Peters et al. 2018); ladder: ladder side network, a "
        "narrow transformer that reads all layers and trains with the head (Sung et al. 2022)",
    )
    layer: Annotated[int | None, Key(_layer, unit="layer")] = Field(
        None, ge=0, description="one: which layer, 0 is the embeddings; null: the last"
    )
    last: Annotated[int | None, Key(_last, unit="layers")] = Field(
        None, ge=1, description="number of layers from the top; null, with mix only: all layers and the embeddings"
    )
    every: Annotated[int, Key(_every, unit="layers")] = Field(
        1, ge=1, description="ladder: 2 reads every second layer from the top, and the embeddings"
    )
    norm: Annotated[bool, Key({True: "each layer normalised"})] = Field(
        False, description="mix, ladder: normalise each layer to mean 0 and standard deviation 1 first"
    )
    dropout: Annotated[float, Key(_layer_dropout, unit="probability")] = Field(
        0.0,
        ge=0,
        lt=1,
        description="mix: probability that a layer is left out in training; ladder: dropout of the projected layers "
        "and in the blocks",
    )
    width: Annotated[int, Key("width {}")] = Field(96, ge=1, description="ladder: width of its blocks")
    heads: Annotated[int, Key("{} attention heads")] = Field(
        4, ge=1, description="ladder: attention heads of each block; they divide its width"
    )
    feed_forward: Annotated[float, Key("feed-forward parts {} times as wide")] = Field(
        4.0, gt=0, description="ladder: width of the feed-forward part of a block, as a multiple of its width"
    )
    gates: Annotated[Literal["learned", "fixed"], Key({"learned": "learned gates", "fixed": "gates fixed at 0.5"})] = (
        Field("learned", description="ladder: share of a layer in what its block reads; fixed: 0.5")
    )
    temperature: Annotated[float, Key("gate temperature {}")] = Field(
        0.1, gt=0, description="ladder: the share is sigmoid(alpha / temperature), and alpha begins at 0"
    )
    start: Annotated[
        Literal["random", "pruned"],
        Key({"random": "random start", "pruned": "started from the encoder's layers, pruned by weight magnitude"}),
    ] = Field(
        "random",
        description="ladder: pruned starts each block from the largest weights of the encoder's own layer (encoders "
        "with the layers of BERT)",
    )

    def meaningful(self) -> set[str]:
        """Return the keys that the way of combining reads."""
        ladder = {"norm", "dropout", "every", "width", "heads", "feed_forward", "gates", "start"}
        if self.gates == "learned":
            ladder.add("temperature")
        keys = {"one": {"layer"}, "mix": {"last", "norm", "dropout"}, "ladder": ladder}
        return keys.get(self.combine, {"last"}) | {"combine"}

    @model_validator(mode="after")
    def _keys_of_the_way(self):
        for key in sorted(self.model_fields_set - self.meaningful()):
            raise ValueError(f"{key} has no meaning with combine: {self.combine}; leave it out")
        if self.combine in ("mean", "sum", "concat") and self.last is None:
            raise ValueError(f"combine: {self.combine} needs last: how many layers from the top")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not divisible by {self.heads} heads")
        return self

    @property
    def learned(self) -> bool:
        """Whether the combination has parameters that train with the head."""
        return self.combine in ("mix", "ladder")

    def reads(self, layers: int) -> list[int]:
        """Return the boundaries that are read of an encoder of L layers; one that it lacks is a ValueError."""
        if self.combine == "one":
            read = [layers if self.layer is None else self.layer]
        elif self.combine == "ladder":
            if not layers:
                raise ValueError("layers: combine: ladder needs an encoder with layers, and this one has none")
            read = [0, *range(layers, 0, -self.every)[::-1]]
        else:
            read = list(range(layers + 1 - (layers + 1 if self.last is None else self.last), layers + 1))
        if not 0 <= read[0] <= read[-1] <= layers:
            raise ValueError(f"layers: {self.layer or self.last} is more than the encoder's {layers} layers")
        return read


def _reading(mix, head, context) -> str:
    layers, settings = clauses(mix, context)[:2], clauses(mix, context)[2:]
    return ", ".join([f"reading {' '.join(layers)}", *settings])


def _kind(kind, head, context) -> str:
    return f"{KINDS.get(kind, kind.replace('_', ' '))} head"


def _pooling(pooling, head, context) -> str:
    return f"pooling by {POOLED[pooling]}"


def _separate_pooling(pooling, head, context) -> str:
    return f"in a bi-encoder by {POOLED[pooling]}"


def _options(options, head, context) -> str:
    values = head.chosen.model_dump() if head.kind in HEAD_KINDS else options
    return ", ".join(f"{name} {written(value)}" for name, value in values.items())


class HeadConfig(CatalogueEntry):
    """The task-specific module on top of the encoder."""

    kind: Annotated[plugin_or("head", HEAD_KINDS), Key(_kind)] = Field(
        description="kind of head, or the import path of your own"
    )
    pooling: Annotated[Pooling, Key(_pooling)] = Field(
        "first", description="how the tokens of a text become one vector; tagging reads the first piece of each word"
    )
    separate_pooling: Annotated[Pooling, Key(_separate_pooling)] = Field(
        "mean", description="the same for each text of a pair in a bi-encoder"
    )
    dropout: Annotated[float, Key("dropout {}", unit="probability")] = Field(
        0.1, ge=0, lt=1, description="dropout probability in training by gradient descent"
    )
    layers: Annotated[LayerMixConfig, Key(_reading)] = Field(
        LayerMixConfig(), description="which layers it reads, and how they are combined"
    )
    initialisation: Annotated[
        Literal["bert", "kaiming"], Key({"bert": "BERT initialisation", "kaiming": "Kaiming initialisation"})
    ] = Field(
        "bert",
        description="bert: the last matrix normal with standard deviation 0.02, biases 0, the rest as in PyTorch; "
        "kaiming: every matrix normal with standard deviation sqrt(2 / inputs)",
    )
    options: Annotated[dict[Id, int | float | str], Key(_options)] = Field(
        {}, description="options of its kind, or what a head of your own reads"
    )

    def meaningful(self) -> set[str]:
        """Return the keys that the kind reads."""
        pools = self.kind not in HEAD_KINDS or HEAD_KINDS[self.kind].pools
        return set(type(self).model_fields) - (set() if pools else {"pooling", "separate_pooling"})

    @field_validator("options")
    @classmethod
    def _options_of_the_kind(cls, given: dict, info: ValidationInfo) -> dict:
        """Values equal to the default are left out, so that a spec is the same with and without them."""
        kind = info.data.get("kind")
        return options_of(kind, given).model_dump(exclude_defaults=True) if kind in HEAD_KINDS else given

    @model_validator(mode="after")
    def _pooling_has_a_reader(self):
        for key in sorted(self.model_fields_set - self.meaningful()):
            raise ValueError(f"{key} has no meaning for kind {self.kind}; leave it out")
        return self

    @model_validator(mode="after")
    def _pooler_is_for_the_last_layer(self):
        plain = self.kind == "linear" and self.layers == LayerMixConfig()
        if "pooler" in (self.pooling, self.separate_pooling) and not plain:
            raise ValueError("pooling: pooler is for kind linear on the last layer alone, which it was pretrained on")
        return self

    @property
    def fixed(self) -> bool:
        """Whether the vectors that it reads of a frozen encoder are the same in every pass, however it is trained."""
        learned = {"attention", "pooler"} & {self.pooling, self.separate_pooling} or self.layers.learned
        return self.kind in HEAD_KINDS and HEAD_KINDS[self.kind].fixed and not learned

    @property
    def chosen(self) -> HeadOptions:
        """The options of one of Thaw's kinds, defaults filled in."""
        return options_of(self.kind, self.options)


class HeadSetConfig(CatalogueEntry):
    """A name for several heads, of which the type of the task takes one."""

    by_task: dict[Literal[TASK_TYPES], Id] = Field(
        min_length=1, description="type of task: head; other types are left out"
    )


def head_text(head: HeadConfig, context: Context) -> str:
    """Return what a head is, as a Methods section says it."""
    return prose(clauses(head, context))
