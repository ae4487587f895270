"""What was measured, kept in docs/results/benchmark: the parts as they are, and their tables, which pages show.

scripts/record.py puts the tables into the pages that name them, as it does with those of experiments.
"""

from pathlib import Path

from thaw.core.files import read_json, write_json, write_text

from . import report
from .options import HOME

RECORD = HOME / "docs/results/benchmark"
TABLES = {"seconds": report.seconds, "rows": report.rows}
NESTED = {"planning": ("planning", "dry run"), "target": ("target", "task"), "steps": ("resume", "layers below")}


def keep(out: Path) -> None:
    """Copy all parts that were measured from a folder of results, and write the tables of all parts that are kept."""
    for path in sorted((out / "parts").glob("*.json")):
        write_json(RECORD / "parts" / path.name, read_json(path))
    for name, text in tables().items():
        write_text(RECORD / "tables" / f"{name}.md", text)


def tables() -> dict[str, str]:
    """Return the tables of the parts that are kept, with what they were measured on as their notes."""
    parts = {path.stem: read_json(path) for path in sorted((RECORD / "parts").glob("*.json"))}
    found = {"goals": [*report.goals(report.summarised(parts)), *report.machines(parts)]}
    for name, part in parts.items():
        notes = report.machines({name: part})
        for kind, table in TABLES.items():
            if kind in part:
                found[f"{name}_{kind}"] = [*table(part), *notes]
        if name in report.TABLES:
            found[f"{name}_quality"] = [*report.quality(part["quality"]), *notes]
        if name in NESTED:
            key, of = NESTED[name]
            beside = report.facts({key: value for key, value in part.items() if key == "step"})
            found[name] = [*report.nested(part[key], of), *beside, *notes]
        elif name in report.OF_FACTS:
            found[name] = [*report.facts(part), *notes]
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}
