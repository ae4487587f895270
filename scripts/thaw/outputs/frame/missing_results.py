"""The reason why a result is missing, from the logs of its jobs."""

import re
from pathlib import Path

from thaw.core import layout
from thaw.words import wording

ERROR = re.compile(r"^(?:error|[\w.]*Error): (.+)$", flags=re.MULTILINE)


def reason(result, task: dict, logs) -> str:
    """Return the last error in the log of a result's job, else in those of the jobs before it, else `not run`.

    Args: result as `collection.selected` gives it; its task's entry of the spec; logs, the folder of all logs.
    """
    for name in _logs(result, task):
        path = Path(logs, name)
        errors = ERROR.findall(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else []
        if errors:
            return f"{name.partition('/')[0]}: {errors[-1].strip()}"
    return wording.NOT_RUN


def _logs(result, task: dict) -> list[str]:
    """Return the logs of the jobs that lead to a result, its own first."""
    stores = [layout.names_in_folder("features", store) for store in result.stores.values()]
    encoders = dict.fromkeys(layout.encoder_of(names["weights"]) for names in stores)
    made = [(result.step, result.names), *((need.step, need.names) for need in reversed(result.needs))]
    return [
        *(layout.log(step, names) for first, names in made for step in layout.makers(first)),
        *(layout.log("features", names) for names in stores),
        layout.log("prepare", {"corpus": task["corpus"]}),
        *(layout.log("fetch", {"encoder": encoder}) for encoder in encoders),
    ]
