"""What a search is worth: the figure of the best score to expect of so many trials."""

import pandas
import pytest

import invented
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.outputs.figures import search_curve
from thaw.outputs.frame import collection
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.runs_frame import COLUMNS
from thaw.papers import settings_over_tasks

SPEC = invented.shown("trials", "trial_figure")
MEANS = {("top_k", "k01"): [0.5, 0.7, 0.6], ("full", "base"): [0.8, None, 0.6]}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a results folder in which two cells of each task have a search of their own, and one an outdated one."""
    folder = tmp_path_factory.mktemp("searched")
    invented.write_runs(folder)
    invented.write_cards(folder)
    for task in invented.TASKS:
        for (strategy, variant), means in (MEANS | {("top_k", "k03"): [0.1]}).items():
            cell = folder / f"runs/{task}/all/tiny/linear/{strategy}/{variant}"
            made = [{"settings": {"rate": n}, "mean": mean, "seeds": {"101": mean}} for n, mean in enumerate(means)]
            record = {"digest": "old" if variant == "k03" else "due", "metric": "accuracy", "trials": made}
            write_json(cell / "chosen.json", record)
            for path in cell.glob("seed*/metrics.json"):
                run = read_json(path)
                write_json(path, run | {"spec": run["spec"] | {"chosen": "due"}})
    rows = collection.rows(invented.collect_spec(), folder, folder / "logs")
    pandas.DataFrame(rows, columns=COLUMNS).to_csv(folder / "runs.csv", index=False)
    return folder


def test_the_best_to_expect_by_hand(results):
    figure = search_curve.build(OutputData(results, results / "runs.csv"), SPEC)
    found = pandas.DataFrame(figure.records).set_index(["task", "strategy", "variant"])
    assert set(found.index) == {(task, *point) for task in invented.TASKS for point in MEANS}, "an outdated search"
    one = found.loc["odd", "top_k", "k01"]
    # of 0.5, 0.6, 0.7 with two draws: nine pairs, of which 1, 3 and 5 have these as their highest
    pairs = (50 + 3 * 60 + 5 * 70) / 9
    assert list(one["trials"]) == [1, 2, 3] and list(one["expected"][:2]) == pytest.approx([60, pairs], abs=1e-3)
    # of 0.8, 0 for what has no score, and 0.6: of nine pairs 1, 3 and 5 have 0, 0.6 and 0.8 as their highest
    undefined = list(found.loc["odd", "full", "base"]["expected"])
    assert undefined == pytest.approx([140 / 3, (3 * 60 + 5 * 80) / 9, (7 * 60 + 19 * 80) / 27], abs=1e-3)


def test_without_a_search_there_is_nothing_to_draw(invented_frame, invented_results):
    with pytest.raises(UserError, match="needs a strategy with a search"):
        search_curve.build(OutputData(invented_results, invented_frame), SPEC)


def test_a_setting_is_compared_with_the_best_of_each_task_and_over_tasks(results):
    for_one = results / "runs/odd/all/tiny/linear/top_k/k01/chosen.json"
    before = read_json(for_one)
    better = [trial | {"mean": mean} for trial, mean in zip(before["trials"], (0.5, 0.55, 0.6), strict=True)]
    write_json(for_one, before | {"trials": better})
    table = settings_over_tasks.build(OutputData(results, results / "runs.csv"), invented.shown("s", "settings_table"))
    write_json(for_one, before)
    top = next(group for group in table.groups if group.name.startswith("Top k"))
    values = {row.name: [cell.value for cell in row.cells] for row in top.rows}
    assert sorted(values["learning_rate 0"][:2]) == pytest.approx([10, 20]) and values["learning_rate 0"][
        2
    ] == pytest.approx(15)
    assert sorted(values["learning_rate 1"][:2]) == pytest.approx([0, 5]) and values["learning_rate 1"][
        2
    ] == pytest.approx(2.5)
    assert [row.name for row in top.rows if row.cells[2].best] == ["learning_rate 1"]
