"""From configuration files to a plan: selections are merged and read, and what cannot be run here is left out."""

import contextlib
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

from thaw.core import plugins
from thaw.core.errors import UserError, suggestion
from thaw.data.sources import find_source
from thaw.encoders.catalogue_draft import drafted
from thaw.encoders.weight_sources import local_files
from thaw.planning.compatibility import check_heads
from thaw.planning.plan import Plan
from thaw.planning.run_plan import named_points
from thaw.schema.catalogue import BLOCKS, Catalogue, shipped
from thaw.schema.experiment import ExperimentConfig, SelectionFiles
from thaw.schema.validation import validate
from thaw.schema.yaml_files import read_yaml

# key of an experiment -> block of the catalogues that has its ids
BLOCK_OF_KEY = {key: key for key in ("tasks", "encoders", "strategies", "outputs", "heads", "subsets", "probes")}
BLOCK_OF_KEY |= {"probe_tasks": "tasks"}
KINDS_OF_PARTS = ("tasks", "encoders", "heads", "strategies")  # of which `only` speaks


def load_plan(config: dict, home: Path, results: str | None = None, files=(), pinned: bool = True) -> "Plan":
    """Build the plan of an experiment from a merged configuration.

    Args: config as Snakemake or thaw plan merged it; home, the folder of the Snakefile, whose config/ holds
    the shipped catalogues; results, the folder of all results, in the place of that which config names; files, from
    which config was merged, to say where a mistake is; whether the pins beside them hold. Raises UserError for any
    mistake in them.
    """
    named = config.get("pathvars")  # of Snakemake
    results = results or str((isinstance(named, dict) and named.get("results")) or "results")
    if Path(results).exists() and not Path(results).is_dir():
        raise UserError(f"{results}: is a file, and results are written to a folder of this name; move it away")
    experiment, catalogue = chosen(config, home, files, pinned)
    experiment, absent = _drop_unavailable(experiment, catalogue)
    experiment, idle = _without_idle_parts(experiment, catalogue)
    check_heads(catalogue, experiment)
    return Plan(experiment, catalogue, results, list(dict.fromkeys(absent + idle)))


def chosen(config: dict, home: Path, files=(), pinned: bool = True) -> tuple[ExperimentConfig, Catalogue]:
    """Return the experiment of a merged configuration, and its catalogue; nothing is left out of it yet.

    Args: as of `load_plan`.
    """
    experiment = _experiment(config, list(files))
    for folder in experiment.catalogues:
        if not Path(folder).is_dir():
            raise UserError(f"{experiment.place('catalogues', item=folder)}: folder '{folder}' does not exist")
    plugins.set_folders(list(experiment.catalogues))
    catalogue = Catalogue([*shipped(home), *experiment.catalogues])
    catalogue.compute(experiment.compute.of_phases)
    try:
        drafted(experiment.encoders, catalogue)
    except UserError as error:
        raise UserError(f"{experiment.place('encoders')}: {error}") from error
    for pins in (pins_beside(file) for file in files if pinned):
        if pins.is_file():
            catalogue.pin(read_yaml(pins))
    experiment = experiment.with_ids(catalogue)
    _check_ids(experiment, catalogue)
    return experiment, catalogue


def _experiment(config: dict, files: list) -> ExperimentConfig:
    document = SelectionFiles(files, config)
    missing = [k for k, f in ExperimentConfig.model_fields.items() if f.is_required() and k not in config]
    if missing and config.keys() <= ExperimentConfig.model_fields.keys():  # another key may be a misspelt one
        raise UserError(
            f"{document.place([])}: the experiment lacks {', '.join(missing)}; a selection must be complete"
        )
    return validate(ExperimentConfig, config, document).written_in(document)


def _check_ids(experiment: ExperimentConfig, catalogue: Catalogue) -> None:
    """Raise UserError, with its place, for an id that no catalogue has."""
    for key, block in BLOCK_OF_KEY.items():
        for item in getattr(experiment, key):
            name = named_points(item)[0]
            if block == "heads" and name in catalogue.ids("head_sets"):
                continue
            try:
                catalogue.get(block, name, experiment.place(key, item=name))
            except UserError as error:
                if file := _unread(experiment, block, name):
                    hint = f"{file} has it: name its folder at catalogues:"
                    raise UserError(f"{experiment.place(key, item=name)}: no {name!r} in {block}; {hint}") from error
                raise
    known = [named_points(item)[0] for kind in KINDS_OF_PARTS for item in getattr(experiment, kind)]
    anywhere = {name for kind in KINDS_OF_PARTS for name in catalogue.ids(kind)}
    for name in (name for part, others in experiment.only.items() for name in (part, *others)):
        if name not in known and name not in anywhere:
            place = experiment.place("only")
            raise UserError(
                f"{place}: {name} is no task, encoder, head or strategy of the experiment{suggestion(name, known)}"
            )


