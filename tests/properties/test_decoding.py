"""Decoding on random taxonomies: no company changes a document's bits, sets are coherent, constraints hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap.decoding import Constraints, beam, decode, explain, marginals, sampled
from hilap.decoding.scoring import log_probs, steady_rows
from hilap.policy import Documents, Policy
from hilap.taxonomy import Taxonomy
from tests.strategies import taxonomies

STEPS = 6


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small products on a shared machine: two threads mostly wait for each other."""
    with threads(1):
        yield


RULES = st.builds(
    lambda low, more, path, leaf: Constraints(
        min_labels=low, max_labels=None if more is None else max(1, low + more), single_path=path, must_reach_leaf=leaf
    ),
    st.integers(0, 4),
    st.none() | st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)


def policy_of(taxonomy, seed: int, *, rule="ancestors", residual=False, hidden=12, width=7, scale=2.0) -> Policy:
    policy = Policy(
        taxonomy,
        9,
        hidden=hidden,
        width=width,
        dag_rule=rule,
        residual=residual,
        generator=torch.Generator().manual_seed(seed),
    )
    for parameter in policy.parameters():
        parameter.data.mul_(scale)
    return policy


def documents_of(policy: Policy, count: int, seed: int) -> Documents:
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(count, 9, generator=generator)
    with torch.no_grad():
        return policy.documents(embeddings, torch.randn(count, policy.n_labels, generator=generator))


def some(documents: Documents, rows: torch.Tensor) -> Documents:
    return replace(documents, half=documents.half[rows], flat=None if documents.flat is None else documents.flat[rows])


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def everything(policy: Policy, documents: Documents, constraints: Constraints | None = None) -> list[torch.Tensor]:
    """All that decoding gives for each document, the documents along the first axis."""
    walks = decode(policy, documents, max_steps=STEPS, constraints=constraints)
    actions = torch.full((len(documents), STEPS), policy.stop)
    actions[:, : len(walks.actions)] = walks.actions.T
    beams = beam(policy, documents, width=3, max_steps=STEPS, constraints=constraints)
    return [
        walks.placed,
        actions,
        walks.log_prob,
        beams.sets,
        beams.log_probs,
        beams.mass,
        beams.shares,
        marginals(policy, documents, width=3, max_steps=STEPS, constraints=constraints),
        sampled(policy, documents, samples=3, max_steps=STEPS, constraints=constraints),
    ]


