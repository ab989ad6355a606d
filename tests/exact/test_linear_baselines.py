"""The linear systems against other solvers, other ways of computing the same, and enumeration."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.csgraph import maximum_flow
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from hilap import descent
from hilap.baselines import hsvm, linear
from hilap.baselines.chances import ALWAYS, NEVER
from hilap.baselines.coupled import SWEEPS, Coupled, solve_coupled
from hilap.baselines.hr_svm import HRSVM
from hilap.baselines.hsvm import HSVM
from hilap.baselines.leaf_svm import LeafSVM
from hilap.baselines.svm import SVM
from hilap.baselines.sweeps import begin_by_sweeps, families
from hilap.baselines.td_svm import TopDownSVM
from hilap.consistent import closed_sets
from hilap.consistent.condensing import condensed
from hilap.corpus import Examples
from hilap.levels import Levels
from hilap.taxonomy import Taxonomy
from tests.strategies import taxonomies

FLAT = Taxonomy.of({name: [] for name in "abcd"})
TREE = Taxonomy.of({"c": ["a"], "a": [], "b": ["a"], "d": ["c"], "e": []})
DAG = Taxonomy.of({"d": ["b", "c"], "a": [], "b": ["a"], "c": [], "e": ["d", "a"]})
RAW = {"standardise": False}


def problem(n: int = 40, features: int = 6, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    rng = np.random.default_rng([seed, 1])
    dense = rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.7)
    signs = np.where(dense @ rng.normal(size=features) + 0.5 * rng.normal(size=n) > 0.4, 1, -1).astype(np.int8)
    return sparse.csr_matrix(dense), signs


def labelled(taxonomy: Taxonomy, n: int = 60, features: int = 5, seed: int = 0) -> Examples:
    """Documents whose labels depend on their features; every label has some, none has all."""
    rng = np.random.default_rng([seed, 2])
    rows = rng.normal(size=(n, features)).astype(np.float32)
    scores = rows @ rng.normal(size=(features, len(taxonomy))) + 0.7 * rng.normal(size=(n, len(taxonomy)))
    sets = [[label for k, label in enumerate(taxonomy.labels) if row[k] > 1] for row in scores]
    return Examples.of(taxonomy, sets, features=rows)


def loss_of(kind: str, z: np.ndarray) -> float:
    short = np.maximum(1 - z, 0)
    each = {"hinge": short, "squared_hinge": short**2, "logistic": np.logaddexp(0, -z)}
    return float(each[kind].sum())


def descended(rows, signs, prior, cost, loss, tolerance=1e-9, passes=100_000, start=None):
    """Weights with the offset last, by the kernels."""
    documents = (rows.data, rows.indices, rows.indptr)
    norms, every = descent.lengths(rows.data, rows.indptr), np.arange(rows.shape[0])
    alpha = np.full(len(signs), 1e-3 * cost) if loss == "logistic" else np.zeros(len(signs))
    alpha = alpha if start is None else start
    w = prior.copy()
    descent.begin(*documents, every, signs, alpha, w)
    if loss == "logistic":
        used = descent.descend_logistic(*documents, norms, every, signs, cost, alpha, w, tolerance, passes, 0)
    else:
        squared = loss == "squared_hinge"
        used = descent.descend_hinge(*documents, norms, every, signs, cost, squared, alpha, w, tolerance, passes, 0)
    assert used <= passes
    return w, alpha


# -- one label --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("loss", descent.LOSSES)
def test_without_a_prior_the_solution_is_liblinears(loss, cost):
    rows, signs = problem()
    if loss == "logistic":
        oracle = LogisticRegression(solver="liblinear", C=cost, tol=1e-10, max_iter=10_000).fit(rows, signs)
    else:
        oracle = LinearSVC(C=cost, loss=loss, dual=True, tol=1e-8, max_iter=1_000_000, random_state=3).fit(rows, signs)
    w, _ = descended(rows, signs, np.zeros(7), cost, loss)
    np.testing.assert_allclose(w, [*oracle.coef_[0], oracle.intercept_[0]], atol=2e-4)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("cost", [0.05, 2.0])
def test_around_a_prior_the_solution_is_that_of_a_general_optimiser(loss, cost):
    rows, signs = problem(seed=1)
    prior = np.random.default_rng([0, 3]).normal(size=7)
    dense = np.hstack([rows.toarray(), np.ones((40, 1))])

    def value(w):
        return 0.5 * np.sum((w - prior) ** 2) + cost * loss_of(loss, signs * (dense @ w))

    oracle = minimize(value, prior, method="BFGS", options={"gtol": 1e-7})
    w, _ = descended(rows, signs, prior, cost, loss)
    np.testing.assert_allclose(w, oracle.x, atol=1e-4)
    assert value(w) <= oracle.fun + 1e-9


def test_the_hinge_around_a_prior_is_the_quadratic_programme_of_its_dual():
    rows, signs = problem(n=25, seed=2)
    prior, cost = np.random.default_rng([0, 4]).normal(size=7), 0.7
    signed = np.hstack([rows.toarray(), np.ones((25, 1))]) * signs[:, None]

    def dual(alpha):
        w = prior + signed.T @ alpha
        return 0.5 * w @ w - alpha.sum(), signed @ w - 1

    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000}
    oracle = minimize(dual, np.zeros(25), jac=True, bounds=[(0, cost)] * 25, method="L-BFGS-B", options=options)
    w, _ = descended(rows, signs, prior, cost, "hinge")
    np.testing.assert_allclose(w, prior + signed.T @ oracle.x, atol=1e-5)


def test_gradients_that_are_alike_are_no_end_while_they_are_large():
    """Two long documents, nearly the same, one of each kind: both variables rise for long, step by step."""
    rows = sparse.csr_matrix(np.array([[13.9, -0.7, 3.8], [14.9, -9.0, 0.0]]))
    signs = np.array([1, -1], dtype=np.int8)
    w, _ = descended(rows, signs, np.zeros(4), 100.0, "hinge", tolerance=1e-3)
    assert (signs * (rows @ w[:3] + w[3]) >= 1 - 2e-3).all()


@pytest.mark.parametrize("loss", descent.LOSSES)
def test_where_it_starts_does_not_matter(loss):
    rows, signs = problem(seed=3)
    rng = np.random.default_rng([0, 5])
    prior = rng.normal(size=7)
    w, alpha = descended(rows, signs, prior, 0.5, loss)
    again, _ = descended(rows, signs, prior, 0.5, loss, start=rng.uniform(0.01, 0.49, size=len(signs)))
    np.testing.assert_allclose(w, again, atol=1e-6)
    implied = descent.logistic_duals(rows.data, rows.indices, rows.indptr, signs, 0.5, w)
    if loss == "logistic":
        np.testing.assert_allclose(alpha, implied, atol=1e-7)


def test_a_sparse_product_is_scipys():
    rng = np.random.default_rng([0, 6])
    rows = sparse.random_array((7, 9), density=0.4, rng=rng, format="csr")
    weight = sparse.random_array((9, 5), density=0.5, rng=rng, format="csr").astype(np.float32)
    found = np.ones((7, 5))
    descent.multiply(rows.data, rows.indices, rows.indptr, weight.data, weight.indices, weight.indptr, found)
    np.testing.assert_allclose(found, 1 + (rows @ weight.astype(np.float64)).toarray())


@pytest.mark.parametrize("density", [0.05, 0.9])
@pytest.mark.parametrize("passes", [1000, 1])
def test_an_svm_is_the_same_however_it_is_solved(density, passes, monkeypatch):
    """Sparse rows by coordinate descent, dense ones and those it does not end with by liblinear's Newton method."""
    monkeypatch.setattr(linear, "PASSES", passes)
    rng = np.random.default_rng([0, 7])
    rows = sparse.random(300, 60, density, format="csr", random_state=rng)
    scores = rows @ rng.normal(size=60)
    target = scores > np.median(scores)
    weights, offset = linear.solve_svm(rows, target, strength=0.7, tolerance=1e-7, seed=0)
    oracle = LinearSVC(C=0.7, tol=1e-9, max_iter=100_000, dual=False).fit(rows, target)
    np.testing.assert_allclose(weights, oracle.coef_[0], atol=1e-5)
    assert offset == pytest.approx(oracle.intercept_[0], abs=1e-5)


