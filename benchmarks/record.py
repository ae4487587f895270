"""What was measured, kept in docs/results/benchmark.json: the parts as they are; and their tables.

`PYTHONPATH=scripts python -m benchmarks record table table_fp32` measures nothing: it keeps what was last measured of
the parts that it names, and of no others, since results/bench/parts may also hold those of trials and of earlier code.
It says with what each was measured. `python scripts/record.py` then writes the tables into docs/results/performance.md.
"""

import re
import sys

from thaw.core.files import read_json, write_json

from . import report
from .options import HOME, Options

RECORD = HOME / "docs/results/benchmark.json"
NESTED = {"planning": ("planning", "dry run"), "memory": ("memory", "sentences")}
NESTED |= {"cold": ("cold", "process"), "all_layers": ("gaps", "side")}
NESTED["few_labels"] = ("few_labels", "labels a class")
NESTED |= dict.fromkeys(("steps", "steps_fp32"), ("resume", "layers below"))
MOMENTS = {"advise": ("advise", "until"), "single": ("first_result", "first result, as the")}


def keep(names: list[str], options: Options) -> None:
    """Keep some parts as they were last measured.

    A part that is kept with another number of rows, or from a processor of another maker, stays, and this one is kept
    next to it, as table_1000 or table_amd. Prints with what they were measured. Exits with a message, and keeps
    nothing, where one was not measured, or by code that no commit has.
    """
    if missing := [name for name in names if not options.part(name).exists()]:
        sys.exit(f"{missing[0]} was not measured: there is no {options.part(missing[0])}")
    parts = {name: read_json(options.part(name)) for name in names}
    for name, part in parts.items():
        if "-dirty" in part["machine"].get("thaw", ""):
            sys.exit(f"{name} was measured by {part['machine']['thaw']}; commit the changes and measure it again")
    kept = read_json(RECORD)
    for name, part in parts.items():
        kept[_place(name, part, kept)] = part
    write_json(RECORD, kept)
    for line in report.machines(parts):
        print(line)


def _place(name: str, part: dict, kept: dict) -> str:
    """Return where a part is kept: by its name, with its rows and processor where another one has that name."""
    known = kept.get(name, part)
    rows = [str(part["options"]["rows"])] if part["options"]["rows"] != known["options"]["rows"] else []
    return "_".join([name, *rows, *([_maker(part)] if _maker(part) != _maker(known) else [])])


def _maker(part: dict) -> str:
    """Return who made the processor, or the first letters of its name; `noamx` is Intel without AMX.

    Records of November 2026 do not say it: their Intel has AMX.
    """
    name = part["machine"]["cpu"].lower()
    maker = (re.search("intel|amd|apple", name) or re.search("[a-z]+", name))[0]
    return maker if maker != "intel" or part["machine"].get("amx", True) else "noamx"


def _goals(parts: dict) -> list[str]:
    """Return the table of goals, without those that no part here has measured."""
    summary = report.summarised(parts)
    summary["goals"] = {key: goal for key, goal in summary["goals"].items() if goal["met"] is not None}
    return report.goals(summary)


def tables() -> dict[str, str]:
    """Return the tables of the parts that are kept, with what they were measured on as their notes."""
    parts = read_json(RECORD)
    others = {name: parts.pop(name) for name in list(parts) if name.rpartition("_")[2] == _maker(parts[name])}
    notes = report.machines(parts)
    found = {"goals": [*_goals(parts), *notes], "ratios": [*report.ratios(parts), *notes]}
    for maker in {_maker(part) for part in others.values()}:
        of = {name.removesuffix(f"_{maker}"): part for name, part in others.items() if _maker(part) == maker}
        found |= {f"goals_{maker}": [*_goals(of), *report.machines(of)], f"ratios_{maker}": report.ratios(of)}
    for name, part in parts.items():
        notes = report.machines({name: part})
        if "seconds" in part:
            found[f"{name}_seconds"] = [*report.seconds(part), *notes]
        if part["part"] in report.OF_STRATEGIES:
            found[f"{name}_rows"] = [*report.rows(part), *notes]
        if part["part"] in report.OF_QUALITY:
            found[name if name == "quality" else f"{name}_quality"] = [*report.quality(part["quality"]), *notes]
        if NESTED.get(part["part"], [None])[0] in part:
            key, of = NESTED[part["part"]]
            beside = report.facts({key: value for key, value in part.items() if key == "step"})
            found[name] = [*report.nested(part[key], of), *beside, *notes]
        elif part["part"] in report.OF_FACTS:
            found[name] = [*report.facts(part), *notes]
        if part["part"] == "growth":
            found[name] = [*report.growth(part["growth"]), *notes]
        if part["part"] == "lengths":
            kinds = {"seconds": "seconds", "engine": "engine_seconds"}
            found |= {f"{name}_{of}": [*report.lengths(part["lengths"], kind), *notes] for of, kind in kinds.items()}
    for name, part in (parts | others).items():
        if (moments := MOMENTS.get(part["part"])) and moments[0] in part:
            found[name] = [*report.moments(part[moments[0]], moments[1]), *report.machines({name: part})]
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}
