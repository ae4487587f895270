"""Rows of a store: each is extracted once, when it is first read, with the bits that it has among all rows."""

import os
import re
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import forked
from plans import plan_of
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.features.row_sets import all_rows, batches_of, masks_of, to_card, widened
from thaw.features.store import FeatureStore
from thaw.outputs.frame.price import extraction_costs
from thaw.planning.cost_estimate import operations
from thaw.planning.questions import Questions
from thaw.planning.row_selections import selections
from thaw.training.run_inputs import open_inputs
from tiny_corpus import Bench, rows, run_in_process, tiny_corpus

CPU = torch.device("cpu")
PARTS = [0, 3, "pooled"]
TRAIN = 700
HOME = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """A store of all rows, with enough of them for several batches."""
    folder = tmp_path_factory.mktemp("rows")
    corpus = tiny_corpus(folder / "data", "classification", train=rows("classification", TRAIN, 1))
    made = Bench(folder, "bert", corpus, "classification", dtype="fp32")
    made.extract(*PARTS)
    return made


def selection(bench: Bench, count: int) -> dict:
    """Return what the spec of a run on a subset says of its rows."""
    return {"task": bench.spec({})["task"], "subset": {"rows": count}}


def extract_some(bench: Bench, out: Path, *counts: int) -> FeatureStore:
    """Run the step for the readers of some subsets, into a folder of its own."""
    folders = ("--data", bench.corpus.folder, "--encoder", bench.encoder, "--out", out)
    chosen = canonical([selection(bench, count) for count in counts])
    arguments = ("--spec", canonical(bench.features_spec), "--boundaries", *PARTS, "--rows", chosen)
    run_in_process("features", *arguments, *folders)
    return FeatureStore(out)


def opened(bench: Bench, out: Path, count: int):
    """Open what a run on a subset reads of boundary 3, as its step does."""

    class Folders:
        data, encoder, features = bench.corpus.folder, bench.encoder, [out]
        catalogues, also_data, also_tokens = [], [], []

    spec = bench.spec({"train": ("head",)}) | {"subset": {"rows": count}}
    (inputs,) = open_inputs(spec | {"phases": [{"boundary": 3}]}, Folders)
    return inputs.store


def counted(text: str) -> list[int]:
    """Return how many rows of train each pass of a log read."""
    return [int(number) for number in re.findall(r"encoder pass: .* train: (\d+) examples", text)]


def check_rows(bench: Bench, store: FeatureStore, part: int | str = 3) -> int:
    """Check that the rows which a part holds have the bits of the store of all rows, and return their number."""
    held, whole = store.held(part), bench.store
    for split in store.splits:
        chosen = np.flatnonzero(held[split])
        if part == "pooled":
            assert np.array_equal(store.vectors(part, split, chosen)[0], whole.vectors(part, split, chosen)[0])
        else:
            places = store.places(split, chosen)
            assert torch.equal(store.states(part, split).at(places), whole.states(part, split).at(places))
    return int(held["train"].sum())


def test_only_the_rows_that_are_read_are_extracted(bench, tmp_path, capsys):
    """40 of 700: their bits are those among all rows, the rest takes no disk and cannot be read by mistake."""
    store = extract_some(bench, tmp_path / "f", 40)
    assert counted(capsys.readouterr().err) == [40]
    assert [check_rows(bench, store, part) for part in PARTS] == [40] * 3
    card, whole = store.part_card(3), bench.store.part_card(3)
    assert card["rows"]["train"]["held"] == 40 and set(card["rows"]) == {"train"} and "rows" not in whole
    assert card["digest"] == whole["digest"] and card["bytes"] < whole["bytes"] / 3
    taken, all_taken = (os.stat(one.payload_path(3)).st_blocks for one in (store, bench.store))
    assert taken < all_taken
    other = int(np.flatnonzero(~store.held(3)["train"])[0])
    message = r"b3\.json: some rows of train are not stored"
    with pytest.raises(UserError, match=message):
        store.states(3, "train").gather([other], store.batch("train", [other]))
    with pytest.raises(UserError, match=message):
        store.states(3, "train").at(store.places("train", [other]))
    with pytest.raises(UserError, match=r"pooled\.json: some rows of train"):
        store.vectors("pooled", "train", np.array([other]))


