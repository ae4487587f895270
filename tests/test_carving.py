"""Carving: no sentence on both sides, a share close to the one wanted, the same rows each time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thaw.core.errors import UserError
from thaw.data.carving import carve, group

QUICK = settings(max_examples=60, deadline=None)
PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=60)


def carved_of(groups, classes=None, shares=None):
    groups = np.array(groups)
    return carve(groups, np.zeros_like(groups) if classes is None else np.array(classes), shares or {"dev": 0.2}, "x")


@QUICK
@given(PAIRS)
def test_rows_that_share_a_sentence_are_one_group_and_no_others(pairs):
    columns = {"a": [f"Text  {a}" for a, _ in pairs], "b": [f"text {b} " for _, b in pairs]}
    groups = group(columns, ["a", "b"], "sentence")
    # The reference spreads the smallest row number over shared sentences until nothing changes.
    reference = list(range(len(pairs)))
    while True:
        spread = [min(r for r, other in zip(reference, pairs, strict=True) if {*other} & {*p}) for p in pairs]
        if spread == reference:
            break
        reference = spread
    assert [reference.index(r) for r in reference] == [groups.tolist().index(g) for g in groups]
    assert groups.max() + 1 == len(set(reference))


def test_groups_by_row_and_by_parent():
    columns = {"phrase": ["a film", "film", "a film"], "parent": ["s1", "s1", "s2"]}
    assert group(columns, ["phrase"], "row").tolist() == [0, 1, 2]
    assert group(columns, ["phrase"], "parent").tolist() == [0, 0, 1]
    assert group(columns, ["phrase"], "sentence").tolist() == [0, 1, 0]


def test_a_phrase_goes_with_the_longest_text_that_holds_it():
    texts = ["a film", "This is a film", "is a", "a fine film", "fine", "fil", "a"]
    assert group({"text": texts}, ["text"], "phrase").tolist() == [0, 0, 0, 1, 1, 2, 0]


@QUICK
@given(st.lists(st.integers(0, 30), min_size=20, max_size=200), st.floats(0.1, 0.4), st.integers(0, 2**32 - 1))
def test_groups_stay_whole_and_the_share_is_never_exceeded(groups, share, seed):
    classes = np.random.default_rng(seed).integers(0, 2, len(groups))
    groups = np.unique(groups, return_inverse=True)[1]
    try:
        carved = carved_of(groups, np.unique(classes, return_inverse=True)[1], {"dev": share})
    except UserError:
        return
    assert sorted([*carved["train"], *carved["dev"]]) == list(range(len(groups)))
    assert not set(groups[carved["train"]]) & set(groups[carved["dev"]])
    assert len(carved["dev"]) <= round(share * len(groups))
    assert set(classes[carved["train"]]) == set(classes)


def test_share_and_label_proportions_are_close_with_small_groups():
    random = np.random.default_rng(1)
    groups = np.sort(random.integers(0, 700, 1000))
    groups = np.unique(groups, return_inverse=True)[1]
    classes = (random.random(1000) < 0.3).astype(int)
    dev = carved_of(groups, classes, {"dev": 0.1})["dev"]
    assert len(dev) == 100
    assert abs(classes[dev].mean() - classes.mean()) < 0.02


def test_single_rows_are_stratified_exactly():
    classes = np.repeat([0, 1, 2], [500, 300, 200])
    dev = carved_of(np.arange(1000), classes, {"dev": 0.1})["dev"]
    assert np.bincount(classes[dev]).tolist() == [50, 30, 20]


def test_a_giant_group_stays_in_train():
    groups = np.array([0] * 900 + list(range(1, 101)))
    carved = carved_of(groups, shares={"dev": 0.1})
    assert len(carved["dev"]) >= 99 and set(range(900)) <= set(carved["train"])


def test_only_a_giant_group_is_an_error():
    with pytest.raises(
        UserError, match="carve dev: no group is small enough for the 20 rows wanted, the smallest has 100"
    ):
        carved_of([0] * 100)


def test_two_splits_do_not_meet_and_nothing_depends_on_the_call():
    shares = {"dev": 0.1, "test": 0.2}
    one, two = (carved_of(np.arange(500), shares=shares) for _ in range(2))
    assert {split: len(rows) for split, rows in one.items()} == {"train": 350, "dev": 50, "test": 100}
    assert len({row for rows in one.values() for row in rows}) == 500
    assert all(np.array_equal(one[split], two[split]) for split in one)
    assert np.array_equal(carved_of(np.arange(500), shares={"dev": 0.1})["dev"], one["dev"])
