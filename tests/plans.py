"""Plans of the small experiment of tests/base.yaml, with some of its keys replaced."""

from thaw.core.home import HOME
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.plan import Plan


def plan_of(results: str | None = None, **changes) -> Plan:
    """Return the plan with `changes` of the experiment. Args: results, the folder of all results."""
    return load_plan(read_config([str(HOME / "tests/base.yaml")], changes), HOME, results)


def plan_with(folder, entries: str, **changes) -> Plan:
    """Return the plan of one task with strategies of one's own: entries of a catalogue that is written to a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "strategies.yaml").write_text(f"strategies:\n{entries}")
    usual = {"catalogues": [str(folder)], "tasks": ["acceptability"], "baselines": [], "seeds": [1]}
    return plan_of(**usual | changes)
