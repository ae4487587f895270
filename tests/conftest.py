"""Fixtures that several tests share: real data and the real encoder where they are at hand, else a clear skip."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import invented
from thaw.core import plugins
from thaw.core.digests import canonical
from thaw.core.versions import VERSIONS
from thaw.outputs.frame.runs_frame import read_runs
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.entry import spec_of

HOME = Path(__file__).parents[1]


def pytest_addoption(parser):
    """Let scripts/contract.py name the part that it tries, and the folders in which it lies."""
    parser.addoption("--part", help="import path of an own part, tried instead of Thaw's own")
    parser.addoption("--catalogues", nargs="*", default=[], help="folders in which it lies")


def pytest_configure(config):
    """Look for own parts in those folders."""
    plugins.set_folders(config.getoption("catalogues"))


def pytest_collection_modifyitems(items):
    """Put the longest file first, so that it does not run alone at the end where several workers share the tests."""
    items.sort(key=lambda item: item.path.name != "test_workflow.py")


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


def run_step(step: str, *arguments, check: bool = True) -> subprocess.CompletedProcess:
    """Run a step as a rule does, in a process of its own."""
    command = [sys.executable, "-m", f"thaw.steps.{step}", *map(str, arguments)]
    environment = {"PYTHONPATH": str(HOME / "scripts"), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="session")
def minilm(tmp_path_factory, catalogue) -> Path:
    """The packaged MiniLM as `fetch` writes it."""
    folder = tmp_path_factory.mktemp("encoders") / "minilm"
    entry = spec_of(catalogue.get("encoders", "minilm", "test"))
    spec = {"version": VERSIONS["fetch"], "encoder": "minilm", "entry": entry}
    run_step("fetch", "--spec", canonical(spec), "--out", folder)
    assert json.loads((folder / "card.json").read_text())["layers"] == 6
    return folder


@pytest.fixture(scope="session")
def invented_results(tmp_path_factory) -> Path:
    """A results folder of invented records, with the runs.csv that `collect` makes of them. Nobody changes it."""
    folder = tmp_path_factory.mktemp("invented")
    invented.write_runs(folder)
    invented.write_cards(folder)
    spec, out = canonical(invented.collect_spec()), folder / "outputs/invented/runs.csv"
    run_step("collect", "--spec", spec, "--results", folder, "--logs", folder / "logs", "--out", out)
    return folder


@pytest.fixture(scope="session")
def invented_frame(invented_results):
    """The runs.csv of the invented records, as all outputs read it."""
    return read_runs(invented_results / "outputs/invented/runs.csv")
