"""An experiment reduced to what is available offline, and sentences that say what was replaced and left out.

Optional encoders and tasks whose files are missing are left out of any experiment; the overlay
config/experiments/offline.yaml asks for more. The outcome is an experiment like any other: its runs have the specs that
they would have, had the selection been written by hand.
"""

from collections.abc import Iterable, Sequence
from math import floor

from thaw.adaptation.selectors import components
from thaw.adaptation.stages import check_phase
from thaw.core.errors import UserError, suggestion
from thaw.data.sources import find_source
from thaw.encoders.weight_sources import local_files
from thaw.planning.run_grid import RunPlanner
from thaw.planning.run_plan import named_points, variant, variants
from thaw.planning.run_plan import points as all_points
from thaw.schema.catalogue import Catalogue
from thaw.schema.encoder import RANDOM_TWIN
from thaw.schema.experiment import ExperimentConfig, ScaleDownConfig
from thaw.schema.strategy import StrategyConfig

LOCAL = ("synthetic", "files")


def drop_unavailable(experiment: ExperimentConfig, catalogue: Catalogue) -> tuple[ExperimentConfig, list[str]]:
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
        if corpus := corpus_without_source(name, experiment, catalogue, experiment.sources):
            notes[name] = f"Task {name} was left out: corpus {corpus} has no source here."
    changes = {}
    for key in ("encoders", "tasks", "probe_tasks", "optional", "optional_tasks"):
        changes[key] = [name for name in getattr(experiment, key) if (name in notes) == key.startswith("optional")]
    for key in ("encoders", "tasks"):
        if not changes[key]:
            raise UserError(f"{experiment.place(key)}: none is left. {' '.join(notes.values())}")
    return experiment.model_copy(update=changes), list(notes.values())


