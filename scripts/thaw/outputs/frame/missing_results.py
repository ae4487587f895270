"""Why a result is not there: what the logs of the jobs behind it say."""

import re
from pathlib import Path

from thaw.core.files import read_json
from thaw.outputs import wording

ERROR = re.compile(r"^(?:error|[\w.]*Error): (.+)$", flags=re.MULTILINE)


def reason(result, task: dict, logs, budget: dict[str, str]) -> str:
    """Return the last error in the log of a result's job, else in those of the jobs before it, else `not run`.

    Args: result as `collection.selected` gives it; its task's entry of the spec; logs, the folder of all logs; what
    `budget` returns.
    """
    for name in _jobs(result, task):
        path = Path(logs, f"{name}.log")
        found = ERROR.findall(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else []
        if found:
            return f"{name.partition('/')[0]}: {found[-1].strip()}"
    why = budget.get(result.folder.rpartition("/")[0], budget.get("", ""))
    return f"{wording.NOT_RUN}: {why}" if why else wording.NOT_RUN


def _jobs(result, task: dict) -> list[str]:
    """Return the logs of the jobs that lead to a result, without their ending, its own first."""
    encoders = dict.fromkeys(store.split("/")[1].partition(".")[0] for store in result.stores.values())
    return [
        *(name for folder in [result.folder, *result.after] for name in _own(folder)),
        *result.stores.values(),
        f"prepare/{task['corpus']}",
        *(f"fetch/{encoder}" for encoder in encoders),
    ]


def _own(folder: str) -> list[str]:
    """Return the logs that the jobs of a folder may have: a run was trained, or its seeds at once after a search."""
    room, _, rest = folder.partition("/")
    if room == "encoders":
        return [f"pretrain/{rest}"]
    if room == "runs":
        cell = rest.rpartition("/")[0]
        return [f"train/{rest}", f"fit_heads/{cell}", f"search_heads/{cell}"]
    return [f"{room.removesuffix('s')}/{rest}"]


def budget(spec: dict, results) -> dict[str, str]:
    """Return by folder of a cell why it was given up where time was limited, and under "" why others were not run.

    Args: spec as step `collect` gets it; the results folder, where scripts/budget.py leaves its record.
    """
    if "budget" not in spec:
        return {}
    path = Path(results, "outputs", spec["experiment"], "budget.json")
    given_up = read_json(path)["hopeless"] if path.exists() else {}
    return {"": f"budget of {spec['budget']}"} | given_up