def random_taxonomy(labels: int, dag: bool) -> Taxonomy:
    generator = torch.Generator().manual_seed(labels)
    parents: dict[str, list[str]] = {}
    for i in range(labels):
        above = torch.randint(0, max(1, i // 2), (2 if dag else 1,), generator=generator).tolist()
        parents[str(i)] = sorted({str(p) for p in above}) if i > labels // 20 + 1 else []
    return Taxonomy.of(parents)


SIZES = {  # labels, hidden, width, documents, a DAG
    "tiny": (5, 6, 5, 40, True),
    "odd": (31, 33, 17, 37, True),
    "text": (300, 500, 50, 70, False),
    "features": (200, 1000, 1000, 30, True),
}


@pytest.mark.parametrize("residual", [False, True], ids=["paper", "residual"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_a_document_gets_the_same_bits_alone_in_any_batch_and_in_any_order(size, residual):
    labels, hidden, width, number, dag = size
    policy = policy_of(random_taxonomy(labels, dag), 1, residual=residual, hidden=hidden, width=width)
    documents = documents_of(policy, number, 2)
    generator = torch.Generator().manual_seed(3)
    together = everything(policy, documents)
    batches = [torch.randperm(number, generator=generator)[:n] for n in (1, 1, 2, 3, 5, 9, 17, number)]
    for batch in batches:
        for one, all_ in zip(everything(policy, some(documents, batch)), together, strict=True):
            assert torch.equal(one, all_[batch])


@settings(max_examples=25)
@given(
    taxonomies(max_labels=12),
    st.integers(0, 99),
    st.sampled_from(["ancestors", "any"]),
    st.booleans(),
    st.none() | RULES,
    st.lists(st.integers(0, 10), min_size=1, max_size=11, unique=True),
)
def test_on_any_taxonomy_the_company_of_a_document_changes_nothing(taxonomy, seed, rule, residual, demands, batch):
    policy = policy_of(taxonomy, seed, rule=rule, residual=residual)
    documents = documents_of(policy, 11, seed)
    chosen = torch.tensor(batch)
    together = everything(policy, documents, demands)
    for one, all_ in zip(everything(policy, some(documents, chosen), demands), together, strict=True):
        assert torch.equal(one, all_[chosen])


def test_an_explanation_does_not_depend_on_the_batch_and_gives_the_bits_of_the_walk():
    policy = policy_of(random_taxonomy(60, True), 4, hidden=64, width=20)
    documents = documents_of(policy, 20, 5)
    walks = decode(policy, documents, max_steps=STEPS)
    for doc in range(0, 20, 3):
        alone = explain(policy, some(documents, torch.tensor([doc])), 0, max_steps=STEPS)
        together = explain(policy, documents, doc, max_steps=STEPS)
        assert [d.action for d in alone] == [d.action for d in together] == walks.actions[: len(alone), doc].tolist()
        assert all(torch.equal(a.probabilities, b.probabilities) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("hidden", "width"), [(6, 5), (500, 50), (1000, 1000)])
def test_a_step_gets_the_same_bits_with_any_number_of_rows_on_one_and_two_threads(hidden, width, count):
    """Rows at different places, so that the labels projected and the columns scored vary with the company too."""
    policy = policy_of(random_taxonomy(60, True), 1, hidden=hidden, width=width)
    documents = documents_of(policy, 70, 2)
    docs, tops = torch.arange(70), policy.start(1).open[0, : policy.stop].nonzero().flatten()
    walk = policy.step(policy.start(70), tops[docs % len(tops)])
    together = log_probs(policy, documents, docs, walk.at, walk.open)
    torch.testing.assert_close(together, policy.log_probs(documents, docs, walk.at, walk.open), rtol=1e-4, atol=1e-4)
    generator = torch.Generator().manual_seed(3)
    with threads(count):
        for rows in (1, 2, 3, 4, 5, 7, 9, 12, 17, 33, 65, 70):
            some_ = torch.randperm(70, generator=generator)[:rows]
            alone = log_probs(policy, documents, docs[some_], walk.at[some_], walk.open[some_])
            assert torch.equal(alone, together[some_])


@given(st.integers(1, 40), st.integers(0, 3))
def test_steady_rows_repeat_the_first_up_to_a_multiple_of_eight(count, width):
    rows = torch.arange(count * max(width, 1)).view(count, *([width] if width else []))
    made = steady_rows(rows)
    assert len(made) % 8 == 0
    assert len(made) - count < 8
    assert torch.equal(made[:count], rows)
    assert all(torch.equal(row, rows[0]) for row in made[count:])


@settings(max_examples=40)
@given(taxonomies(max_labels=10), st.integers(0, 99), st.booleans(), st.integers(1, 9), st.booleans())
def test_no_label_is_more_probable_than_any_of_its_ancestors(taxonomy, seed, residual, width, sampling):
    policy = policy_of(taxonomy, seed, residual=residual)
    documents = documents_of(policy, 5, seed)
    method = "samples" if sampling else "beam"
    found = marginals(policy, documents, method=method, width=width, samples=width, max_steps=STEPS)
    child, parent = (torch.from_numpy(index).long() for index in taxonomy.parent_matrix.nonzero())
    assert (found[:, child] <= found[:, parent]).all()
    assert ((found >= 0) & (found <= 1)).all()


@settings(max_examples=25)
@given(taxonomies(max_labels=6), st.integers(0, 99), st.sampled_from(["ancestors", "any"]), st.none() | RULES)
def test_width_one_is_greedy_and_a_wide_beam_loses_nothing(taxonomy, seed, rule, demands):
    policy = policy_of(taxonomy, seed, rule=rule)
    documents = documents_of(policy, 4, seed)
    single = decode(policy, documents, max_steps=STEPS, constraints=demands)
    narrow = beam(policy, documents, width=1, max_steps=STEPS, constraints=demands)
    wide = beam(policy, documents, width=500, max_steps=STEPS, constraints=demands)
    assert torch.equal(narrow.sets[:, 0], single.placed)
    assert torch.equal(narrow.log_probs[:, 0], single.log_prob)
    torch.testing.assert_close(wide.mass, torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-5)


@settings(max_examples=60)
@given(taxonomies(max_labels=10), st.integers(0, 99), st.sampled_from(["ancestors", "any"]), RULES)
def test_every_set_keeps_the_constraints_as_far_as_labels_remain(taxonomy, seed, rule, demands):
    policy = policy_of(taxonomy, seed, rule=rule)
    documents = documents_of(policy, 3, seed)
    walks = decode(policy, documents, max_steps=99, constraints=demands)
    for doc in range(3):
        actions = [taxonomy.labels[a] for a in walks.actions[:, doc].tolist() if a != policy.stop]
        placed = {taxonomy.labels[i] for i in walks.placed[doc].nonzero().flatten().tolist()}
        assert demands.max_labels is None or len(placed) <= demands.max_labels
        if demands.single_path:
            assert all(b in taxonomy.children(a) for a, b in zip([None, *actions], actions, strict=False))
        left = _left(taxonomy, rule, demands, placed, actions)
        if left:  # it stopped although it could have gone on: so nothing demanded more
            assert len(placed) >= demands.min_labels
            open_ends = [x for x in placed if taxonomy.children(x) and not placed & set(taxonomy.children(x))]
            assert not demands.must_reach_leaf or (placed and not open_ends)


def _left(taxonomy, rule, demands, placed, actions) -> list[str]:
    """The labels that could still be placed, found by hand."""
    below = [None, *placed] if not demands.single_path else [actions[-1] if actions else None]
    open_ = {child for place in below for child in taxonomy.children(place)} - placed
    most = math.inf if demands.max_labels is None else demands.max_labels
    return [c for c in open_ if len(placed | (set(taxonomy.close([c])) if rule == "ancestors" else {c})) <= most]


def test_documents_of_one_batch_share_their_random_numbers_but_walks_of_one_document_do_not():
    policy = policy_of(random_taxonomy(30, False), 7, scale=0.5)
    documents = some(documents_of(policy, 1, 3), torch.tensor([0, 0]))
    sets = sampled(policy, documents, samples=20, max_steps=STEPS, generator=torch.Generator().manual_seed(1))
    again = sampled(policy, documents, samples=20, max_steps=STEPS, generator=torch.Generator().manual_seed(1))
    other = sampled(policy, documents, samples=20, max_steps=STEPS, generator=torch.Generator().manual_seed(2))
    assert torch.equal(sets[0], sets[1])
    assert torch.equal(sets, again)
    assert not torch.equal(sets, other)
    assert len(torch.unique(sets[0], dim=0)) > 5
