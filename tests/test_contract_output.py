"""The contract of an output, tried for every kind that is declared: a new kind is tried without a line here."""

import copy
import json
import os
import subprocess
import sys

import numpy as np
import pandas
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from output_records import OutputRecords
from thaw.declarations.output_kind import FORMATS, Requirement
from thaw.declarations.outputs import OUTPUTS, step_of
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.figures.panels import Figure
from thaw.outputs.render import table_formats
from thaw.outputs.render.typed_table import Table
from thaw.papers import merged_load
from workflow import HOME

TEXTS = {"table": list(FORMATS["table"]), "figure": [".svg", ".csv", ".json"]}  # PDF and PNG have a test of their own
LONG = "features, Peters et al."  # after a name, as those of papers' strategies are
FIGURES = [kind for kind in OUTPUTS if step_of(kind) == "figure"]
PROBED = [kind for kind in OUTPUTS if Requirement.PROBES in OUTPUTS[kind].needs]


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> OutputRecords:
    """All that every kind is drawn from. Nobody changes it."""
    return OutputRecords(tmp_path_factory.mktemp("records"))


def built(records: OutputRecords, kind: str, **changes) -> Table | Figure:
    """Return the output of a kind; `changes` replace what its data hold."""
    data = records.data(kind)
    for name, value in changes.items():
        setattr(data, name, value)
    return OUTPUTS[kind].load()(data, long_named(records, kind))


def long_named(records: OutputRecords, kind: str) -> dict:
    """Return the spec of an output whose names are long."""
    spec = records.spec(kind)
    labels = {block: {id: f"{name} ({LONG})" for id, name in names.items()} for block, names in spec["labels"].items()}
    return spec | {"labels": labels}


def write(made: Table | Figure, prefix) -> None:
    """Write a table, or of a figure what is text: how it becomes PDF and PNG is the same for all."""
    if isinstance(made, Figure):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(panels, "METADATA", {"svg": panels.METADATA["svg"]})
            made.write(prefix)
    else:
        table_formats.write(made, prefix)


def assert_drawn(made: Table | Figure) -> None:
    """Assert that an output says something, in each format where it is text."""
    if isinstance(made, Figure):
        assert made.drawn.get_axes() and made.records
    else:
        assert all(written(made) for written in table_formats.FORMATS.values()) and made.records()


# Draws all kinds in another process, the first figure in all forms: how PDF and PNG are written is the same for all.
DRAWN_ELSEWHERE = """
import json, sys
from thaw.declarations.outputs import OUTPUTS
from thaw.outputs.figures import panels
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.steps import figure, table

results, runs, folder, jobs = json.load(sys.stdin)
for kind, spec, probes, merges in jobs:
    made = OUTPUTS[kind].load()(OutputData(results, runs, probes, merges=merges), spec)
    if isinstance(made, panels.Figure):
        made.write(folder + kind)
        panels.METADATA = {"svg": panels.METADATA["svg"]}
    else:
        table_formats.write(made, folder + kind)
    assert "torch" not in sys.modules, kind + " imports torch, and with it the seconds that this takes"
"""


@pytest.fixture(scope="module")
def elsewhere(records, tmp_path_factory):
    """What another process, with hashes of its own and without torch, has written of every kind."""
    folder = tmp_path_factory.mktemp("elsewhere")
    jobs = [
        (kind, long_named(records, kind), [str(path) for path in records.probes(kind)], records.merges(kind))
        for kind in OUTPUTS
    ]
    given = json.dumps([str(records.results), str(records.results / "outputs/all_kinds/runs.csv"), f"{folder}/", jobs])
    environment = os.environ | {"PYTHONPATH": str(HOME / "scripts"), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", DRAWN_ELSEWHERE]
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_the_writers_have_the_formats_that_are_declared():
    assert {f".{ending}" for ending in (*table_formats.FORMATS, "json")} == set(FORMATS["table"])
    assert {f".{ending}" for ending in (*panels.METADATA, "csv", "json")} == set(FORMATS["figure"])


@pytest.mark.parametrize("kind", OUTPUTS)
def test_it_is_written_in_all_formats_and_the_same_bytes_by_each_process(records, elsewhere, tmp_path, kind):
    """Of two subsets, which the runs have, no two panels or groups have the same words; no text is cut off."""
    step = step_of(kind)
    made = built(records, kind)
    assert isinstance(made, Table if step == "table" else Figure)
    write(made, tmp_path / kind)
    files = [tmp_path / f"{kind}{ending}" for ending in TEXTS[step]]
    assert all(file.stat().st_size > 50 for file in files)
    assert [file.name for file in files if file.read_bytes() != (elsewhere / file.name).read_bytes()] == []
    assert len(pandas.read_csv(tmp_path / f"{kind}.csv")) > 0, "there is no number behind it"
    assert_told_apart(made)
    assert cut_off(made) == []


def cut_off(made: Table | Figure) -> list[str]:
    """Return the edges of a figure that something is drawn on."""
    if isinstance(made, Table):
        return []
    with figure_style.style():
        made.drawn.set(dpi=figure_style.DPI / 2, facecolor="white")  # the same picture in less time
        canvas = FigureCanvasAgg(made.drawn)
        canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())
    edges = {"left": picture[:, 0], "right": picture[:, -1], "top": picture[0], "bottom": picture[-1]}
    return [side for side, edge in edges.items() if edge.min() < 255]


