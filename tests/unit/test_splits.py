"""Splits of single, known cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.corpus.splits import part_sizes, split, split_rows
from hilap.errors import CorpusError, SettingError
from hilap.taxonomy import Taxonomy


def skewed(n: int = 2_000, labels: int = 60, seed: int = 0) -> sparse.csr_array:
    """Labels as popular as words: a few common ones, many rare ones."""
    rng = np.random.default_rng(seed)
    popularity = 0.5 / np.arange(1, labels + 1)
    return sparse.csr_array((rng.random((n, labels)) < popularity).astype(np.int32))


def deviation(labels: sparse.csr_array, rows: dict[str, np.ndarray], shares: list[float]) -> float:
    """By how much a label's share of documents in a part misses the asked share, on average."""
    total = np.asarray(labels.sum(axis=0)).ravel()
    used = total > 0
    misses = [
        np.abs(np.asarray(labels[mine].sum(axis=0)).ravel()[used] / total[used] - share)
        for mine, share in zip(rows.values(), shares, strict=True)
    ]
    return float(np.mean(misses))


def test_examples_keep_texts_labels_and_order(tree: Taxonomy) -> None:
    texts = [f"text {i}" for i in range(20)]
    examples = Examples.of(tree, [["beer"] if i % 2 else [] for i in range(20)], texts=texts)
    parts = split(examples, {"a": 0.5, "b": 0.5}, seed=3)
    for part in parts.values():
        numbers = [int(i) for i in part.ids]
        assert numbers == sorted(numbers)
        assert list(part.texts or []) == [texts[i] for i in numbers]
        assert part.label_sets == [("food", "bars", "beer") if i % 2 else () for i in numbers]


def test_sizes_of_the_papers_validation_sets() -> None:
    for train, valid in ((23_149, 2_315), (25_279, 2_528), (87_375, 8_737)):
        assert part_sizes(train, np.array([0.9, 0.1]))[1] == valid


def test_the_random_split_depends_on_seed_and_number_only() -> None:
    some, other = skewed(50, seed=1), sparse.csr_array((50, 3))
    a = split_rows(some, [0.8, 0.2], seed=5)
    b = split_rows(other, [0.8, 0.2], seed=5)
    assert {k: v.tolist() for k, v in a.items()} == {k: v.tolist() for k, v in b.items()}


