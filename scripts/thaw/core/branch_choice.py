"""Which branch each task takes, of those that finished runs offer.

Scores are x 100, on validation, means over seeds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BranchSize:
    """A task's branch: how many layers are below it (f_t), and how many of its own it has (l_t)."""

    frozen: int
    own: int


@dataclass(frozen=True)
class EncoderSize:
    """Numbers of parameters: of the embeddings, of one layer; and how many layers there are (L)."""

    embeddings: int
    layer: int
    layers: int


def executed(branches: Iterable[BranchSize]) -> int:
    """Return how many layers are executed for a text on which all tasks are run: F + sum of l_t."""
    branches = list(branches)
    return max(branch.frozen for branch in branches) + sum(branch.own for branch in branches)


def executed_by_input(branches: Mapping[str, BranchSize], inputs: Mapping[str, str]) -> dict[str, int]:
    """Return the executed layers for one text of each input: only tasks that read the same input share a pass.

    Args: branches by task; for each task the name of what it reads (its kind of text, how pairs are read, length).
    """
    groups: dict[str, list[BranchSize]] = {}
    for task, branch in branches.items():
        groups.setdefault(inputs[task], []).append(branch)
    return {name: executed(group) for name, group in groups.items()}


def stored_merged(branches: Iterable[BranchSize], size: EncoderSize, heads: Sequence[int]) -> int:
    """Return the parameters that are stored: the embeddings, F and all own layers once, and each task's head."""
    return size.embeddings + executed(branches) * size.layer + sum(heads)


def stored_separate(size: EncoderSize, heads: Sequence[int]) -> int:
    """Return the parameters of one whole model for each head."""
    return len(heads) * (size.embeddings + size.layers * size.layer) + sum(heads)


def stored_inserted(size: EncoderSize, inserted: Sequence[int], heads: Sequence[int]) -> int:
    """Return the parameters of one encoder, the modules that each task inserts (LoRA, adapters), and the heads."""
    return size.embeddings + size.layers * size.layer + sum(inserted) + sum(heads)


ROUNDING = 1e-9  # points: 100 * 0.57 is a little less than 57, which is within 1 point of 58


@dataclass(frozen=True)
class Offer:
    """A branch that a task may take: the runs that offer it, its size, its score."""

    id: str
    size: BranchSize
    score: float


Offers = Mapping[str, Sequence[Offer]]


def choose(offers: Offers, rule: str, margin: float = 0.0) -> dict[str, Offer]:
    """Return the offer that each task takes under a rule of `RULES`; each task has one or more.

    Args: margin, in points, where the rule has one.
    """
    return RULES[rule](offers, margin)


def best(offers: Offers, margin: float) -> dict[str, Offer]:
    """Return the offers of the highest score; of equal ones that with the fewest own layers. The margin is not read."""
    return {task: max(some, key=lambda offer: (offer.score, -offer.size.own)) for task, some in offers.items()}


def cheapest(offers: Offers, margin: float) -> dict[str, Offer]:
    """Return the choice with the fewest executed layers of all choices within the margin of each task's best.

    Once one task needs a trunk of F layers, all others may begin at F for nothing; choosing task by task misses that.
    For each F every task takes the fewest own layers that begin no higher: exact, and linear in L and the offers. Of
    choices with equally many layers that with the higher sum of scores is taken, then the shorter trunk.
    """
    near: dict[str, list[Offer]] = {}
    for task, some in offers.items():
        least = max(offer.score for offer in some) - margin - ROUNDING
        near[task] = [offer for offer in some if offer.score >= least]
    chosen: dict[str, Offer] = {}
    lowest: tuple | None = None
    for trunk in sorted({offer.size.frozen for some in near.values() for offer in some}):
        below = {task: [offer for offer in some if offer.size.frozen <= trunk] for task, some in near.items()}
        if all(below.values()):
            choice = {task: min(some, key=lambda offer: (offer.size.own, -offer.score)) for task, some in below.items()}
            rank = (executed(offer.size for offer in choice.values()), -sum(offer.score for offer in choice.values()))
            if lowest is None or rank < lowest:
                chosen, lowest = choice, rank
    return chosen


def mixed(offers: Offers, margin: float) -> dict[str, Offer]:
    """Return, task by task, the offer after which a larger one gains less than the margin (Wei et al. 2022, "mixed").

    A task's trunk is that of its best offer without layers left out, the teacher's. On it students are tried by their
    own layers, rising: the next is taken while it scores at least the margin more than the one before it. The teacher
    itself follows where it scores that much more than the student that was reached. Without students on that trunk,
    offers of all trunks are tried so.
    """
    chosen = {}
    for task, some in offers.items():
        teacher = max(some, key=lambda offer: (offer.size.frozen + offer.size.own, offer.score, -offer.size.own))
        students = [o for o in some if o.size.frozen == teacher.size.frozen and o.size.own < teacher.size.own]
        if not students:
            chosen[task] = _while_it_gains(some, margin)
            continue
        student = _while_it_gains(students, margin)
        chosen[task] = teacher if _gains(teacher, student, margin) else student
    return chosen


def _while_it_gains(some: Sequence[Offer], margin: float) -> Offer:
    """Return the last of some offers by their own layers, of equally many the best, before a step gains too little."""
    sizes = sorted({offer.size.own for offer in some})
    reached, *larger = [max((o for o in some if o.size.own == own), key=lambda offer: offer.score) for own in sizes]
    for offer in larger:
        if not _gains(offer, reached, margin):
            break
        reached = offer
    return reached


def _gains(offer: Offer, smaller: Offer, margin: float) -> bool:
    return offer.score - smaller.score >= margin - ROUNDING


RULE_VERSIONS = {"mixed": 2}  # raised where a rule chooses otherwise than before; of all others 1
RULES = {"best": best, "cheapest": cheapest, "mixed": mixed}
