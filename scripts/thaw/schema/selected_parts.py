"""What a phase trains, in words: the selectors of `train:` as a Methods text names them."""

from thaw.core.phrases import listing

WORDS = {
    "head": "the head",
    "all": "the head, all layers and the embeddings",
    "embeddings": "the embeddings",
    "layers": "all layers",
}
PARTS = {
    "attention": "the attention matrices",
    "feed_forward": "the feed-forward matrices",
    "query_value": "the query and value matrices",
    "bias": "the biases",
    "norm": "the layer norms",
}


def trained_parts(train: list, phase, context) -> str:
    """Return the sentence on what a phase trains, after its usual name; nothing for an empty list."""
    if not train:
        return ""
    if train == ["head"]:
        sentence = "trains the head" + ("" if phase.insert else " on the frozen encoder")
    else:
        sentence = f"trains {listing(map(_selected, train))}"
    name = _standard_name(train, phase)
    return f"{name}: {sentence}." if name else f"{sentence[0].upper()}{sentence[1:]}."


def _standard_name(train: list, phase) -> str:
    """Return what the field calls training these parts at once; nothing where it has no word for it."""
    if phase.unfreeze or phase.one_by_one or phase.insert:
        return ""
    selectors = [word for word in train if isinstance(word, dict)]
    if train == ["all"]:
        return "Full fine-tuning"
    if train == ["head"]:
        return "Linear probe" if phase.optimizer == "lbfgs" else ""
    if selectors == [{"only": "bias"}]:
        return "BitFit"
    return "Top-k fine-tuning" if len(selectors) == 1 and list(selectors[0]) == ["top"] else ""


def _selected(word) -> str:
    if isinstance(word, str):
        return WORDS.get(word, f"what {word} selects")
    only, named = word.get("only"), {key: value for key, value in word.items() if key != "only"}
    layers = listing(_layers(name, argument) for name, argument in named.items())
    if only is None:
        return layers
    layers = layers or ("all layers and the embeddings" if only in ("bias", "norm") else "all layers")
    return f"{_part(only)} of {layers}"


def _layers(name: str, argument) -> str:
    """Return which layers a selector with an argument names."""
    if name != "top":
        return f"what {name} selects for {argument}"
    return "the last layer" if argument == 1 else f"the last {argument} layers"


def _part(only) -> str:
    """Return which part of its layers is meant."""
    if isinstance(only, dict):
        heads = [number for numbers in only.values() for number in numbers]
        return f"attention {'head' if len(heads) == 1 else 'heads'} {listing(map(str, heads))}"
    return PARTS.get(only, str(only))
