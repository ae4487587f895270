"""From configuration files to a plan: selections are merged, read and, where asked, scaled down."""

import contextlib
from itertools import product
from operator import attrgetter
from pathlib import Path

from thaw.core import plugins
from thaw.core.errors import UserError, suggestion
from thaw.planning.compatibility import check_heads
from thaw.planning.config_files import SUFFIXES, merged
from thaw.planning.offline import drop_unavailable, scaled_down
from thaw.planning.plan import Plan
from thaw.planning.run_plan import named_points
from thaw.schema.catalogue import BLOCKS, Catalogue, shipped
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.keys import unknown_key
from thaw.schema.selection_files import SelectionFiles
from thaw.schema.validation import validate
from thaw.schema.yaml_files import read_yaml

# key of an experiment -> block of the catalogues that has its ids
BLOCK_OF_KEY = {key: key for key in ("tasks", "encoders", "strategies", "outputs", "heads", "subsets", "probes")}
BLOCK_OF_KEY |= {"probe_tasks": "tasks"}
KINDS_OF_PARTS = ("tasks", "encoders", "heads", "strategies")  # of which `only` speaks
SEVERAL = "experiments"  # the key of a configuration that names several
OF_A_PLAN = (("data_dir",), ("compute", "threads"), ("store", "free"))  # keys that experiments have alike in one plan


def load_plan(config: dict, home: Path, results: str | None = None, files=()) -> "Plan":
    """Build the plan of one experiment, or of those that `experiments` names, from a merged configuration.

    Args: config as Snakemake or thaw plan merged it; home, the folder of the Snakefile, whose config/ holds
    the shipped catalogues; results, the folder of all results, in the place of that which config names; files, from
    which config was merged, to say where a mistake is. Raises UserError for any mistake in them.
    """
    results = results or _results_folder(config)
    if Path(results).exists() and not Path(results).is_dir():
        raise UserError(f"{results}: is a file, and results are written to a folder of this name; move it away")
    experiments = [_experiment(one, named) for one, named in _each(config, home, files)]
    for experiment in experiments:
        _check_folders(experiment)
    folders = dict.fromkeys(folder for one in experiments for folder in one.catalogues)
    plugins.set_folders(list(folders))
    catalogue = Catalogue([*shipped(home), *folders])
    experiments = [experiment.with_ids(catalogue) for experiment in experiments]
    for experiment in experiments:
        _check_ids(experiment, catalogue)
    planned, said = [], []
    for experiment in experiments:
        experiment, idle = _without_idle_parts(experiment, catalogue)
        said += idle
        check_heads(catalogue, experiment)
        experiment, absent = drop_unavailable(experiment, catalogue)
        experiment, left_out = scaled_down(experiment, catalogue)
        planned.append(experiment)
        said += absent + left_out
    _check_shared(planned, catalogue)
    return Plan(planned, catalogue, results, list(dict.fromkeys(said)))


def _results_folder(config: dict) -> str:
    """Return the folder of all results that a configuration names, as Snakemake has it."""
    named = config.get("pathvars")
    return str((isinstance(named, dict) and named.get("results")) or "results")


def _each(config: dict, home: Path, files) -> list[tuple[dict, list]]:
    """Return configuration and files of each experiment: those that are named, under the other keys."""
    if SEVERAL not in config:
        return [(config, list(files))]
    place, rest = SelectionFiles(files, config).place([SEVERAL]), {k: v for k, v in config.items() if k != SEVERAL}
    if not isinstance(config[SEVERAL], list) or not config[SEVERAL]:
        raise UserError(f"{place}: {SEVERAL}: expected a list of experiments, as [first.yaml, other.yaml]")
    paths = [_file_of(name, home, files, place) for name in config[SEVERAL]]
    selections = [(merged(_selection(path, config), rest), [path, *files]) for path in paths]
    named: dict[str, Path] = {}
    for path, (one, _) in zip(paths, selections, strict=True):
        name = one.get("experiment")
        if name and (first := named.setdefault(str(name), path)) is not path:
            both = f"{first} and {path}, which have the same experiment: {name}; rename one"
            raise UserError(f"{place}: {SEVERAL}: names {f'{path} twice' if first == path else both}")
    return selections