def test_sparse_rows_do_not_go_to_newtons_method(monkeypatch):
    monkeypatch.setattr("sklearn.svm.LinearSVC", None)  # whoever calls it fails
    rows = sparse.random(300, 60, 0.05, format="csr", random_state=np.random.default_rng([0, 8]))
    weights, _ = linear.solve_svm(rows, np.arange(300) % 2 == 0, strength=1.0, tolerance=1e-4, seed=0)
    assert weights.any()


# -- consistent sets --------------------------------------------------------------------------------------------------


def closed(taxonomy: Taxonomy) -> np.ndarray:
    """Every closed set, one a row."""
    parents = taxonomy.parent_matrix.toarray().astype(int)
    every = np.array(list(itertools.product([0, 1], repeat=len(taxonomy))))
    return every[((every @ parents > 0) <= (every > 0)).all(1)]


scores = st.one_of(st.integers(-3, 3), st.floats(-3, 3, width=16))


@settings(max_examples=150)
@given(data=st.data(), taxonomy=taxonomies(max_labels=8))
def test_the_best_set_is_that_of_enumeration(data, taxonomy):
    given = np.array(data.draw(st.lists(scores, min_size=len(taxonomy), max_size=len(taxonomy))), dtype=float)
    graph, sets = closed_sets.graph_of(taxonomy), closed(taxonomy)
    for level in (0.0, 0.5):
        labels = graph.order.copy()
        size = closed_sets.best_set(graph, closed_sets.room_for(graph), labels, given, level)
        values = sets @ (given - level)
        best = sets[np.abs(values - values.max()) < 1e-9]
        assert size == best.sum(1).min()
        assert np.isin(np.arange(len(taxonomy)), labels[:size]).tolist() in (best > 0).tolist()
        assert sorted(labels) == sorted(graph.order)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_set_of_a_large_dag_is_scipys_minimum_cut(seed):
    """It is worth all good labels, less the largest flow from these through their ancestors to the bad ones."""
    rng = np.random.default_rng([seed, 9])
    n, reach = 300, int(rng.choice([5, 40, 300]))
    parents = {i: {int(p) for p in rng.integers(max(0, i - reach), i, size=rng.integers(0, 4))} for i in range(1, n)}
    taxonomy = Taxonomy.of({"0": [], **{str(i): sorted(map(str, above)) for i, above in parents.items()}})
    given = rng.integers(-6, 7, size=n) - seed % 3
    edges = sparse.coo_array(taxonomy.parent_matrix)
    good, bad = np.flatnonzero(given > 0), np.flatnonzero(given < 0)
    rows = np.concatenate([np.full(len(good), n), edges.row, bad])
    columns = np.concatenate([good, edges.col, np.full(len(bad), n + 1)])
    room = np.concatenate([given[good], np.full(edges.nnz, 10**6), -given[bad]]).astype(np.int32)
    flow = maximum_flow(sparse.csr_matrix((room, (rows, columns)), shape=(n + 2, n + 2)), n, n + 1).flow_value
    graph = closed_sets.graph_of(taxonomy)
    labels = graph.order.copy()
    size = closed_sets.best_set(graph, closed_sets.room_for(graph), labels, given.astype(float), 0.0)
    assert 0 < size < n
    assert given[labels[:size]].sum() == given[good].sum() - flow
    chosen = np.isin(np.arange(n), labels[:size])
    assert chosen[edges.col[chosen[edges.row]]].all()


