"""Probes by domain on a small corpus with two of them, and their figure."""

import json

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from corpora import prepared, spec_for
from test_probes import STRENGTHS, spec_of
from thaw.core.errors import UserError
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.papers.domain_divergence import Domains, domain_divergence
from thaw.papers.domain_shift import build, points
from thaw.probes.reading import Reading
from thaw.schema.yaml_files import read_yaml
from tiny import WORDS
from tiny_corpus import Bench, rows


def named(count: int, seed: int) -> list[dict]:
    """Return examples of two domains: those on singing and those on rivers, which share few words."""
    found = rows("regression", count, seed)
    texts = [("sings " * 20 if i % 3 else "river " * 20) + row["text"] for i, row in enumerate(found)]
    genres = ["songs" if i % 3 else "rivers" for i in range(count)]
    return [row | {"text": text, "genre": genre} for row, text, genre in zip(found, texts, genres, strict=True)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("domains")
    (folder / "data").mkdir()
    splits = {"train": named(90, 1), "validation": named(24, 2), "test": named(24, 3)}
    entry = {"texts": ["text"], "targets": {"score": "score", "genre": "label"}}
    return Bench(folder, "bert", prepared(folder / "data", entry, **splits), "regression")


def test_each_domain_is_fitted_and_scored_with_as_many_rows(bench):
    torch.set_num_threads(1)
    reading = Reading(spec_of(bench, "domain_divergence", domain="genre", read=[0, 3]), bench.inputs())
    table, ends = domain_divergence(reading, 1)
    assert {row["rows"] for row in table} == {24}, "of 30 rows a fifth chooses the strength"
    assert len(table) == 2 * 2 * 3 * 2 and [end["layer"] for end in ends] == [0, 3]
    cells = {(cell["trained"], cell["tested"]): cell for cell in ends[0]["cells"] if cell["split"] == "test"}
    assert set(cells) == {(t, e) for t in ("all", "rivers", "songs") for e in ("rivers", "songs")}
    own, other = cells["songs", "songs"]["divergence"], cells["songs", "rivers"]["divergence"]
    assert own < 0.2 < other < 1 and own < cells["all", "songs"]["divergence"] < other
    scores = ends[0]["scores"]["test"]
    assert -1 <= scores["correlation"] <= 1 and scores["lost"] is None, "two pairs of two domains order nothing"


def correlation(reading: Reading, row: dict, fitted, l2: float, split: str, rows) -> float:
    """Return Pearson's r on some rows of a split of a scikit-learn probe of a row's layer, fitted to training rows."""
    stored = {name: reading.splits[name].layers[reading.numbers.index(row["layer"])] for name in ("train", split)}
    scaler = StandardScaler().fit(stored["train"].values.double().numpy()[fitted])
    scaled = {name: scaler.transform(vectors.values.double().numpy()) for name, vectors in stored.items()}
    gold = {name: reading.corpus.frame(name)["score"].to_numpy() for name in stored}
    probe = Ridge(alpha=len(fitted) * l2 / 2).fit(scaled["train"][fitted], gold["train"][fitted])
    return np.corrcoef(probe.predict(scaled[split][rows]), gold[split][rows])[0, 1]


def test_each_cell_is_the_score_of_a_scikit_learn_probe_on_the_rows_of_the_tested_domain(bench):
    """Fitted to the rows of the trained domain that do not choose the penalty, with the best penalty on the others."""
    torch.set_num_threads(1)
    reading = Reading(spec_of(bench, "domain_divergence", domain="genre", read=[0, 3]), bench.inputs())
    genres = {split: bench.corpus.frame(split)["genre"] for split in ("train", "validation", "test")}
    table, ends = domain_divergence(reading, 1)
    fits = {name: reading.divided(1, part) for name, part in Domains(reading, 1).fitted.items()}
    for row in table:
        fitted, held = (part.rows for part in fits[row["trained"]])
        own = {"rivers", "songs"} if row["trained"] == "all" else {row["trained"]}
        assert set(genres["train"].iloc[[*fitted, *held]]) == own and not set(fitted) & set(held)
        choice = [correlation(reading, row, fitted, l2, "train", held) for l2 in STRENGTHS]
        assert row["l2"] == STRENGTHS[np.argmax(choice)]
        tested = np.flatnonzero(genres[row["split"]] == row["tested"])
        due = correlation(reading, row, fitted, row["l2"], row["split"], tested)
        assert row["score"] == pytest.approx(due, abs=1e-5) and row["tested_rows"] == len(tested)
    keys = ("split", "trained", "tested", "score")
    shown = {(end["layer"], *(cell[key] for key in keys)) for end in ends for cell in end["cells"]}
    assert shown == {(row["layer"], *(row[key] for key in keys)) for row in table}


def test_words_have_domains_that_their_documents_name(home, tmp_path):
    """The catalogue's own entry of EWT, on files of its form."""
    entry = read_yaml(home / "config/tasks.yaml").content["corpora"]["ewt_genres"]
    (tmp_path / "ud_english_ewt").mkdir()
    for split, path in entry["files"]["splits"].items():
        written = []
        for genre in entry["labels"]["genre"]:
            written.append(f"# newdoc id = {genre}-of.some_place-1\n")
            for number in range(26 if split == "train" else 2):
                words = [(genre, "NOUN"), (WORDS[number], "VERB"), ("river", "NOUN")]
                lines = [f"{place}\t{word}\t_\t{tag}" + "\t_" * 6 for place, (word, tag) in enumerate(words, 1)]
                written.append("\n".join(lines) + "\n\n")
        (tmp_path / path).write_text("".join(written))
    prepare(spec_for(entry, tmp_path), tmp_path, tmp_path / "data")
    bench = Bench(tmp_path, "bert", Corpus(tmp_path / "data"), "spans")
    task = {"id": "t", "corpus": "mine", "target": "upos", "type": "tagging", "metrics": ["accuracy"]}
    spec = spec_of(bench, "domain_divergence", domain="genre", read=[0], l2=[1e-2]) | {"task": task}
    table, _ = domain_divergence(Reading(spec, bench.inputs()), 1)
    assert {(row["trained"], row["tested"]) for row in table if row["split"] == "test"} == {
        (one, other) for one in ("all", *entry["labels"]["genre"]) for other in entry["labels"]["genre"]
    }
    assert all(0 <= row["divergence"] <= 1 and row["tested_rows"] == 2 for row in table)


def test_a_small_domain_is_refused(bench, tmp_path):
    spec = spec_of(bench, "domain_divergence", domain="genre") | {"subset": {"rows": 45}}
    with pytest.raises(UserError, match="domain 'rivers' has 16 training rows in the subset; 20 are needed: take a"):
        bench.step("probe", spec, tmp_path / "out")


def test_the_figure_has_a_point_for_each_pair(bench, tmp_path):
    out = bench.step("probe", spec_of(bench, "domain_divergence", domain="genre", read=[0, 3]), tmp_path / "out")
    record = json.loads((out / "metrics.json").read_text())
    found = points([ProbeRecord(out / "metrics.json", record)], "test")
    cells = [cell for end in record["layers"] if end["layer"] == 3 for cell in end["cells"]]
    due = [c["score"] for c in cells if (c["split"], c["trained"], c["tested"]) == ("test", "all", "songs")]
    row = found.query("layer == 3 and trained == 'all' and tested == 'songs'").iloc[0]
    assert row["score"] == pytest.approx(100 * np.mean(due)) and row["seeds"] == 2
    figure = build(OutputData(tmp_path, probes=[out / "metrics.json"]), {"split": "test", "labels": {}})
    (axis,) = figure.drawn.get_axes()
    assert len(axis.get_lines()) == 6 and axis.get_xlabel() == "Word divergence, bits"
    with pytest.raises(UserError, match="no probe of this experiment has a result yet; run the workflow first"):
        build(OutputData(tmp_path), {"split": "test", "labels": {}})
