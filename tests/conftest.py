"""Fixtures that several tests share: real data and the real encoder where they are available, else a clear skip."""

import contextlib
import fcntl
import gc
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import forked
import invented
from browser import Browser
from thaw.core import plugins
from thaw.core.digests import canonical
from thaw.core.steps import STEPS
from thaw.outputs.frame.runs_frame import read_runs
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.entry import spec_of
from workflow import activated, fork_servers

HOME = Path(__file__).parents[1]
MESSAGES = json.loads((HOME / "tests/messages.json").read_text(encoding="utf-8"))  # sentences of mistakes, by place
SECONDS = HOME / "tests/seconds.json"  # what each file of tests took when this was last recorded


def pytest_addoption(parser):
    """Let an author name the part that the contracts try, and the folders in which it lies."""
    parser.addoption("--part", help="import path of an own part, tried instead of Thaw's own")
    parser.addoption("--update-messages", action="store_true", help="write tests/messages.json anew; needs -n 0")
    parser.addoption("--record-seconds", action="store_true", help="write into tests/seconds.json what files take")
    # absolute, since tests run in a folder of their own
    parser.addoption("--catalogues", nargs="*", type=os.path.abspath, default=[], help="folders in which it lies")


def pytest_configure(config):
    """Look for plug-ins in those folders, and hide a card: tests for one are in quality/gpu."""
    gc.set_threshold(100_000, 50, 100)  # else a tenth of the time goes into looking through all libraries again
    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # a pool of threads for 50 tiny tensors takes a fifth of a loading
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if config.getoption("record_seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
    plugins.set_folders(config.getoption("catalogues"))
    activated()  # as it is before libraries are imported


class Recorder:
    """Adds up the seconds of each file of tests, and writes them beside those of the files that did not run."""

    def __init__(self):
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        """Add a set-up, a call or a tear-down to its file."""
        self.seconds[Path(report.nodeid.partition("::")[0]).name] += report.duration

    def pytest_sessionfinish(self):
        """Write all seconds, without those of files that are gone."""
        found = known_seconds() | {name: round(seconds, 1) for name, seconds in self.seconds.items()}
        there = {path.name for path in SECONDS.parent.rglob("test_*.py")}
        text = json.dumps({name: found[name] for name in sorted(found) if name in there}, indent=1)
        SECONDS.write_text(f"{text}\n", encoding="utf-8")


def known_seconds() -> dict[str, float]:
    """Return by file of tests the seconds that it took; a contract may be tried where none are recorded."""
    return json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.exists() else {}


def pytest_collection_modifyitems(config, items):
    """Put files that run workflows first, whose tests build on each other, then the file that takes longest.

    A worker that has nothing left takes tests from the end of another's, so that the last ones should be short.
    """
    seconds = known_seconds()
    items.sort(key=lambda item: (not hasattr(item.module, "Workplace"), -seconds.get(item.path.name, 1e9), item.path))


def pytest_collection_finish():
    """Let no collection of garbage look through what is imported and collected by now."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def working_folder(tmp_path_factory):
    """Let all tests run in one empty folder: `results`, `logs` and `.snakemake` of the checkout are not theirs."""
    with contextlib.chdir(tmp_path_factory.mktemp("empty")):
        yield


@pytest.fixture
def recorded(request):
    """A function that compares a sentence with that of a mistake in MESSAGES, or puts it there (--update-messages)."""

    def same(where: str, mistake: str, sentence: str) -> None:
        if request.config.getoption("--update-messages"):
            MESSAGES[where][mistake] = sentence
            text = json.dumps(MESSAGES, indent=1, ensure_ascii=False)
            (HOME / "tests/messages.json").write_text(f"{text}\n", encoding="utf-8")
        else:
            assert sentence == MESSAGES[where][mistake], "if it is meant: --update-messages, and read the difference"

    return same


@pytest.fixture(scope="session")
def home() -> Path:
    """The repository's root."""
    return HOME


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, which do not belong to the repository."""
    folder = HOME.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real data sets in ../shared/data, which are not part of the repository")
    return folder


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The shipped catalogues."""
    return Catalogue(shipped(HOME))


@pytest.fixture(scope="session")
def named_files(tmp_path_factory, catalogue) -> Path:
    """A data folder of empty files at all paths that the catalogue names: planning only asks which are there."""

    def make(folder: Path) -> None:
        for name in catalogue.ids("corpora"):
            files = catalogue.get("corpora", name, "test").files
            for path in files.splits.values() if files else ():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).touch()

    return made_once(tmp_path_factory, "named_files", make)


def run_step(step: str, *arguments, check: bool = True) -> subprocess.CompletedProcess:
    """Run a step as a rule does, in a process of its own."""
    environment = {"PYTHONPATH": str(HOME / "scripts"), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    environment |= {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ}
    done = forked.run([f"thaw.steps.{step}", *arguments], environment=environment)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture
def forked_steps(monkeypatch):
    """Let a command that runs a step as a program fork it: a new Python imports torch for five seconds."""

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess:
        assert command[:2] == [sys.executable, "-m"] and not check
        return forked.run(command[2:])

    monkeypatch.setattr(subprocess, "run", run)


def made_once(tmp_path_factory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that `make` fills for all workers of a session: the first that asks makes it, the others wait."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = base / "shared" / name, base / "shared" / f"{name}.done"
    done.parent.mkdir(exist_ok=True)
    with done.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def servers():
    """The address of servers that fork the jobs of all workflows."""
    with fork_servers() as address:
        yield address


@pytest.fixture(scope="session")
def minilm(tmp_path_factory, catalogue) -> Path:
    """The packaged MiniLM as `fetch` writes it. Nobody changes it."""

    def make(folder: Path) -> None:
        entry = spec_of(catalogue.get("encoders", "minilm", "test"))
        spec = {"version": STEPS["fetch"].version, "encoder": "minilm", "entry": entry}
        run_step("fetch", "--spec", canonical(spec), "--out", folder)
        assert json.loads((folder / "card.json").read_text())["layers"] == 6

    return made_once(tmp_path_factory, "minilm", make)


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, Path]:
    """By family a folder with a small encoder of three layers. Nobody changes it."""
    from tiny import FAMILIES, tiny_encoder

    def make(folder: Path) -> None:
        for family in FAMILIES:
            tiny_encoder(family, folder / family)

    folder = made_once(tmp_path_factory, "families", make)
    return {family: folder / family for family in FAMILIES}


@pytest.fixture(scope="session")
def invented_results(tmp_path_factory) -> Path:
    """A results folder of invented records, with the runs.csv that `collect` makes of them. Nobody changes it."""

    def make(folder: Path) -> None:
        invented.write_runs(folder)
        invented.write_cards(folder)
        spec, out = canonical(invented.collect_spec()), folder / "outputs/invented/runs.csv"
        run_step("collect", "--spec", spec, "--results", folder, "--logs", folder / "logs", "--out", out)

    return made_once(tmp_path_factory, "invented", make)


@pytest.fixture(scope="session")
def invented_frame(invented_results):
    """The runs.csv of the invented records, as all outputs read it."""
    return read_runs(invented_results / "outputs/invented/runs.csv")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium of a profile of its own, for the reports of a module."""
    chromium = Browser(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()
