"""What a search is worth: each of its settings against the best."""

import pandas
import pytest

import invented
from thaw.core.files import read_json, write_json
from thaw.outputs.frame import collection
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.runs_frame import COLUMNS
from thaw.papers import settings_over_tasks

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
