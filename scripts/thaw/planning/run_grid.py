"""The runs that an experiment selects."""

from collections.abc import Iterator
from itertools import product

from thaw.adaptation.selectors import components, thawed_layers, trains_embeddings
from thaw.adaptation.stages import chain_thaw_order, check_phase
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.planning import compatibility, student_checks
from thaw.planning.extraction import check_baseline, check_extraction
from thaw.planning.initial_weights import InitialWeights, initial_weights
from thaw.planning.run_plan import (
    Need,
    RunPlan,
    SearchPlan,
    TeachPlan,
    is_pair,
    named_point,
    named_points,
    pair_views,
    points,
    variant,
    variants,
)
from thaw.planning.student_shape import StudentShape
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import RUN_BASELINES, ExperimentConfig
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.strategy import StrategyConfig

RESOLVED = frozenset({"also", "separate"})  # keys of a task that a spec holds as what they lead to


def task_spec(name: str, task: TaskConfig) -> dict:
    """Return a task in the form that specs store."""
    return {"id": name, **spec_of(task, RESOLVED)}


class RunPlanner:
    """Turns one experiment's selection into runs; thaw.planning.run_specs turns a run into its spec."""

    def __init__(self, experiment: ExperimentConfig, catalogue: Catalogue):
        self.experiment = experiment
        self.catalogue = catalogue
        self._searches: dict[tuple, SearchPlan] = {}  # what many runs share, by cell and by point of a strategy
        self.kept_for_students: set[str] = set()  # folders of runs whose tensors others read
        self._resolved: dict[tuple, list[tuple[PhaseConfig, list[str]]]] = {}

    def runs(self) -> Iterator[RunPlan]:
        """Yield every run that is selected, each preceded by the runs that it needs."""
        done, chosen = set(), self.experiment
        compatibility.check_distinct(self.catalogue, chosen)
        for encoder in chosen.encoders:
            points = [(name, value) for name, values in self.selected(encoder) for value in values]
            cells = product(chosen.tasks, chosen.subsets, [encoder], chosen.heads, points, chosen.seeds)
            for task, subset, _, head, (name, value), seed in cells:
                if chosen.meet(task, encoder, head, name) and self.applies(name, task) and self.head_of(head, task):
                    run = self._run((task, subset, encoder, head, name, value, seed))
                    if self.serves(run, task):
                        yield from self._with_needed(run, done)

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
        chosen, runs = self.experiment, []
        for baseline in (name for name in chosen.baselines if name in RUN_BASELINES):
            head, strategy, twin = RUN_BASELINES[baseline]
            check_baseline(self.catalogue, chosen, baseline)
            cells = product(chosen.tasks, chosen.subsets, chosen.encoders, chosen.seeds)
            for task, subset, encoder, seed in (cell for cell in cells if self.applies(strategy, cell[0])):
                if chosen.meet(task, encoder):
                    runs.append((baseline, self._run((task, subset, encoder + twin, head, strategy, None, seed))))
        return runs

    def is_probed(self, run: RunPlan) -> bool:
        """Return whether probes read the encoder that a run leaves: one of `adapted` that trains some of it."""
        named = dict(named_points(item) for item in self.experiment.adapted)
        if run.trial or run.strategy not in named or run.task not in self.experiment.tasks:
            return False
        points = named[run.strategy]
        trains = any(chosen != ["head"] for one in (run, *run.earlier()) for chosen in self.trained(one))
        return trains and (points is None or run.value in points)

    def points(self, strategy: str, encoder: str) -> list:
        """Return the points of a strategy's sweep on an encoder; [None] where there is no sweep."""
        return points(self.catalogue.get("strategies", strategy, "strategies"), self.layers(encoder))

    def run_of(
        self, task: str, subset: str, encoder: str, head: str, name: str, value: int | None, seed: int
    ) -> RunPlan:
        """Return one run of a strategy, at a point of its sweep where it has one; else a UserError."""
        if value not in (values := self.points(name, encoder)):
            raise UserError(f"{self.catalogue.place('strategies', name)}: {value} is no point of its sweep: {values}")
        return self._run((task, subset, encoder, head, name, value, seed))

    def _with_needed(self, plan: RunPlan | SearchPlan | InitialWeights, done: set[str]) -> Iterator[RunPlan]:
        """Yield the runs among what something needs and itself; what is done has been visited with all it needs."""
        name = plan.folder if isinstance(plan, RunPlan) else f"{plan.step} {plan.key}"
        if name not in done:
            for need in plan.needs:
                yield from self._with_needed(need.of, done)
            done.add(name)
            if isinstance(plan, RunPlan):
                yield plan

    def selected(self, encoder: str) -> list[tuple[str, list]]:
        """Return the chosen strategies with the points of their sweeps; [None] where there is no sweep."""
        strategies = []
        for item in self.experiment.strategies:
            name, points = named_points(item)
            place = self.experiment.place("strategies", item=name)
            strategy = self.catalogue.get("strategies", name, place)
            if not any(self.applies(name, task) for task in self.experiment.tasks):
                why = "is for pairs of texts, and no task here is on pairs"
                if strategy.start and strategy.start.task:
                    why = f"starts from {strategy.start.task}, and there is no other task here"
                raise UserError(f"{place}: {name} {why}")
            if not strategy.sweep:
                if points is not None:
                    raise UserError(f"{place}: {name} has no sweep; write - {name}")
                strategies.append((name, [None]))
                continue
            values = self.points(name, encoder)
            if outside := [p for p in points or [] if p not in values]:
                raise UserError(f"{place}: {name}: {outside[0]} is not in its sweep for {encoder}: {values}")
            strategies.append((name, values if points is None else points))
        return strategies

    def _run(self, cell: tuple, asked: tuple = (), trial: int = 0) -> RunPlan:
        """Build one run with all that it needs. Args: the strategies that asked for it; a trial's number."""
        task, subset, encoder, head, name, value, seed = cell
        place = self.catalogue.place("strategies", name)
        if name in asked:
            raise UserError(f"{place}: after or teacher leads back to {name}")
        strategy = self.catalogue.get("strategies", name, "strategies")
        step = "fit_heads" if compatibility.fits_heads(self.catalogue, strategy, head, place) else "train"
        views = pair_views(self.catalogue.get("tasks", task, "tasks"), strategy.pairs)
        check_extraction(self.catalogue, strategy, task, views, place)
        compatibility.check_head(self.catalogue, head, task, strategy, views, place)
        needs, weights = [], initial_weights(self.catalogue, strategy, encoder, task, place)
        if strategy.start:
            needs.append(self._start(cell, strategy, views, (*asked, name)))
            weights = needs[0].of.weights
        if strategy.teacher:
            needs.append(self._teacher(cell, strategy, views, (*asked, name)))
        if not trial and (strategy.search or strategy.rates_from):
            needs.append(self._settings(cell, strategy))
        if weights.further:
            needs.append(Need("weights", weights))
        point, read = variant(strategy, value, trial), (strategy.pairs, views, weights)
        settings = strategy.search.trials()[trial - 1] if trial else {}
        return RunPlan(*cell[:5], point, seed, step, *read, value, trial, settings, tuple(needs))

    def _start(self, cell: tuple, strategy: StrategyConfig, views: tuple[str, ...], asked: tuple) -> Need:
        """Return the run that a run of a strategy goes on from, by its `after`."""
        task, subset, encoder, head, name, value, seed = cell
        start, place = strategy.start, self.catalogue.place("strategies", name)
        where = (start.task, start.subset) if start.task else (task, subset)
        earlier = self.catalogue.get("strategies", start.strategy, f"{place}.after")
        point = named_point(start, variants(earlier, self.layers(encoder)), strategy, value, f"{place}.after")
        run = self._run((*where, encoder, head, start.strategy, point, seed), asked)
        same = bool(start.task) or run.views == views
        if strategy.student:
            self._mark_kept(run)
        compatibility.check_start(self.catalogue, strategy, self.trained(run), same, place, cell[:2], where)
        student_checks.check_same_student(strategy, self.shape(run), place)
        return Need("start", run, {"epoch": start.epoch} | ({"encoder_alone": True} if run.task != task else {}))

    def _teacher(self, cell: tuple, strategy: StrategyConfig, views: tuple[str, ...], asked: tuple) -> Need:
        """Return what the teacher of a run gives on the run's training rows."""
        task, subset, encoder, head, name, value, seed = cell
        teacher, place = strategy.teaching, self.catalogue.place("strategies", name)
        other = self.catalogue.get("strategies", teacher.strategy, f"{place}.teacher")
        encoder = teacher.encoder or encoder
        point = named_point(teacher, variants(other, self.layers(encoder)), strategy, value, f"{place}.teacher")
        seed = seed if teacher.seed is None else teacher.seed
        seen = student_checks.rows_of_teacher(self.catalogue, teacher.subset, subset, f"{place}.teacher")
        run = self._run((task, seen, encoder, head, teacher.strategy, point, seed), asked)
        read_with = views, cell[2], self.catalogue.get("tasks", task, "tasks").type
        student_checks.check_teacher(strategy, run, read_with, self.head_of(head, task), place)
        self._mark_kept(run)
        if teacher.dropout:
            return Need("live_teacher", run, {"dropout": True})
        return Need("teacher", TeachPlan(run, subset))

    def _mark_kept(self, run: RunPlan) -> None:
        """Have a run's tensors of the encoder kept, where it trains any."""
        if any(chosen != ["head"] for chosen in self.trained(run)):
            self.kept_for_students.add(run.folder)

    def _settings(self, cell: tuple, strategy: StrategyConfig) -> Need:
        """Return the search that a run's settings come from: of its own strategy's trials, or of `rates_from`."""
        task, subset, encoder, head, own, value, _ = cell
        name = strategy.rates_from or own
        entry = self.catalogue.get("strategies", name, "strategies")
        by_phase = entry.search and any("." in key for key in entry.search.grid)
        if entry.search is None or (strategy.rates_from and (entry.sweep or by_phase)):
            place = self.catalogue.place("strategies", own, "rates_from")
            has = "no search:" if entry.search is None else "a sweep" if entry.sweep else "a grid by phase"
            raise UserError(f"{place}: {name} has {has}; name a strategy with a search of all phases and no sweep")
        value = None if strategy.rates_from else value
        point = (task, subset, encoder, head, name, value)
        if point not in self._searches:
            grid = entry.search.trials()
            every = product(range(1, len(grid) + 1), entry.search.seeds[: self.experiment.search_seeds])
            trials = tuple(self._run((*point, seed), (), number) for number, seed in every)
            step = "search_heads" if trials[0].step == "fit_heads" else "select"
            key = layout.key(step, trials[0].names | {"variant": variant(entry, value)})
            self._searches[point] = SearchPlan(step, key, tuple(grid), trials, entry.search.penalty)
        return Need("settings", self._searches[point], {"grid": list(self._searches[point].grid)})

    def trained(self, run: RunPlan) -> list[list[str]]:
        """Return the components that each phase of a run trains."""
        return [chosen for _, chosen in self.phases(run)]

    def phases(self, run: RunPlan) -> list[tuple[PhaseConfig, list[str]]]:
        """Return the phases of a run, each with the components that it trains."""
        # a search over heads is planned as its first trial without the settings of that
        point = (run.strategy, run.encoder, run.value, run.trial, bool(run.settings))
        if point not in self._resolved:
            self._resolved[point] = self._resolved_phases(run)
        return self._resolved[point]

    def _resolved_phases(self, run: RunPlan) -> list[tuple[PhaseConfig, list[str]]]:
        strategy, layers = self.strategy(run), self.layers(run.encoder)
        variables, shape = self._variables(run), self.shape(run)
        try:
            chosen = [components(list(phase.train), layers, variables, phase.insert) for phase in strategy.phases]
            chosen = [shape.of_trained(trained) if shape else trained for trained in chosen]
            for phase, trained in zip(strategy.phases, chosen, strict=True):
                check_phase(phase, trained, layers)
        except UserError as error:
            raise UserError(f"{self.catalogue.place('strategies', run.strategy, 'phases')}: {error}") from error
        settings = run.settings | {name: value for name, value in variables.items() if name in PhaseConfig.model_fields}
        phases = [phase.changed(of_phase(settings, number)) for number, phase in enumerate(strategy.phases, start=1)]
        pairs = zip(phases, chosen, strict=True)
        return [(phase, parts) for phase, trained in pairs for parts in chain_thaw_order(phase, trained)]

    def shape(self, run: RunPlan) -> StudentShape | None:
        """Return which layers the student of a run keeps; None where it keeps all as they were."""
        if self.strategy(run).student is None:
            return None
        encoder = self.catalogue.get("encoders", run.encoder, "encoders")
        try:
            return StudentShape.of(self.strategy(run).student, run.encoder, encoder, self._variables(run))
        except UserError as error:
            raise UserError(f"{self.catalogue.place('strategies', run.strategy)}: {error}") from error

    def _variables(self, run: RunPlan) -> dict[str, int]:
        """Return the variable of a run's sweep with its value."""
        return {next(iter(sweep)): run.value} if (sweep := self.strategy(run).sweep) else {}

    def layers(self, encoder: str) -> int:
        """Return the layers L of an encoder."""
        return self.catalogue.get("encoders", encoder, "encoders").layers

    def read(self, run: RunPlan) -> list[int]:
        """Return the boundaries that a run's head reads."""
        encoder, trained = self.catalogue.get("encoders", run.encoder, "encoders"), self.trained(run)
        place, name = self.catalogue.place, self.head_of(run.head, run.task)[0]
        said = ("strategies", run.strategy, "reads") if self.strategy(run).reads else ("heads", name, "layers")
        places = place(*said), place("strategies", run.strategy, "phases")
        read = compatibility.read_boundaries(name, self.head_under(run), encoder, trained, places)
        if shape := self.shape(run):
            shape.check_read(read, name, encoder.layers, place("strategies", run.strategy, "student"))
        return read

    def head_under(self, run: RunPlan) -> HeadConfig:
        """Return the entry of a run's head as it is under the run's strategy."""
        strategy, (name, head) = self.strategy(run), self.head_of(run.head, run.task)
        return compatibility.read_by(strategy, head, name, self.catalogue.place("strategies", run.strategy, "reads"))

    def strategy(self, run: RunPlan) -> StrategyConfig:
        """Return the strategy of a run."""
        return self.catalogue.get("strategies", run.strategy, "strategies")

    def head_of(self, head: str, task: str) -> tuple[str, HeadConfig] | None:
        """Return id and entry of the head on a task; of a set of heads None where it has none for the task's type."""
        return self.catalogue.head(head, self.catalogue.get("tasks", task, "tasks").type)

    def thawed(self, run: RunPlan) -> tuple[int, bool]:
        """Return how many layers a run trains at the end, and whether its embeddings train."""
        return thawed_layers(last := self.trained(run)[-1]), trains_embeddings(last)