def corpus_without_source(
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


def scaled_down(experiment: ExperimentConfig, catalogue: Catalogue) -> tuple[ExperimentConfig, list[str]]:
    """Return what its `scale_down` leaves of an experiment, under a name of its own, and what was done to it.

    Without that key it is the experiment itself. Raises UserError for an experiment that was wrong before, and where
    no task or no strategy is left.
    """
    if experiment.scale_down is None:
        return experiment, []
    scaling = Scaling(experiment, experiment.scale_down, catalogue)
    changes = scaling.tasks() | scaling.encoders() | scaling.strategies() | scaling.merges()
    changes |= {"experiment": f"{experiment.experiment[:53]}_scaled", "title": f"{experiment.title} (scaled down)"}
    return experiment.model_copy(update=changes), scaling.notes


def rescale_layer_count(point: int, before: int, now: int) -> int:
    """Return a number of layers in proportion to those of another encoder, halves rounded up; one stays one."""
    return max(min(point, 1), floor(point * now / before + 0.5))


def stand_in_for(encoder: str, stand_in: str) -> str:
    """Return the id of a stand-in for an encoder: with random weights where the encoder has them."""
    return f"{stand_in}{RANDOM_TWIN}" if encoder.endswith(RANDOM_TWIN) else stand_in


class Scaling:
    """One experiment on its way to a smaller one; `notes` has a sentence for each change."""

    def __init__(self, experiment: ExperimentConfig, wanted: ScaleDownConfig, catalogue: Catalogue):
        self.experiment, self.catalogue, self.wanted = experiment, catalogue, wanted
        self.planner, self.left = RunPlanner(experiment, catalogue), list(experiment.tasks)
        self.layers = self._layers(wanted.stand_in) if wanted.stand_in else 0
        self.notes: list[str] = []
        for run in self.planner.runs():
            self.planner.trained(run)

    def tasks(self) -> dict:
        """Leave out each task whose texts, or those of a transfer set of it, are not available."""
        if not self.wanted.local_only:
            return {}
        sources = list(dict.fromkeys([*(name for name in self.experiment.sources if name in LOCAL), *LOCAL]))
        self.left = [name for name in self.experiment.tasks if self._is_available(name, sources)]
        if not self.left:
            raise UserError("scale_down: local_only leaves no task; set data_dir, or choose a task that Thaw writes")
        return {"tasks": self.left, "sources": sources, "ensembles": self._ensembles()}

    def _ensembles(self) -> dict:
        seeds, ensembles = self.experiment.seeds, {}
        for name, entry in self.experiment.ensembles.items():
            tasks = [task for task in entry.tasks if task in self.left]
            more = {seed for member in entry.members for seed in member.seeds} - set(seeds)
            named = {member.encoder for member in entry.members} - {None, self.wanted.stand_in}
            if more or (entry.tasks and not tasks) or (self.wanted.stand_in and named):
                self.notes.append(f"Ensemble {name} was left out: a task, a seed or an encoder of it is not here.")
            else:
                ensembles[name] = entry.model_copy(update={"tasks": tasks})
        return ensembles

    def _is_available(self, name: str, sources: list[str]) -> bool:
        """Return whether a task's corpora have a source on this machine; say which has not."""
        if corpus := corpus_without_source(name, self.experiment, self.catalogue, sources):
            reason = f"corpus {corpus} has neither its files in data_dir nor a grammar"
            self.notes.append(f"Task {name} was left out: {reason}.")
        return not corpus

    def encoders(self) -> dict:
        """Replace all encoders by one, and those with random weights by its twin."""
        if not self.wanted.stand_in:
            return {}
        now = {name: stand_in_for(name, self.wanted.stand_in) for name in self.experiment.encoders}
        others = [name for name in self.experiment.encoders if name != self.wanted.stand_in]
        if others:
            self.notes.append(f"Encoder {self.wanted.stand_in} replaces {_listed(others)}.")
        only = {
            now.get(part, part): [now.get(value, value) for value in values]
            for part, values in self.experiment.only.items()
            if now.get(part) != self.wanted.stand_in  # it is in the place of encoders with other parts
        }
        return {"encoders": list(dict.fromkeys(now.values())), "only": only}

    def strategies(self) -> dict:
        """Leave out strategies for tasks that are left out, and fit the others to the stand-in's layers."""
        kept: list = []
        for item in self.experiment.strategies:
            name, points = named_points(item)
            if not any(self.planner.applies(name, task) for task in self.left):
                self.notes.append(f"Strategy {name} was left out: it is for pairs of texts, and no such task is left.")
            else:
                kept += self._fitted(name, points) if self.wanted.stand_in else [item]
        if not kept:
            raise UserError(f"scale_down: no strategy is left; {self.notes[-1]}")
        return {"strategies": kept}

    def merges(self) -> dict:
        """Leave out merges of seeds or encoders that are left out, and fit the others to what is left."""
        seeds, merges, stand_in = self.experiment.seeds, {}, self.wanted.stand_in
        for name, entry in self.experiment.merges.items():
            tasks = [task for task in entry.tasks or self.experiment.tasks if task in self.left]
            items = entry.strategies
            if stand_in:
                items = [fitted for item in items for fitted in self._fitted(*named_points(item))]
            lost = bool(stand_in) and entry.encoder not in (None, stand_in)
            if not tasks or not items or lost or entry.seed not in (None, *seeds):
                self.notes.append(f"Merge {name} was left out: a task, a seed or an encoder of it is not here.")
            else:
                merges[name] = entry.model_copy(update={"tasks": tasks, "strategies": items})
        return {"merges": merges}

    def _fitted(self, name: str, points: list[int] | None) -> list:
        """Return the selection of a strategy that the stand-in has layers for, in a list; none for an empty one.

        Chosen points of a sweep over all layers move in proportion to the number of layers.
        """
        strategy = self.catalogue.get("strategies", name, "strategies")
        over_layers = "layers" in strategy.sweep.values()
        values = points or all_points(strategy, self.layers)
        if over_layers and points:
            values = self._moved(points)
        fitting = [value for value in values if self._fits(name, value)]
        if not fitting:
            self.notes.append(f"Strategy {name} was left out: {self.wanted.stand_in} has {self.layers} layers only.")
            return []
        if not strategy.sweep or (points is None and fitting == values):
            return [name]
        if fitting != points:
            before = _listed(sorted({self._layers(encoder) for encoder in self.experiment.encoders}))
            change = f"{_listed(points or values)} of {before} layers became {_listed(fitting)} of {self.layers}"
            self.notes.append(f"Strategy {name}: {change}.")
        return [{name: fitting}]

    def _moved(self, points: list[int]) -> list[int]:
        """Return points in proportion to the layers, halves rounded up, each once; what thaws a layer still does."""
        moved = set()
        for encoder in self.experiment.encoders:
            moved |= {rescale_layer_count(point, self._layers(encoder), self.layers) for point in points}
        return sorted(moved)

    def _fits(self, name: str, value: int | None) -> bool:
        """Return whether a point of a strategy, and what it starts from, selects layers that the stand-in has."""
        strategy = self.catalogue.get("strategies", name, "strategies")
        variables = dict.fromkeys(strategy.sweep, value) if value is not None else {}
        try:
            kept = strategy.student.shape(self.layers, variables)[0] if strategy.student else range(1, self.layers + 1)
            if not self._has_matched(strategy, list(kept)):
                return False
            for phase in strategy.phases:
                check_phase(phase, components(list(phase.train), self.layers, variables, phase.insert), self.layers)
        except UserError:
            return False
        own = {name: variant(strategy, value) for name in strategy.sweep}  # a variant may be the own sweep's variable
        return all(self._fits_variant(other, own.get(named, named)) for other, named in strategy.needed.values())

    def _has_matched(self, strategy: StrategyConfig, kept: list[int]) -> bool:
        """Return whether the stand-in has the layers that a list of pairs names. Args: the student's layers."""
        learned = [phase.distil for phase in strategy.phases if phase.distil]
        maps = [one.map for distil in learned for one in (distil.hidden, distil.attention) if one]
        pairs = [pair for one in maps if isinstance(one, dict) for pair in one.items()]
        other = strategy.teaching and strategy.teaching.encoder  # which no stand-in replaces
        return all(own in {0, *kept, self.layers} and (other or theirs <= self.layers) for own, theirs in pairs)

    def _fits_variant(self, name: str, variant: str) -> bool:
        values = variants(self.catalogue.get("strategies", name, "strategies"), self.layers)
        return variant in values and self._fits(name, values[variant])

    def _layers(self, encoder: str) -> int:
        return self.catalogue.get("encoders", encoder, "scale_down: stand_in").layers


def _listed(items: Iterable) -> str:
    return ", ".join(map(str, items))