@settings(max_examples=100)
@given(data=st.data(), taxonomy=taxonomies(max_labels=7))
def test_a_threshold_on_consistent_scores_gives_the_best_set(data, taxonomy):
    given = np.array([data.draw(st.lists(scores, min_size=len(taxonomy), max_size=len(taxonomy)))], dtype=float)
    found = condensed(given, taxonomy)[0]
    sets = closed(taxonomy)
    for t in (-1.01, -0.3, 0.001, 0.7, 2.03):
        values = sets @ (given[0] - t)
        assert (found > t).tolist() in (sets > 0).tolist()
        assert values.max() == pytest.approx((given[0] - t)[found > t].sum(), abs=1e-9)


@settings(max_examples=60)
@given(data=st.data(), taxonomy=taxonomies(max_labels=6))
def test_a_projection_onto_means_of_closed_sets_is_nearest(data, taxonomy):
    """It lies among them (no child above a parent, from 0 to 1), and no closed set lies at an acute angle beyond it."""
    given = np.array(data.draw(st.lists(scores, min_size=len(taxonomy), max_size=len(taxonomy))), dtype=float)
    graph, found = closed_sets.graph_of(taxonomy), np.empty(len(taxonomy))
    closed_sets.project(graph, closed_sets.room_for(graph), given, found)
    assert ((found >= 0) & (found <= 1)).all()
    for label in taxonomy.labels:
        assert all(found[taxonomy.index(label)] <= found[taxonomy.index(p)] for p in taxonomy.parents(label))
    assert ((closed(taxonomy) - found) @ (given - found)).max() <= 1e-9


@settings(max_examples=60)
@given(data=st.data(), taxonomy=taxonomies(max_labels=8))
def test_scores_along_paths_and_from_below_are_those_of_the_definition(data, taxonomy):
    given = np.array([data.draw(st.lists(scores, min_size=len(taxonomy), max_size=len(taxonomy)))], dtype=float)
    path, up = closed_sets.along_paths(taxonomy, given)[0], closed_sets.lifted(taxonomy, given)[0]

    def ways(label):
        above = taxonomy.parents(label)
        return [[*way, label] for parent in above for way in ways(parent)] if above else [[label]]

    for i, label in enumerate(taxonomy.labels):
        assert path[i] == max(min(given[0, taxonomy.index(step)] for step in way) for way in ways(label))
        below = [label, *taxonomy.descendants(label)]
        assert up[i] == max(given[0, taxonomy.index(other)] for other in below)
    held = given > 0.2
    kept = Levels(taxonomy).lowest(held)[0]
    for i, label in enumerate(taxonomy.labels):
        assert kept[i] == all(held[0, taxonomy.index(other)] for other in (label, *taxonomy.ancestors(label)))


@given(taxonomies(), st.data())
def test_repairing_sets_is_repairing_scores(taxonomy, data):
    """So one pass over the scores tells what hundreds of thresholds would give."""
    systems = [SVM(repair="add"), SVM(repair="drop"), SVM(), LeafSVM(), TopDownSVM(), HSVM(), HRSVM(trained="leaves")]
    row = st.lists(scores, min_size=len(taxonomy), max_size=len(taxonomy))
    values = np.array([data.draw(row) for _ in range(3)], dtype=float)
    for system in systems:
        system.taxonomy_ = taxonomy
        for threshold in np.unique(values):
            sets = system._repaired(values > threshold)
            assert sets.dtype == bool
            assert np.array_equal(sets, system._repaired(values) > threshold), system


# -- svm, leaf-svm, td-svm --------------------------------------------------------------------------------------------


