"""Settings of strategies and heads as rows of a table: keys and values as a configuration file has them."""

from thaw.core.phrases import written
from thaw.schema.entry import DISPLAY_KEYS
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.head import HeadConfig
from thaw.schema.keys import ConfigModel, documented, stated
from thaw.schema.phases import PhaseConfig
from thaw.schema.strategy import StrategyConfig, written_key

Rows = list[tuple[str, str]]


def of_strategy(entry: StrategyConfig) -> Rows:
    """Return (key, value) of all that a strategy states, a row for each of its phases."""
    settings = _shown(entry)
    phases = [of_phase(phase) for phase in entry.phases]
    settings.pop("phases")
    if "search" in settings:
        settings["search"]["grid"] = {written_key(key): values for key, values in settings["search"]["grid"].items()}
    if "sweep" in settings:
        swept = {
            key if key not in PhaseConfig.model_fields else documented(PhaseConfig, key): key for key in entry.sweep
        }
        settings["sweep"] = {name: entry.sweep[key] for name, key in swept.items()}
    names = [f"phase {number}" if len(phases) > 1 else "phase" for number in range(1, len(phases) + 1)]
    return _rows(settings) + list(zip(names, map(_line, phases), strict=True))


def of_phase(phase: PhaseConfig) -> dict:
    """Return what a phase states; stages of a phase with updates have no epochs."""
    values = stated(phase)
    if phase.updates is not None and phase.unfreeze:
        values["gradual_unfreezing"].pop("epochs", None)
    return values


def of_head(entry: HeadConfig) -> Rows:
    return _rows(_shown(entry))


def of_further_pretraining(entry: FurtherPretrainingConfig) -> Rows:
    """Return (key, value) of all that a further pretraining states."""
    return [("phase", _line(of_phase(entry.phase))), *_rows({k: v for k, v in _shown(entry).items() if k != "phase"})]


def defaults() -> Rows:
    """Return what holds for phases and heads that state nothing else."""
    slanted, fitted = PhaseConfig(schedule="slanted_triangular"), PhaseConfig(train=["head"], optimizer="lbfgs")
    head = HeadConfig(kind="linear")
    plain = stated(PhaseConfig(), every=True)
    own = {key: value for key, value in stated(slanted, every=True).items() if key not in plain}
    return [
        ("phase", _line(plain)),
        ("schedule: slanted_triangular", _line(own)),
        ("optimizer: lbfgs", f"l2: {written(fitted.l2)}"),
        ("head", _line({key: value for key, value in stated(head, every=True).items() if key != "kind"})),
    ]


def _shown(entry: ConfigModel) -> dict:
    return {key: value for key, value in stated(entry).items() if key not in DISPLAY_KEYS}


def _rows(settings: dict) -> Rows:
    return [(key, written(value)) for key, value in settings.items()]


def _line(settings: dict) -> str:
    return ", ".join(f"{key}: {written(value)}" for key, value in settings.items())