@pytest.mark.parametrize("kind", [FIGURES[0], *(pytest.param(kind, marks=pytest.mark.slow) for kind in FIGURES[1:])])
def test_its_pictures_are_the_same_bytes_by_each_process(records, elsewhere, tmp_path, kind):
    built(records, kind).write(tmp_path / kind)
    for ending in ("pdf", "png"):
        picture = tmp_path / f"{kind}.{ending}"
        assert picture.stat().st_size > 1000
        if kind == FIGURES[0]:
            assert picture.read_bytes() == (elsewhere / picture.name).read_bytes()


@pytest.mark.parametrize("kind", OUTPUTS)
def test_missing_runs_leave_the_rest(records, kind):
    """All runs of one task are missing, as where a job failed and the experiment allows that."""
    frame = records.data(kind).runs.copy()
    gone = (frame["task"] == "weight") & (frame["kind"] == "run")
    frame.loc[gone, "missing"] = "not run"
    numbers = ["value", "train_seconds", "after_seconds", "extraction_seconds", "flops", "trained_parameters"]
    frame.loc[gone, numbers] = float("nan")
    assert_drawn(built(records, kind, runs=frame))


@pytest.mark.parametrize("kind", PROBED)
def test_probes_of_two_subsets_are_told_apart(records, kind):
    assert_told_apart(built(records, kind, **with_others(records, kind, "subset")))


@pytest.mark.parametrize("kind", PROBED)
def test_two_entries_of_probes_are_shown_each_for_itself(records, elsewhere, kind):
    """No mean is taken over them: there are as many more numbers, and words that tell them apart."""
    both = built(records, kind, **with_others(records, kind, "probe"))
    assert lines(both) == 2 * len(pandas.read_csv(elsewhere / f"{kind}.csv"))
    assert_told_apart(both)


def with_others(records: OutputRecords, kind: str, column: str) -> dict:
    """Return, as a change of the data, a kind's probes and the same as if of another subset, or of another entry."""
    probes = records.data(kind).probes
    others = [copy.deepcopy(probe) for probe in probes]
    for probe in others:
        probe.of[column] += "_too"
    return {"probes": probes + others}


def lines(made: Table | Figure) -> int:
    """Return the number of lines of an output's CSV."""
    return len(made.records if isinstance(made, Figure) else made.records())


def assert_told_apart(made: Table | Figure) -> None:
    """Assert that no two panels of a figure, or groups of a table, are called the same."""
    if isinstance(made, Table):
        words = [group.name for group in made.groups]
    else:
        named = [axis for axis in made.drawn.get_axes() if axis.get_title("left")]  # a scale of colours is none
        words = [(axis.get_title("left"), axis.get_xlabel(), axis.get_ylabel()) for axis in named]
    assert len(words) == len(set(words)) > 0


@pytest.fixture(scope="module")
def alone(records):
    """The runs of one task with one encoder, head and seed."""
    frame = records.data("strategy_table").runs
    return frame[(frame["task"] == "colour") & ((frame["seed"] == 1) | frame["seed"].isna())]


@pytest.mark.parametrize("kind", OUTPUTS)
def test_one_seed_of_one_task_is_enough(records, alone, kind):
    changes = {"runs": alone}
    if records.probes(kind):
        probes = records.data(kind).probes
        changes["probes"] = [probe for probe in probes if probe.of["task"] == "colour"] or probes
    assert_drawn(built(records, kind, **changes))


def test_branches_of_one_size_store_the_same_whether_merged_or_of_a_strategy(records):
    """A merge that took a strategy's runs, and that strategy, were two points: merged, and with the whole encoder."""
    made = merged_load.build_storage(records.data("storage_figure"), records.spec("storage_figure"))
    stored = {row["way"]: row["parameters"] for row in made.records}
    assert stored["Merged"] == 960 == next(size for way, size in stored.items() if "k = 1" in way)
    assert stored["short_full"] > 960
