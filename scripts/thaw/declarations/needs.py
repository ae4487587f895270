"""What a run may need of another job's result, by role: which file it reads, and where its spec names that result.

The plan, the rules, the step that trains and the collection of costs go through what a run needs and ask this table;
none of them knows a role by name but the check and the code that uses what was read.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NeedRole:
    """What a role means.

    step and file: which step's result is read, and which file of it; none where another argument of the step that
    trains gives it already. digest: where in the spec the digest of that result is, () where the spec names it
    elsewhere; what else the spec says of the need is next to the digest. word: before what is needed, in a list of
    runs. gives_weights: the run goes on from the weights of the one that is needed. costs: what the result took counts
    as cost of the run.
    """

    step: str = ""
    file: str = ""
    digest: tuple[str, ...] = ()
    word: str = ""
    gives_weights: bool = False
    costs: bool = False

    def entry(self, digest: str, facts: dict) -> dict:
        """Return what a run's spec says of a need: the digest of the result, and further facts."""
        if not self.digest:
            return {}
        *above, last = self.digest
        entry = {last: digest, **facts}
        for name in reversed(above):
            entry = {name: entry}
        return entry

    def stated(self, spec: dict) -> str | None:
        """Return the digest that a spec states of what is needed in this role; None where it needs nothing."""
        value: Any = spec if self.digest else None
        for name in self.digest:
            value = (value or {}).get(name)
        return value


NEEDS = {
    "start": NeedRole("train", "metrics.json", ("after", "run"), word="after", gives_weights=True, costs=True),
    # a teacher's outputs on train; or the teacher itself, with dropout
    "teacher": NeedRole("teach", "card.json", ("teacher", "taught"), word="towards", costs=True),
    "live_teacher": NeedRole("train", "metrics.json", ("teacher", "run"), word="towards", costs=True),
    "taught": NeedRole(word="of", costs=True),  # the run whose outputs these are; their spec names it
    # the training of several tasks that made it; each of their runs has its share of the cost in its own record
    "multi_task": NeedRole("train", "metrics.json", ("multi_task", "run"), word="trained with"),
    "settings": NeedRole("select", "chosen.json", ("chosen",)),  # those that a search chose
    "weights": NeedRole(word="on", costs=True),  # of further pretraining; read in the place of the encoder's
    "trial": NeedRole("train", "metrics.json"),  # what a search chooses among; its spec lists them with their settings
}


def stated_needs(spec: dict) -> dict[str, str]:
    """Return the digests that a run's spec states of what it needs, by role."""
    digests = {role: need.stated(spec) for role, need in NEEDS.items()}
    return {role: digest for role, digest in digests.items() if digest}
