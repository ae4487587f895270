"""The numbers of an encoder that its cost follows from, and the matrix products of one of its layers.

L layers, d width, f feed-forward width, k width of all keys, T tokens of a sequence, R relative positions; of
LSTMs c cells and p = d / 2 width of a direction.
"""

from dataclasses import dataclass

from thaw.core.errors import UserError

GATED = {"modernbert", "llama", "mistral", "qwen2", "gemma"}  # two matrices d x f on the way in


@dataclass(frozen=True)
class Shape:
    """A stack of transformer layers; its embeddings are looked up, and cost nothing.

    `keys` is k where several queries share a key (Llama), None where it is d. `positions` is the number of products
    with the R relative positions per layer, times R (DeBERTa: 2 x 512; 0 elsewhere).
    """

    layers: int
    width: int
    intermediate: int = 0
    gated: bool = False
    positions: int = 0
    keys: int | None = None

    @staticmethod
    def of(config: dict) -> "Shape":
        """Read a shape from an encoder's config.json, under any name that transformers gives the keys.

        Raises UserError where a key is missing, since an operation counted as 0 would be an error.
        """
        kind = config.get("model_type")
        if "lstm" in config:
            return Recurrent.of(config)
        if config.get("num_hidden_layers") == 0:
            return Shape(0, config["hidden_size"])
        layers = _first(config, "num_hidden_layers", "n_layers", "n_layer")
        width = _first(config, "hidden_size", "dim", "n_embd")
        if kind in ("gpt2", "openai-gpt"):
            return Shape(layers, width, config.get("n_inner") or 4 * width)
        inner = _first(config, "intermediate_size", "hidden_dim")
        return Shape(layers, width, inner, kind in GATED, _positions(config), _keys(config, width))

    def weights(self, tokens: int) -> int:
        """Return one layer's products with weights: queries, keys, values, output, and the feed-forward part."""
        attended = 4 * tokens * self.width * (self.width + (self.keys or self.width))
        return attended + (6 if self.gated else 4) * tokens * self.width * self.intermediate

    def attention(self, tokens: int) -> int:
        """Return one layer's products of states with each other: scores, weighted values, relative positions."""
        return 4 * tokens**2 * self.width + 2 * tokens * self.positions * self.width

    def first(self, tokens: int) -> int:
        """Return those of one layer's products with weights that read the layer's own input."""
        return 2 * tokens * self.width * (self.width + 2 * (self.keys or self.width))

    def embeddings(self, tokens: int) -> int:
        """Return the products below layer 1."""
        return 0


@dataclass(frozen=True)
class Recurrent(Shape):
    """ELMo: bidirectional LSTMs with a projection, above a convolution over the characters of each token.

    `intermediate` is c; `characters` are the products of one token with the weights below layer 1.
    """

    characters: int = 0

    @staticmethod
    def of(config: dict) -> "Recurrent":
        """Read a shape from the config.json of an ELMo."""
        cnn, width = config["char_cnn"], config["hidden_size"]
        longest, filters = cnn["max_characters_per_token"], cnn["filters"]
        count = sum(number for _, number in filters)
        products = sum((longest - reach + 1) * reach * cnn["embedding"]["dim"] * number for reach, number in filters)
        products += 2 * cnn["n_highway"] * count**2 + count * width // 2
        cells = config["lstm"]["dim"]
        return Recurrent(config["num_hidden_layers"], width, cells, characters=2 * products)

    def weights(self, tokens: int) -> int:
        """Return one layer's products: gates from input and state, and the projection, in both directions."""
        return 18 * tokens * self.width * self.intermediate

    def attention(self, tokens: int) -> int:
        """Return 0: no state is multiplied with another."""
        return 0

    def first(self, tokens: int) -> int:
        """Return the products of the gates with the layer's own input."""
        return 8 * tokens * self.width * self.intermediate

    def embeddings(self, tokens: int) -> int:
        """Return the products of convolution, highway layers and projection."""
        return self.characters * tokens


def _first(config: dict, *names: str) -> int:
    for name in names:
        if config.get(name):
            return int(config[name])
    raise UserError(f"the encoder's config.json has none of {', '.join(names)}; its cost cannot be counted")


def _keys(config: dict, width: int) -> int | None:
    """Return the width of all keys, None where each query has its own."""
    heads, groups = config.get("num_attention_heads"), config.get("num_key_value_heads")
    if groups is None or heads is None or groups == heads:
        return None
    return groups * (config.get("head_dim") or width // heads)


def _positions(config: dict) -> int:
    """Return DeBERTa-v2's kinds of products with relative positions times the number of these."""
    if not config.get("relative_attention"):
        return 0
    spans = (config.get(name, -1) for name in ("position_buckets", "max_relative_positions"))
    span = next((span for span in spans if span > 0), config.get("max_position_embeddings", 0))
    kinds = config.get("pos_att_type") or []
    return 2 * span * len(kinds.split("|") if isinstance(kinds, str) else kinds)
