"""What a run trains and reads, worked out from the entries that it names; no experiment is asked."""

from thaw.adaptation.selectors import components, thawed_layers, trains_embeddings
from thaw.adaptation.stages import chain_thaw_order, check_phase
from thaw.core.errors import UserError
from thaw.planning import compatibility
from thaw.planning.run_plan import RunPlan
from thaw.planning.student_checks import StudentShape
from thaw.schema.catalogue import Catalogue
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.schema.strategy import StrategyConfig


class RunContents:
    """Phases, components, boundaries, head and student of runs, each worked out once."""

    def __init__(self, catalogue: Catalogue):
        self.catalogue = catalogue
        self._resolved: dict[tuple, list[tuple[PhaseConfig, list[str]]]] = {}

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
        """Return how many layers a run trains at the end, and whether its embeddings train."""
        return thawed_layers(last := self.trained(run)[-1]), trains_embeddings(last)
