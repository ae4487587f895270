"""The runs that an experiment selects, and the spec of each."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from thaw.adaptation.selectors import boundary, components, thawed_layers, trains_embeddings
from thaw.adaptation.stages import chain_thaw_order, check_reinit, phases_to_spec
from thaw.core import boundaries, plugins
from thaw.core.errors import UserError
from thaw.core.versions import VERSIONS
from thaw.planning import compatibility
from thaw.planning.initial_weights import initial_weights
from thaw.planning.run_plan import RunPlan, is_pair, named_points, pair_views, points, variant
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import RUN_BASELINES, ExperimentConfig
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.strategy import StrategyConfig

RESOLVED = frozenset({"also", "separate"})  # keys of a task that a spec holds as what they lead to


def task_spec(name: str, task: TaskConfig) -> dict:
    """Return a task as it stands in a spec."""
    return {"id": name, **spec_of(task, RESOLVED)}


class RunPlanner:
    """Turns one experiment's selection into runs, and a run into its spec (upstream digests are the plan's)."""

    def __init__(self, experiment: ExperimentConfig, catalogue: Catalogue):
        self.experiment = experiment
        self.catalogue = catalogue
        self._trials: dict[tuple, tuple[RunPlan, ...]] = {}  # what many runs share, by cell and by point of a strategy
        self._carried_out: dict[tuple, list[tuple[PhaseConfig, list[str]]]] = {}

    def runs(self) -> Iterator[RunPlan]:
        """Yield every run that is selected, each preceded by the run it starts from."""
        done, chosen = set(), self.experiment
        for encoder in chosen.encoders:
            points = [(name, value) for name, values in self.selected(encoder) for value in values]
            cells = product(chosen.tasks, chosen.subsets, [encoder], chosen.heads, points, chosen.seeds)
            for task, subset, _, head, (name, value), seed in cells:
                if self.applies(name, task) and self.head_of(head, task):
                    run = self._run((task, subset, encoder, head, name, value, seed))
                    if self.serves(run, task):
                        yield from self._with_start(run, done)

    def applies(self, strategy: str, task: str) -> bool:
        """Return whether a strategy is run on a task.

        One that states one way to read pairs is for pairs only; one after an intermediate task is not run on that task.
        """
        entry = self.catalogue.get("strategies", strategy, "strategies")
        if entry.start and entry.start.task == task:
            return False
        return entry.pairs in ("task", "best") or is_pair(self.catalogue.get("tasks", task, "tasks"))

    def serves(self, run: RunPlan, task: str) -> bool:
        """Return whether the encoder of a run has what the run's strategy trains, and a task's kind of text."""
        return compatibility.encoder_serves(self.catalogue, run.encoder, task, self.trained(run))

    def baseline_runs(self) -> list[tuple[str, RunPlan]]:
        """Return the runs that are shown as baselines, each with the baseline's name."""
        chosen, found = self.experiment, []
        for baseline in (name for name in chosen.baselines if name in RUN_BASELINES):
            head, strategy, twin = RUN_BASELINES[baseline]
            cells = product(chosen.tasks, chosen.subsets, chosen.encoders, chosen.seeds)
            for task, subset, encoder, seed in (cell for cell in cells if self.applies(strategy, cell[0])):
                found.append((baseline, self._run((task, subset, encoder + twin, head, strategy, None, seed))))
        return found

    def is_probed(self, run: RunPlan) -> bool:
        """Return whether probes read the encoder that a run leaves: one of `adapted` that trains some of it."""
        named = dict(named_points(item) for item in self.experiment.adapted)
        if run.trial or run.strategy not in named or run.task not in self.experiment.tasks:
            return False
        points, before = named[run.strategy], run
        while before and all(chosen == ["head"] for chosen in self.trained(before)):
            before = before.after
        return before is not None and (points is None or run.value in points)

    def points(self, strategy: str, encoder: str) -> list:
        """Return the points of a strategy's sweep on an encoder; [None] where there is no sweep."""
        return points(self.catalogue.get("strategies", strategy, "strategies"), self._layers(encoder))

    def run_of(
        self, task: str, subset: str, encoder: str, head: str, name: str, value: int | None, seed: int
    ) -> RunPlan:
        """Return one run of a strategy, at a point of its sweep where it has one; else a UserError."""
        values = self.points(name, encoder)
        if value not in values:
            raise UserError(f"{self.catalogue.place('strategies', name)}: {value} is no point of its sweep: {values}")
        return self._run((task, subset, encoder, head, name, value, seed))

    def with_starts(self, runs: list[RunPlan]) -> Iterator[RunPlan]:
        """Yield some runs, each once and preceded by those that it starts from or that its settings come from."""
        done: set[str] = set()
        for run in runs:
            yield from self._with_start(run, done)

    def _with_start(self, run: RunPlan, done: set[str]) -> Iterator[RunPlan]:
        trials = [trial for trial in run.trials if trial.step == "train"]  # other searches are one job
        for before in filter(None, (run.after, *trials)):
            yield from self._with_start(before, done)
        if run.folder not in done:
            done.add(run.folder)
            yield run

    def selected(self, encoder: str) -> list[tuple[str, list]]:
        """Return the chosen strategies with the points of their sweeps; [None] where there is no sweep."""
        found = []
        for item in self.experiment.strategies:
            name, points = named_points(item)
            strategy = self.catalogue.get("strategies", name, "strategies")
            if not any(self.applies(name, task) for task in self.experiment.tasks):
                why = "is for pairs of texts, and no task here is on pairs"
                if strategy.start and strategy.start.task:
                    why = f"starts from {strategy.start.task}, and there is no other task here"
                raise UserError(f"strategies: {name} {why}")
            if not strategy.sweep:
                if points is not None:
                    raise UserError(f"strategies: {name} has no sweep; write - {name}")
                found.append((name, [None]))
                continue
            values = self.points(name, encoder)
            outside = [p for p in points or [] if p not in values]
            if outside:
                raise UserError(f"strategies: {name}: {outside[0]} is not in its sweep for {encoder}: {values}")
            found.append((name, values if points is None else points))
        return found

    def _run(self, cell: tuple, asked: tuple = (), trial: int = 0) -> RunPlan:
        """Build one run and, by its strategy's `after`, the run it starts from."""
        task, subset, encoder, head, name, value, seed = cell
        place = self.catalogue.place("strategies", name)
        if name in asked:
            raise UserError(f"{place}: after leads back to {name}")
        strategy = self.catalogue.get("strategies", name, "strategies")
        step = "fit_heads" if compatibility.fits_heads(self.catalogue, strategy, head) else "train"
        views = pair_views(self.catalogue.get("tasks", task, "tasks"), strategy.pairs)
        compatibility.check_head(self.catalogue, head, task, strategy.solved, views, place)
        before, weights = None, initial_weights(self.catalogue, strategy, encoder, task, place)
        if start := strategy.start:
            cell = (start.task, start.subset) if start.task else (task, subset)
            before = self._run((*cell, encoder, head, start.strategy, None, seed), (*asked, name))
            same_views = bool(start.task) or before.views == views
            compatibility.check_start(self.catalogue, start, self.trained(before), same_views, place)
            weights = before.weights
        point, read = variant(strategy, value, trial), (strategy.pairs, views, weights)
        run = RunPlan(task, subset, encoder, head, name, point, seed, step, *read, value, before, trial)
        if trial:
            return replace(run, settings=strategy.search.trials()[trial - 1])
        return self._searched(run, strategy) if strategy.search or strategy.rates_from else run

    def _searched(self, run: RunPlan, strategy: StrategyConfig) -> RunPlan:
        """Return a run with the trials that its settings come from: its own strategy's, or those of `rates_from`."""
        name = strategy.rates_from or run.strategy
        entry = self.catalogue.get("strategies", name, "strategies")
        by_phase = entry.search and any("." in key for key in entry.search.grid)
        if entry.search is None or (strategy.rates_from and (entry.sweep or by_phase)):
            place = self.catalogue.place("strategies", run.strategy, "rates_from")
            has = "no search:" if entry.search is None else "a sweep" if entry.sweep else "a grid by phase"
            raise UserError(f"{place}: {name} has {has}; name a strategy with a search of all phases and no sweep")
        value = None if strategy.rates_from else run.value
        cell = (run.task, run.subset, run.encoder, run.head, name, value)
        if cell not in self._trials:
            numbers = range(1, len(entry.search.trials()) + 1)
            every = product(numbers, entry.search.seeds[: self.experiment.search_seeds])
            self._trials[cell] = tuple(self._run((*cell, seed), (), number) for number, seed in every)
        search = replace(run, strategy=name, variant=variant(entry, value)).cell
        return replace(run, trials=self._trials[cell], search=search)

    def after_epoch(self, run: RunPlan) -> str:
        """Return which epoch of the earlier run is the start."""
        return self.catalogue.get("strategies", run.strategy, "strategies").start.epoch

    def trained(self, run: RunPlan) -> list[list[str]]:
        """Return the components that each phase of a run trains."""
        return [chosen for _, chosen in self._phases(run)]

    def _phases(self, run: RunPlan) -> list[tuple[PhaseConfig, list[str]]]:
        """Return the phases of a run, each with the components that it trains."""
        point = (run.strategy, run.encoder, run.value, run.trial)
        if point not in self._carried_out:
            self._carried_out[point] = self._found_phases(run)
        return self._carried_out[point]

    def _found_phases(self, run: RunPlan) -> list[tuple[PhaseConfig, list[str]]]:
        strategy, layers = self.catalogue.get("strategies", run.strategy, "strategies"), self._layers(run.encoder)
        variables = {next(iter(strategy.sweep)): run.value} if strategy.sweep else {}
        try:
            chosen = [components(list(phase.train), layers, variables, phase.insert) for phase in strategy.phases]
            for phase, trained in zip(strategy.phases, chosen, strict=True):
                check_reinit(phase, trained, layers)
        except UserError as error:
            raise UserError(f"{self.catalogue.place('strategies', run.strategy, 'phases')}: {error}") from error
        settings = run.settings | {name: value for name, value in variables.items() if name in PhaseConfig.model_fields}
        phases = [phase.changed(of_phase(settings, number)) for number, phase in enumerate(strategy.phases, start=1)]
        pairs = zip(phases, chosen, strict=True)
        return [(phase, parts) for phase, trained in pairs for parts in chain_thaw_order(phase, trained)]

    def _layers(self, encoder: str) -> int:
        return self.catalogue.get("encoders", encoder, "encoders").layers

    def read(self, run: RunPlan) -> list[int]:
        """Return the boundaries that a run's head reads."""
        layers, trained = self._layers(run.encoder), self.trained(run)[-1]
        place = self.catalogue.place("strategies", run.strategy, "phases")
        return compatibility.read_boundaries(self.catalogue, self.head_of(run.head, run.task), layers, trained, place)

    def head_of(self, head: str, task: str) -> tuple[str, HeadConfig] | None:
        """Return id and entry of the head on a task; of a set of heads None where it has none for the task's type."""
        return self.catalogue.head(head, self.catalogue.get("tasks", task, "tasks").type)

    def thawed(self, run: RunPlan) -> tuple[int, bool]:
        """Return how many layers a run trains at the end, and whether its embeddings train."""
        last = self.trained(run)[-1]
        return thawed_layers(last), trains_embeddings(last)

    def spec(self, run: RunPlan) -> dict:
        """Return all that a run's result depends on, but for the digests of what was made before it."""
        task, encoder = (
            self.catalogue.get("tasks", run.task, "tasks"),
            self.catalogue.get("encoders", run.encoder, "run"),
        )
        corpus = self.catalogue.get("corpora", task.corpus, "corpora")
        strategy, store = self.catalogue.get("strategies", run.strategy, "strategies"), self.experiment.store
        tokens = corpus.size.tokens if corpus.size else None
        stored = boundaries.cacheable_layers(encoder.layers, encoder.width, tokens, store.dtype, store.max_gib)
        lowest, read = self._lowest_of_start(run), self.read(run)
        return {
            "version": VERSIONS[run.step],
            "task": task_spec(run.task, task),
            "subset": spec_of(self.catalogue.get("subsets", run.subset, "subsets")),
            "head": spec_of(self.head_of(run.head, run.task)[1]),
            "layers": encoder.layers,
            "phases": phases_to_spec(self._phases(run), encoder.layers, stored, lowest, read),
            "after": None,
            "keep": strategy.keep or self.is_probed(run),
            "seed": run.seed,
            **({"trial": True} if run.trial else {}),
            **({"gradients": True} if self.experiment.gradients and run.step == "train" and not run.trial else {}),
            "compute": spec_of(self.experiment.compute),
            **self._parts(run),
        }

    def _parts(self, run: RunPlan) -> dict:
        """Return what a spec says of a run's own parts: under `parts` each file's sha256; nothing where it has none."""
        phases = self.catalogue.get("strategies", run.strategy, "strategies").phases
        words = [
            word for phase in phases for item in phase.train for word in ([item] if isinstance(item, str) else item)
        ]
        words += self.catalogue.get("tasks", run.task, "tasks").metrics
        return plugins.in_spec([*words, self.head_of(run.head, run.task)[1].kind])

    def _lowest_of_start(self, run: RunPlan) -> int | None:
        """Return the boundary under which a run's starting weights are the pretrained ones: L without a start."""
        layers = self._layers(run.encoder)
        found = [boundary(chosen, layers) for chosen in self.trained(run.after)] if run.after else []
        if run.after and run.after.after:
            found.append(self._lowest_of_start(run.after))
        return None if None in found else min(found, default=layers)
