"""A rule of style: what sees a batch makes no tensor without saying on which device.

It reads the code of the whole package, so that a line which no test runs is seen too; test_device_runs.py runs it on a
pretended card. numpy's arrays that become tensors (`from_numpy`) are on the CPU and say so by their name.
"""

import ast
import functools
import re

from test_house import SCRIPTS, shown

MAKERS = {"full", "zeros", "ones", "arange", "tensor", "as_tensor", "empty", "eye", "linspace"}
MAKERS |= {"rand", "randn", "randint", "randperm", "normal", "tril_indices", "triu_indices"}

# What a module owns goes where it goes (`Module.to`); what is copied at once says so itself.
OWNED = {"Parameter", "register_buffer"}

# Where a tensor without a device is right, by file and function, with the reason.
ALLOWED = {
    "anatomy.py: probe_ids": "an encoder is studied on the CPU, before it is moved",
    "anatomy.py: _run": "the same",
    "formats.py: cut": "an exported model is made and checked on the CPU",
    "parity.py: _batch": "ids and lengths are drawn on the CPU, and the batch is sent as a whole",
    "dropout.py: _kept": "one number, with which numpy's generator begins",
    "elmo.py: warm_up": "the states that ELMo starts with are computed on the CPU, when it is converted",
    "elmo.py: assemble": "the same",
    "bimpm.py: __init__": "its parts become parameters in the line below",
    "registry.py: example": "a head of one's own is tried on the CPU, before it is moved",
    "edge.py: edge": "a mask of layers, which becomes a buffer of the probes' module",
    "masking.py: masked": "drawn by a generator of the CPU, so that masks are the same on all devices",
    "masking.py: paired": "drawn by a generator of the CPU, as masks are; the batch is sent as a whole",
    "masked_model.py: __init__": "nothing is in it before a batch is read",
    "batch.py: ": "a batch that lacks a part has nothing to send",
    "store.py: batch": "a batch is made on the CPU, and sent as a whole",
    "similarity_indices.py: ": "one number, to which sums on a device are added",
    "objectives.py: targets": "made from the corpus' numbers on the CPU, and sent once",
    "modeling_thaw.py: preprocess": "a pipeline sends its inputs to the device of the model",
    "training_run.py: __init__": "the same",
    "resumed.py: collate": "a loop of one's own makes its batches on the CPU, and sends each as a whole",
    "taught.py: write": "logits are gathered on the CPU, to be written",
    "taught.py: _write_logits": "the same",
}


def functions(tree: ast.AST, name: str = ""):
    """Yield each call in a tree with the name of the function that it stands in, and the calls around it there."""

    def walk(node, name, around):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield from walk(child, child.name, ())
            elif isinstance(child, ast.Call):
                yield child, name, around
                yield from walk(child, name, (*around, child))
            else:
                yield from walk(child, name, around)

    yield from walk(tree, name, ())


def makes_a_tensor(call: ast.Call) -> bool:
    """Tell whether a call makes a tensor of torch on a device that it does not say."""
    function = call.func
    named = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    if not (named and function.value.id == "torch" and function.attr in MAKERS):
        return False
    return all(word.arg not in ("device", None) for word in call.keywords)


def owned(around: tuple[ast.Call, ...]) -> bool:
    """Tell whether one of the calls around makes a parameter or a buffer of a module."""
    return any(re.split(r"\.", ast.unparse(call.func))[-1] in OWNED for call in around)


@functools.cache
def found() -> dict[str, list[str]]:
    """Return by file and function the lines that make a tensor without a device."""
    lines: dict[str, list[str]] = {}
    for path in SCRIPTS:
        for call, name, around in functions(ast.parse(path.read_text(encoding="utf-8"))):
            if makes_a_tensor(call) and not owned(around):
                lines.setdefault(f"{path.name}: {name}", []).append(f"{shown(path)}:{call.lineno} {ast.unparse(call)}")
    return lines


def test_no_tensor_is_made_without_a_device():
    wrong = [line for place, lines in found().items() if place not in ALLOWED for line in lines]
    assert wrong == [], "say device=, take *_like or new_*, or add the place to ALLOWED with the reason"


def test_no_exception_outlives_its_line():
    assert sorted(set(ALLOWED) - set(found())) == []


def test_the_rule_sees_what_it_should():
    code = """
def f(mask, states):
    torch.zeros(3)
    torch.arange(len(states)) < mask
    torch.zeros(3, device=mask.device), torch.zeros_like(mask), states.new_zeros(3), torch.randn(3, **more)
    nn.Parameter(torch.zeros(3)), self.register_buffer("x", torch.ones(3))
    nn.Linear(3, 3)(torch.randn(3))
"""
    seen = [c for c, _, around in functions(ast.parse(code)) if makes_a_tensor(c) and not owned(around)]
    assert [ast.unparse(call) for call in seen] == ["torch.zeros(3)", "torch.arange(len(states))", "torch.randn(3)"]
