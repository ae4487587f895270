"""What the advisor takes from past tasks: the CSV of a progress_table, written and read again."""

import numpy as np
import pytest

import invented
from test_advisor import past_tasks, progress_of
from thaw.advisor import past_tasks as past
from thaw.advisor.beliefs import before, rungs_of
from thaw.core.errors import UserError
from thaw.outputs.tables import gains_by_update, writers

POINTS = [("probe", "base"), ("full", "base")]


def written(folder, count: int, effect: float = 0.5):
    """Write past tasks of test_advisor as a progress_table would, with a probe that scores 50 plus the feature."""
    lines = [",".join(gains_by_update.HEADER)]
    for number, one in enumerate(past_tasks(count, effect)):
        probe = 50 + one.features[0]
        for place, point in enumerate(POINTS):
            scores = [probe + seen[place] for seen in one.seen] if place else [probe] * len(one.seen)
            scores.append(70 + one.gains[place])
            lines.append(
                ",".join(map(str, ["tiny", "linear", "all", one.task, one.task, number % 2 + 1, *point, *scores]))
            )
    (folder / "past.csv").write_text("\n".join(lines) + "\n")
    return folder / "past.csv"


def test_beliefs_from_the_file_are_those_from_the_tasks_themselves(tmp_path):
    read = past.read(written(tmp_path, 12), "tiny", without="t11")
    beliefs, rungs, known = read.beliefs(POINTS, [55.0], 200)
    alone = [one for one in past_tasks(12, 0.5) if one.task != "t11"]
    own = before(np.array([5.0]), alone, 2)
    assert known == [0, 1]
    assert beliefs.mean == pytest.approx(own.mean) and beliefs.covariance == pytest.approx(own.covariance)
    assert rungs.share == pytest.approx(rungs_of(alone, 200).share)


def test_of_a_strategy_that_no_past_task_had_little_is_believed(tmp_path):
    read = past.read(written(tmp_path, 12), "tiny", without="none")
    beliefs, _, known = read.beliefs([*POINTS, ("new", "base")], [55.0], 200)
    assert known == [0, 1] and beliefs.mean[2] == 0 and beliefs.covariance[2, 2] == 64
    assert beliefs.covariance[1, 2] == 0 and beliefs.mean[1] > 5 and beliefs.covariance[1, 1] < 10
    _, _, known = read.beliefs([("new", "base"), *POINTS], [55.0, 56.0], 200)
    assert known == [], "gains are over the first probe, which no past task had"


@pytest.mark.parametrize("count, encoder", [(2, "tiny"), (12, "other")])
def test_few_tasks_or_another_encoder_teach_nothing(tmp_path, count, encoder):
    beliefs, _, known = past.read(written(tmp_path, count), encoder, without="none").beliefs(POINTS, [55.0], 200)
    assert known == [] and not beliefs.mean.any()


@pytest.mark.parametrize(
    "text, sentence",
    [
        (
            "encoder,task\ntiny,a\n",
            r"past.csv has no column 'validation_0.125'; past tasks are the CSV of a progress_table",
        ),
        (
            ",".join(gains_by_update.HEADER) + "\ntiny,linear,all,a,a,1,full,base,x,1,1,1,1\n",
            "past.csv: could not convert string to float",
        ),
        (None, "past.csv cannot be read: No such file or directory"),
    ],
)
def test_another_file_is_refused_in_a_sentence(tmp_path, text, sentence):
    if text:
        (tmp_path / "past.csv").write_text(text)
    with pytest.raises(UserError, match=sentence):
        past.read(tmp_path / "past.csv", "tiny", without="none")


def test_a_progress_table_has_mean_gains_and_writes_what_the_advisor_reads(tmp_path):
    data = progress_of(tmp_path)
    spec = invented.shown("r", "progress_table", start="frozen")
    spec["order"]["strategies"] = [[name, "base"] for name in ("frozen", "top_k", "full")]
    table = gains_by_update.build(data, spec)
    cells = {row.name: [cell.text for cell in row.cells] for row in table.groups[0].rows}
    # six tasks, in which full gains 0, .4, 9, 9, .3 and 10, and shows sqrt(r) of it after r of its updates
    mean = (0 + 0.4 + 9 + 9 + 0.3 + 10) / 6
    shown = [f"{mean * share:.1f}" for share in np.sqrt([0.125, 0.25, 0.5, 1, 1])]
    assert list(cells.values())[1] == shown and len(cells) == 2
    (tmp_path / "past.csv").write_text(writers.to_csv(table))
    read = past.read(tmp_path / "past.csv", "tiny", without="a")
    assert read.tasks == ["b", "c", "d", "e", "f"]
    _, rungs, known = read.beliefs([("frozen", "base"), ("full", "base")], [80.0], 200)
    assert known == [0, 1] and rungs.share == pytest.approx(np.sqrt([0.125, 0.25, 0.5, 1]), abs=1e-3)


def test_sizes_of_a_task_are_past_tasks_of_their_own_and_what_was_not_scored_is_left_out(tmp_path):
    path = written(tmp_path, 4)
    few = [line.replace(",all,", ",n100,") for line in path.read_text().splitlines()[1:]]
    gaps = [line.replace(",full,", ",late,").split(",") for line in few if ",full," in line]
    late = [",".join([*line[:8], "", *line[9:]]) for line in gaps]
    path.write_text(path.read_text() + "\n".join([*few, *late]) + "\n")
    read = past.read(path, "tiny", without="t0")
    assert read.tasks == ["t1", "t2", "t3"] and len(read.scores) == 3 * 2 * 2
    assert read.known([*POINTS, ("late", "base")]) == [0, 1]
