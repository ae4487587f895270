"""Selectors: the words under `train:` and the components of an encoder that each one names.

Components, from below: "embeddings", "layer.1" .. "layer.L" (the final norm belongs to layer L), and "head", to which
a pretrained pooler belongs. No torch here: the plan needs to know what trains before anything is loaded. A selector of
one's own (`thaw.parts`) is named by its import path.
"""

import inspect

from thaw import parts
from thaw.records import UserError


def head(layers: int) -> list[str]:
    """The head alone."""
    return ["head"]


def embeddings(layers: int) -> list[str]:
    """What comes before layer 1."""
    return ["embeddings"]


def top(layers: int, count: int) -> list[str]:
    """The last `count` layers, 0 to L; with L the embeddings stay frozen."""
    if not 0 <= count <= layers:
        raise UserError(f"top: {count} is not between 0 and the encoder's {layers} layers")
    return [f"layer.{n}" for n in range(layers - count + 1, layers + 1)]


def everything(layers: int) -> list[str]:
    """Head, all layers and embeddings."""
    return ["head", *embeddings(layers), *top(layers, layers)]


SELECTORS = {"head": head, "embeddings": embeddings, "top": top, "all": everything}


def components(train: list, layers: int, variables: dict[str, int]) -> list[str]:
    """Return the components that a phase trains, in order from the embeddings up, the head first.

    Args: train as in the catalogue (`[head, {top: k}]`); layers L; the sweep's variables with their values.
    Raises UserError for an unknown selector, a variable without a value, or an empty selection.
    """
    order = ["head", "embeddings", *top(layers, layers)]
    chosen = set()
    for word in train:
        name, arguments = (word, []) if isinstance(word, str) else next((k, [v]) for k, v in word.items())
        found = _named(name, arguments)(layers, *[_number(a, name, variables) for a in arguments])
        wrong = [component for component in found if component not in order] if isinstance(found, list) else [found]
        if wrong:
            raise UserError(f"{name} gives {wrong[0]!r}; a list of head, embeddings, layer.1 to layer.{layers} is due")
        chosen.update(found)
    if not chosen:
        raise UserError("a phase must train something; name selectors under train:")
    return [component for component in order if component in chosen]


def _named(name: str, arguments: list):
    """Return the selector of a name, Thaw's or an own one; one that takes other arguments is a UserError."""
    if not parts.is_own(name) and name not in SELECTORS:
        raise UserError(f"unknown selector '{name}'; there are {', '.join(SELECTORS)}")
    selector = parts.find(name, SELECTORS)
    try:
        inspect.signature(selector).bind(0, *arguments)
    except TypeError:
        due = f"a number, as in {{{name}: 2}}" if not arguments else f"no number; write {name}"
        raise UserError(f"{name} takes {due}") from None
    return selector


def _number(argument, selector: str, variables: dict[str, int]) -> int:
    """Return a selector's argument: a number, or the value of the sweep's variable."""
    if isinstance(argument, str) and argument not in variables:
        raise UserError(f"{selector}: {argument} is neither a number nor a variable of sweep:")
    return variables.get(argument, argument)


def boundary(chosen: list[str], layers: int) -> int | None:
    """Return the highest boundary below everything that trains; None where the embeddings train."""
    if "embeddings" in chosen:
        return None
    return min((int(c.split(".")[1]) for c in chosen if c != "head"), default=layers + 1) - 1


def thawed_layers(chosen: list[str]) -> int:
    """Return how many encoder layers are among the trained components."""
    return sum(component.startswith("layer.") for component in chosen)
