"""How a phase is carried out: thawing one by one makes several phases of it, gradual unfreezing gives it stages.

A stage is a part of a phase in which the same components train; its rounds are the parts of it that end where the
phase may be evaluated. No torch here: the plan needs to know both.
"""

from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from thaw.adaptation.selectors import block, boundary, top
from thaw.core.boundaries import resume_plan
from thaw.core.errors import UserError
from thaw.schema.phases import PhaseConfig


def chain_thaw_order(phase: PhaseConfig, chosen: list[str]) -> list[list[str]]:
    """Return the trained components of each phase that a phase expands to: itself, or one per block and one for all.

    Args: the components that the phase trains, the head first, then from the embeddings up, which is the order of
    chain-thaw (Felbo et al. 2017, section 3.3).
    """
    if not phase.one_by_one:
        return [chosen]
    return [[c for c in chosen if block(c) == name] for name in _blocks(chosen)] + [chosen]


def stages(phase: PhaseConfig, chosen: list[str]) -> list[dict]:
    """Return the stages of a phase, each with its `components`; without `unfreeze` there is one.

    Gradual unfreezing (Howard and Ruder 2018, section 3.3): the head alone first, then further layers from the top with
    it, the embeddings after layer 1 where they train at all. All but the last stage have their `epochs`; the last one
    has those of the phase. Of a phase with `updates` no stage says its length: `stages_of` divides them.
    Raises UserError where they are too few.
    """
    if phase.unfreeze is None:
        return [{"components": chosen}]
    blocks = _blocks(chosen)
    from_top = [name for name in blocks if name == "head"] + [name for name in reversed(blocks) if name != "head"]
    counts = [*range(1, len(from_top), phase.unfreeze.layers), len(from_top)]
    thawed = [{"components": [c for c in chosen if block(c) in from_top[:count]]} for count in counts]
    if phase.updates is None:
        return [stage | {"epochs": phase.unfreeze.epochs} for stage in thawed[:-1]] + [thawed[-1]]
    if min(stage["updates"] for stage in stages_of(phase, {"stages": thawed})) < 1:
        raise UserError(f"updates: {phase.updates} is too few for the {len(thawed)} stages of gradual_unfreezing")
    return thawed


def stages_of(phase: PhaseConfig, entry: dict) -> list[dict]:
    """Return the stages of a phase, each with its `epochs` or `updates`; one without any is one.

    Stages of updates have equal shares. Args: the phase; its entry in a spec.
    """
    *early, last = listed = entry.get("stages", [entry])
    if phase.updates is None:
        return [*early, last | {"epochs": phase.epochs}]
    ends = [round(phase.updates * number / len(listed)) for number in range(len(listed) + 1)]
    return [stage | {"updates": end - start} for stage, (start, end) in zip(listed, pairwise(ends), strict=True)]


def epochs_of(phase: PhaseConfig, stage: dict, rows: float) -> float:
    """Return how often a stage goes through so many training rows. Args: the phase; one of `stages_of`; the rows."""
    return stage["updates"] * phase.batch_size / rows if "updates" in stage else stage["epochs"]


def check_phase(phase: PhaseConfig, chosen: list[str], layers: int) -> None:
    """Raise UserError for a phase with fewer updates than stages, or one that re-initialises a frozen layer."""
    stages(phase, chosen)
    for layer in top(layers, phase.reinit_top):
        if layer not in chosen:
            raise UserError(f"reinit_top: {phase.reinit_top} re-initialises {layer}, which the phase does not train")


def phases_to_spec(
    phases: list[tuple[PhaseConfig, list[str]]],
    layers: int,
    stored: list[int],
    lowest: int | None,
    read: list[int],
    vectors: str | None = None,
):
    """Return the spec of a run's phases, with the trained components and the boundary that each phase starts from.

    Args: each phase with the components that it trains; layers L; the boundaries that the store may hold; the one below
    all that trained before, None where the embeddings did; the boundaries that the head reads; the part of the store
    whose vectors it reads in the place of their states. Stored states are valid below what has trained so far. Several
    stages are listed under `stages`; the other keys of the phase then describe its last stage.
    """
    specs = []
    for phase, chosen in phases:
        entries = []
        for stage in stages(phase, chosen):
            below = boundary(stage["components"], layers)
            lowest = None if below is None or lowest is None else min(below, lowest)
            start = resume_plan(stored, None if phase.frozen_dropout else lowest, read)
            entries.append(stage | ({"boundary": read[-1], "vectors": vectors} if vectors else start))
        unsaid: Any = {"train": True, "one_by_one": True, "insert": {"top"}}
        settings = phase.model_dump(mode="json", exclude_defaults=True, exclude=unsaid)
        specs.append(settings | entries[-1] | ({"stages": entries} if len(entries) > 1 else {}))
    return specs


def _blocks(chosen: list[str]) -> list[str]:
    """Return the blocks of some components, each once, in their order."""
    return list(dict.fromkeys(map(block, chosen)))


ROUNDS = 10  # of a phase with `updates` that does not say how often it is evaluated


class Round(NamedTuple):
    """A part of a phase: its updates, and whether it ends where the phase is evaluated."""

    updates: int
    judged: bool = True


def rounds(phase: PhaseConfig, stages: list[dict], per_epoch: int) -> list[list[Round]]:
    """Return the rounds of each stage of a phase.

    A round is an epoch. Of a phase with `updates` it is one of `judge` parts, equal but for rounding; a stage that ends
    within a part cuts it in two, and the first of them is not evaluated. Args: the phase; its stages, as
    `stages_of` gives them; the updates of an epoch.
    """
    if phase.updates is None:
        return [[Round(per_epoch)] * stage["epochs"] for stage in stages]
    count = phase.judge or min(ROUNDS, phase.updates)
    points = {round(phase.updates * part / count) for part in range(1, count + 1)}
    ends = [0, *accumulate(stage["updates"] for stage in stages)]
    cuts = sorted(points | set(ends))
    parts = [(end, Round(end - start, end in points)) for start, end in pairwise(cuts)]
    return [[part for end, part in parts if first < end <= last] for first, last in pairwise(ends)]


def lengths(every: list[list[Round]]) -> list[int]:
    """Return the updates of each stage."""
    return [sum(part.updates for part in stage) for stage in every]