@pytest.mark.parametrize("by", ["random", "group", "stratified"])
def test_the_same_seed_gives_the_same_split_and_another_seed_another(by: str) -> None:
    labels = skewed(300)
    groups = np.arange(300) // 3 if by == "group" else None
    first, again, other = (
        split_rows(labels, [0.7, 0.3], seed=seed, by=by, groups=groups)["test"].tolist() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_stratified_by_hand() -> None:
    # The rare label (rows 0, 1) goes first, one to each half; then two of rows 2..5 have to go to each half.
    labels = np.array([[1, 1], [1, 1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 0], [0, 0]])
    for seed in range(20):
        rows = split_rows(labels, [0.5, 0.5], seed=seed, by="stratified")
        for mine in rows.values():
            assert labels[mine].sum(axis=0).tolist() == [1, 3]
            assert len(mine) == 4


def test_stratified_groups_by_hand() -> None:
    # Two groups of two and four single documents, all with the label: each half can have exactly half of it.
    labels = np.ones((8, 1), dtype=int)
    groups = ["a", "a", "b", "b", "c", "d", "e", "f"]
    for seed in range(20):
        rows = split_rows(labels, [0.5, 0.5], seed=seed, by="stratified", groups=groups)
        assert [len(mine) for mine in rows.values()] == [4, 4]


def test_stratified_comes_nearer_to_the_shares_than_random() -> None:
    shares = [0.7, 0.1, 0.2]
    for seed in range(5):
        labels = skewed(seed=seed)
        even = deviation(labels, split_rows(labels, shares, seed=seed, by="stratified"), shares)
        chance = deviation(labels, split_rows(labels, shares, seed=seed), shares)
        assert even < chance / 3


def test_stratified_groups_come_nearer_to_the_shares_than_groups_by_size() -> None:
    shares = [0.7, 0.3]
    labels, groups = skewed(), np.random.default_rng(1).integers(0, 400, 2_000).tolist()
    even = deviation(labels, split_rows(labels, shares, seed=0, by="stratified", groups=groups), shares)
    chance = deviation(labels, split_rows(labels, shares, seed=0, by="group", groups=groups), shares)
    assert even < chance / 1.5


def test_every_label_with_enough_documents_is_in_every_part() -> None:
    labels = skewed()
    rows = split_rows(labels, {"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}, seed=0, by="stratified")
    enough = np.asarray(labels.sum(axis=0)).ravel() >= 8
    assert enough.sum() > 30
    for mine in rows.values():
        assert (np.asarray(labels[mine].sum(axis=0)).ravel()[enough] > 0).all()


def test_documents_without_labels_are_shared_out_too() -> None:
    rows = split_rows(sparse.csr_array((100, 4)), [0.6, 0.4], seed=0, by="stratified")
    assert [len(mine) for mine in rows.values()] == [60, 40]


def test_a_taxonomy_without_labels_can_be_stratified() -> None:
    rows = split_rows(sparse.csr_array((10, 0)), [0.5, 0.5], seed=0, by="stratified")
    assert [len(mine) for mine in rows.values()] == [5, 5]


def test_parts_get_the_usual_names() -> None:
    labels = sparse.csr_array((20, 1))
    assert list(split_rows(labels, [0.5, 0.5], seed=0)) == ["train", "test"]
    assert list(split_rows(labels, [0.5, 0.2, 0.3], seed=0)) == ["train", "valid", "test"]
    assert list(split_rows(labels, [0.25] * 4, seed=0)) == ["part_1", "part_2", "part_3", "part_4"]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([0.5, 0.4], r"shares must add up to 1, got 0\.9"),
        ([1.5, -0.5], r"the share of 'test' must be a number above 0, got -0\.5"),
        ({"a": 1.0, "b": 0}, r"the share of 'b' must be a number above 0, got 0"),
        ([float("nan"), 1.0], r"the share of 'train' must be a number above 0, got nan"),
        ({"a": "half"}, r"the share of 'a' must be a number above 0, got 'half'"),
        ([], r"shares must name at least one part, got none"),
    ],
)
def test_bad_shares_are_refused(shares: object, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        split_rows(sparse.csr_array((10, 1)), shares, seed=0)


def test_bad_ways_are_refused(tree: Taxonomy) -> None:
    examples = Examples.of(tree, [[]] * 4)
    with pytest.raises(SettingError, match=r"by must be one of random, group, stratified.*did you mean 'stratified'"):
        split(examples, [0.5, 0.5], seed=0, by="stratify")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="seed must be a whole number, 0 or more, got -1"):
        split(examples, [0.5, 0.5], seed=-1)
    with pytest.raises(CorpusError, match="by='group' needs documents with groups"):
        split(examples, [0.5, 0.5], seed=0, by="group")
    with pytest.raises(SettingError, match="by='random' does not look at them"):
        split_rows(examples.labels, [0.5, 0.5], seed=0, groups=["a"] * 4)
    with pytest.raises(CorpusError, match="4 documents but 3 groups"):
        split_rows(examples.labels, [0.5, 0.5], seed=0, by="group", groups=["a"] * 3)


def test_a_part_that_would_be_empty_is_an_error() -> None:
    with pytest.raises(CorpusError, match=r"the part 'test' would be empty: 3 documents at a share of 0\.1"):
        split_rows(sparse.csr_array((3, 1)), [0.9, 0.1], seed=0)
    with pytest.raises(CorpusError, match=r"the part 'test' would be empty"):
        split_rows(sparse.csr_array((30, 1)), [0.5, 0.5], seed=0, by="group", groups=["one"] * 30)