def _selection(path: Path, config: dict) -> dict:
    """Return what a file among several experiments says; keys of a whole plan are those of the file that names it."""
    content = read_yaml(path).content
    if SEVERAL in content:
        raise UserError(f"{path}: {SEVERAL}: is a key of this file too; list its experiments where it is named")
    if content.get("pathvars", config.get("pathvars")) != config.get("pathvars"):
        raise UserError(f"{path}: pathvars: is a key of the file that names the experiments; move it there")
    return content


def _file_of(name, home: Path, files, place: str) -> Path:
    """Return the file of an experiment of several: one next to a file that names it or of here, or a shipped one."""
    shipped_ones = home / "config/experiments"
    if Path(str(name)).suffix in SUFFIXES:
        near = [Path(file).parent / name for file in reversed(files)]
        if own := next((path for path in [*near, Path(name)] if path.is_file()), None):
            return own
        raise UserError(f"{place}: {SEVERAL}: there is no file {near[0] if near else name}")
    known = sorted(path.stem for path in shipped_ones.glob("*.yaml"))
    if name not in known:
        hint = suggestion(str(name), known, "name a file of yours with its suffix, as first.yaml")
        raise UserError(f"{place}: {SEVERAL}: {name} is no file of {shipped_ones}{hint}")
    return shipped_ones / f"{name}.yaml"


def _experiment(config: dict, files: list) -> ExperimentConfig:
    document = SelectionFiles(files, config)
    for key in config:
        if key not in ExperimentConfig.model_fields:
            raise UserError(f"{document.place([key])}: {key}: {unknown_key(ExperimentConfig, key)}")
    missing = [k for k, f in ExperimentConfig.model_fields.items() if f.is_required() and k not in config]
    if missing:
        raise UserError(
            f"{document.place([])}: the experiment lacks {', '.join(missing)}; a selection must be complete"
        )
    return validate(ExperimentConfig, config, document).written_in(document)


def _check_shared(experiments: list[ExperimentConfig], catalogue: Catalogue) -> None:
    """Raise UserError for experiments of one plan that differ in what all of its jobs have, or in states they share."""
    made: dict[tuple[str, str], ExperimentConfig] = {}
    for one in experiments:
        for key in OF_A_PLAN:
            first, own = (attrgetter(".".join(key))(each) for each in (experiments[0], one))
            if own != first:
                raise UserError(
                    f"{one.place(*key)}: {one.experiment} has {own} and {experiments[0].experiment} has {first}; give "
                    "both the same, or run them one by one"
                )
        corpora = {catalogue.get("tasks", task, "tasks").corpus for task in (*one.tasks, *one.probe_tasks)}
        for place in product(one.encoders, sorted(corpora)):
            first = made.setdefault(place, one)
            if one.store.states != first.store.states:
                raise UserError(
                    f"{one.place('store')}: {first.experiment} stores the hidden states of {place[0]} on {place[1]} "
                    "too, in another dtype or precision; give both the same, or one another folder of results"
                )


def _check_folders(experiment: ExperimentConfig) -> None:
    """Raise UserError, with its place, for a folder of catalogues that is not there."""
    for folder in experiment.catalogues:
        if not Path(folder).is_dir():
            raise UserError(f"{experiment.place('catalogues', item=folder)}: folder '{folder}' does not exist")


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
    kept["optional"] = [name for name in experiment.optional if name not in idle]
    fewer, more = _without_idle_parts(experiment.model_copy(update=kept), catalogue)  # whose own parts may be idle now
    return fewer, notes + more
