"""What a run costs: floating-point operations by our own formulas, seconds by part, peak memory.

T tokens of a sequence, d width, C outputs of the head; layers and their products: thaw.compute_cost.model_shape.

torch's counter counts nothing for the fused attention on CPU, hence formulas. A multiplication and an
addition are two operations; only matrix products are counted: embeddings, norms and activations are not.
"""

from collections import Counter
from collections.abc import Iterable

from thaw.compute_cost.model_shape import Shape


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
