"""The comment at the head of config/outputs.yaml: all kinds and keys, as the declarations say them."""

import textwrap

from pydantic.fields import FieldInfo

from thaw.declarations.outputs import OUTPUTS
from thaw.schema.keys import documented
from thaw.schema.output import OUTPUT_CONFIGS, OutputConfig

WIDTH, INDENT = 118, 17
BEGIN = """\
# yaml-language-server: $schema=../workflow/schemas/outputs.schema.json
#
# Outputs: tables and figures. An experiment names the ones it wants; all are drawn from its runs.csv. One that cannot
# be drawn of an experiment is refused before anything runs. This comment is written by scripts/schemas.py.
#
"""
END = """\
#
# Of a task's metrics the first is shown. All others are in runs.csv.

outputs:
"""


def outputs_comment() -> str:
    """Return the head of config/outputs.yaml, up to its first entry."""
    lines = _entry("kind", "")
    for kind, declared in OUTPUTS.items():
        lines += [f"#     {kind}", *_wrapped(declared.about)]
    for name, field in OutputConfig.model_fields.items():
        if name != "kind":
            lines += _entry(name, field.description or "")
    for name, (field, kinds) in _own_keys().items():
        default = "" if field.is_required() or field.default is None else f" (default {field.default})"
        few = "" if len(kinds) > 6 else f"{', '.join(kinds)}: "
        lines += _entry(name, f"{few}{field.description}{default}")
    return BEGIN + "\n".join(lines) + "\n" + END


def _own_keys() -> dict[str, tuple[FieldInfo, list[str]]]:
    """Return the keys that only some kinds have, each with its field and the kinds."""
    fields: dict[str, tuple[FieldInfo, list[str]]] = {}
    for kind, declared in OUTPUTS.items():
        for name, field in declared.options.model_fields.items():
            fields.setdefault(documented(declared.options, name), (field, []))[1].append(kind)
    return {name: (field, OUTPUT_CONFIGS.kinds_with(name)) for name, (field, _) in fields.items()}


def _entry(name: str, text: str) -> list[str]:
    first, *rest = _wrapped(text) or ["#"]
    return [f"#   {name:<{INDENT - 4}}{first[INDENT:]}".rstrip(), *rest]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="#" + " " * (INDENT - 1), subsequent_indent="#" + " " * (INDENT - 1)
    )
