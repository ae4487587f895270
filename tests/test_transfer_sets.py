"""Transfer sets: a run of one task is scored on another's test splits, by names of labels."""

from argparse import Namespace

import numpy as np
import pytest
import torch

from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.errors import UserError
from thaw.evaluation.result_files import Predictions
from thaw.evaluation.transfer_sets import TransferSet, all_predictions
from thaw.training.head_fitting import HeadFit
from thaw.training.run_inputs import Inputs, open_inputs
from thaw.training.training_run import TrainingRun, train
from tiny_corpus import Bench, rows, small_bert, tiny_corpus

TASK = {"id": "other", "corpus": "mine", "target": "label", "type": "classification", "metrics": ["accuracy"]}


bench = pytest.fixture(scope="module")(small_bert)


@pytest.fixture(scope="module")
def there(tmp_path_factory) -> Bench:
    """The same encoder on another corpus, whose labels have other names and whose test split has a row more."""
    folder = tmp_path_factory.mktemp("there")
    renamed = {"yes": "right", "no": "wrong"}
    splits = {
        split: [{**row, "label": renamed[row["label"]]} for row in rows("classification", count, seed)]
        for split, count, seed in (("train", 24, 5), ("validation", 8, 6), ("test", 9, 7))
    }
    return Bench(folder, "bert", tiny_corpus(folder / "data", "classification", **splits), "classification")


def entry(there: Bench, **rename) -> dict:
    """Return a spec's entry of a transfer set."""
    digests = {"data": there.corpus.card["digest"], "features": [there.store.card["digest"]]}
    return {"task": TASK, "rename": rename, **digests}


def inputs(bench: Bench, there: Bench) -> Inputs:
    """Return what a run reads that is scored on the other corpus too."""
    names = {} if there is bench else {"yes": "right", "no": "wrong"}
    transfer = TransferSet.of(entry(there, **names), there.corpus, bench.corpus.labels("label"))
    return Inputs(bench.corpus, bench.store, bench.encoder, torch.device("cpu"), [(transfer, there.store)])


@pytest.mark.parametrize("optimizer", ["adamw", "lbfgs"])
def test_a_run_is_scored_on_both_corpora(bench, there, optimizer):
    spec = bench.spec({"train": ["head"], "optimizer": optimizer})
    if optimizer == "lbfgs":
        fit = HeadFit(spec, inputs(bench, there))
        found = fit.run(Stopwatch())
        outcome = fit.outcome(found, 1)
    else:
        (found,) = train([TrainingRun(spec, inputs(bench, there))], Stopwatch())
        outcome = found.outcome
    assert outcome["rows"]["other/test"] == 9 and outcome["rows"]["test"] == 8
    frame = all_predictions({**TASK, "id": "t"}, bench.corpus, found.predictions, found.transfer)
    predicted = frame[frame["split"] == "other/test"]["prediction"].tolist()
    gold = there.corpus.frame("test")["label"].tolist()
    assert set(predicted) <= {"right", "wrong"}
    assert outcome["scores"]["other/test"]["accuracy"] == pytest.approx(
        np.mean([a == g for a, g in zip(predicted, gold, strict=True)])
    )


@pytest.mark.parametrize("optimizer", ["adamw", "lbfgs"])
def test_a_transfer_set_of_the_same_corpus_is_scored_on_rows_of_its_own(bench, optimizer):
    spec = bench.spec({"train": ["head"], "optimizer": optimizer}) | {"subset": {"rows": 24, "scored": 5}}
    if optimizer == "lbfgs":
        fit = HeadFit(spec, inputs(bench, bench))
        outcome = fit.outcome(fit.run(Stopwatch()), 1)
    else:
        outcome = train([TrainingRun(spec, inputs(bench, bench))], Stopwatch())[0].outcome
    assert outcome["rows"]["other/test"] == 8 and outcome["rows"]["test"] == 5


def test_pooled_states_of_both_corpora_give_what_the_states_of_tokens_give(bench, there):
    for one in (bench, there):
        one.extract("pooled")
    outcomes, head = [], {"layers": {"combine": "concat"}, "pooling": "mean"}
    for read in ({"vectors": "pooled"}, {"reads": list(range(bench.layers))}):
        phase = {"optimizer": "lbfgs", "l2": [1e-2], "boundary": bench.layers} | read
        fit = HeadFit(bench.spec(phase, head=head), inputs(bench, there))
        outcomes.append(fit.outcome(fit.run(Stopwatch()), 1))
    assert outcomes[0]["scores"] == outcomes[1]["scores"] and outcomes[0]["rows"]["other/test"] == 9


def test_the_rest_of_a_result_is_what_it_is_without(bench, there):
    spec = bench.spec({"train": ["head"]})
    with_other = train([TrainingRun(spec, inputs(bench, there))], Stopwatch())[0].outcome
    _, alone = bench.train(spec)
    assert {name: scores for name, scores in with_other["scores"].items() if "/" not in name} == alone.outcome["scores"]


def test_several_labels_may_become_one(there):
    transfer = TransferSet.of(entry(there, a="right", b="wrong", c="wrong"), there.corpus, ["a", "b", "c"])
    read = transfer.read(Predictions(np.arange(3), np.array([0, 1, 2])))
    right, wrong = (there.corpus.labels("label").index(name) for name in ("right", "wrong"))
    assert read.values.tolist() == [right, wrong, wrong]


def test_a_label_that_leads_nowhere_is_refused(there):
    with pytest.raises(
        UserError, match=r"transfer_sets: other has no label 'yes' \(right, wrong\); say rename: {yes: ...}"
    ):
        TransferSet.of(entry(there), there.corpus, ["yes", "no"])


def test_of_two_corpora_and_two_views_each_has_its_own_whatever_the_order_of_the_files(bench, there):
    """Snakemake gives each file once: two corpora, whose stores here serve both views."""
    own = bench.store.card["digest"]
    spec = bench.spec({"train": ["head"]}) | {"features": [own, own]}
    entries = [entry(there, yes="right", no="wrong"), entry(bench) | {"task": TASK | {"id": "own"}}]
    spec |= {"also": [one | {"features": 2 * one["features"]} for one in entries]}
    folders = Namespace(data=bench.corpus.folder, encoder=bench.encoder, features=2 * [bench.features], catalogues=[])
    folders.also_data = [bench.corpus.folder / "card.json", there.corpus.folder / "card.json"]
    folders.also_tokens = [bench.features / "tokens.json", there.features / "tokens.json"]
    for view in open_inputs(spec, folders):
        (other, store), (same, mine) = view.transfer_sets
        assert (other.corpus.folder, store.folder) == (there.corpus.folder, there.features)
        assert (same.corpus.folder, mine.folder) == (bench.corpus.folder, bench.features)
    folders.also_data = folders.also_data[:1]
    with pytest.raises(UserError, match=r"none of .*card\.json has the digest \w+ that was planned"):
        open_inputs(spec, folders)
