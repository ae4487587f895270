"""A finished run as its folder shows it, and all that it was made from, located by the digests in its spec."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import computes_layers
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.phrases import listing
from thaw.core.plugins import is_plugin
from thaw.data.corpus import Corpus
from thaw.declarations.heads import EXPORTED
from thaw.declarations.needs import NEEDS, stated_needs
from thaw.declarations.task_types import TARGET_OF_TYPE
from thaw.encoders.registry import builtin_kind
from thaw.evaluation.result_files import whole_task
from thaw.schema.corpora import ViewConfig
from thaw.schema.head import HeadConfig, boundaries_read
from thaw.schema.student import kept_layers


def result_with(results: Path, step: str, digest: str, what: str) -> Path:
    """Return the file of a step's result that carries a digest; none is a UserError. Args: what, for its message."""
    pattern = layout.pattern(step)
    for file in sorted(results.glob(pattern)):
        if read_json(file).get("digest") == digest:
            return file
    raise UserError(f"{results}/{pattern}: none has digest {digest}, the {what} of this run; run the workflow again")


@dataclass(frozen=True)
class Refit:
    """What a run trains, trained once more: the folder of its tensors and predictions; rows that it saw, by split.

    layers: whether layers of the encoder are among it.
    """

    folder: Path
    rows: dict[str, int]
    layers: bool = False


@dataclass(frozen=True)
class FinishedRun:
    """A run that is to be exported."""

    run: Path  # its folder
    results: Path  # the folder of all results
    metrics: dict
    encoder: Path  # the folder that fetch wrote
    corpus: Corpus
    view: ViewConfig
    features: Path  # the folder of the store that it read
    refit: Refit | None = None

    @property
    def made(self) -> Path:
        """The folder of its head's tensors and of its predictions."""
        return self.refit.folder if self.refit else self.run

    @property
    def layers(self) -> Path:
        return self.made if self.refit and self.refit.layers else self.run

    @cached_property
    def spec(self) -> dict:
        return self.metrics["spec"]

    @cached_property
    def task(self) -> dict:
        """The run's task with every default filled in."""
        return whole_task(self.spec)

    @property
    def folds(self) -> int | None:
        """The number of folds by which its settings were chosen, None where validation chose."""
        return self.metrics.get("folds", {}).get("number")

    @property
    def target(self) -> str:
        return TARGET_OF_TYPE[self.task["type"]]

    @cached_property
    def labels(self) -> list[str]:
        """The labels or tags in the order of the head's outputs; none for a score."""
        return self.corpus.labels(self.task["target"])

    @cached_property
    def head(self) -> HeadConfig:
        """The settings of the head, on the layer that validation chose where it did."""
        return HeadConfig.of_run(self.spec, self.metrics["chosen"])

    @cached_property
    def reads(self) -> str:
        """What one example is: a text, a pair, or words."""
        return "words" if self.corpus.words else "pair" if len(self.corpus.texts) == 2 else "text"

    @cached_property
    def read(self) -> list[int]:
        read, every = self.head.layers.reads(self.spec["layers"]), range(1, self.spec["layers"] + 1)
        return [len([layer for layer in self.kept or every if layer <= n]) for n in read]

    @property
    def kept(self) -> list[int] | None:
        """The layers of the encoder that are kept; None for all."""
        return kept_layers(self.spec)

    @property
    def separate_encoding(self) -> bool:
        return self.view.pairs == "separate"

    @property
    def pooling(self) -> str | Sequence[str]:
        return self.head.separate_pooling if self.separate_encoding else self.head.pooling


def refit_text(rows: dict[str, int], folds: int | None, layers: bool) -> str:
    """Say on which rows a model was trained once more.

    Args: their number by split; the number of folds by which settings were chosen, None where validation chose; whether
    layers of the encoder trained.
    """
    what = "layers and head were trained" if layers else "the head was fitted"
    chose = f"{folds}-fold cross-validation" if folds else "validation"
    settings = "the same settings" if layers else f"the settings that {chose} chose"
    parts = listing(f"{count} of {split}" for split, count in rows.items())
    return f"{what} once more on {sum(rows.values())} rows ({parts}), with {settings}"


def finished(run: Path) -> tuple[Path, Path, dict]:
    """Return the folder of a finished run, that of all results, and what its metrics.json has; none is a UserError."""
    named, run = run, run.absolute()
    results = layout.results_folder(run, ("train",))
    if results is None or not (run / "metrics.json").is_file():
        seeds = [path.parent.name for path in sorted(run.glob("seed*/metrics.json"))]
        held = f"; it holds {listing(seeds)}, of which one is meant" if seeds else ""
        raise UserError(f"{named} is no finished run: expected a folder of {layout.file('train', layout.SHOWN)}{held}")
    return run, results, read_json(run / "metrics.json")


