"""Boundaries: which of them a store may hold, and from which of them a phase takes its states. No torch here."""

import math

BYTES = {"bf16": 2, "fp32": 4}
ACTIVATION = 100  # bytes that wait for the way back, a token, layer and unit of width
ATTENTION = "attention"  # with the number of a layer: what its attention multiplies, for students
VECTORS = ("pooled", "words")  # vectors of all layers that a store may hold, of sequences and of words


def cacheable_layers(layers: int, width: int, tokens: int | None, dtype: str, max_gib: float) -> list[int]:
    """Return the boundaries that a store may hold within its budget.

    All L + 1 where they fit; else as many as fit, evenly spaced and with L among them, since every frozen run reads
    L. It follows from the catalogue's sizes alone, so that a run's numbers never depend on what else was planned.
    """
    if tokens is None:
        return list(range(layers + 1))
    count = math.floor(max_gib * 2**30 / (tokens * width * BYTES[dtype]))
    if count > layers:
        return list(range(layers + 1))
    return sorted({round(layers * (i + 1) / count) for i in range(count)})


def resume_plan(stored: list[int], valid: int | None, read: list[int]) -> dict:
    """Return where a phase's states come from, as its spec has it.

    Args: the boundaries that the store may hold; the highest one below everything that trains, None where no stored
    state is valid; those that the head reads. `boundary` is where the encoder starts, None for from text: the highest
    stored one such that every boundary which the head reads is either stored or computed. `reads` are those below it
    that come from the store too; the key is left out where there are none.
    """
    start = None if valid is None else min(valid, read[-1])
    while start is not None:
        start = max((n for n in stored if n <= start), default=None)
        absent = [n for n in read if start is not None and n < start and n not in stored]
        if not absent:
            break
        start = absent[0]
    below = [n for n in read if start is not None and n < start]
    return {"boundary": start} | ({"reads": below} if below else {})


def computes_layers(boundary: int | None, highest: int) -> bool:
    """Return whether layers are computed above a boundary, None for from text, up to the highest that a head reads."""
    return boundary != highest


def resumes(boundary: int | None, highest: int) -> bool:
    """Return whether these layers are computed from a stored state, and not from text."""
    return boundary is not None and computes_layers(boundary, highest)


def cached_layers_read(phases: list[dict]) -> list[int]:
    """Return the boundaries whose token states the phases of a spec, or the stages of one, take from the store."""
    stages = [stage for phase in phases for stage in phase.get("stages", [phase]) if "vectors" not in stage]
    return sorted({n for stage in stages for n in (stage["boundary"], *stage.get("reads", [])) if n is not None})


def uppermost(count: int | None, layers: int) -> list[int]:
    """Return the boundaries of so many layers from the top; None for all with the embeddings."""
    return list(range(layers + 1 - (count or layers + 1), layers + 1))


def that_train(pairs: list[tuple[int, int]], below: int | None) -> list[tuple[int, int]]:
    """Return those pairs whose first is above the boundary under which nothing trains, None where all trains."""
    return [(student, teacher) for student, teacher in pairs if below is None or student > below]


def taught_parts(phases: list[dict]) -> list[int | str]:
    """Return what the phases of a spec read of a teacher: boundaries, and the attention of layers by its name."""
    states = {teacher for phase in phases for _, teacher in phase.get("pairs", [])}
    layers = {teacher for phase in phases for _, teacher in phase.get("attended", [])}
    return [*sorted(states), *(f"{ATTENTION}{n}" for n in sorted(layers))]


def stored_parts_read(phases: list[dict]) -> list[int | str]:
    """Return all that the phases of a spec take from the store: boundaries, and vectors of all layers by their name."""
    return [*cached_layers_read(phases), *sorted({phase["vectors"] for phase in phases if "vectors" in phase})]
