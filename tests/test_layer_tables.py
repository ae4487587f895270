"""Tables by layer from invented records, against values computed by hand."""

import csv
import io

import pytest

from test_change_figures import FULL, record
from test_layer_mix import record as probe_record
from test_layer_mix import written
from test_probes_plan import planned
from thaw.outputs.figures.probe_curves import points
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.outputs.render import table_formats
from thaw.outputs.tables import by_layer

LABELS = {"tasks": {"pos": "Parts of speech", "one": "First"}, "strategies": {"full": "Full"}}
SPEC = {"id": "t", "caption": "C.", "split": "test", "labels": LABELS, "probes": {"cka": "CKA", "moved": "Weights"}}


def rows(table) -> dict[str, list[str]]:
    """Return the lines of a table as Markdown, by name."""
    lines = [line for line in table_formats.to_markdown(table).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


def numbers(table) -> list[dict]:
    return list(csv.DictReader(io.StringIO(table_formats.to_csv(table))))


def test_scores_have_their_best_layer_in_bold_and_their_baseline_last(tmp_path):
    words = probe_record("pos", {1: [0.5, 0.7], 2: [0.7, 0.9], 3: [0.6, 0.8]}) | {
        "majority": {"test": {"edge_f1": 0.25}}
    }
    trees = probe_record("trees", {1: [0.2, 0.65, 0.6]}, main="accuracy")
    trees["majority"] = {"test": {"accuracy": 0.434}}
    adapted = probe_record("pos", {1: [0.1, None], 2: [0.3, None], 3: [0.2, None]}, run=FULL | {"task": "pos"})
    table = by_layer.build(OutputData("", probes=written(tmp_path, [words, trees, adapted])), SPEC)
    assert [group.name for group in table.groups] == ["Pretrained", "Full"]
    assert [len(group.rows) for group in table.groups] == [2, 1]
    shown = rows(table)
    assert shown[""] == ["0", "1", "2", "Baseline"]
    assert shown["trees: accuracy"] == ["20.0", "**65.0**", "60.0", "43.4"]
    assert [cell and cell.text for cell in table.groups[0].rows[0].cells] == [
        "60.0 ± 10.0",
        "80.0 ± 10.0",
        None,
        "25.0",
    ]
    assert [cell and cell.text for cell in table.groups[1].rows[0].cells] == ["20.0 ± 10.0", "–", None, None]
    assert r"Parts of speech: edge F1 & 60.0 $\pm$ 10.0 & \textbf{80.0} $\pm$ 10.0 &  & 25.0" in table_formats.to_tex(
        table
    )
    assert "<strong>80.0 ± 10.0</strong>" in table_formats.to_html(table)
    assert "on test: mean ± standard deviation (n − 1) over 1 to 3 seeds, from 3 on." in table.notes[0]
    first = numbers(table)[0]
    assert (first["mean"], first["sd"], first["seeds"], first["baseline"]) == ("60.0", "10.0", "3", "25.0")


def test_ranks_of_layers_are_means_over_the_scores_of_an_encoder(tmp_path):
    words, first = probe_record("pos", {1: [0.5, 0.7, 0.6]}), probe_record("one", {1: [0.9, 0.8, 0.6]})
    table = by_layer.build(OutputData("", probes=written(tmp_path, [words, first])), SPEC)
    assert rows(table)["Mean rank"][:3] == ["2.0", "**1.5**", "2.5"]
    assert rows(table)["Points below the best"][:3] == ["10.0", "**5.0**", "20.0"]
    lone = by_layer.build(OutputData("", probes=written(tmp_path / "lone", [words])), SPEC)
    assert "Mean rank" not in rows(lone) and by_layer.RANK_NOTE in table.notes and by_layer.RANK_NOTE not in lone.notes


def test_the_baseline_of_sets_of_labels_is_the_majority_of_each(tmp_path):
    said = []
    for kind in ("classification", "multi_label_classification"):
        one = probe_record("one", {1: [0.5, 0.7]}, main="f1_micro") | {"majority": {"test": {"f1_micro": 0.25}}}
        one["spec"]["task"]["type"] = kind
        table = by_layer.build(OutputData("", probes=written(tmp_path, [one])), SPEC)
        said.append(next(note for note in table.notes if note.startswith("Baseline: the most frequent label, ")))
    assert ["of sets of labels each label's majority" in note for note in said] == [False, True]


def test_notes_say_what_layer_0_is_and_which_labels_are_not_scored(tmp_path):
    plain, words = probe_record("pos", {1: [0.5, 0.7]}), probe_record("one", {1: [0.6, 0.9]})
    words["spec"]["of"]["probe"], words["spec"]["probe"] = "moved", {"kind": "edge", "layer_0": "word_embeddings"}
    words["spec"]["task"]["unscored_labels"] = ["R-*", "C-*"]
    usual = by_layer.build(OutputData("", probes=written(tmp_path, [plain])), SPEC)
    assert usual.notes[0].endswith(" Layer 0: the output of the embeddings.")
    assert not any("not scored" in note for note in usual.notes)
    table = by_layer.build(OutputData("", probes=written(tmp_path, [plain, words])), SPEC)
    own = "of Weights the word embeddings, without positions and token types."
    assert table.notes[0].endswith(f" Layer 0: the output of the embeddings; {own}")
    assert table.notes[-1] == "Labels that are trained and not scored: R-*, C-* (First)."
    alone = by_layer.build(OutputData("", probes=written(tmp_path, [words])), SPEC)
    assert alone.notes[0].endswith(" Layer 0: the word embeddings, without positions and token types.")


def test_of_one_score_encoders_are_the_rows(tmp_path):
    records = [probe_record("pos", {1: [0.5, 0.7]}), probe_record("pos", {1: [0.6, 0.9]}, run=FULL)]
    table = by_layer.build(OutputData("", probes=written(tmp_path, records)), SPEC)
    assert rows(table) == {
        "": ["0", "1"],  # there is no baseline
        "**Parts of speech: edge F1**": ["", ""],
        "Pretrained": ["50.0", "**70.0**"],
        "Full on First": ["60.0", "**90.0**"],
    }
    assert len(table.notes) == 2 and "one seed, hence no standard deviation" in table.notes[0]


def test_splits_are_named_by_task_where_they_differ(tmp_path):
    records = [probe_record("pos", {1: [0.5]}), probe_record("one", {1: [0.5]})]
    records[1]["spec"]["task"]["test"] = ["dev"]
    records[1]["layers"][0]["scores"] = {"dev": {"edge_f1": 0.4}}
    table = by_layer.build(OutputData("", probes=written(tmp_path, records)), SPEC)
    assert "each layer, on test (Parts of speech), dev (First): one seed" in table.notes[0]


def test_information_has_its_bound_and_marks_what_is_noise(tmp_path):
    def end(layer: int, seed: int, edge: float) -> dict:
        values = {"bound": 1.5 + seed / 10, "bound_error": 0.04 + layer / 100, "entropy": 2.36}
        values |= {"edge": edge, "edge_noise": 0.2, "edge_shuffled": 1.6}
        values |= {"kmeans": 1.2, "kmeans_noise": 0.03, "kmeans_shuffled": 0.22, "with_last": 0.8}
        return {"layer": layer, "seed": seed, "scores": {"test": values}}

    layers = [end(0, 1, 0.1), end(0, 2, 0.2), end(1, 1, 0.2), end(1, 2, 0.4)]
    records = [record(probe="mutual_information", main="bound", layers=layers)]
    table = by_layer.build_information(OutputData("", probes=written(tmp_path, records)), SPEC)
    assert rows(table) == {
        "": ["0", "1", "H(labels)"],
        "**First**": ["", "", ""],
        "Lower bound": ["1.65", "1.65", "2.36"],
        "EDGE": ["0.15†", "0.30", "2.36"],
        "EDGE, shuffled labels": ["1.60", "1.60", "2.36"],
        "k-means": ["1.20", "1.20", "2.36"],
        "k-means, shuffled labels": ["0.22", "0.22", "2.36"],
        "Last layer, binned": ["0.80", "0.80", "2.36"],
    }
    assert "over rows, mean over seeds, is at most 0.05" in table.notes[1] and table.notes[3].startswith("†: ")
    bound, majority = points([ProbeRecord("metrics.json", records[0])], "test")
    assert bound["mean"].tolist() == pytest.approx([1.65, 1.65]) and majority == {}, "a curve of the bound, in bits"
    clear = [record(probe="mutual_information", main="bound", layers=[end(0, 1, 0.9)])]
    assert len(by_layer.build_information(OutputData("", probes=written(tmp_path, clear)), SPEC).notes) == 3


def test_tables_take_the_probes_that_they_show():
    probes = ["edge", "linear", "mutual_information"]
    outputs = ["scores_by_layer", "information_by_layer"]
    plan = planned(probe_tasks=["entities"], probes=probes, outputs=outputs)
    kinds = {name: {path.split("/")[-3] for path in plan.status.probed("table", name)} for name in outputs}
    assert kinds == {"scores_by_layer": {"edge", "linear"}, "information_by_layer": {"mutual_information"}}
