"""What a phase may minimise besides the task's own loss: each kind is a key of a phase, with settings of its own."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from thaw.core import plugins
from thaw.declarations.lazy_import import LazyImport


def nothing_wrong(*_) -> str:
    """Return an empty text: all goes together."""
    return ""


@dataclass(frozen=True)
class ObjectiveKind(LazyImport):
    """A kind of objective; its id is the key of a phase that chooses it.

    source: its maker, from a TrainingRun, the settings, the stage (None: not known yet) and the phase's number to a
    `thaw.training.objectives.Objective`. settings: the model of its keys. about: what the key is for. texts: the
    setting that names a task whose training texts it reads, if any. passes: how many times the operations of the task's
    own loss an update takes.
    What is wrong, in words, or nothing: in_strategy(phase, strategy) with the other settings, on_task(type) with a type
    of task, in_student(kept, layers, components) with the layers that are kept of L and what trains.
    """

    settings: type[BaseModel]
    about: str
    texts: str = ""
    passes: float = 1.0
    in_strategy: Callable[..., str] = nothing_wrong
    on_task: Callable[..., str] = nothing_wrong
    in_student: Callable[..., str] = nothing_wrong


OBJECTIVES: dict[str, ObjectiveKind] = plugins.shipped("OBJECTIVES")


def objectives_of(phase) -> dict[str, ObjectiveKind]:
    """Return the kinds, by key, that a phase chooses. Args: its settings."""
    return {name: kind for name, kind in OBJECTIVES.items() if getattr(phase, name)}


def texts_read(phases: list[dict]) -> dict[str, str]:
    """Return the tasks whose training texts phases of a spec read without labels, each with the key that names it."""
    return {
        phase[name][kind.texts]: f"{name}: {kind.texts}"
        for phase in phases
        for name, kind in OBJECTIVES.items()
        if kind.texts and name in phase
    }