def test_a_second_subset_extracts_only_what_is_new(bench, tmp_path, capsys):
    """Subsets of a draw are nested: 40, then 60 more, then none; the part that nobody asks for stays as it is."""
    extract_some(bench, tmp_path / "f", 40)
    capsys.readouterr()
    first = read_json(tmp_path / "f/b3.json")
    store = opened(bench, tmp_path / "f", 100)
    assert counted(capsys.readouterr().err) == [60] and check_rows(bench, store) == 100
    card = read_json(tmp_path / "f/b3.json")
    assert card["digest"] == first["digest"] and card["passes"][0] == first["passes"][0] and len(card["passes"]) == 2
    assert card["seconds"] == round(sum(clock for clock, _ in card["passes"]), 3) and card["bytes"] > first["bytes"]
    assert [store.part_card(part)["rows"]["train"]["held"] for part in (0, "pooled")] == [40, 40]
    for count in (40, 100):
        assert check_rows(bench, opened(bench, tmp_path / "f", count)) == 100
    assert counted(capsys.readouterr().err) == []
    store.payload_path(3).unlink()
    opened(bench, tmp_path / "f", 100)
    assert counted(capsys.readouterr().err) == [100] and read_json(tmp_path / "f/b3.json") == card


def test_a_part_that_has_no_card_is_made_by_the_job_that_reads_it(bench, tmp_path, capsys):
    """As where a plan got one more boundary and Snakemake's notes on the store are gone."""
    store = extract_some(bench, tmp_path / "f", 40)
    card = read_json(store.card_path(3))
    store.card_path(3).unlink()
    capsys.readouterr()
    assert check_rows(bench, opened(bench, tmp_path / "f", 40)) == 40
    made = read_json(store.card_path(3))
    untimed = {"seconds": 0, "passes": []}
    assert made | untimed == card | untimed and counted(capsys.readouterr().err) == [40]


def test_all_rows_are_read_in_the_end(bench, tmp_path):
    """Grown step by step, the file has the bytes of one that was extracted as a whole."""
    extract_some(bench, tmp_path / "f", 40, 60)
    assert read_json(tmp_path / "f/b3.json")["rows"]["train"]["held"] == 60
    for count in (300, TRAIN):
        store = opened(bench, tmp_path / "f", count)
    assert store.payload_path(3).read_bytes() == bench.store.payload_path(3).read_bytes()
    assert "rows" not in store.part_card(3) and store.part_card(3)["sha256"] == bench.store.part_card(3)["sha256"]


