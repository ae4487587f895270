"""Sign off a step's code: write its digest and VERSION into tests/digests.json.

python scripts/sign_off.py                 all steps
python scripts/sign_off.py train collect   these steps only

Do this after a change that leaves the results of a step as they are, or after its VERSION was raised because
they change, or that of one kind of probe, head or rule (thaw/declarations, core/branch_choice). tests/test_house.py
asks for it.
"""

import argparse

from code_digests import RECORD, step_digest
from thaw.core.files import read_json, write_json
from thaw.core.steps import STEPS


def main() -> None:
    """Record the digests of the steps named on the command line and print what that says of their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help="names of steps; all where none is given")
    steps = parser.parse_args().steps or list(STEPS)
    for step in steps:
        if step not in STEPS:
            parser.error(f"{step} is no step; there are {', '.join(STEPS)}")
    record = read_json(RECORD) if RECORD.exists() else {}
    record = {step: entry for step, entry in record.items() if step in STEPS}
    for step in steps:
        before, now = record.get(step), {"code": step_digest(step), "version": STEPS[step].version}
        record[step] = now
        print(f"{step}: {_said(before, now)}")
    write_json(RECORD, record)


def _said(before: dict | None, now: dict) -> str:
    """Say in words what signing off means for a step."""
    if before is None:
        return "recorded for the first time"
    if before["version"] != now["version"]:
        return f"VERSION raised from {before['version']} to {now['version']}; all its results are made again"
    if before["code"] != now["code"]:
        return (
            "its code changed; you say that its results stay as they are, but for kinds of probe, head or rule with a "
            "raised version"
        )
    return "unchanged"


if __name__ == "__main__":
    main()
