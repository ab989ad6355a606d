"""Constraints, stop bias and its tuning: what they refuse, what they are, what they find."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import f1_score

from hilap.decoding import Constraints, StopBias, beam, decode, explain, marginals, sampled, shortfalls, tune_stop_bias
from hilap.decoding.beam import _merged
from hilap.errors import SettingError
from hilap.policy import Policy
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["b"], "d": []})


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny products: two threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def policy() -> Policy:
    return Policy(TREE, 3, hidden=4, width=4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def documents(policy):
    with torch.no_grad():
        return policy.documents(torch.randn(2, 3, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_labels": -1}, "min_labels must be a whole number, at least 0, got -1"),
        ({"min_labels": 1.5}, "min_labels must be a whole number, at least 0, got 1.5"),
        ({"max_labels": 0}, "max_labels must be a whole number, at least 1, got 0"),
        ({"min_labels": 3, "max_labels": 2}, r"max_labels must be at least min_labels \(3\), got 2"),
        ({"single_path": 1}, "single_path must be true or false, got 1"),
        ({"must_reach_leaf": "yes"}, "must_reach_leaf must be true or false, got 'yes'"),
    ],
)
def test_constraints_that_cannot_be_are_refused(given, message):
    with pytest.raises(SettingError, match=message):
        Constraints(**given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, d: decode(p, d, max_steps=-1), "max_steps must be a whole number, at least 0, got -1"),
        (lambda p, d: beam(p, d, width=0, max_steps=3), "width must be a whole number, at least 1, got 0"),
        (lambda p, d: sampled(p, d, samples=0, max_steps=3), "samples must be a whole number, at least 1, got 0"),
        (lambda p, d: explain(p, d, 2, max_steps=3), "doc must be the number of a document, from 0 to 1, got 2"),
        (
            lambda p, d: marginals(p, d, method="both", max_steps=3),
            "method must be one of 'beam', 'samples', got 'both'",
        ),
    ],
)
def test_parameters_that_cannot_be_are_refused(policy, documents, call, message):
    with pytest.raises(SettingError, match=message):
        call(policy, documents)


def test_constraints_come_back_from_a_dict():
    given = Constraints(min_labels=1, max_labels=4, single_path=True)
    assert Constraints.from_dict(given.to_dict()) == given
    assert StopBias.from_dict(StopBias(prior=0.5).to_dict()) == StopBias(prior=0.5)


@pytest.mark.parametrize("call", [decode, explain, beam, sampled, marginals])
def test_no_gradients_are_kept(policy, call):
    documents = policy.documents(torch.randn(2, 3))
    more = {beam: {"width": 2}, sampled: {"samples": 2}}.get(call, {})
    found = call(policy, documents, *([0] if call is explain else []), max_steps=5, **more)
    tensors = {decode: lambda f: f.log_prob, beam: lambda f: f.log_probs, explain: lambda f: f[0].probabilities}
    assert not tensors.get(call, lambda f: f)(found).requires_grad


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_batch_may_be_empty_and_a_taxonomy_without_labels(count):
    for taxonomy in (TREE, Taxonomy.of({})):
        policy = Policy(taxonomy, 3, hidden=4, width=4)
        with torch.no_grad():
            documents = policy.documents(torch.randn(count, 3))
        for rule in (None, Constraints(min_labels=1, max_labels=2, must_reach_leaf=True, single_path=True)):
            shape = (count, len(taxonomy))
            assert decode(policy, documents, max_steps=4, constraints=rule).placed.shape == shape
            assert beam(policy, documents, width=2, max_steps=4, constraints=rule).sets.shape == (count, 2, shape[1])
            assert sampled(policy, documents, samples=2, max_steps=4, constraints=rule).shape == (count, 2, shape[1])
            assert marginals(policy, documents, max_steps=4, constraints=rule).shape == shape
            for doc in range(count):
                explain(policy, documents, doc, max_steps=4, constraints=rule)


def test_a_very_improbable_set_still_has_marginals(policy, documents):
    """Log-probabilities far below what a float can hold: shares are taken before the logarithm is undone."""
    bias = torch.tensor([0.0, -2000.0, 0.0, 0.0, -3000.0])
    unlikely = replace(documents, bias=bias)
    rule = Constraints(single_path=True, must_reach_leaf=True)
    found = marginals(policy, unlikely, width=4, max_steps=5, constraints=rule)
    assert torch.isfinite(found).all()
    assert (found.sum(1) > 0.9).all()


def test_sets_whose_keys_collide_are_not_put_together(policy):
    """With all words zero every key is the same: only the comparison label by label keeps sets apart."""
    walk = policy.step(policy.start(3), torch.tensor([0, 3, 0]))  # a; d; a
    parent, stop = torch.arange(3).view(1, 3), torch.full((1, 3), policy.stop)
    value = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log().view(1, 3)
    nothing = torch.zeros(1, 3, dtype=torch.long)
    merged = _merged(policy, walk, parent, stop, value, nothing, torch.zeros(9, dtype=torch.long))
    assert merged.exp().tolist() == [pytest.approx([0.5, 0.3, 0.2])]
    keys = torch.tensor([[7, 8, 7]])
    merged = _merged(policy, walk, parent, stop, value, keys, torch.zeros(9, dtype=torch.long))
    assert merged.exp().tolist() == [pytest.approx([0.7, 0.3, 0.0])]


# -- stop bias --------------------------------------------------------------------------------------------------------


def test_the_bias_vector_is_what_it_says():
    counts, documents = [9, 4, 0, 10], 10
    odds = [math.log((c + 0.5) / (documents - c + 0.5)) for c in counts]
    mean = sum(odds) / 4
    expected = [0.3 * (level - 1) - 0.7 * (o - mean) for o, level in zip(odds, [1, 2, 3, 1], strict=True)]
    vector = StopBias(constant=-1.5, prior=0.7, level=0.3).vector(TREE, counts, documents)
    assert vector.tolist() == pytest.approx([*expected, -1.5], abs=1e-6)
    assert vector.dtype == torch.float32
    assert StopBias().vector(TREE, counts, documents).tolist() == [0] * 5
    assert vector[2] > vector[0]  # the rare deep label is favoured


def test_a_high_stop_bias_shortens_walks_and_a_low_one_lengthens_them(policy, documents):
    sizes = [
        decode(policy, replace(documents, bias=StopBias(constant=c).vector(TREE, [1, 1, 1, 1], 2)), max_steps=9)
        .placed.sum()
        .item()
        for c in (50.0, 0.0, -50.0)
    ]
    assert sizes[0] == 0
    assert sizes[2] == 8
    assert sizes[0] <= sizes[1] <= sizes[2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StopBias(constant=math.nan), "constant must be a number between -1000 and 1000, got nan"),
        (lambda: StopBias(count=0.5).vector(TREE, [1] * 4, 5), "count must be 0 where labels have no shortfall"),
        (lambda: StopBias(level="1"), "level must be a number between -1000 and 1000, got '1'"),
        (lambda: StopBias().vector(TREE, [1, 2], 5), "training must be an indicator matrix with 4 columns"),
        (lambda: StopBias().vector(TREE, [1, 2, 9, 0], 5), r"at least the largest count \(9\), got 5"),
        (lambda: tune_stop_bias(len, [[1]], metric="f1"), "metric must be one of 'example_f1'.*got 'f1'"),
        (lambda: tune_stop_bias(lambda b: [[1]], [[1]], grids={"depth": [0]}), "grids must be one of .*got 'depth'"),
        (lambda: tune_stop_bias(len, [[1]], refinements=-1), "refinements must be a whole number, at least 0, got -1"),
        (
            lambda: tune_stop_bias(lambda b: [[0]], [[0]], metric="macro_f1"),
            "the metric is not a number with StopBias.*needs a document with a gold label",
        ),
    ],
)
def test_biases_and_searches_that_cannot_be_are_refused(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def hill(top: dict[str, float]):
    """A metric that falls with the distance of a bias from a top, and a decoder that hands the bias over."""
    tried: list[StopBias] = []

    def sets_for(bias):
        tried.append(bias)
        return bias

    return sets_for, lambda gold, bias: -sum((getattr(bias, part) - at) ** 2 for part, at in top.items()), tried


def test_tuning_finds_the_top_of_a_hill_to_a_quarter_of_the_grid():
    sets_for, metric, tried = hill({"constant": 1.3, "prior": 0.4, "level": -0.8})
    tuned = tune_stop_bias(sets_for, None, metric=metric)
    assert tuned.bias.constant == pytest.approx(1.3, abs=0.125)
    assert tuned.bias.prior == pytest.approx(0.4, abs=0.0626)
    assert tuned.bias.level == pytest.approx(-0.8, abs=0.0626)
    assert tuned.score == max(score for _, score in tuned.table)
    assert len(set(tried)) == len(tried) == len(tuned.table), "a bias was decoded twice"
    assert len(tried) < 60


def test_tuning_leaves_the_grid_where_that_helps():
    sets_for, metric, _ = hill({"constant": 4.0})
    assert tune_stop_bias(sets_for, None, metric=metric, grids={"constant": [0, 1, 2]}).bias.constant == 4.0


def test_tuning_touches_only_the_parts_it_is_given_and_starts_where_it_is_told():
    sets_for, metric, tried = hill({"constant": 1.0, "prior": 1.0, "level": 1.0})
    tuned = tune_stop_bias(sets_for, None, metric=metric, grids={"level": [0, 1]}, start=StopBias(constant=0.5))
    assert tuned.bias == StopBias(constant=0.5, level=1.0)
    assert {(bias.constant, bias.prior) for bias in tried} == {(0.5, 0.0)}
    assert tune_stop_bias(sets_for, None, metric=metric, grids={}, refinements=0).bias == StopBias()


def test_where_no_bias_is_better_none_is_taken():
    tuned = tune_stop_bias(lambda bias: bias, None, metric=lambda gold, bias: 1.0)
    assert tuned.bias == StopBias()


@pytest.mark.parametrize("kind", ["array", "sparse", "tensor"])
def test_tuning_scores_with_the_metric_it_is_asked_for(kind):
    rng = np.random.default_rng(0)
    gold = rng.random((30, 4)) < 0.4
    scores = gold + rng.normal(size=gold.shape)
    convert = {"array": np.asarray, "sparse": sparse.csr_array, "tensor": torch.from_numpy}[kind]
    theirs = {
        name: lambda g, p, a=a: f1_score(g, p, average=a) for name, a in (("micro_f1", "micro"), ("macro_f1", "macro"))
    }

    def sets_for(bias):
        return convert(scores > 0.5 + bias.constant / 4)

    for name, score in theirs.items():
        tuned = tune_stop_bias(sets_for, gold, metric=name, grids={"constant": [-2, -1, 0, 1, 2]})
        for bias, value in tuned.table:
            assert value == pytest.approx(score(gold, scores > 0.5 + bias.constant / 4))
    by_hand = [
        2 * (g & p).sum() / max(1, g.sum() + p.sum()) if (g | p).any() else 1
        for g, p in zip(gold, scores > 0.5, strict=True)
    ]
    example = tune_stop_bias(sets_for, gold, metric="example_f1", grids={}, refinements=0).score
    assert example == pytest.approx(np.mean(by_hand))
    mean = tune_stop_bias(sets_for, gold, metric="mean", grids={}, refinements=0).score
    assert mean == pytest.approx(np.mean([example, *(score(gold, scores > 0.5) for score in theirs.values())]))


def test_tuning_never_ends_below_no_bias_at_all():
    gold = np.array([[1, 0], [1, 1]])

    def sets(bias):  # a bad start whose neighbours are all worse, far from no bias
        return gold if bias == StopBias() else np.zeros_like(gold)

    found = tune_stop_bias(sets, gold, start=StopBias(constant=-2.9, prior=0.7))
    assert found.bias == StopBias()
    assert found.score == 1


def test_a_label_lifted_by_its_shortfall_is_placed_as_often_as_it_occurs():
    rng = np.random.default_rng(3)
    logits = rng.normal(-2, 1.5, size=(60, 4)).astype(np.float32)
    labels = TREE.close_matrix(sparse.csr_array((rng.random((60, 4)) < [0.3, 0.1, 0.05, 0]).astype(np.int32)))
    found = shortfalls(logits, labels, -1.0, TREE)
    above = TREE.closure.toarray() > 0  # row: a label; columns: itself and its ancestors
    for label, count in enumerate(np.asarray(labels.sum(0)).ravel()):
        capped = logits[:, above[label]].min(1)
        there = (capped > -1.0).sum()
        assert found[label] == 0 if count == 0 or there >= count else found[label] > 0
        if found[label] > 0:
            assert (capped + found[label] >= -1.0 - 1e-6).sum() == count
    vector = StopBias(count=0.5).vector(TREE, [1, 1, 1, 1], 5, found)
    np.testing.assert_allclose(vector[:4], found / 2, rtol=1e-6)


def test_tuning_never_lowers_labels_by_their_counts():
    tried = []

    def sets_for(bias: StopBias) -> StopBias:
        tried.append(bias)
        return bias

    tuned = tune_stop_bias(sets_for, None, metric=lambda gold, bias: -bias.count - abs(bias.constant + 10))
    assert tuned.bias.count == 0.0
    assert tuned.bias.constant < -3  # other parts do leave their grids
    assert min(bias.count for bias in tried) == 0.0