def test_two_jobs_that_need_new_rows_read_them_once(bench, tmp_path, capsys):
    """One adds them while the other waits; a reader that has the file open reads on."""
    before = extract_some(bench, tmp_path / "f", 40)
    chosen = np.flatnonzero(before.held(3)["train"])
    states = before.states(3, "train")
    capsys.readouterr()
    threads = [threading.Thread(target=opened, args=(bench, tmp_path / "f", 90)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(capsys.readouterr().err) == [50] and check_rows(bench, FeatureStore(tmp_path / "f")) == 90
    places = before.places("train", chosen)
    assert torch.equal(states.at(places), bench.store.states(3, "train").at(places))


KILLED = """
import os, signal, sys
from thaw.core.files import write_json
from thaw.features import extract
from thaw.features.store import FeatureStore
import numpy, torch
torch.set_num_threads(1)
CPU = torch.device("cpu")
if sys.argv[3] == "pass":
    extract.Pass.check_against_second = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
else:  # the payload is in its place, its card is not
    extract.write_json = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
store = FeatureStore(sys.argv[1])
rows = {"train": numpy.arange(200)}
store.require([3], lambda missing, masks: extract.remake(store, sys.argv[2], missing, CPU, masks), rows)
"""


@pytest.mark.parametrize("moment", ["pass", "card"])
def test_a_kill_while_rows_are_added_loses_none(bench, tmp_path, moment):
    """In the midst of the pass nothing changed; between payload and card the payload is made again, with equal bits."""
    store = extract_some(bench, tmp_path / "f", 40)
    held, script = int(store.held(3)["train"].sum()), tmp_path / "add_rows_and_die.py"
    script.write_text(KILLED)
    done = forked.run([script, tmp_path / "f", bench.encoder, moment])
    assert done.returncode == -signal.SIGKILL, done.stderr
    if moment == "pass":
        assert check_rows(bench, FeatureStore(tmp_path / "f")) == held
    assert check_rows(bench, opened(bench, tmp_path / "f", 100)) >= 100


def test_few_rows_are_read_in_batches_like_those_of_all(bench):
    """Equal length, padding where there was some, enough rows; on a GPU as many rows as among all."""
    store = bench.store
    wanted = masks_of(store, {"train": np.arange(0, TRAIN, 9)})["train"]
    whole = {int(row): batch for batch in batches_of(store, "train") for row in batch.rows}
    for full in (False, True):
        found = batches_of(store, "train", wanted, full)
        read = np.concatenate([batch.rows[: batch.wanted] for batch in found])
        assert sorted(read) == np.flatnonzero(wanted).tolist()
        for rows_read, _, length in found:
            among = whole[int(rows_read[0])]
            lengths = store.lengths("train")
            assert length == among.length and len(rows_read) * length >= min(256, len(among.rows) * among.length)
            assert (lengths[rows_read] < length).any() == (lengths[among.rows] < length).any()
            assert not full or len(rows_read) == len(among.rows)
    most = widened(store, masks_of(store, {"train": np.arange(TRAIN - 5)}), False)
    assert most["train"].all() and to_card(all_rows(store)) == {}


def test_where_few_rows_have_other_bits_all_are_read(bench, tmp_path, monkeypatch, capsys):
    """As on a device that chooses its products by their shape: the check of one batch finds it."""
    monkeypatch.setattr("thaw.features.extract._same_bits", lambda *arguments: False)
    store = extract_some(bench, tmp_path / "f", 40)
    assert check_rows(bench, store) == TRAIN and "rows" not in store.part_card(3)
    assert "some rows alone have other bits here" in capsys.readouterr().err
    assert store.part_card(3)["sha256"] == bench.store.part_card(3)["sha256"]


@dataclass
class Read:
    """What is collected of a run, as far as its costs need it."""

    folder: str
    stores: dict
    row: dict


def test_costs_are_charged_by_the_rows_that_training_and_choosing_read(tmp_path):
    """Two passes of 6 s and 4 s stored 40 of 80 rows of train, 20 of validation and 40 of test, 0.1 s a row.

    The processor worked for half of them.
    Runs on 10 and on 30 rows of one draw read 30 of train together, one on 20 of another draw as many more, as far as
    40 are stored; it chooses by some of its own rows, they by 20 others. Nobody pays for test.
    """
    subsets = {"few": {"rows": 10}, "most": {"rows": 30}, "other": {"rows": 20, "draw": 2, "validation": 0.2}}
    for name, subset in subsets.items():
        spec = {"task": {}, "subset": subset, "phases": [{"boundary": 3}]}
        write_json(tmp_path / name / "metrics.json", {"spec": spec, "rows": {"validation": 20, "held_out": 4}})
    splits = {"train": {"examples": 80}, "validation": {"examples": 20}, "test": {"examples": 40}}
    write_json(tmp_path / "store/tokens.json", {"splits": splits})
    card = {"seconds": 10.0, "passes": [[6.0, 3.0], [4.0, 2.0]], "rows": {"train": {"held": 40, "bits": ""}}}
    write_json(tmp_path / "store/b3.json", card)
    runs = [Read(name, {"joint": "store"}, {"weights": "tiny"}) for name in subsets]
    costs = extraction_costs(runs, tmp_path)
    whole = {name: found["extraction_whole_seconds"] for name, found in costs.items()}
    assert whole == pytest.approx({"few": 3.0, "most": 5.0, "other": 2.0})
    shared = {name: found["extraction_seconds"] for name, found in costs.items()}
    assert shared == pytest.approx({"few": 6 * 0.3, "most": 6 * 0.5, "other": 6 * 0.2}), "40 and 20 rows for all"
    worked = {name: found["extraction_price_seconds"] for name, found in costs.items()}
    assert worked == pytest.approx({"few": 3 * 0.3, "most": 3 * 0.5, "other": 3 * 0.2})
    write_json(tmp_path / "store/b3.json", card | {"passes": [6.0, 4.0]})
    older = extraction_costs(runs, tmp_path)["few"]
    assert older["extraction_price_seconds"] == older["extraction_seconds"] == pytest.approx(1.8), "by the clock alone"
    del card["rows"], card["passes"]
    write_json(tmp_path / "store/b3.json", card)
    costs = extraction_costs(runs, tmp_path)
    assert costs["few"]["extraction_whole_seconds"] == pytest.approx(10 * 30 / 140), (
        "the whole store, before it had rows"
    )


def test_the_plan_asks_for_the_rows_that_its_runs_read():
    """The subsets of all readers, each once; on the whole of train everything. Fewer rows cost less."""
    chosen = {"tasks": ["acceptability"], "strategies": ["frozen", "full"]}
    few, whole = plan_of("no_results_yet", subsets=["n100_d1"], **chosen), plan_of("no_results_yet", **chosen)
    (store,) = few.jobs["features"]
    subsets = [entry["subset"] for entry in selections(few, store)]
    assert subsets == [{"rows": 100}] and [entry["subset"] for entry in selections(whole, store)] == [{}]
    assert few.job("features", store).canonical == whole.job("features", store).canonical
    assert Questions(few).rows_read(store) == canonical(selections(few, store))
    assert operations(few, "features", store) < operations(whole, "features", store)