def _unread(experiment: ExperimentConfig, block: str, name: str) -> Path | None:
    """Return the file near an experiment's own that has an id, where no catalogue that is read has it."""
    for folder in experiment.folders:
        for file in (folder / BLOCKS[block][0], *sorted(folder.glob(f"*/{BLOCKS[block][0]}"))):
            with contextlib.suppress(UserError, KeyError, TypeError):  # it is not there, or of another program
                if name in read_yaml(file).content[block]:
                    return file
    return None


def _drop_unavailable(experiment: ExperimentConfig, catalogue: Catalogue) -> tuple[ExperimentConfig, list[str]]:
    """Return an experiment without the optional encoders and tasks whose files are missing, and what was left out.

    `optional` and `optional_tasks` of what is returned name those that were left out. Raises UserError where nothing is
    left, and for an optional one that is not among the others.
    """
    notes, tasks = {}, [*experiment.tasks, *experiment.probe_tasks]
    for key, kind, known in (("optional", "encoders", experiment.encoders), ("optional_tasks", "tasks", tasks)):
        for name in getattr(experiment, key):
            if name not in known:
                place = experiment.place(key, item=name)
                raise UserError(f"{place}: {name} is none of the {kind}{suggestion(name, known)}")
    for name in experiment.optional:
        try:
            local_files(catalogue.get("encoders", name, "encoders"), f"encoders.{name}")
        except UserError as error:
            notes[name] = f"Encoder {name} was left out: {str(error).partition(': ')[2]}."
    for name in experiment.optional_tasks:
        if corpus := _corpus_without_source(name, experiment, catalogue, experiment.sources):
            notes[name] = f"Task {name} was left out: corpus {corpus} has no source here."
    changes = {}
    for key in ("encoders", "tasks", "probe_tasks", "optional", "optional_tasks"):
        changes[key] = [name for name in getattr(experiment, key) if (name in notes) == key.startswith("optional")]
    for key in ("encoders", "tasks"):
        if not changes[key]:
            raise UserError(f"{experiment.place(key)}: none is left. {' '.join(notes.values())}")
    return experiment.model_copy(update=changes), list(notes.values())


def _corpus_without_source(
    name: str, experiment: ExperimentConfig, catalogue: Catalogue, sources: Sequence[str]
) -> str | None:
    """Return the corpus of a task, or of a transfer set of it, that has none of these sources on this machine."""
    task = catalogue.get("tasks", name, "tasks")
    for one in (task, *(catalogue.get("tasks", transfer.task, "transfer_sets") for transfer in task.also)):
        try:
            find_source(one.corpus, catalogue.get("corpora", one.corpus, "corpus"), sources, experiment.data_dir)
        except UserError:  # the folder of the users' files is in no spec, so not in a sentence about them either
            return one.corpus
    return None


def _without_idle_parts(experiment: ExperimentConfig, catalogue: Catalogue) -> tuple[ExperimentConfig, list[str]]:
    """Return an experiment without the parts that `only` runs with others of which none is selected, and why.

    So it is where a paper's tasks are cut. A list that names nothing of a kind means all of that kind, so such a part
    would else run with everything. Raises UserError where nothing of a kind is left.
    """
    selected = {kind: [named_points(item)[0] for item in getattr(experiment, kind)] for kind in KINDS_OF_PARTS}
    idle = {}
    for part, others in experiment.only.items():
        for kind, names in selected.items():
            lacking = set(others).intersection(catalogue.ids(kind))
            if lacking and not set(others).intersection(names):
                idle[part] = [name for name in others if name in lacking]
    kept, notes = {}, []
    for kind, names in selected.items():
        kept[kind] = [item for item in getattr(experiment, kind) if named_points(item)[0] not in idle]
        for name in (name for name in names if name in idle):
            notes.append(f"{name} was left out: it is run with {', '.join(idle[name])} alone, not selected here.")
        if not kept[kind]:
            raise UserError(f"{experiment.place('only')}: no {kind} are left; {notes[-1]}")
    if not notes:
        return experiment, []
    fewer, more = _without_idle_parts(experiment.model_copy(update=kept), catalogue)  # whose own parts may be idle now
    return fewer, notes + more


def pins_beside(file) -> Path:
    """Return the file in which `thaw pin` keeps the revisions of an experiment's file."""
    return Path(file).with_suffix(".pins.yaml")


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
