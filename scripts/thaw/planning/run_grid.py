"""The runs that an experiment selects."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product

from thaw.adaptation.selectors import components, most_thawed, thawed_layers, trains_embeddings
from thaw.adaptation.stages import chain_thaw_order, check_phase
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.phrases import listing
from thaw.declarations.task_types import EXTRACTION_TYPES, PAIR_TYPES
from thaw.planning import compatibility, student_checks, trained_tasks
from thaw.planning.initial_weights import initial_weights
from thaw.planning.run_plan import (
    TRAINED_WITH,
    Need,
    Planned,
    RunCell,
    RunPlan,
    SearchPlan,
    TeachPlan,
    named_point,
    named_points,
    pair_views,
    points,
    variant,
    variants,
)
from thaw.planning.student_checks import StudentShape
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import RUN_BASELINES, ExperimentConfig
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.strategy import StartConfig, StrategyConfig

RESOLVED = frozenset({"also", "separate"})  # keys of a task that a spec holds as what they lead to


def task_spec(name: str, task: TaskConfig) -> dict:
    """Return a task in the form that specs store."""
    return {"id": name, **spec_of(task, RESOLVED)}


class RunPlanner:
    """Turns one experiment's selection into runs, and says of a run what it trains and reads, each worked out once.

    thaw.planning.run_specs turns a run into its spec.
    """

    def __init__(self, experiment: ExperimentConfig, catalogue: Catalogue):
        self.experiment, self.catalogue = experiment, catalogue
        self._resolved: dict[tuple, list[tuple[PhaseConfig, list[str]]]] = {}
        self.searches: dict[tuple, SearchPlan] = {}  # what many runs share, by cell and by point of a strategy
        self.kept: set[str] = set()  # folders of runs whose tensors students or merges read

    def runs(self) -> Iterator[RunPlan]:
        """Yield every run that is selected, each preceded by the runs that it needs."""
        done: set[str] = set()
        chosen = self.experiment
        for encoder in chosen.encoders:
            points = [(name, value) for name, values in self.selected(encoder) for value in values]
            cells = product(chosen.tasks, chosen.subsets, [encoder], chosen.heads, points, chosen.seeds)
            for task, subset, _, head, (name, value), seed in cells:
                if run := self._run_if_any(RunCell(task, subset, encoder, head, name, value, seed)):
                    yield from self._with_needed(run, done)

    def applies(self, strategy: str, task: str) -> bool:
        """Return whether a strategy is run on a task.

        One that states one way to read pairs is for pairs only; one after an intermediate task is not run on that task;
        one of several tasks, or after these, is run on these.
        """
        entry = self.catalogue.get("strategies", strategy, "strategies")
        if entry.start and entry.start.task == task:
            return False
        place = self.catalogue.place("strategies", strategy, "after")
        earlier = entry.start and not entry.start.task and self.catalogue.get("strategies", entry.start.strategy, place)
        if any(one and one.multi_task and task not in one.multi_task.of_run(task) for one in (entry, earlier)):
            return False
        return entry.pairs in ("task", "best") or self.catalogue.get("tasks", task, "tasks").type in PAIR_TYPES

    def baseline_runs(self) -> list[tuple[str, RunPlan]]:
        """Return the runs that are shown as baselines, each with the baseline's name."""
        chosen, runs = self.experiment, []
        for baseline in (name for name in chosen.baselines if name in RUN_BASELINES):
            head, strategy, twin = RUN_BASELINES[baseline]
            check_baseline(self.catalogue, chosen, baseline)
            for task, subset, encoder, seed in product(chosen.tasks, chosen.subsets, chosen.encoders, chosen.seeds):
                if self.applies(strategy, task) and chosen.meet(task, encoder):
                    runs.append(
                        (baseline, self._run(RunCell(task, subset, encoder + twin, head, strategy, None, seed)))
                    )
        return runs

    @cached_property
    def shown_points(self) -> dict[str, list[list[str]]]:
        """By encoder [strategy, variant] in the order in which the experiment names them."""
        return {
            encoder: [
                [name, variant(self.catalogue.get("strategies", name, "strategies"), value)]
                for name, values in self.selected(encoder)
                for value in values
            ]
            for encoder in self.experiment.encoders
        }

    def is_shown(self, run: RunPlan) -> bool:
        """Return whether tables and figures show a run: no trial, and of what the experiment itself selects.

        Others are there because such a run needs them: a teacher on more rows, an intermediate task.
        """
        chosen = self.experiment
        return (
            not run.trial
            and run.task in chosen.tasks
            and run.subset in chosen.subsets
            and run.head in chosen.heads
            and run.seed in chosen.seeds
            and [run.strategy, run.variant] in self.shown_points.get(run.encoder, [])
            and chosen.meet(run.task, run.encoder, run.head, run.strategy)
        )

    def is_probed(self, run: RunPlan) -> bool:
        """Return whether probes read the encoder that a run leaves: one of `adapted` that trains some of it."""
        named = dict(named_points(item) for item in self.experiment.adapted)
        if run.strategy not in named or not self.is_shown(run):
            return False
        points = named[run.strategy]
        return (points is None or run.value in points) and self.trains_encoder(run)

    def points(self, strategy: str, encoder: str) -> Sequence[int | None]:
        """Return the points of a strategy's sweep on an encoder; [None] where there is no sweep."""
        return points(self.catalogue.get("strategies", strategy, "strategies"), self.layers(encoder))

    def run_of(self, cell: RunCell) -> RunPlan | None:
        """Return a run of the grid, None where there is none; a value that is no point of the sweep is a UserError."""
        if cell.value not in (values := self.points(cell.strategy, cell.encoder)):
            place = self.catalogue.place("strategies", cell.strategy)
            raise UserError(f"{place}: {cell.value} is no point of its sweep: {values}")
        return self._run_if_any(cell)

    def _run_if_any(self, cell: RunCell) -> RunPlan | None:
        """Return the run of a cell, None where there is none.

        So where `only` rules it out, the strategy does not apply to the task, a set of heads has none for the task's
        type, or the encoder lacks what would train or the task's kind of text.
        """
        met = self.experiment.meet(cell.task, cell.encoder, cell.head, cell.strategy)
        if not met or not self.applies(cell.strategy, cell.task) or self.head_of(cell.head, cell.task) is None:
            return None
        run = self._run(cell)
        return run if compatibility.encoder_serves(self.catalogue, cell.encoder, cell.task, self.trained(run)) else None

    def _with_needed(self, plan: Planned, done: set[str]) -> Iterator[RunPlan]:
        """Yield the runs among what something needs and itself; what is done has been visited with all it needs."""
        name = plan.folder if isinstance(plan, RunPlan) else f"{plan.step} {plan.key}"
        if name not in done:
            for need in plan.needs:
                yield from self._with_needed(need.of, done)
            done.add(name)
            if isinstance(plan, RunPlan):
                yield plan

    def selected(self, encoder: str) -> list[tuple[str, Sequence[int | None]]]:
        """Return the chosen strategies with the points of their sweeps; [None] where there is no sweep."""
        strategies: list[tuple[str, Sequence[int | None]]] = []
        for item in self.experiment.strategies:
            name, points = named_points(item)
            place = self.experiment.place("strategies", item=name)
            strategy = self.catalogue.get("strategies", name, place)
            if not any(self.applies(name, task) for task in self.experiment.tasks):
                why = "is for pairs of texts, and no task here is on pairs"
                if strategy.start and strategy.start.task:
                    why = f"starts from {strategy.start.task}, and there is no other task here"
                if strategy.multi_task:
                    why = f"trains {listing(strategy.multi_task.tasks)}, and none of these is a task here"
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

    def _run(self, cell: RunCell, asked: tuple = (), trial: int = 0, settings: dict | None = None) -> RunPlan:
        """Build one run with all that it needs. Args: strategies that asked for it; a trial's number and settings."""
        task, _, encoder, head, name, value, seed = cell
        place = self.catalogue.place("strategies", name)
        if name in asked:
            raise UserError(f"{place}: after or teacher leads back to {name}")
        strategy = self.catalogue.get("strategies", name, "strategies")
        step = "fit_heads" if compatibility.fits_heads(self.catalogue, strategy, head, place) else "train"
        views = pair_views(self.catalogue.get("tasks", task, "tasks"), strategy.pairs)
        check_windows(self.catalogue, task, views)
        compatibility.check_head(self.catalogue, head, task, strategy, views, place)
        needs, weights = [], initial_weights(self.catalogue, strategy, encoder, task, place)
        tasks = strategy.multi_task.of_run(task) if strategy.multi_task else [task]
        for other in tasks:
            kind = self.catalogue.get("tasks", other, f"{place}: multi_task").type
            if self.head_of(head, other) is None:
                raise UserError(
                    f"{place}: multi_task: head {head} has none for tasks of type {kind}; leave {other} out"
                )
        if task not in tasks:
            raise UserError(f"{place}: multi_task: {task} is none of its tasks, {listing(tasks)}; name one of these")
        if task != tasks[0]:
            needs = [Need(TRAINED_WITH, self._run(cell._replace(task=tasks[0]), asked))]
            read = (strategy.pairs, views, weights)
            return RunPlan(*cell[:5], variant(strategy, value), seed, step, *read, value, needs=tuple(needs))
        if start := strategy.start:
            before = self._start(cell, strategy, start, views, (*asked, name))
            facts = {"epoch": start.epoch} | ({"encoder_alone": True} if before.task != task else {})
            needs.append(Need("start", before, facts))
            weights = before.weights
        for other in tasks if strategy.teacher else ():
            needs.append(self._teacher(cell._replace(task=other), strategy, (*asked, name), task))
        if not trial and (strategy.search or strategy.rates_from):
            needs.append(self._settings(cell, strategy))
        if weights.further:
            needs.append(Need("weights", weights))
        point, read = variant(strategy, value, trial), (strategy.pairs, views, weights)
        return RunPlan(*cell[:5], point, seed, step, *read, value, trial, settings or {}, tuple(needs))

    def _start(
        self, cell: RunCell, strategy: StrategyConfig, start: StartConfig, views: tuple[str, ...], asked: tuple
    ) -> RunPlan:
        """Return the run that a run of a strategy goes on from, by its `after`."""
        place = self.catalogue.place("strategies", cell.strategy)
        earlier = self.catalogue.get("strategies", start.strategy, f"{place}.after")
        points = variants(earlier, self.layers(cell.encoder))
        point = named_point(start, points, strategy, cell.value, f"{place}.after")
        origin = cell._replace(strategy=start.strategy, value=point)
        trained_tasks.check_start(earlier, start, strategy, cell.task, place)
        run = self._run(origin._replace(task=start.task, subset=start.subset) if start.task else origin, asked)
        same = bool(start.task) or run.views == views
        if strategy.student:
            self.mark_kept(run)
        compatibility.check_start(self.catalogue, strategy, start, self.trained(run), same, place, cell, run)
        if not strategy.student and (before := self.shape(run)):
            kept = listing(map(str, before.layers))
            raise UserError(f"{place}: after: {start.strategy} keeps layers {kept} alone; say the same student: here")
        return run

    def _teacher(self, cell: RunCell, strategy: StrategyConfig, asked: tuple, own: str) -> Need:
        """Return what the teacher of a run, or of another task of its training, gives on the training rows.

        Args: cell of the task; the strategy; strategies that asked for it; the task of the run.
        """
        teacher, place = strategy.teaching, self.catalogue.place("strategies", cell.strategy)
        assert teacher
        views = pair_views(self.catalogue.get("tasks", cell.task, place), strategy.pairs)
        other = self.catalogue.get("strategies", teacher.strategy, f"{place}.teacher")
        if strategy.multi_task and not self.applies(teacher.strategy, cell.task):
            raise UserError(
                f"{place}.teacher: {teacher.strategy} is not run on {cell.task}; name a strategy that is run on each "
                "task"
            )
        encoder = teacher.encoder or cell.encoder
        point = named_point(teacher, variants(other, self.layers(encoder)), strategy, cell.value, f"{place}.teacher")
        seed = cell.seed if teacher.seed is None else teacher.seed
        seen = student_checks.rows_of_teacher(self.catalogue, teacher.subset, cell.subset, f"{place}.teacher")
        run = self._run(RunCell(cell.task, seen, encoder, cell.head, teacher.strategy, point, seed), asked)
        read_with = views, cell.encoder, self.catalogue.get("tasks", cell.task, "tasks").type
        student_checks.check_teacher(strategy, teacher, run, read_with, self.head_of(cell.head, cell.task), place)
        self.mark_kept(run)
        of = "" if cell.task == own else cell.task
        if teacher.dropout:
            return Need("live_teacher", run, {"dropout": True}, of)
        return Need("teacher", TeachPlan(run, cell.subset), task=of)

    def mark_kept(self, run: RunPlan) -> None:
        """Have a run's tensors of the encoder kept, where they are not the pretrained ones."""
        if self.trains_encoder(run):
            self.kept.add(run.folder)

    def _settings(self, cell: RunCell, strategy: StrategyConfig) -> Need:
        """Return the search that a run's settings come from: of its own strategy's trials, or of `rates_from`."""
        name = strategy.rates_from or cell.strategy
        said = self.catalogue.place("strategies", cell.strategy, "rates_from") if strategy.rates_from else "strategies"
        entry = self.catalogue.get("strategies", name, said)
        by_phase = entry.search and any("." in key for key in entry.search.grid)
        if entry.search is None or (strategy.rates_from and (entry.sweep or by_phase)):
            place = self.catalogue.place("strategies", cell.strategy, "rates_from")
            has = "no search:" if entry.search is None else "a sweep" if entry.sweep else "a grid by phase"
            raise UserError(f"{place}: {name} has {has}; name a strategy with a search of all phases and no sweep")
        value = None if strategy.rates_from else cell.value
        point = cell._replace(strategy=name, value=value, seed=0)  # whatever the seed
        if point not in self.searches:
            grid = entry.search.trials()
            every = product(range(1, len(grid) + 1), entry.search.seeds[: self.experiment.search_seeds])
            trials = tuple(self._run(point._replace(seed=seed), (), n, grid[n - 1]) for n, seed in every)
            step = "search_heads" if trials[0].step == "fit_heads" else "select"
            key = layout.key(step, trials[0].names | {"variant": variant(entry, value)})
            self.searches[point] = SearchPlan(step, key, tuple(grid), trials, entry.search.penalty)
        return Need("settings", self.searches[point], {"grid": list(self.searches[point].grid)})

    def trained(self, run: RunPlan) -> list[list[str]]:
        """Return the components that each phase of a run trains."""
        return [chosen for _, chosen in self.phases(run)]

    def trained_from_start(self, run: RunPlan) -> list[list[str]]:
        """Return the same of the runs that a run starts from, and of itself."""
        return [chosen for one in (run, *run.earlier()) for chosen in self.trained(one)]

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
        width = self.catalogue.get("encoders", run.encoder, "encoders").width
        phases = [
            phase.at_width(width).changed(of_phase(settings, number))
            for number, phase in enumerate(strategy.phases, start=1)
        ]
        pairs = zip(phases, chosen, strict=True)
        return [(phase, parts) for phase, trained in pairs for parts in chain_thaw_order(phase, trained)]

    def shape(self, run: RunPlan) -> StudentShape | None:
        """Return which layers the student of a run keeps; None where it keeps all as they were."""
        if (student := self.strategy(run).student) is None:
            return None
        encoder = self.catalogue.get("encoders", run.encoder, "encoders")
        try:
            return StudentShape.of(student, run.encoder, encoder, self._variables(run))
        except UserError as error:
            raise UserError(f"{self.catalogue.place('strategies', run.strategy)}: {error}") from error

    def _variables(self, run: RunPlan) -> dict[str, int]:
        """Return the variable of a run's sweep with its value."""
        return dict.fromkeys(self.strategy(run).sweep, run.value) if run.value is not None else {}

    def layers(self, encoder: str) -> int:
        return self.catalogue.get("encoders", encoder, "encoders").layers

    def read(self, run: RunPlan) -> list[int]:
        """Return the boundaries that a run's head reads."""
        encoder, trained = self.catalogue.get("encoders", run.encoder, "encoders"), self.trained(run)
        place, name = self.catalogue.place, self.own_head(run)[0]
        said = ("strategies", run.strategy, "reads") if self.strategy(run).reads else ("heads", name, "layers")
        places = place(*said), place("strategies", run.strategy, "phases")
        read = compatibility.read_boundaries(name, self.head_under(run), encoder, trained, places)
        if shape := self.shape(run):
            shape.check_read(read, name, encoder.layers, place("strategies", run.strategy, "student"))
        return read

    def head_under(self, run: RunPlan) -> HeadConfig:
        """Return the entry of a run's head as it is under the run's strategy."""
        strategy, (name, head) = self.strategy(run), self.own_head(run)
        return compatibility.read_by(strategy, head, name, self.catalogue.place("strategies", run.strategy, "reads"))

    def strategy(self, run: RunPlan) -> StrategyConfig:
        return self.catalogue.get("strategies", run.strategy, "strategies")

    def own_head(self, run: RunPlan) -> tuple[str, HeadConfig]:
        head = self.head_of(run.head, run.task)
        assert head, "the grid has no run of a set of heads without one for the task"
        return head

    def head_of(self, head: str, task: str) -> tuple[str, HeadConfig] | None:
        """Return id and entry of the head on a task; of a set of heads None where it has none for the task's type."""
        return self.catalogue.head(head, self.catalogue.get("tasks", task, "tasks").type)

    def trains_encoder(self, run: RunPlan) -> bool:
        """Return whether a run, or one that it starts from, trains more than its head."""
        return any(chosen != ["head"] for chosen in self.trained_from_start(run))

    def thawed(self, run: RunPlan) -> tuple[int, bool]:
        """Return how many layers a run trains at most, and whether its embeddings train then."""
        return thawed_layers(most := most_thawed(self.trained(run))), trains_embeddings(most)


def check_windows(catalogue: Catalogue, name: str, views: tuple[str, ...]) -> None:
    """Find out whether the views that a task is read in are windows where it extracts spans, and else are none."""
    extracts = catalogue.get("tasks", name, "tasks").type in EXTRACTION_TYPES
    for view in views:
        windows = catalogue.get("views", view, "views").stride is not None
        if windows != extracts:
            place = catalogue.place("tasks", name, "view")
            if windows:
                raise UserError(f"{place}: view {view} has a stride, which is for span extraction; name another view")
            raise UserError(f"{place}: span extraction reads windows, and view {view} has no stride; say view: windows")


def check_baseline(catalogue: Catalogue, experiment: ExperimentConfig, name: str) -> None:
    """Find out whether a baseline that is a run has a head for all tasks."""
    head, _, twin = RUN_BASELINES[name]
    for task in experiment.tasks if twin else ():
        if catalogue.get("tasks", task, "tasks").type in EXTRACTION_TYPES:
            raise UserError(
                f"{experiment.place('baselines', item=name)}: {name} has a {head} head, and {task} is span extraction; "
                f"name {experiment.encoders[0]}{twin} under encoders: in its place"
            )
