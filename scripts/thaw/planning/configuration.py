"""From configuration files to a plan: selections are merged, read and, where asked, scaled down."""

from pathlib import Path

from thaw.core import plugins
from thaw.core.errors import UserError, suggestion
from thaw.planning.offline import drop_unavailable, scaled_down
from thaw.planning.plan import Plan
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.keys import unknown_key
from thaw.schema.validation import validate
from thaw.schema.yaml_files import Document, read_yaml

SEVERAL = "experiments"  # the key of a configuration that names several


def load_plan(config: dict, home: Path, results: str = "results") -> "Plan":
    """Build the plan of one experiment, or of those that `experiments` names, from a merged configuration.

    Args: config as Snakemake or thaw plan merged it; home, the folder of the Snakefile, whose config/ holds
    the shipped catalogues; results, the folder of all results. Raises UserError for any mistake in them.
    """
    experiments = [_experiment(one) for one in _each(config, home)]
    folders = dict.fromkeys(folder for one in experiments for folder in one.catalogues)
    plugins.set_folders(list(folders))
    catalogue = Catalogue([*shipped(home), *folders])
    planned, said = [], []
    for experiment in experiments:
        experiment, absent = drop_unavailable(experiment, catalogue)
        experiment, left_out = scaled_down(experiment, catalogue)
        planned.append(experiment)
        said += absent + left_out
    return Plan(planned, catalogue, results, list(dict.fromkeys(said)))


def _each(config: dict, home: Path) -> list[dict]:
    """Return the configuration of each experiment: those of config/experiments that are named, under the other keys."""
    if SEVERAL not in config:
        return [config]
    rest, folder = {key: value for key, value in config.items() if key != SEVERAL}, home / "config/experiments"
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    for name in config[SEVERAL]:
        if name not in known:
            raise UserError(f"config: {SEVERAL}: {name} is no file of {folder}{suggestion(str(name), known)}")
    return [_merge(read_yaml(folder / f"{name}.yaml").content, rest) for name in config[SEVERAL]]


def _experiment(config: dict) -> ExperimentConfig:
    for key in config:
        if key not in ExperimentConfig.model_fields:
            raise UserError(f"config: {key}: {unknown_key(ExperimentConfig, key)}")
    document = Document("config", config)
    missing = [k for k, f in ExperimentConfig.model_fields.items() if f.is_required() and k not in config]
    if missing:
        raise UserError(f"config: the experiment lacks {', '.join(missing)}; a selection must be complete")
    return validate(ExperimentConfig, config, document)


def read_config(paths: list[str], overrides: dict | None = None) -> dict:
    """Merge configuration files from left to right as Snakemake does: mappings deeply, lists replaced."""
    merged: dict = {}
    for path in paths:
        merged = _merge(merged, read_yaml(path).content)
    return _merge(merged, overrides or {})


def _merge(below: dict, above: dict) -> dict:
    """Return `below` overlaid with `above`, mappings key by key."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged
