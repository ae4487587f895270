"""The paths of results below the results folder: each template is written only here, and paths are read here.

A template is filled with names: {"task": "sst2", "seed": 1, ...}, which are also the wildcards of the step's rule.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

CELL = ("task", "subset", "encoder", "head", "strategy", "variant")
RUN = (*CELL, "seed")
SHOWN = {name: f"<{name}>" for name in RUN}  # for messages
_CELL = "runs/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}"
_RUN = _CELL + "/seed{seed}"  # as of_seed has it


@dataclass(frozen=True)
class Place:
    """The paths of the results of a step.

    key: under which the plan knows a job. file: by which a job is known to be done, below the results folder. log:
    what its job prints, below the folder of logs, without its ending; by default the key below the step's name.
    """

    key: str
    file: str
    log: str = ""


PLACES = {
    "prepare": Place("{corpus}", "data/{corpus}/card.json"),
    "fetch": Place("{encoder}", "encoders/{encoder}/card.json"),
    "pretrain": Place("{encoder}.{further}.{corpus}", "encoders/{encoder}.{further}.{corpus}/card.json"),
    "features": Place("{weights}/{corpus}/{view}", "features/{weights}/{corpus}/{view}/tokens.json"),
    "train": Place(_RUN, _RUN + "/metrics.json", _RUN.replace("runs", "train", 1)),
    "fit_heads": Place(_CELL, _RUN + "/metrics.json", _CELL.replace("runs", "fit_heads", 1)),
    "search_heads": Place(_CELL, _CELL + "/chosen.json", _CELL.replace("runs", "search_heads", 1)),
    "select": Place(_CELL, _CELL + "/chosen.json", _CELL.replace("runs", "select", 1)),
    "baseline": Place("{task}/{subset}/{baseline}", "baselines/{task}/{subset}/{baseline}/metrics.json"),
    "ensemble": Place("{task}/{subset}/{ensemble}", "ensembles/{task}/{subset}/{ensemble}/metrics.json"),
    "merge": Place("{subset}/{encoder}/{merge}", "merges/{subset}/{encoder}/{merge}/merge.json"),
    "features_adapted": Place(
        _RUN.removeprefix("runs/") + "/{probed}", _RUN.replace("runs", "adapted", 1) + "/{probed}/card.json"
    ),
    "teach": Place(_RUN.removeprefix("runs/") + "/{rows}", _RUN.replace("runs", "taught", 1) + "/{rows}/card.json"),
    "probe": Place(
        "{task}/{subset}/{encoder}/{probe}/{of}", "probes/{task}/{subset}/{encoder}/{probe}/{of}/metrics.json"
    ),
    "collect": Place("{experiment}", "outputs/{experiment}/runs.csv"),
    "table": Place("{experiment}/{id}", "outputs/{experiment}/tables/{id}.html"),
    "figure": Place("{experiment}/{id}", "outputs/{experiment}/figures/{id}.svg"),
    "report": Place("{experiment}", "outputs/{experiment}/report.html"),
}
_OF_RUNS = ("cost.json", "history.csv", "predictions.parquet", "head.safetensors")
FOLDS = "folds.parquet"  # what fits of a head predict for rows that they did not see, without a row where none did
# What else a job of a step always writes into the folder of that file, by which its rule declares it.
WRITTEN = {
    "train": _OF_RUNS,
    "fit_heads": (*_OF_RUNS, FOLDS),
    "search_heads": ("cost.json", "trials.csv"),
    "baseline": ("cost.json", "predictions.parquet", FOLDS),
    "ensemble": ("predictions.parquet",),
    "probe": ("layers.csv", "cost.json"),
    "teach": ("logits.safetensors", "cost.json", "tokens.parquet", "tokens.json"),
}
ENCODER = "encoder.safetensors"  # of a run that keeps its encoder
PROGRESS = "progress.safetensors"  # of a run in training
TASKS = "tasks"  # within the folder of a run that trained others' too, a folder of each other task
_DOTTED = {"weights", "of"}  # names that may hold a dot


def key(step: str, names: dict) -> str:
    return PLACES[step].key.format(**names)


def file(step: str, names: dict) -> str:
    """Return the file by which a step's job is known to be done, below the results folder."""
    return PLACES[step].file.format(**names)


