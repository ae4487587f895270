"""Table: how far each setting of a search is below the best of a task, and over tasks (Peters et al. 2019, on ELMo)."""

from thaw.declarations.output_kind import OutputKind, Requirement

TABLES = {
    "settings_table": OutputKind(
        "thaw.papers.settings_over_tasks:build",
        "points on validation that each setting of a search is below the best of its task, and the mean over tasks",
        needs=(Requirement.SEARCH,),
    ),
}


from collections.abc import Iterator

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.phrases import written
from thaw.declarations.needs import NEEDS
from thaw.outputs.frame.probe_frame import Names
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.render.typed_table import Cell, Group, Row, Table
from thaw.schema.strategy import written_key

OF_SEARCH = ["subset", "encoder", "head", "strategy", "variant"]
NOTES = [
    "Points × 100 on validation that a setting is below the best of its task. Bold: the best of a column.",
    "Mean: over the tasks that searched it. The lowest is what one setting for all tasks costs.",
]


def build(data, spec: dict) -> Table:
    """Return a row for each setting, a column for each task, in a group for each search."""
    import pandas

    lines = []
    for cell, made in searches(data):
        for trial in made["trials"]:
            setting = ", ".join(f"{written_key(key)} {written(value)}" for key, value in trial["settings"].items())
            score = {"setting": setting, "score": 100 * (trial["mean"] or 0.0)}
            lines.append(dict(zip(CELL, cell, strict=True)) | score)
    if not lines:
        raise UserError("a settings_table needs a strategy with a search: of its own")
    frame = pandas.DataFrame(lines)
    frame["below"] = frame.groupby(CELL)["score"].transform("max") - frame["score"]
    names, tasks, groups = Names(spec, frame), list(frame["task"].unique()), []
    for key, part in frame.groupby(OF_SEARCH, sort=False):
        wide = part.pivot_table("below", "setting", "task", sort=False).reindex(columns=tasks)
        wide["mean"] = wide.mean(axis=1)
        of, lowest = dict(zip(OF_SEARCH, key, strict=True)), wide.min()
        rows = []
        for setting, row in wide.iterrows():
            cells = [Cell(value, best=value == lowest[of_column]) for of_column, value in row.items()]
            rows.append(Row(setting, cells, part[part["setting"] == setting].round(6).to_dict("records")))
        title = [names.of("strategy", of["strategy"]), *names.several(of, "subset", "encoder", "head", "variant")]
        groups.append(Group(", ".join(title), rows))
    titles = [*(names.of("task", task) for task in tasks), "Mean"]
    return Table.of_spec(spec, titles, groups, NOTES, of="Setting")


def searches(data) -> Iterator[tuple[tuple, dict]]:
    """Yield by cell the record of its own search, which has trials."""
    runs = data.runs
    present = runs[(runs["kind"] == "run") & (runs["missing"] == "")]
    for row in present.drop_duplicates(CELL).to_dict("records"):
        run = data.folder(row)
        search = NEEDS["settings"]
        record, digest = run.parent / search.file, search.stated(read_json(run / "metrics.json")["spec"])
        made = read_json(record) if digest and record.exists() else {}
        if made.get("digest") == digest and made.get("trials"):
            yield tuple(row[name] for name in CELL), made
