"""Values as one writes them in a file of the configuration."""

import yaml


def yaml_value(value) -> str:
    """Return a value as YAML in one line: true, [head, layer.6], {kind: lora}."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return text.removesuffix("...\n").strip()