def oracle_margins(rows: np.ndarray, target: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """By scikit-learn; constant where all targets are the same."""
    if target.all() or not target.any():
        return np.full(len(asked), ALWAYS if len(target) and target.all() else NEVER)
    return LinearSVC(tol=1e-8, max_iter=100_000, dual=False).fit(rows, target).decision_function(asked)


def fitted(kind, train, valid, **options):
    return kind(row_options=RAW, tolerance=1e-8, **options).fit(train, valid=valid)


@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_svm_is_one_machine_for_each_label_even_beside_constant_ones(taxonomy):
    train, valid = labelled(taxonomy), labelled(taxonomy, n=15, seed=1)
    gold = train.labels.toarray()
    gold[:, taxonomy.index("e")] = 0
    gold[:, taxonomy.index("a")] = 1
    train = Examples.of(taxonomy, taxonomy.decode(sparse.csr_array(gold)), features=train.features)
    gold = train.labels.toarray() > 0
    model = fitted(SVM, train, valid)
    expected = np.column_stack([oracle_margins(train.features, column, valid.features) for column in gold.T])
    np.testing.assert_allclose(model._scores(valid), expected, atol=1e-5)
    assert np.array_equal(model.predict(valid.features).toarray(), expected > 0)


@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_leaf_svm_gives_leaves_and_their_ancestors(taxonomy):
    train, valid = labelled(taxonomy), labelled(taxonomy, n=30, seed=1)
    model = fitted(LeafSVM, train, valid)
    gold = train.labels.toarray() > 0
    margins = {
        leaf: oracle_margins(train.features, gold[:, taxonomy.index(leaf)], valid.features) for leaf in taxonomy.leaves
    }
    for i, found in enumerate(model.set_params(output="labels").predict(valid.features)):
        assert set(found) == set(taxonomy.close(leaf for leaf in taxonomy.leaves if margins[leaf][i] > 0))


@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_td_svm_visits_children_of_given_labels_only(taxonomy):
    train, valid = labelled(taxonomy, n=90), labelled(taxonomy, n=40, seed=1)
    model = fitted(TopDownSVM, train, valid, threshold=-0.4)
    gold = train.labels.toarray() > 0
    margins = {}
    for label in taxonomy.labels:
        above = [taxonomy.index(parent) for parent in taxonomy.parents(label)]
        rows = gold[:, above].any(1) if above else np.ones(len(train), dtype=bool)
        margins[label] = oracle_margins(train.features[rows], gold[rows, taxonomy.index(label)], valid.features)
    reached = 0
    for i, found in enumerate(model.set_params(output="labels").predict(valid.features)):
        given, waiting = set(), list(taxonomy.top_labels)
        for label in waiting:  # grows while we go
            if label not in given and margins[label][i] > -0.4:
                given.add(label)
                waiting.extend(taxonomy.children(label))
        assert set(found) == set(taxonomy.close(given))
        reached += len(given)
    assert reached > 40


def test_td_svm_on_a_flat_taxonomy_is_svm_to_the_last_bit():
    train, valid = labelled(FLAT), labelled(FLAT, seed=1)
    one, other = (kind().fit(train, valid=valid) for kind in (TopDownSVM, SVM))
    assert np.array_equal(one._scores(valid), other._scores(valid))
    assert np.array_equal(one.predict_proba(valid.features), other.predict_proba(valid.features))
    leaf = LeafSVM().fit(train, valid=valid)
    assert np.array_equal(leaf._scores(valid), other._scores(valid))


# -- hsvm -------------------------------------------------------------------------------------------------------------


def test_hsvm_on_a_flat_taxonomy_is_a_hinge_machine_for_each_label():
    train, valid = labelled(FLAT, n=40), labelled(FLAT, n=12, seed=1)
    model = HSVM(row_options=RAW, tolerance=1e-7, passes=4_000).fit(train, valid=valid)
    for k, target in enumerate(train.labels.toarray().T):
        oracle = LinearSVC(loss="hinge", tol=1e-8, max_iter=1_000_000).fit(train.features, target)
        np.testing.assert_allclose(model._scores(valid)[:, k], oracle.decision_function(valid.features), atol=2e-3)


def optimum(taxonomy: Taxonomy, rows: np.ndarray, gold: np.ndarray, cost: float) -> float:
    """The structured problem as a quadratic programme with a slack for each document and all sets written out."""
    n, width = rows.shape
    sets, n_labels = closed(taxonomy), len(taxonomy)
    differ = np.abs(gold[:, None] - sets).sum(2)  # (n, sets)

    def parts(x):
        return x[: width * n_labels].reshape(width, n_labels), x[width * n_labels :]

    def slack_left(x):
        weight, slack = parts(x)
        margins = rows @ weight
        return (slack[:, None] - differ - margins @ sets.T + (margins * gold).sum(1)[:, None]).ravel()

    def value(x):
        weight, slack = parts(x)
        return 0.5 * np.sum(weight**2) + cost * slack.sum()

    start = np.concatenate([np.zeros(width * n_labels), np.full(n, float(n_labels))])
    constraints = [{"type": "ineq", "fun": slack_left}]
    found = minimize(value, start, method="SLSQP", constraints=constraints, options={"maxiter": 2_000, "ftol": 1e-10})
    assert found.success
    return float(found.fun)


SMALL_TREE = Taxonomy.of({"b": ["a"], "a": [], "c": []})
SMALL_DAG = Taxonomy.of({"c": ["a", "b"], "a": [], "b": []})


@pytest.mark.parametrize("taxonomy", [SMALL_TREE, SMALL_DAG])
def test_hsvm_reaches_the_optimum_of_the_quadratic_programme(taxonomy):
    train = labelled(taxonomy, n=8, features=2, seed=3)
    model = HSVM(row_options=RAW, strength=0.5, tolerance=1e-5, passes=20_000).fit(train, valid=train)
    last = model.history_[-1]
    rows = np.hstack([train.features, np.ones((8, 1))]).astype(np.float64)
    expected = optimum(taxonomy, rows, train.labels.toarray(), 0.5)
    assert last["dual"] <= expected + 1e-6
    assert last["primal"] == pytest.approx(expected, rel=2e-5)
    weight = np.vstack([model.linear_.weight.toarray(), model.linear_.offset]).astype(np.float64)
    assert last["primal"] == pytest.approx(structured_objective(taxonomy, rows, train.labels.toarray(), 0.5, weight))


def structured_objective(taxonomy, rows, gold, cost, weight) -> float:
    sets, margins = closed(taxonomy), rows @ weight
    differ = np.abs(gold[:, None] - sets).sum(2)
    slack = (differ + margins @ sets.T - (margins * gold).sum(1)[:, None]).max(1)
    return float(0.5 * np.sum(weight**2) + cost * slack.sum())


@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_hsvm_predicts_the_consistent_set_with_the_highest_sum_of_margins(taxonomy):
    train, valid = labelled(taxonomy), labelled(taxonomy, n=40, seed=1)
    model = HSVM(row_options=RAW).fit(train, valid=valid)
    margins = model.linear_.margins(model.rows_.matrix(valid))
    sets = closed(taxonomy)
    for threshold in (0.0, -0.5, 0.3):
        found = model.with_decoding(threshold=threshold).predict(valid.features).toarray()
        expected = sets[((margins - threshold) @ sets.T).argmax(1)]
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("tune", [None, "mean", "scut"])
@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_hsvm_predicts_what_thresholds_on_its_scores_give(taxonomy, tune):
    """Although it does not compute scores below all thresholds for that."""
    train, valid = labelled(taxonomy), labelled(taxonomy, n=40, seed=1)
    model = HSVM(row_options=RAW, tune=tune).fit(train, valid=valid)
    for examples in (train, valid):
        expected = model._chosen(model._scores(examples)).toarray()
        assert np.array_equal(model.predict(examples.features).toarray(), expected)
        assert np.array_equal(model.predict_both(examples.features)[0].toarray(), expected)
        assert expected.any()


@pytest.mark.parametrize("block", [1, 7, 40, 10**6])
def test_weights_made_sparse_block_after_block_are_scipys(block, monkeypatch):
    monkeypatch.setattr(hsvm, "BLOCK", block)
    rng = np.random.default_rng([0, 10])
    weight = rng.normal(size=(13, 6)) * (rng.random((13, 6)) < 0.4)
    weight[[0, 7, 12]] = 0
    weight[3, 3] = 1e-300  # nothing in float32
    found, expected = hsvm._sparse(weight), sparse.csr_matrix(weight.astype(np.float32))
    for name in ("data", "indices", "indptr"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert found.shape == (13, 6)


def test_making_weights_sparse_takes_little_more_memory_than_the_result(monkeypatch):
    monkeypatch.setattr(hsvm, "BLOCK", 10_000)
    weight = np.random.default_rng([0, 11]).normal(size=(1_000, 500))  # none is zero: the worst that can be
    tracemalloc.start()
    found = hsvm._sparse(weight)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * (found.data.nbytes + found.indices.nbytes) < 1.3 * weight.nbytes


def test_the_duality_gap_of_hsvm_closes_and_its_dual_only_rises():
    train = labelled(TREE)
    records = [HSVM(row_options=RAW, passes=k, tolerance=1e-9).fit(train, valid=train).history_[-1] for k in (1, 4, 30)]
    duals = [record["dual"] for record in records]
    assert duals == sorted(duals)
    gaps = [record["primal"] - record["dual"] for record in records]
    assert gaps[0] > 5 * gaps[-1] >= 0


# -- hr-svm -----------------------------------------------------------------------------------------------------------


def coupled(taxonomy: Taxonomy, train: Examples, **changes) -> Coupled:
    given = {"loss": "hinge", "strength": 0.5, "coupling": 1.0, "tolerance": 1e-7, "seed": 0}
    rows = sparse.csr_matrix(train.features.astype(np.float64))
    trained = np.ones(len(taxonomy), dtype=bool)
    return Coupled(rows=rows, gold=train.labels.tocsc(), taxonomy=taxonomy, **{"trained": trained, **given, **changes})


def solved(problem: Coupled, rounds: int = 400, sweeps: int = SWEEPS, jobs: int = 1):
    return solve_coupled(problem, rounds=rounds, jobs=jobs, advance=lambda: None, sweeps=sweeps)


def written_out(taxonomy, train, weight, *, loss, strength, coupling, trained=None) -> float:
    """The objective of the module's docstring, label after label. `weight` (L, F + 1)."""
    rows = np.hstack([train.features, np.ones((len(train), 1))]).astype(np.float64)
    signs = 2.0 * train.labels.toarray() - 1
    total = 0.0
    for i, label in enumerate(taxonomy.labels):
        if trained is None or trained[i]:
            total += strength * loss_of(loss, signs[:, i] * (rows @ weight[i]))
        above = taxonomy.parents(label)
        total += 0.5 * ((1 - coupling) if above else 1) * np.sum(weight[i] ** 2)
        total += sum(0.5 * coupling * np.sum((weight[i] - weight[taxonomy.index(p)]) ** 2) for p in above)
    return float(total)


def dense(models) -> np.ndarray:
    return np.column_stack([models.weight.toarray().T, models.offset]).astype(np.float64)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_without_coupling_hr_svm_is_a_machine_for_each_label(loss):
    train, valid = labelled(TREE), labelled(TREE, n=20, seed=1)
    model = HRSVM(loss=loss, coupling=0, row_options=RAW, tolerance=1e-6, rounds=100).fit(train, valid=valid)
    for k, target in enumerate(train.labels.toarray().T):
        if loss == "logistic":
            oracle = LogisticRegression(solver="liblinear", tol=1e-9, max_iter=10_000)
        else:
            oracle = LinearSVC(loss=loss, tol=1e-8, max_iter=1_000_000, dual=True)
        expected = oracle.fit(train.features, target).decision_function(valid.features)
        np.testing.assert_allclose(model._scores(valid)[:, k], expected, atol=2e-3)


def test_without_coupling_and_with_the_squared_hinge_hr_svm_is_svm():
    train, valid = labelled(DAG), labelled(DAG, n=20, seed=1)
    one = HRSVM(loss="squared_hinge", coupling=0, tolerance=1e-7, rounds=200).fit(train, valid=valid)
    other = SVM(tolerance=1e-9).fit(train, valid=valid)
    np.testing.assert_allclose(one._scores(valid), other._scores(valid), atol=1e-4)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("coupling", [0.4, 1.0])
@pytest.mark.parametrize("taxonomy", [TREE, DAG])
@pytest.mark.parametrize("sweeps", [0, SWEEPS])
def test_hr_svm_reaches_the_optimum_of_a_general_optimiser(loss, coupling, taxonomy, sweeps):
    train = labelled(taxonomy)
    models, history = solved(coupled(taxonomy, train, loss=loss, coupling=coupling), sweeps=sweeps)
    settings = {"loss": loss, "strength": 0.5, "coupling": coupling}

    def value(x):
        return written_out(taxonomy, train, x.reshape(5, 6), **settings)

    oracle = minimize(value, np.zeros(30), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(dense(models), oracle.x.reshape(5, 6), atol=2e-3)
    assert history[-1]["objective"] == pytest.approx(oracle.fun, rel=1e-5)
    assert value(dense(models).ravel()) == pytest.approx(history[-1]["objective"], rel=1e-6)
    if sweeps:
        assert oracle.fun * (1 - 1e-2) < history[0]["bound"] <= oracle.fun * (1 + 1e-9)


@pytest.mark.parametrize("taxonomy", [TREE, DAG])
@pytest.mark.parametrize("sweeps", [0, SWEEPS])
def test_hr_svm_with_the_hinge_reaches_the_optimum_of_its_dual(taxonomy, sweeps):
    train = labelled(taxonomy, n=30)
    _, history = solved(coupled(taxonomy, train), sweeps=sweeps)
    rows = np.hstack([train.features, np.ones((30, 1))]).astype(np.float64)
    signs = 2.0 * train.labels.toarray() - 1
    index = [[taxonomy.index(p) for p in taxonomy.parents(label)] for label in taxonomy.labels]
    quadratic = np.zeros((5, 5))  # the regulariser is 1/2 sum_kl quadratic[k, l] w_k.w_l
    for i, above in enumerate(index):
        quadratic[i, i] += len(above) if above else 1
        for p in above:
            quadratic[p, p] += 1
            quadratic[i, p] -= 1
            quadratic[p, i] -= 1
    kernel = np.kron(np.linalg.inv(quadratic), rows @ rows.T) * np.outer(signs.T.ravel(), signs.T.ravel())

    def dual(alpha):
        return 0.5 * alpha @ kernel @ alpha - alpha.sum(), kernel @ alpha - 1

    options = {"ftol": 1e-15, "gtol": 1e-8, "maxiter": 50_000, "maxfun": 100_000}
    oracle = minimize(dual, np.zeros(150), jac=True, bounds=[(0, 0.5)] * 150, method="L-BFGS-B", options=options)
    assert history[-1]["objective"] == pytest.approx(-oracle.fun, rel=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_the_objective_of_hr_svm_falls_round_after_round(loss, taxonomy):
    train = labelled(taxonomy)
    _, history = solved(coupled(taxonomy, train, loss=loss, tolerance=1e-9), rounds=8, sweeps=0)
    values = np.array([record["objective"] for record in history])
    assert len(values) >= 4
    assert (np.diff(values) <= 1e-5 * values[0]).all()
    assert values[-1] < values[0] * (1 - 1e-4)


@pytest.mark.parametrize("sweeps", [0, SWEEPS])
def test_labels_without_a_loss_are_means_of_their_neighbours(sweeps):
    train = labelled(TREE)
    leaf = np.array([label in TREE.leaves for label in TREE.labels])
    models, history = solved(coupled(TREE, train, trained=leaf, loss="logistic"), sweeps=sweeps)
    found = dict(zip(TREE.labels, dense(models), strict=True))
    np.testing.assert_allclose(found["c"], (found["a"] + found["d"]) / 2, atol=1e-3)
    np.testing.assert_allclose(found["a"], (found["b"] + found["c"]) / 3, atol=1e-3)  # the root, at 0, is the third
    settings = {"loss": "logistic", "strength": 0.5, "coupling": 1.0, "trained": leaf}
    oracle = minimize(lambda x: written_out(TREE, train, x.reshape(5, 6), **settings), np.zeros(30), method="BFGS")
    assert history[-1]["objective"] == pytest.approx(oracle.fun, rel=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_every_sweep_raises_the_bound_of_hr_svm_and_none_passes_the_optimum(loss, taxonomy):
    train = labelled(taxonomy)
    settings = {"loss": loss, "tolerance": 1e-9}
    bounds = [
        begin_by_sweeps(coupled(taxonomy, train, **settings), sweeps=k, jobs=1, advance=lambda: None)[0]
        for k in (1, 2, 4, 8)
    ]
    _, history = solved(coupled(taxonomy, train, **settings), sweeps=0)
    assert bounds == sorted(bounds)
    assert 0 < bounds[0] < bounds[-1] <= history[-1]["objective"] * (1 + 1e-9)


@pytest.mark.parametrize("strength", [1e-9, 1e6, 1e12, 1e15])
def test_the_bound_of_hr_lr_holds_at_any_strength(strength):
    """At a large one margins are so wide that dual variables end nearer to zero than they are let to begin."""
    taxonomy = Taxonomy.of({"a": [], "b": ["a"]})
    train = Examples.of(taxonomy, [["b"], []], features=np.array([[100], [-100]], dtype=np.float32))
    problem = coupled(taxonomy, train, loss="logistic", strength=strength, tolerance=1e-8)
    bound, _ = begin_by_sweeps(problem, sweeps=SWEEPS, jobs=1, advance=lambda: None)
    assert 0 < bound <= problem.objective() * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_sweeps_have_their_dual_variables_once(loss, monkeypatch):
    taxonomy = Taxonomy.of({"top": [], **{f"child {k}": ["top"] for k in range(19)}})
    train = labelled(taxonomy, n=2_000)
    problem = coupled(taxonomy, train, loss=loss, strength=1e-3)
    monkeypatch.setattr(problem, "take", lambda *_: None)  # what is kept of them is another matter
    begin_by_sweeps(problem, sweeps=1, jobs=1, advance=lambda: None)  # compiles
    tracemalloc.start()
    begin_by_sweeps(problem, sweeps=11, jobs=1, advance=lambda: None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * 20 * 2_000 * 8


def test_sweeps_and_a_few_rounds_go_where_rounds_alone_take_long():
    """A parent with many children is held by them, and they by it: that is what sweeps are for."""
    wide = Taxonomy.of({"top": [], **{f"child {k}": ["top"] for k in range(40)}})
    rng = np.random.default_rng([0, 77])
    chosen = [set() if i < 50 else set(rng.integers(0, 40, size=2).tolist()) for i in range(200)]
    words = np.zeros((200, 160), dtype=np.float32)  # three words of each child, forty of nobody
    for row, children in zip(words, chosen, strict=True):
        row[rng.integers(120, 160, size=6)] = 1
        for k in children:
            row[3 * k + rng.integers(0, 3, size=2)] = 1
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    train = Examples.of(wide, [[f"child {k}" for k in children] for children in chosen], features=words)
    goal = {"tolerance": 1e-3, "strength": 5.0}
    _, begun = solved(coupled(wide, train, **goal), rounds=10)
    with pytest.warns(ConvergenceWarning, match="not settled after 10 rounds"):
        _, alone = solved(coupled(wide, train, **goal), rounds=10, sweeps=0)
    assert begun[-1]["epoch"] <= 4
    assert begun[-1]["objective"] < 0.9 * alone[-1]["objective"]
    assert begun[-1]["objective"] < 1.02 * begun[0]["bound"]


def test_hr_svm_ends_when_its_bound_proves_it_near_enough_though_labels_are_not_solved(monkeypatch):
    monkeypatch.setattr("hilap.baselines.coupled.PASSES", 1)  # no label is ever solved
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        _, history = solved(coupled(TREE, labelled(TREE), tolerance=0.02), rounds=6)
    assert len(history) > 1
    assert history[-1]["unfinished"] > 0
    assert history[-1]["objective"] - history[0]["bound"] <= 0.02 * history[-1]["objective"]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("leaves", [False, True])
def test_priors_of_a_block_are_those_of_each_label(monkeypatch, loss, leaves):
    trained = np.array([not leaves or label in TREE.leaves for label in TREE.labels])
    settings = {"loss": loss, "trained": trained, "tolerance": 1e-4}
    whole, history = solved(coupled(TREE, labelled(TREE), **settings), rounds=1)
    for block in (1, 2, 3):
        monkeypatch.setattr("hilap.baselines.sweeps.BLOCK", block)
        some, other = solved(coupled(TREE, labelled(TREE), **settings), rounds=1)
        assert other[0]["epoch"] == history[0]["epoch"]
        np.testing.assert_allclose(dense(some), dense(whole), atol=1e-6)


def test_families_without_room_for_their_dual_are_left_to_the_rounds(monkeypatch):
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "x": [], "y": ["x"]})
    train = labelled(taxonomy)
    found = [[taxonomy.labels[k] for k in family] for family in families(coupled(taxonomy, train))]
    assert found == [["a", "b", "c"], ["x", "y"]]
    monkeypatch.setattr("hilap.baselines.sweeps.MOST_LABELS", 2)
    some, history = solved(coupled(taxonomy, train))
    assert history[0]["phase"] == "sweeps"
    assert "objective" not in history[0]
    monkeypatch.setattr("hilap.baselines.sweeps.MOST_NUMBERS", 1)
    none, history = solved(coupled(taxonomy, train))
    assert history[0]["bound"] == 0
    rounds, _ = solved(coupled(taxonomy, train), sweeps=0)
    assert np.array_equal(dense(none), dense(rounds))
    np.testing.assert_allclose(dense(some), dense(rounds), atol=1e-4)


@pytest.mark.parametrize(
    ("coupling", "most", "swept"), [(1.0, 6_000, 2), (1.0, 2, 1), (0.0, 6_000, 0)], ids=["all", "some", "none"]
)
def test_the_bar_of_hr_svm_counts_the_families_that_are_swept_over(coupling, most, swept, monkeypatch):
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "x": [], "y": ["x"]})
    totals, steps = [], []

    @contextmanager
    def counted(what, total, *, shown):
        totals.append(total)
        yield lambda: steps.append(what)

    monkeypatch.setattr("hilap.baselines.hr_svm.counting", counted)
    monkeypatch.setattr("hilap.baselines.sweeps.MOST_LABELS", most)
    train = labelled(taxonomy)
    history = HRSVM(row_options=RAW, coupling=coupling, rounds=40, progress=True).fit(train, valid=train).history_
    assert totals == [swept + 40]
    assert len(steps) == swept + sum(record["phase"] == "rounds" for record in history)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_threads_change_nothing_in_hr_svm(loss):
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "x": [], "y": ["x"]})
    train = labelled(taxonomy)
    one, _ = solved(coupled(taxonomy, train, loss=loss, tolerance=1e-3))
    two, _ = solved(coupled(taxonomy, train, loss=loss, tolerance=1e-3), jobs=2)
    assert np.array_equal(dense(one), dense(two))


