"""Where Thaw's own files are, and which Thaw this is: in a checkout, or installed from a wheel."""

import subprocess
from functools import cache
from pathlib import Path

import thaw

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parents[1]
IN_CHECKOUT = (CHECKOUT / "Snakefile").is_file()
HOME = CHECKOUT if IN_CHECKOUT else PACKAGE / "home"  # holds Snakefile, workflow/ and config/; pyproject.toml maps them
PLUGINS = HOME / "config" / "papers" / "plugins"  # the modules of thaw.papers


@cache
def release() -> str:
    """Return the version, in a git checkout with its commit: `1.0.0 (d1a42aa-dirty)`."""
    described = _described() if IN_CHECKOUT and (CHECKOUT / ".git").exists() else ""
    return f"{thaw.__version__} ({described})" if described else thaw.__version__


def _described() -> str:
    """Return the commit and whether code differs from it; empty where git does not say.

    Documents and catalogues do not count: the spec of a result holds the settings that it depends on.
    """
    try:
        changed = _git("diff", "--name-only", "HEAD", "--", "scripts", "workflow", "Snakefile", str(PLUGINS))
        return _git("describe", "--always") + "-dirty" * bool(changed)
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*words: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
