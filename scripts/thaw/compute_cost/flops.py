"""What a run costs: floating-point operations by our own formulas, seconds by part, peak memory.

T tokens of a sequence, d width, C outputs of the head, L layers, f feed-forward width, k width of all keys, R relative
positions; of LSTMs c cells and p = d / 2 width of a direction.

torch's counter counts nothing for the fused attention on CPU, hence formulas. A multiplication and an
addition are two operations; only matrix products are counted: embeddings, norms and activations are not.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from thaw.core.errors import UserError

GATED = {
    "modernbert",
    "modernbert-decoder",
    "eurobert",
    "llama",
    "mistral",
    "qwen2",
    "gemma",
}  # two matrices d x f on the way in


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


def matrix(read: int, made: int, vectors: int) -> float:
    return 2.0 * read * made * vectors


def bilstm(read: int, size: int, layers: int, vectors: int) -> float:
    """Return the operations of a BiLSTM with D in each direction: four gates, each of input and hidden state."""
    widths = [read] + [2 * size] * (layers - 1)
    return sum(2 * matrix(width + size, 4 * size, vectors) for width in widths)


def attention(width: int, queries: int, keys: int) -> float:
    """Return the operations of each of some queries reading a weighted mean of some keys: scores, then the sum."""
    return 2 * matrix(width, keys, queries)


def layer_flops(shape: Shape, tokens: int) -> float:
    """Return the forward operations of one layer over one sequence of `tokens` tokens."""
    return float(shape.weights(tokens) + shape.attention(tokens))


def encoder_flops(shape: Shape, lengths: Iterable[int], boundary: int | None = None) -> float:
    """Return the forward operations of all layers above a boundary over sequences of these padded lengths.

    Args: as of `training_flops`.
    """
    counts = _counts(lengths)
    below = sum(count * shape.embeddings(tokens) for tokens, count in counts) if boundary is None else 0
    layer = sum(count * layer_flops(shape, tokens) for tokens, count in counts)
    return below + (shape.layers - (boundary or 0)) * layer


def training_flops(
    shape: Shape, lengths: Iterable[int], boundary: int | None, components: Iterable[str], inserted: int = 0
) -> float:
    """Return the operations of training an encoder once on sequences of these padded lengths, without the head.

    Layers up to the boundary (None: from text) are not computed. Going backward, a layer with something
    trained in it or below it costs once its forward products for the gradient of its input, twice those of
    states with each other, and once its products with weights where these train. The lowest trained layer
    needs no gradient of its own input. With everything trained this is the usual three times the forward
    cost. Where only a part of the lowest layer trains, it may cost less than is counted here: what is below that part
    is not crossed. `inserted` counts the parameters of matrices that were inserted: each is multiplied once a token
    forward and twice backward. `lengths` has one entry for each sequence, or is a Counter of them.
    """
    parts: dict[str, set[str]] = {}
    for block, _, part in (component.partition(":") for component in components):
        parts.setdefault(block, set()).add(part)
    trained = [n for n in range(1, shape.layers + 1) if f"layer.{n}" in parts]
    from_embeddings = "embeddings" in parts
    lowest = 0 if from_embeddings else min(trained, default=shape.layers + 1)
    crossed = shape.layers - max(lowest, 1) + 1
    total = 0
    for tokens, count in _counts(lengths):
        weights, attention = shape.weights(tokens), shape.attention(tokens)
        forward = (shape.layers - (boundary or 0)) * (weights + attention)
        forward += shape.embeddings(tokens) if boundary is None else 0
        backward = crossed * (weights + 2 * attention)
        backward += sum(_weight_gradients(shape, tokens, parts[f"layer.{n}"]) for n in trained) + 6 * tokens * inserted
        backward += 2 * shape.embeddings(tokens) if from_embeddings else 0
        saved = shape.first(tokens) if trained and not from_embeddings else 0
        total += count * (forward + backward - saved)
    return float(total)


def _counts(lengths: Iterable[int]) -> list[tuple[int, int]]:
    """Return each length with the number of sequences that have it: operations depend on the length alone."""
    return [(int(tokens), count) for tokens, count in Counter(lengths).items()]


def _weight_gradients(shape: Shape, tokens: int, parts: set[str]) -> int:
    """Return the products that the gradients of a layer's weights take, where these parts of it train."""
    if "" in parts:
        return shape.weights(tokens)
    output = 2 * tokens * shape.width**2
    attention = shape.first(tokens) + output
    total = shape.weights(tokens) - attention if "feed_forward" in parts else 0
    if "attention" in parts or any(part.startswith("heads.") for part in parts):
        return total + attention
    values = (shape.first(tokens) - output) // 2
    return total + (output + values if "query_value" in parts else 0)
