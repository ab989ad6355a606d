"""What holds for every split."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from hilap.corpus.splits import _choose, _choose_weighted, split_rows
from hilap.errors import CorpusError


@st.composite
def tasks(draw: st.DrawFn) -> tuple[np.ndarray, list[float], list[int]]:
    n = draw(st.integers(6, 60))
    rng = np.random.default_rng(draw(st.integers(0, 1_000)))
    labels = (rng.random((n, draw(st.integers(1, 8)))) < draw(st.floats(0.05, 0.9))).astype(int)
    raw = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    return labels, [x / sum(raw) for x in raw], rng.integers(0, draw(st.integers(1, n)), n).tolist()


def attempt(labels: np.ndarray, shares: list[float], **options: object) -> dict[str, np.ndarray]:
    try:
        return split_rows(labels, shares, **options)
    except CorpusError as error:
        assume("would be empty" not in str(error))
        raise


@given(tasks(), st.sampled_from(["random", "group", "stratified", "stratified groups"]), st.integers(0, 9))
def test_parts_are_disjoint_and_complete(task: tuple, way: str, seed: int) -> None:
    labels, shares, groups = task
    by, _, grouped = way.partition(" ")
    rows = attempt(labels, shares, seed=seed, by=by, groups=groups if grouped or by == "group" else None)
    assert sorted(np.concatenate(list(rows.values())).tolist()) == list(range(len(labels)))
    assert all((np.diff(mine) > 0).all() for mine in rows.values())


@given(tasks(), st.integers(0, 9))
def test_random_sizes_are_within_one_of_what_was_asked(task: tuple, seed: int) -> None:
    labels, shares, _ = task
    rows = attempt(labels, shares, seed=seed)
    for mine, share in zip(rows.values(), shares, strict=True):
        assert abs(len(mine) - share * len(labels)) < 1


@given(tasks(), st.sampled_from(["group", "stratified"]), st.integers(0, 9))
def test_no_group_is_in_two_parts(task: tuple, by: str, seed: int) -> None:
    labels, shares, groups = task
    rows = attempt(labels, shares, seed=seed, by=by, groups=groups)
    parts = [{groups[i] for i in mine} for mine in rows.values()]
    assert sum(map(len, parts)) == len(set().union(*parts))


@given(tasks(), st.integers(0, 9))
def test_group_sizes_miss_by_at_most_the_largest_group(task: tuple, seed: int) -> None:
    labels, shares, groups = task
    rows = attempt(labels, shares, seed=seed, by="group", groups=groups)
    largest = max(np.bincount(groups))
    for mine, share in zip(rows.values(), shares, strict=True):
        assert len(mine) - share * len(labels) <= largest


@given(tasks(), st.integers(0, 9))
def test_documents_with_one_label_each_are_stratified_to_within_one(task: tuple, seed: int) -> None:
    labels, shares, _ = task
    single = np.eye(labels.shape[1], dtype=int)[labels.sum(axis=1) % labels.shape[1]]
    rows = attempt(single, shares, seed=seed, by="stratified")
    for mine, share in zip(rows.values(), shares, strict=True):
        assert (np.abs(single[mine].sum(axis=0) - share * single.sum(axis=0)) < 1 + 1e-9).all()


@given(st.integers(2, 5), st.integers(0, 60), st.integers(0, 10_000))
def test_placing_many_at_once_is_placing_one_after_another(parts: int, documents: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted, wanted_all = rng.normal(0, 8, parts), rng.normal(20, 8, parts)  # without ties, so chance plays no part
    ones = np.ones(documents, dtype=np.int64)
    at_once = _choose(wanted, wanted_all, ones, ones, rng)
    one_by_one = _choose_weighted(wanted, wanted_all, ones, ones, rng)
    assert at_once.tolist() == one_by_one.tolist()
