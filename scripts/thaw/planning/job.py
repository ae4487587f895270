"""A job as the plan knows it. Neither torch nor pandas is imported."""

from dataclasses import dataclass
from functools import cached_property

from thaw.core.digests import canonical, digest


@dataclass(frozen=True)
class Job:
    """One job of a step: its spec, and the made files that it reads, by name."""

    spec: dict
    inputs: dict[str, list[str]]

    @property
    def canonical(self) -> str:
        """The spec as the one params string of a rule."""
        return canonical(self.spec)

    @cached_property
    def digest(self) -> str:
        """The digest under which later specs name this job's result."""
        return digest(self.spec)