def open_run(run: Path) -> FinishedRun:
    """Return a run with what it was made from; whatever can not be exported is a UserError that says why."""
    run, results, metrics = finished(run)
    check_exported(run, metrics)
    spec = metrics["spec"]
    data, encoder = dataset_and_encoder(results, spec)
    if builtin_kind(encoder):
        raise UserError(f"{run}: transformers has no such model as {encoder.name}, and export writes for it alone")
    features, card = _features(results, metrics)
    _check_kept(run, metrics)
    return FinishedRun(
        run, results, metrics, encoder, Corpus(data), ViewConfig.model_validate(card["settings"]), features
    )


def dataset_and_encoder(results: Path, spec: dict) -> tuple[Path, Path]:
    """Return the folders of the dataset and of the encoder that a run was made from."""
    data = result_with(results, "prepare", spec["data"], "dataset")
    return data.parent, result_with(results, "fetch", spec["encoder"], "encoder").parent


def check_exported(run: Path, metrics: dict) -> None:
    """Refuse a diverged run, and a head that no export has."""
    spec = metrics["spec"]
    if "diverged" in metrics["flags"]:
        raise UserError(f"{run}: its training diverged, and there is no model to keep; export another run")
    if is_plugin(spec["head"]["kind"]):
        raise UserError(
            f"{run}: its head is {spec['head']['kind']}, a plug-in; export supports only Thaw's own heads. "
            "Load encoder.safetensors and head.safetensors of the run in your own code"
        )
    if spec["head"]["kind"] not in EXPORTED:
        raise UserError(
            f"{run}: its head is {spec['head']['kind']}; export knows {' and '.join(EXPORTED)}. "
            "head.safetensors of the run holds its tensors, thaw.heads.registry builds it"
        )


class LayersNotKept(UserError):
    """A run trained layers and did not keep them."""


def _check_kept(run: Path, metrics: dict) -> None:
    spec = metrics["spec"]
    trained = list(dict.fromkeys(name for phase in spec["phases"] for name in phase["components"] if name != "head"))
    goes_on = any(NEEDS[role].gives_weights for role in stated_needs(spec))
    highest = boundaries_read(spec)[-1]
    if goes_on and any(computes_layers(phase["boundary"], highest) for phase in spec["phases"]):
        trained = trained or ["layers in the run that it started from"]
    if trained and not (run / layout.ENCODER).is_file():
        cost = read_json(run / "cost.json")
        minutes, size = cost["seconds"]["total"] / 60, cost["parameters"]["trained"] * 4 / 2**20
        raise LayersNotKept(
            f"{run}: its strategy trained {', '.join(trained)} and did not keep them; `thaw export {run} DIR` trains "
            f"this run again and keeps them ({minutes:.1f} minutes, about {size:.0f} MiB of disk). With keep: true in "
            "the strategy's entry in strategies.yaml all its runs do"
        )


def _features(results: Path, metrics: dict) -> tuple[Path, dict]:
    expected = metrics["spec"]["features"]
    if isinstance(expected, list):
        joint, separate = expected
        expected = separate if metrics["chosen"]["pairs"] == "separate" else joint
    folder = result_with(results, "features", expected, "store of features").parent
    return folder, read_json(folder / "tokens.json")


def require_new(target: Path) -> None:
    """Raise UserError where a file, or a folder with something in it, is there."""
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UserError(f"{target} is there already; name a folder that is new or empty")


@contextlib.contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Give a temporary folder next to the target; it takes the target's place on success, and goes on any error."""
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield folder
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        if target.is_dir():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            os.replace(target, old)  # a folder with files can not be replaced in one step
            os.replace(folder, target)
            shutil.rmtree(old)
        else:
            os.replace(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def command_of(spec: dict, results: Path, catalogues: Sequence[Path]) -> list[str]:
    """Return the command of step `train` for a spec, without --out: all that it reads is located by its digests."""
    features = spec["features"] if isinstance(spec["features"], list) else [spec["features"]]
    data, encoder = dataset_and_encoder(results, spec)
    command = [sys.executable, "-m", "thaw.steps.train", "--spec", canonical(spec)]
    command += ["--data", str(data), "--encoder", str(encoder), "--features"]
    command += [str(result_with(results, "features", digest, "store of features").parent) for digest in features]
    command += ["--catalogues", *map(str, catalogues)]
    for role, digest in stated_needs(spec).items():
        made = result_with(results, NEEDS[role].step, digest, f"result that it needs ({role})")
        command += ["--need", role, str(made)]
    also = [*spec.get("also", []), *spec.get("auxiliary", [])]
    others = [result_with(results, "prepare", entry["data"], "dataset") for entry in also for _ in entry["features"]]
    tokens = [result_with(results, "features", one, "store of features") for entry in also for one in entry["features"]]
    return [*command, "--also-data", *map(str, others), "--also-tokens", *map(str, tokens)]
