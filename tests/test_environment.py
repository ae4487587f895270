"""requirements.txt and environment.yml hold the same pins, and these are the versions at work here."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "requirements.txt").read_text().splitlines()
PINS = [line.strip() for line in LINES if line.strip() and not line.startswith("#")]


def conda_dependencies() -> list:
    return yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]


def test_every_requirement_is_pinned_and_listed_once():
    assert [pin for pin in PINS if not re.fullmatch(r"[A-Za-z0-9_-]+==[0-9][0-9a-z.]*", pin)] == []
    names = [pin.partition("==")[0].lower() for pin in PINS]
    assert len(set(names)) == len(names)


def test_torch_stands_first():
    assert PINS[0].startswith("torch==")


def test_conda_installs_the_same_pins_in_the_same_order():
    pip = next(entry["pip"] for entry in conda_dependencies() if isinstance(entry, dict))
    assert pip == PINS


def test_the_package_needs_the_same_pins_and_those_of_tests_are_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] + project["optional-dependencies"]["dev"] == PINS
    tests = LINES.index(next(line for line in LINES if line.startswith("# Tests")))
    assert project["dependencies"] == [pin for pin in PINS if LINES.index(pin) < tests]


def test_conda_takes_python_3_11_and_pip_from_conda_forge_alone():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["channels"] == ["conda-forge"]
    assert [entry for entry in conda_dependencies() if isinstance(entry, str)] == ["python=3.11", "pip"]


@pytest.mark.parametrize("pin", PINS)
def test_installed_version_is_the_pinned_one(pin):
    name, _, wanted = pin.partition("==")
    installed = importlib.metadata.version(name).partition("+")[0]  # 2.13.0+cpu is a build of 2.13.0
    assert installed == wanted, f"{name} {installed} is installed; the pin is {wanted}"
