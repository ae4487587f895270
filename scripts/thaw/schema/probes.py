"""Probes: what is asked of the layers of an encoder."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from thaw.schema.entry import CatalogueEntry, Id, Rate, Share, plugin_or

# Shares of the training rows after which online coding fits anew: those of Voita and Titov 2020, section 4.1.
PORTIONS = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5]
STRENGTHS = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0]
LINEAR = ("pooling", "l2", "choice")
DESCENT = ("rate", "epochs", "patience", "choice")
ESTIMATED = ("rows", "dimensions", "widths", "components", "clusters")
KEYS = {  # of each kind: the keys that have a meaning for it, beside `layers`
    "linear": LINEAR,
    "control": LINEAR,
    "mdl": ("pooling", "l2", "portions"),
    "mutual_information": (*LINEAR, *ESTIMATED),
    "cka": ("tokens",),
    "rsa": ("tokens",),
    "svcca": ("tokens",),
    "attention_similarity": ("examples",),
    "weight_distance": (),
    "masked_loss": ("examples",),
    "next_sentence_loss": ("examples",),
    "surface": LINEAR,
    "edge": (*DESCENT, "projection", "hidden", "dropout"),
    "structural": (*DESCENT, "rank"),
    "domain_divergence": (*LINEAR, "domain"),
    "logme": ("pooling", "choice"),
    "head_importance": (*LINEAR, "examples"),
}
OF_ONES_OWN = (*LINEAR, "options")
KINDS = tuple(KEYS)
OF_CLASSES = ("control", "mdl", "mutual_information")  # kinds that have a meaning for labels and tags alone
# kinds that compare an encoder with what runs made of it
COMPARISONS = ("cka", "rsa", "svcca", "attention_similarity", "weight_distance", "masked_loss", "next_sentence_loss")
# figures that are drawn from probes, and the kinds that each draws
PROBE_FIGURES = {
    "normalised_figure": ("linear",),
    "change_figure": ("cka", "rsa", "svcca", "attention_similarity", "weight_distance"),
    "attention_figure": ("attention_similarity",),
    "probe_figure": ("linear", "control", "mdl", "logme", "surface", "edge", "structural"),
    "heat_figure": ("linear", "surface", "edge", "structural"),
    "mix_figure": ("edge",),
    "information_figure": ("mutual_information",),
    "domain_figure": ("domain_divergence",),
    "heads_figure": ("head_importance",),
    "gain_figure": ("logme", "masked_loss", "next_sentence_loss"),
}


def draws(figure: str, kind: str) -> bool:
    """Return whether a kind of figure draws a kind of probe; one's own probes are curves by layer."""
    return kind in PROBE_FIGURES.get(figure, ()) or (figure == "probe_figure" and kind not in KINDS)


class ProbeConfig(CatalogueEntry):
    """A diagnostic fitted to the hidden states of each layer, which changes no encoder."""

    kind: plugin_or("probe", KINDS)
    pooling: Literal["mean", "first", "max"] = Field(
        "mean", description="how the tokens of a text become one vector; of a word its first piece is read"
    )
    layers: list[Annotated[int, Field(ge=0)]] = Field(
        [], description="which layers, 0 the embeddings, which is always among them; unless stated all"
    )
    l2: list[Annotated[float, Field(ge=0)]] = Field(
        STRENGTHS, min_length=1, description="strengths of the penalty, of which one is chosen"
    )
    choice: Share = Field(
        0.2,
        description="share of the training rows on which the strength or the epoch is chosen; nothing is fitted to it",
    )
    portions: list[Share] = Field(
        PORTIONS, min_length=1, description="mdl: the shares of the training rows after which it is fitted anew"
    )
    rows: int = Field(
        1000,
        ge=20,
        description="mutual_information: texts or words of a split that are taken; fewer where it has fewer",
    )
    dimensions: int = Field(4, ge=1, le=16, description="mutual_information: random axes that EDGE sees")
    widths: list[Annotated[float, Field(gt=0)]] = Field(
        [1.0, 1.5, 2.0, 2.5, 3.0], min_length=2, description="mutual_information: of EDGE's grids, in deviations"
    )
    components: int = Field(32, ge=1, description="mutual_information: principal components that k-means sees")
    clusters: list[Annotated[int, Field(ge=2)]] = Field(
        [8, 16, 32, 64], min_length=1, description="mutual_information: numbers of clusters"
    )

    tokens: int = Field(10_000, ge=4, description="cka, rsa, svcca: tokens of validation that are compared, at most")
    examples: int = Field(
        1000,
        ge=1,
        description="attention_similarity, head_importance and losses of pretraining: texts that are read, at most",
    )
    rate: Rate = Field(1e-3, description="edge, structural: the learning rate of Adam")
    epochs: int = Field(30, ge=1, le=1000, description="edge, structural: how many at most")
    patience: int = Field(3, ge=1, description="edge, structural: epochs without a better one after which it ends")
    projection: int = Field(256, ge=1, description="edge: width that the tokens of a span are projected to")
    hidden: int = Field(256, ge=1, description="edge: width of the hidden layer")
    dropout: float = Field(0.3, ge=0, lt=1, description="edge: dropout of the hidden layer")
    rank: int | None = Field(None, ge=1, description="structural: dimensions of the space of the tree; unless stated d")
    domain: Id | None = Field(
        None, description="domain_divergence: the target of the corpus, of kind label, that names each row's domain"
    )
    options: dict[Id, int | float | str] = Field({}, description="what a probe of your own reads")

    @model_validator(mode="after")
    def _keys_of_the_kind(self):
        known = {"kind", "layers", "label", *KEYS.get(self.kind, OF_ONES_OWN)}
        if (self.kind == "domain_divergence") and not self.domain:
            raise ValueError("kind domain_divergence needs domain: the target of the corpus that names the domains")
        for key in sorted(self.model_fields_set - known):
            raise ValueError(f"{key} has no meaning with kind {self.kind}; leave it out")
        if sorted(set(self.portions)) != self.portions:
            raise ValueError("portions must rise")
        return self
