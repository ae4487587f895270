"""Whether an experiment has the seeds that its tables need to decide anything: said before anything runs."""

from collections import Counter
from dataclasses import dataclass

from thaw.core.phrases import plural
from thaw.declarations.decision import FEWEST_OF_INTERVAL, FEWEST_SEEDS, fewest_seeds
from thaw.declarations.outputs import OUTPUTS
from thaw.planning.jobs import Job
from thaw.schema.experiment import ExperimentConfig


@dataclass(frozen=True)
class SeedsOfTable:
    """A table whose words need seeds: how many at least, and how many the experiment has.

    tests: of claims, how many the table has; None where that depends on results. seeds_per_draw: how many of the
    planned seeds share the rows of a draw, where draws count as seeds. marks: whether the seeds are only for the marks
    of a table of scores, which say what is below the highest.
    """

    output: str
    tests: int | None
    needed: int
    planned: int
    seeds_per_draw: int = 1
    marks: bool = False

    @property
    def enough(self) -> bool:
        """Whether the table can decide anything."""
        return self.planned >= self.needed

    @property
    def warns(self) -> bool:
        """Whether the sentence is a warning."""
        return not self.marks and (not self.enough or self.seeds_per_draw > 1)

    @property
    def sentence(self) -> str:
        """What the plan says: which number of seeds is for what, as tables that decide by intervals need fewer."""
        if self.marks:
            return (
                f"Table {self.output} shows scores with any number of seeds; which strategies are below the highest it "
                f"says by a test over seeds, with {self.needed} or more; {self.planned} planned."
            )
        of = "" if self.tests is None else f", {plural(self.tests, 'test')} of claims,"
        by = ", by intervals" * (self.needed == FEWEST_OF_INTERVAL) + ", by tests" * (self.needed >= FEWEST_SEEDS)
        text = f"Table {self.output}{of} can decide with {self.needed} seeds or more{by}; {self.planned} planned"
        text += "." if self.enough else ", so that nothing in it will be decided."
        if self.seeds_per_draw > 1:
            text += (
                f" The {self.seeds_per_draw} seeds of each draw share its training rows, so that intervals are too "
                "narrow: name one seed and more draws."
            )
        return f"Warning: {text}" if self.warns else text


def tables(experiment: ExperimentConfig, jobs: dict[str, Job]) -> list[SeedsOfTable]:
    """Return the tables of an experiment that need seeds, those of scores where they have too few for their marks.

    Args: the jobs of step `table` by key.
    """
    needing = []
    for output in experiment.outputs:
        job = jobs.get(f"{experiment.experiment}/{output}")
        kind = OUTPUTS[job.spec["kind"]] if job else None
        if kind and (needed := kind.seeds or kind.seeds_of_marks):
            findings = job.spec.get("findings")
            tests = None if findings is None else sum(len(entry.get("tests", [])) for entry in findings)
            first = job.spec.get("first_draws", {})
            draws = Counter(first.get(subset, subset) for subset in experiment.subsets)  # which count as further seeds
            tests = tests and tests * len(draws)
            if tests != 0:
                seeds, most = len(experiment.seeds), max(draws.values())
                seeds_per_draw = seeds if most > 1 else 1
                needed = _over(draws, first, needed)
                needing.append(SeedsOfTable(output, tests, needed, seeds * most, seeds_per_draw, marks=not kind.seeds))
    return [table for table in needing if not (table.marks and table.enough)]


def _over(draws: Counter, first: dict[str, str], needed: int) -> int:
    """Return how many seeds a test over seeds needs: sizes whose draws are seeds of their own share the error."""
    sizes = sum(subset in first for subset in draws)
    return max(needed, fewest_seeds(sizes)) if needed >= FEWEST_SEEDS and sizes else needed
