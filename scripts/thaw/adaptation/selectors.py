"""Selectors: the words under `train:` and `insert:`, and the components of an encoder that each one names.

Components, from below: "embeddings", "layer.1" .. "layer.L" (the final norm belongs to layer L), and "head", to which
a pretrained pooler belongs. A part of one follows a colon: "layer.3:attention", "embeddings:bias", single heads as
"layer.3:heads.0.3", an insert as "layer.3:lora". No torch here: the plan needs to know what trains before anything is
loaded. A plug-in selector (`thaw.core.plugins`) is named by its import path.
"""

import inspect

from thaw.core import plugins
from thaw.core.errors import UserError, suggestion

PARTS = ("attention", "feed_forward", "query_value", "bias", "norm")  # the words of `only:`, besides {heads: [...]}
OF_EMBEDDINGS = ("bias", "norm")  # the parts that embeddings have too
INSERTED = {"lora": ["lora"], "ia3": ["ia3"], "adapters": ["adapters", "norm"]}  # what trains with each kind of insert


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


def every_layer(layers: int) -> list[str]:
    """All layers, and not the embeddings."""
    return top(layers, layers)


def everything(layers: int) -> list[str]:
    """Head, all layers and embeddings."""
    return ["head", *embeddings(layers), *every_layer(layers)]


SELECTORS = {"head": head, "embeddings": embeddings, "top": top, "layers": every_layer, "all": everything}


def components(train: list, layers: int, variables: dict[str, int], insert=None) -> list[str]:
    """Return the components that a phase trains, in order from the embeddings up, the head first.

    Args: train as in the catalogue (`[head, {top: k, only: bias}]`); layers L; the sweep's variables with their values;
    the phase's insert (InsertConfig), if it has one.
    Raises UserError for an unknown selector or part, a variable without a value, or an empty selection.
    """
    chosen = {component for word in train for component in _selected(word, layers, variables)}
    if insert is not None:
        count = layers if insert.top is None else _number(insert.top, "insert", variables)
        chosen |= {f"{layer}:{part}" for layer in top(layers, count) for part in INSERTED[insert.kind]}
    if not chosen:
        raise UserError("a phase must train something; name selectors under train:")
    order = ["head", "embeddings", *top(layers, layers)]
    ordered = sorted(chosen, key=lambda component: (order.index(block(component)), component))
    return [c for c in ordered if part(c) in ("", *INSERTED) or block(c) not in chosen]


def block(component: str) -> str:
    """Return the layer that a component is or is a part of, `embeddings` or `head`."""
    return component.partition(":")[0]


def renumbered(component: str, layers: list[int]) -> str:
    """Return a component with its layer counted among those that there are: of [2, 4] layer.4:bias is layer.2:bias."""
    if not component.startswith("layer."):
        return component
    name, colon, inner = component.partition(":")
    return f"layer.{layers.index(int(name.removeprefix('layer.'))) + 1}{colon}{inner}"


def part(component: str) -> str:
    """Return what of its layer a component is; empty for the whole."""
    return component.partition(":")[2]


def _selected(word, layers: int, variables: dict[str, int]) -> list[str]:
    if isinstance(word, str):
        return _resolved(word, [], layers)
    only, named = word.get("only"), [(key, value) for key, value in word.items() if key != "only"]
    if len(named) > 1:
        raise UserError(f"{{{', '.join(word)}}} names {len(named)} selectors; write each as an item of its own")
    selected = [*embeddings(layers), *top(layers, layers)]
    for name, argument in named:
        selected = _resolved(name, [_number(argument, name, variables)], layers)
    if only is None:
        return selected
    kind = _part(only)
    takes = [c for c in selected if part(c) == "" and c != "head" and (c != "embeddings" or kind in OF_EMBEDDINGS)]
    return [f"{component}:{kind}" for component in takes]


def _resolved(name: str, arguments: list, layers: int) -> list[str]:
    selected = _named(name, arguments)(layers, *arguments)
    blocks = ["head", "embeddings", *top(layers, layers)]
    wrong = [c for c in selected if not _exists(c, blocks)] if isinstance(selected, list) else [selected]
    if wrong:
        raise UserError(
            f"{name} gives {wrong[0]!r}; expected a list of head, embeddings, layer.1 to layer.{layers}, or of parts "
            f"of them such as layer.{layers}:bias"
        )
    return selected


def _exists(component, blocks: list[str]) -> bool:
    if not isinstance(component, str) or block(component) not in blocks:
        return False
    if ":" not in component:
        return True
    kind = part(component)
    if block(component) == "embeddings":
        return kind in OF_EMBEDDINGS
    numbers = kind.removeprefix("heads.").split(".") if kind.startswith("heads.") else ["none"]
    return block(component) != "head" and (kind in PARTS or all(number.isdecimal() for number in numbers))


def _part(only) -> str:
    """Return the name of what `only:` says: one of PARTS, or `heads.0.3` for {heads: [0, 3]}."""
    if isinstance(only, dict) and list(only) == ["heads"] and only["heads"]:
        if wrong := [number for number in only["heads"] if type(number) is not int or number < 0]:
            raise UserError(f"only: heads: {wrong[0]!r} is no number of a head; they are counted from 0")
        return ".".join(["heads", *map(str, sorted(set(only["heads"])))])
    if only not in PARTS:
        raise UserError(f"only: {only} is no part of a layer and no {{heads: [0, 3]}}{suggestion(str(only), PARTS)}")
    return only


def _named(name: str, arguments: list):
    if not plugins.is_plugin(name) and name not in SELECTORS:
        known = f"there are {', '.join(SELECTORS)}; {{top: 2}} trains the last two layers"
        raise UserError(f"unknown selector '{name}'; {known}")
    selector = plugins.resolve(name, SELECTORS)
    try:
        inspect.signature(selector).bind(0, *arguments)
    except TypeError:
        expected = f"a number, as in {{{name}: 2}}" if not arguments else f"no number; write {name}"
        raise UserError(f"{name} takes {expected}") from None
    return selector


def _number(argument, selector: str, variables: dict[str, int]) -> int:
    if isinstance(argument, str) and argument not in variables:
        raise UserError(f"{selector}: {argument} is neither a number nor a variable of sweep:")
    return variables.get(argument, argument)


def boundary(chosen: list[str], layers: int) -> int | None:
    """Return the highest boundary below everything that trains; None where anything of the embeddings trains."""
    if trains_embeddings(chosen):
        return None
    return min((int(block(c).split(".")[1]) for c in chosen if c != "head"), default=layers + 1) - 1


def thawed_layers(chosen: list[str]) -> int:
    """Return how many encoder layers train, or have a part or an insert that does."""
    return len({block(component) for component in chosen if component.startswith("layer.")})


def most_thawed(phases: list[list[str]]) -> list[str]:
    """Return the components of the phase that trains most layers, of several the last."""
    return max(reversed(phases), key=thawed_layers)


def trains_embeddings(chosen: list[str]) -> bool:
    return "embeddings" in map(block, chosen)
