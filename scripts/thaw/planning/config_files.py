"""The files of a configuration, merged as Snakemake merges them."""

from copy import deepcopy

from thaw.schema.yaml_files import read_yaml

SUFFIXES = (".yaml", ".yml", ".json")


def read_config(paths: list[str], overrides: dict | None = None) -> dict:
    """Merge configuration files from left to right as Snakemake does: mappings deeply, lists replaced."""
    config: dict = {}
    for path in paths:
        config = merged(config, read_yaml(path).content)
    return merged(config, overrides or {})


def merged(below: dict, above: dict) -> dict:
    """Return `below` overlaid with `above`, mappings key by key: a copy, since documents are kept for the next plan."""
    config = deepcopy(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(config.get(key), dict)
        config[key] = merged(config[key], value) if both else deepcopy(value)
    return config
