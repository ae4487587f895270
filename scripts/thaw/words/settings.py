"""Settings of strategies, heads and further pretraining as lines of a configuration file."""

from thaw.core.phrases import written
from thaw.schema.entry import DISPLAY_KEYS
from thaw.schema.head import HeadConfig
from thaw.schema.keys import ConfigModel, stated
from thaw.schema.phases import PhaseConfig


def of(entry: ConfigModel) -> list[str]:
    """Return a line for each key that an entry states."""
    values = {key: value for key, value in stated(entry).items() if key not in DISPLAY_KEYS}
    if "phases" in values:
        values["phases"] = [of_phase(phase) for phase in vars(entry)["phases"]]
    if "phase" in values:
        values["phase"] = of_phase(vars(entry)["phase"])
    return _lines(values)


def of_phase(phase: PhaseConfig) -> dict:
    """Return what a phase states; stages of a phase with updates have no epochs."""
    values = stated(phase)
    if phase.updates is not None and phase.unfreeze:
        values["gradual_unfreezing"].pop("epochs", None)
    return values


def defaults() -> dict[str, list[str]]:
    """Return what holds for phases and heads that state nothing else, by what it is of."""
    slanted, fitted = PhaseConfig(schedule="slanted_triangular"), PhaseConfig(train=["head"], optimizer="lbfgs")
    plain, head = stated(PhaseConfig(), every=True), stated(HeadConfig(kind="linear"), every=True)
    own = {key: value for key, value in stated(slanted, every=True).items() if key not in plain}
    return {
        "A phase": _lines(plain),
        "A phase with schedule: slanted_triangular": _lines(own),
        "A phase with optimizer: lbfgs": _lines({"l2": fitted.l2}),
        "A head": _lines({key: value for key, value in head.items() if key != "kind"}),
    }


def _lines(values: dict) -> list[str]:
    return [f"{key}: {written(value)}" for key, value in values.items()]
