"""The house only gets smaller: tests/ratchet.json holds its sizes and mypy's errors, and each may fall, not rise.

A number that fell is written by the test itself. Whoever must raise one edits the file and says why beside it, as the
second value, in the same commit.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from thaw.core.files import write_json

HOME = Path(__file__).parents[1]
RECORD = HOME / "tests/ratchet.json"
TYPED = [
    "api",
    "cli",
    "core",
    "declarations",
    "decision",
    "evaluation",
    "merging",
    "outputs",
    "planning",
    "schema",
    "statistics",
    "words",
]  # packages without an error of mypy, for good


def files(folder: str, pattern: str) -> list[Path]:
    """Return the files of a folder of the checkout that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", folder],
        cwd=HOME,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [HOME / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.match(pattern) and path.exists()]


def lines(folder: str) -> int:
    return sum(len(path.read_text().splitlines()) for path in files(folder, "*.py"))


def sizes() -> dict[str, int]:
    """Return the sizes that the ratchet holds, counted in the checkout."""
    package = files("scripts/thaw", "*.py")
    return {
        "package: lines": lines("scripts/thaw"),
        "package: files": len(package),
        "plug-ins of papers: lines": lines("config/papers/plugins"),
        "tests: lines": lines("tests"),
        "docs: files": len(files("docs", "*")),
        'package: places that read spec["': sum(path.read_text().count('spec["') for path in package),
        "package: modules that name student": sum(
            bool(re.search(r"\bstudent\b", path.read_text())) for path in package
        ),
    }


def type_errors() -> dict[str, int]:
    """Return the number of mypy's errors in each package of scripts/thaw."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "scripts/thaw"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^scripts/thaw/(\w+)/.*?: error: ", done.stdout, flags=re.MULTILINE)
    packages = {path.parent.name for path in (HOME / "scripts/thaw").glob("*/__init__.py")}
    return {f"mypy: {name}": Counter(found)[name] for name in sorted(packages)}


@pytest.mark.skipif(not (HOME / ".git").exists(), reason="sizes are counted in a checkout")
def test_no_number_rises():
    found = type_errors()
    assert not {name: found[f"mypy: {name}"] for name in TYPED if found[f"mypy: {name}"]}
    now, record = sizes() | found, json.loads(RECORD.read_text())
    before = {key: record.get(key, [0])[0] for key in now}
    risen = {key: f"{before[key]} -> {count}" for key, count in now.items() if count > before[key]}
    assert not risen, f"make room, or raise the number in tests/ratchet.json and say why beside it: {risen}"
    kept = {key: [count, record[key][1] if key in record else ""] for key, count in now.items()}
    if kept != record:
        write_json(RECORD, kept)
