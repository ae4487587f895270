"""Subsets of so many rows of each label: which rows, what is refused, and how many the plan and the prices count."""

import numpy as np
import pytest

from plans import plan_with
from thaw.core.errors import UserError
from thaw.data.corpus import Corpus, scored_part, subset_rows
from thaw.outputs.frame.price import drawn_rows
from thaw.planning.prepared_checks import _lacks
from thaw.planning.row_selections import planned_rows, share_of_train
from thaw.schema.corpora import SubsetConfig, TaskConfig

COUNTS = {"a": 40, "b": 12, "c": 9}
LABEL, SCORE = {"id": "t", "target": "label"}, {"id": "s", "target": "score"}


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    """A corpus whose train has so many rows of each label, and a score."""
    from corpora import prepared

    entry = {"texts": ["text"], "targets": {"label": "label", "score": "score"}}
    names = [label for label, count in COUNTS.items() for _ in range(count)]
    train = [{"text": f"text {i}", "label": label, "score": 1.0} for i, label in enumerate(names)]
    other = [{"text": f"other {i}", "label": "a", "score": 2.0} for i in range(4)]
    return prepared(tmp_path, entry, train=train, validation=other, test=other)


def labels(corpus: Corpus, rows) -> dict[str, int]:
    found = corpus.frame("train")["label"].to_numpy()[rows]
    return {str(label): int((found == label).sum()) for label in COUNTS}


def test_each_label_has_so_many_rows_and_those_of_a_smaller_number_are_among_them(corpus):
    drawn = {count: set(subset_rows(corpus, LABEL, {"per_label": count})) for count in (1, 4, 9)}
    for count, rows in drawn.items():
        assert labels(corpus, sorted(rows)) == dict.fromkeys(COUNTS, count)
    assert drawn[1] < drawn[4] < drawn[9]
    other = set(subset_rows(corpus, LABEL, {"per_label": 4, "draw": 2}))
    assert other != drawn[4] and other == set(subset_rows(corpus, LABEL, {"per_label": 4, "draw": 2}))
    whole = subset_rows(corpus, LABEL, {"per_label": 9})
    assert np.array_equal(whole, np.sort(whole)) and len(whole) == 27


def test_rows_that_choose_are_of_each_label_and_reserved_ones_are_not_drawn(corpus):
    subset = {"per_label": 5, "validation": 0.2, "reserved": 12}
    train, held, reserved = (
        subset_rows(corpus, LABEL, subset),
        *(scored_part(corpus, split, LABEL, subset) for split in ("held_out", "reserved")),
    )
    assert labels(corpus, train) == dict.fromkeys(COUNTS, 4) and labels(corpus, held) == dict.fromkeys(COUNTS, 1)
    assert len(reserved) and not set(reserved) & {*train, *held}


@pytest.mark.parametrize(
    "task, subset, message",
    [
        (LABEL, {"per_label": 10}, "task t: subset of 10 rows a label: train of mine has 9 of c"),
        (LABEL, {"per_label": 9, "reserved": 12}, "of c that are not reserved; ask for fewer"),
        (SCORE, {"per_label": 2}, "task s: per_label draws rows by label, and score is a score; say rows"),
    ],
)
def test_what_train_cannot_give_is_refused(corpus, task, subset, message):
    with pytest.raises(UserError, match=message):
        subset_rows(corpus, task, subset)


def test_a_prepared_corpus_is_asked_before_anything_runs(corpus):
    task = TaskConfig(corpus="mine", target="label", type="classification", metrics=["accuracy"])
    subsets = {"few": SubsetConfig(per_label=9), "many": SubsetConfig(per_label=10)}
    assert list(_lacks(task, corpus.card, subsets)) == [
        "subset many of 10 rows a label: train of mine has 9 of c; ask for fewer"
    ]


def test_a_subset_says_in_print_how_many_rows_it_has():
    assert [SubsetConfig(**one).in_print for one in ({}, {"rows": 1000}, {"per_label": 8})] == [
        "all",
        "1,000",
        "8 a label",
    ]


def planned(folder, task: str):
    (folder / "tasks.yaml").write_text("subsets:\n  few: {per_label: 8, validation: 0.25}\n")
    return plan_with(
        folder, "  one: {phases: [{train: [head, {top: 1}]}]}\n", tasks=[task], strategies=["one"], subsets=["few"]
    )


def test_plan_and_prices_count_the_rows_of_all_labels(tmp_path, corpus):
    plan = planned(tmp_path, "acceptability")
    (job,), (store,) = plan.jobs["train"].values(), plan.jobs["features"]
    assert job.spec["subset"] == {"per_label": 8, "validation": 0.25}
    assert planned_rows(plan, store, job.spec["task"]["target"], job.spec["subset"], 1000) == 16
    assert share_of_train(plan, store, 1000) == 0.016
    folder = tmp_path / "results/data/mine"
    folder.mkdir(parents=True)
    (folder / "card.json").write_bytes((corpus.folder / "card.json").read_bytes())
    task = {"corpus": "mine", "target": "label"}
    assert drawn_rows({"per_label": 8}, task, tmp_path / "results") == 24
    assert drawn_rows({"rows": 7}, task, tmp_path) == 7 and drawn_rows({}, task, tmp_path) is None
