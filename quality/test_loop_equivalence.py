"""The fast loop scores as a plain loop of torch: on made-up data always, on real texts where they are; the record."""

import random

import pandas as pd
import pytest

import forked
import loop_equivalence
from benchmarks.quality import Equivalence, equivalence
from conftest import HOME
from loop_equivalence import scores
from plain_loop import fine_tune
from record_tables import pooled
from tiny import WORDS
from tiny_corpus import Bench, tiny_corpus

RECORD = loop_equivalence.record.RECORDS / f"{loop_equivalence.NAME}.parquet"
SEEDS, UPDATES, POINTS = range(1, 9), 80, 7.0


def sentences(count: int, seed: int) -> list[dict]:
    """Return texts of very different length, of which those with more songs than rivers are a yes."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        songs, rivers = draw.sample(range(4), 2)
        words = [draw.choice(WORDS) for _ in range(draw.randint(0, 16))] + ["sings"] * songs + ["river"] * rivers
        draw.shuffle(words)
        made.append({"text": " ".join(words), "label": "yes" if songs > rivers else "no"})
    return made


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """Return a bench of states in bf16 on such texts."""
    folder = tmp_path_factory.mktemp("made_up")
    splits = {name: sentences(count, n) for n, (name, count) in enumerate({"train": 300, "test": 400}.items())}
    corpus = tiny_corpus(folder / "corpus", "classification", **splits)
    return Bench(folder, "bert", corpus, "classification", dtype="bf16")


def fast(bench, top: int | None) -> list[float]:
    """Return Thaw's accuracies on test in points, by seed."""
    train = ["all"] if top is None else ["head", {"top": top}]
    phase = {"train": train, "updates": UPDATES, "batch_size": 16, "rate": 1e-3, "precision": "bf16"}
    spec = [bench.spec(phase | {"head_rate": 1e-2}, head={"pooling": "mean"}, seed=seed) for seed in SEEDS]
    assert spec[0]["phases"][0]["boundary"] == (top and 1), "with two of three the lowest layer is read from the cache"
    return [100 * bench.train(one)[1].outcome["scores"]["test"]["accuracy"] for one in spec]


def plain(bench, seeds=SEEDS, **recipe) -> list[float]:
    """Return the plain loop's accuracies on test in points, by seed."""
    corpus, task = bench.corpus, {"target": "label"}
    read = {split: [(text,) for text in corpus.frame(split)["text"]] for split in ("train", "test")}
    gold = {split: corpus.targets(task, split) for split in read}
    found = []
    for seed in seeds:
        given = {"rate": 1e-3, "head_rate": 1e-2} | recipe
        predict = fine_tune(bench.encoder, read["train"], gold["train"].tolist(), 2, seed, UPDATES, **given)
        found.append(100 * (predict(read["test"]) == gold["test"]).mean())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("top", [2, None], ids=["top two layers", "everything"])
def test_on_made_up_data_both_loops_score_alike_and_another_recipe_does_not(made_up, top):
    ours, theirs = fast(made_up, top), plain(made_up, top=top)
    assert equivalence([(ours, theirs)]).within(POINTS), (ours, theirs)
    assert 60 < sum(theirs) / len(theirs) < 97, "neither at chance nor at the end of what can be learnt"
    assert not equivalence([(ours, plain(made_up, SEEDS[:2], rate=1e-4, head_rate=1e-3, top=top))]).within(POINTS)


def test_equivalence_is_two_one_sided_tests():
    """Of scores with standard deviation 1, by hand: the standard error is 0.5, and t of 14 degrees 1.761."""
    signs, sd = [-1.0] * 4 + [1.0] * 4, (8 / 7) ** 0.5
    ours = [sign / sd for sign in signs]
    found = equivalence([(ours, [score + 0.3 for score in ours])])
    assert (found.difference, found.low, found.high) == pytest.approx((-0.3, -0.3 - 0.8807, -0.3 + 0.8807), abs=1e-4)
    assert found.within(1.2) and not found.within(1.1) and not found.beyond(0.1)
    assert equivalence([([1.0, 1.0], [1.0, 1.0])]) == Equivalence(0.0, 0.0)
    both = equivalence([(ours, ours)] * 2)
    assert both.high == pytest.approx(0.5 / 2**0.5 * 1.7011, abs=1e-4), "of the mean of two tasks, 28 degrees"


@pytest.mark.slow
def test_on_real_questions_both_loops_score_alike(shared_data, tmp_path):
    """One task of the recorded experiment within a point: eight seeds of one task alone seldom show half a point."""
    experiment = HOME / f"config/experiments/{loop_equivalence.NAME}.yaml"
    given = ["--cores", "1", "--config", "tasks=[trec6]", f"data_dir={shared_data}"]
    done = forked.run(["thaw.cli.main", "run", experiment, *given], tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (pair,) = pooled(scores(tmp_path / "results")).values()
    assert list(map(len, pair)) == [8, 8] and equivalence([pair]).within(1.0), pair


def test_the_record_has_both_loops_with_the_same_seeds():
    frame = pd.read_parquet(RECORD)
    assert all(len(ours) == len(theirs) >= 2 for ours, theirs in pooled(frame).values())