def test_coupling_brings_children_near_their_parents():
    train = labelled(TREE)
    apart = []
    for coupling in (0.0, 0.5, 1.0):
        models, _ = solved(coupled(TREE, train, coupling=coupling))
        found = dict(zip(TREE.labels, dense(models), strict=True))
        apart.append(np.sum((found["d"] - found["c"]) ** 2) + np.sum((found["b"] - found["a"]) ** 2))
    assert apart[0] > apart[1] > apart[2]


def test_labels_without_documents_change_nothing_for_the_others():
    wider = Taxonomy.of({**{label: TREE.parents(label) for label in TREE.labels}, "x": ["a"], "y": ["x"]})
    train = labelled(TREE)
    same = Examples.of(wider, TREE.decode(train.labels), features=train.features)
    one, _ = solved(coupled(TREE, train), rounds=5)
    other, _ = solved(coupled(wider, same), rounds=5)
    assert np.array_equal(dense(one), dense(other)[:5])
    assert dense(other)[5:].tolist() == [[0, 0, 0, 0, 0, NEVER]] * 2


def test_a_label_that_all_documents_have_is_as_good_as_the_root():
    below = Taxonomy.of({"top": [], **{label: TREE.parents(label) or ["top"] for label in TREE.labels}})
    train = labelled(TREE)
    sets = [["top", *labels] for labels in TREE.decode(train.labels)]
    one, _ = solved(coupled(TREE, train))
    other, _ = solved(coupled(below, Examples.of(below, sets, features=train.features)))
    np.testing.assert_allclose(dense(one), dense(other)[1:], atol=1e-5)
    assert dense(other)[0].tolist() == [0, 0, 0, 0, 0, ALWAYS]


def test_a_dual_variable_of_the_logistic_loss_may_cross_from_next_to_nothing():
    root = descent._logistic_root(2.0, -7.2, 1.3e-51, 4.5)
    assert 0 < root < 4.5
    assert 2.0 * root - 7.2 + np.log(root / (4.5 - root)) == pytest.approx(0, abs=1e-9)


def test_a_dual_variable_of_the_logistic_loss_never_reaches_its_end():
    for cost in (0.5, 1.0, 10.0):
        for agreement in (-1000.0, -60.0, 60.0, 1000.0):
            root = descent._logistic_root(1.0, agreement, 0.5 * cost, cost)
            assert 0 < root < cost
            assert 0 < descent._logistic_root(1.0, agreement, root, cost) < cost  # and the next visit starts from there