def folder(step: str, names: dict) -> str:
    return file(step, names).rpartition("/")[0]


def cell(names: dict) -> str:
    """Return the folder of the runs that differ in their seed alone, below the results folder."""
    return _CELL.format(**names)


def log(step: str, names: dict) -> str:
    return (PLACES[step].log or f"{step}/{PLACES[step].key}").format(**names) + ".log"


def label(step: str, out) -> str:
    """Return a job in words for the lines of its log, as `train cola/all/minilm/linear/full/base/seed1`.

    Args: its step; where it writes. Returns "" for another step, or a path that is none of its results.
    """
    top = top_folders((step,))[0] if step in PLACES else ""
    _, found, place = f"/{out}".rpartition(f"/{top}/")
    return f"{step} {place}" if top and found else ""


def of_seed(seed: int) -> str:
    """Return the folder of a run within that of all its seeds."""
    return f"seed{seed}"


def of_trial(variant: str, trial: int) -> str:
    """Return the variant of a trial of a search. Args: a strategy's variant; the trial's number, from 1."""
    return f"trial{trial}" if variant == "base" else f"{variant}_trial{trial}"


def makers(step: str) -> list[str]:
    """Return the steps that may have made a result of a step, which is where it is whoever made it."""
    return [other for other, place in PLACES.items() if place.file == PLACES[step].file]


def stored_part(store: str, part: int | str) -> str:
    """Return the card of a part of a store. Args: its folder; the number of a boundary, or pooled or words."""
    return f"{store}/b{part}.json" if isinstance(part, int) else f"{store}/{part}.json"


def part_named(word: str) -> int | str:
    """Return a part of a store, the number of a boundary or a name, from itself or from the path of its card."""
    name = PurePath(word).stem.removeprefix("b")
    return int(name) if name.isdecimal() else name


def payload(card: str) -> str:
    """Return what the card of a part of a store, or of its tokens, is about, by its path."""
    stem = card.removesuffix(".json")
    return stem + (".parquet" if stem.endswith("/tokens") else ".safetensors")


def output(folder, step: str, id: str) -> Path:
    """Return the file of a table or figure. Args: the folder of an experiment's outputs; table or figure."""
    return Path(folder, PLACES[step].file.partition("{experiment}/")[2].format(id=id))


def pattern(step: str, **names) -> str:
    """Return the pattern under which the results folder holds the files of all jobs of a step that have these names."""
    return re.sub(r"{(\w+)}", lambda field: str(names.get(field[1], "*")), PLACES[step].file)


def names_in_key(step: str, key: str) -> dict[str, str]:
    """Return the names in a key of a step; raises ValueError where it is none."""
    return _names(PLACES[step].key, key)


def names_in_folder(step: str, path) -> dict[str, str]:
    """Return the names in a folder of a step's results, given below the results folder; ValueError where it is none."""
    return _names(PLACES[step].file.rpartition("/")[0], PurePath(path).as_posix())


def top_folders(steps: tuple[str, ...]) -> list[str]:
    """Return the folders right below the results folder that hold the results of some steps."""
    return list(dict.fromkeys(PLACES[step].file.partition("/")[0] for step in steps))


def results_folder(path: Path, steps: tuple[str, ...]) -> Path | None:
    """Return the results folder above a folder of some steps' results, or of all seeds of a run; None without one."""
    return next((parent.parent for parent in path.parents if parent.name in top_folders(steps)), None)


def weights(encoder: str, further: str = "", corpus: str = "") -> str:
    """Return the name of an encoder's weights: the encoder's, or after further pretraining that with what it read."""
    return ".".join(filter(None, (encoder, further, corpus)))


def encoder_of(weights: str) -> str:
    return weights.partition(".")[0]


def _names(template: str, text: str) -> dict[str, str]:
    match = _expression(template).fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not of the form {template}")
    return match.groupdict()


@cache
def _expression(template: str) -> re.Pattern:
    """Return a template as an expression with a group for each name."""
    parts = re.split(r"{(\w+)}", template)
    texts, names = parts[::2], parts[1::2]
    groups = [f"(?P<{name}>[^/]+)" if name in _DOTTED else f"(?P<{name}>[^/.]+)" for name in names]
    return re.compile("".join(text for pair in zip(map(re.escape, texts), [*groups, ""], strict=True) for text in pair))
