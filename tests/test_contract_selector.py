"""The contract of a selector."""

import inspect

from thaw.adaptation.selectors import SELECTORS, boundary, components, thawed_layers
from thaw.core import plugins
from thaw.core.errors import UserError

DEPTHS = range(1, 25)


def pytest_generate_tests(metafunc):
    """Try each of Thaw's selectors, or the given one."""
    given = metafunc.config.getoption("part")
    metafunc.parametrize("selector", [given] if given else SELECTORS)


def calls(selector: str, layers: int) -> list[list]:
    """Return the arguments to try: none, or each number from 1 to L."""
    takes = len(inspect.signature(plugins.resolve(selector, SELECTORS)).parameters) > 1
    return [[number] for number in range(1, layers + 1)] if takes else [[]]


def chosen(selector: str, layers: int) -> list[list[str]]:
    """Return the components of each call beside the head; a number that is refused by a UserError is left out."""
    found = []
    for arguments in calls(selector, layers):
        try:
            plugins.resolve(selector, SELECTORS)(layers, *arguments)
        except UserError as error:
            if error.__cause__ or not arguments:
                raise
            continue
        word = {selector: arguments[0]} if arguments else selector
        found.append(components(["head", word], layers, {}))
    return found


def test_range(selector):
    """it names components that there are, for encoders of 1 to 24 layers"""
    for layers in DEPTHS:
        assert chosen(selector, layers), f"with {layers} layers it refuses every number from 1 to {layers}"


def test_boundary(selector):
    """the boundary follows: all that it trains lies above, and the layer just above trains"""
    for layers in DEPTHS:
        for found in chosen(selector, layers):
            below = boundary(found, layers)
            trained = {int(name.partition(":")[0].partition(".")[2]) for name in found if name.startswith("layer.")}
            starts = f"{found} starts at boundary {below}"
            assert (below is None) == any(name.startswith("embeddings") for name in found), starts
            assert below is None or min(trained, default=layers + 1) == below + 1, starts
            assert thawed_layers(found) == len(trained) <= layers


def test_same_answer(selector):
    """asked again it names the same components, so that a finished run stays finished"""
    for layers in DEPTHS:
        assert chosen(selector, layers) == chosen(selector, layers)
