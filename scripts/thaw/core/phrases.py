"""Words and numbers as a sentence has them."""

import re

import yaml


def rate(value: float) -> str:
    """Return a learning rate or strength as people write it: 5e-5, 0.01."""
    text = f"{value:e}" if 0 < abs(value) < 0.01 else f"{value:g}"
    return re.sub(r"\.?0*e-0", "e-", text)


def written(value) -> str:
    """Return a value as YAML has it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return rate(value) if isinstance(value, float) else str(value) if value != "" else '""'


def listing(items) -> str:
    """Join words as in a sentence: `a, b and c`; where one has a comma of its own, `a; b, c; and d`."""
    items = list(items)
    between, last = ("; ", "; and ") if any("," in item for item in items) else (", ", " and ")
    return last.join([between.join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def plural(size: int, word: str, words: str | None = None) -> str:
    """Return `1 seed`, `2 seeds`."""
    return f"{size} {word if size == 1 else words or word + 's'}"


def yaml_value(value) -> str:
    """Return a value as YAML in one line: true, [head, layer.6], {kind: lora}."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return text.removesuffix("...\n").strip()
