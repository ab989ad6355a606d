"""Clus-HMC and CSSA against brute force, scikit-learn, scipy and numbers worked out by hand."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.optimize import linprog
from sklearn.decomposition import PCA
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.tree import DecisionTreeRegressor

from hilap.baselines import dependency
from hilap.baselines.clus_forest import Forest
from hilap.baselines.clus_splits import best_split, sum_of_squares
from hilap.baselines.clus_tree import LEAF, Growing, f_test, label_weights
from hilap.baselines.cssa import CSSA, of_size
from hilap.baselines.dependency import Dependency, Kernel, Projection, Regression
from hilap.consistent.condensing import condensed
from hilap.taxonomy import Taxonomy
from tests.strategies import taxonomies

# -- variance ---------------------------------------------------------------------------------------------------------


@st.composite
def labelled_rows(draw):
    """Rows with many zeros and equal values, label sets, how often each document counts, label weights."""
    n, n_features, n_labels = draw(st.integers(2, 14)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    rows = rng.integers(-2, 4, size=(n, n_features)) * rng.choice([0.5, 1.0, 1.7], size=(n, n_features))
    labels = (rng.random((n, n_labels)) < 0.4).astype(np.int32)
    times = rng.integers(0, 4, size=n).astype(float) if draw(st.booleans()) else np.ones(n)
    times[0] = max(times[0], 1)
    return rows, labels, times, rng.uniform(0.2, 1, size=n_labels)


def squares(labels, times, weights) -> float:
    """The weighted squared distances of label vectors from their mean, added up: the definition, in so many words."""
    mean = np.average(labels, axis=0, weights=times)
    return float((times[:, None] * weights * (labels - mean) ** 2).sum())


def gain_of(right, labels, times, weights) -> float:
    parts = [squares(labels[side], times[side], weights) for side in (right, ~right)]
    return squares(labels, times, weights) - sum(parts)


def call_best_split(rows, labels, times, weights, min_leaf):
    x, y = sparse.csr_matrix(rows), sparse.csr_array(labels)
    documents = np.flatnonzero(times > 0)
    allowed = np.ones(rows.shape[1], dtype=bool)
    return best_split(
        documents, times, x.indptr, x.indices, x.data, allowed, y.indptr, y.indices, weights, float(min_leaf)
    )


@settings(max_examples=150)
@given(labelled_rows(), st.integers(1, 4))
def test_the_best_split_is_the_best_of_all_splits(case, min_leaf):
    rows, labels, times, weights = case
    feature, threshold, gain, whole = call_best_split(rows, labels, times, weights, min_leaf)
    there = times > 0
    rows, labels, times = rows[there], labels[there], times[there]
    assert whole == pytest.approx(squares(labels, times, weights), abs=1e-9)
    gains = [0.0]
    for column in rows.T:
        for low in np.unique(column)[:-1]:
            right = column > low
            if min(times[right].sum(), times[~right].sum()) >= min_leaf:
                gains.append(gain_of(right, labels, times, weights))
    assert gain == pytest.approx(max(gains), abs=1e-8)
    if feature >= 0:
        right = rows[:, feature] > threshold
        assert min(times[right].sum(), times[~right].sum()) >= min_leaf
        assert gain_of(right, labels, times, weights) == pytest.approx(gain, abs=1e-8)
        assert threshold not in rows[:, feature]


@given(labelled_rows())
def test_the_sum_of_squares_is_that_of_the_distances_from_the_mean(case):
    _, labels, times, weights = case
    y, documents = sparse.csr_array(labels), np.flatnonzero(times > 0)
    found = sum_of_squares(documents, times, y.indptr, y.indices, weights)
    assert found == pytest.approx(squares(labels, times, weights), abs=1e-9)


def test_only_allowed_features_are_split_on():
    rows, labels = sparse.csr_matrix(np.array([[1.0, 5.0], [2.0, 0.0], [3.0, 5.0]])), sparse.csr_array([[1], [0], [1]])
    shared = (np.arange(3), np.ones(3), rows.indptr, rows.indices, rows.data)
    rest = (labels.indptr, labels.indices, np.ones(1), 1.0)
    assert best_split(*shared, np.array([True, True]), *rest)[0] == 1
    assert best_split(*shared, np.array([True, False]), *rest)[0] == 0


def test_a_label_weighs_less_the_deeper_it_stands():
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["b"], "f": []})
    assert label_weights(taxonomy, 0.75).tolist() == [0.75, 0.75**2, 0.75**3, 0.75]


def test_a_label_with_several_parents_weighs_by_their_mean():
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["b"], "f": [], "d": ["c", "f"], "e": ["d", "a", "b"]})
    d = 0.5 * (0.125 + 0.5) / 2
    expected = {"a": 0.5, "b": 0.25, "c": 0.125, "f": 0.5, "d": d, "e": 0.5 * (d + 0.5 + 0.25) / 3}
    found = dict(zip(taxonomy.labels, label_weights(taxonomy, 0.5), strict=True))
    assert found == pytest.approx(expected)


# -- the F-test -------------------------------------------------------------------------------------------------------


@given(st.integers(3, 500), st.floats(0.01, 100), st.floats(0.001, 0.999))
def test_the_f_test_is_scipys(n, whole, share):
    gain = whole * share
    statistic = (n - 2) * gain / (whole - gain)
    assert f_test(n, whole, gain) == pytest.approx(stats.f.sf(statistic, 1, n - 2), rel=1e-6, abs=1e-12)


def test_for_one_label_it_is_the_analysis_of_variance_of_two_groups():
    rng = np.random.default_rng(3)
    left, right = rng.random(20) < 0.3, rng.random(31) < 0.6
    both, side = np.concatenate([left, right])[:, None].astype(float), np.arange(51) < 20
    once = np.ones(51)
    found = f_test(51, squares(both, once, np.ones(1)), gain_of(side, both, once, np.ones(1)))
    assert found == pytest.approx(stats.f_oneway(left.astype(float), right.astype(float)).pvalue)


def test_a_split_without_anything_left_is_no_accident_and_one_without_gain_is():
    assert f_test(20, 5.0, 5.0) == 0
    assert f_test(20, 5.0, 0.0) == 1
    assert f_test(2, 5.0, 4.0) == 1  # no degree of freedom


# -- trees ------------------------------------------------------------------------------------------------------------


def grown(rows, labels, *, weights=None, min_leaf=1, significance=1.0, features=None, times=None, seed=0):
    rows = sparse.csr_matrix(rows)
    weights = np.ones(labels.shape[1]) if weights is None else weights
    growing = Growing(
        rows, sparse.csr_array(labels), weights, min_leaf, significance, features or rows.shape[1]
    )  # fmt: skip
    return growing.grow(np.ones(rows.shape[0]) if times is None else times, np.random.default_rng(seed))


def test_a_tree_that_can_be_grown_by_hand():
    """The first feature tells the first label; among the others, the second feature tells the second label."""
    rows = np.array([[5, 0], [5, 1], [5, 2], [5, 3], [0, 0], [0, 1], [0, 4], [0, 5]], dtype=float)
    labels = np.array([[1, 0]] * 4 + [[0, 0]] * 2 + [[0, 1]] * 2)
    tree = grown(rows, labels).cut(1.0)
    assert tree.feature.tolist() == [0, 1, LEAF, LEAF, LEAF]
    assert tree.threshold[:2].tolist() == [2.5, 2.5]
    assert (tree.left[:2].tolist(), tree.right[:2].tolist()) == ([1, 3], [2, 4])
    means = {tuple(mean) for mean in tree.means.toarray().tolist()}
    assert means == {(1.0, 0.0), (0.0, 0.0), (0.0, 1.0)}
    leaves = Forest.of([tree]).scores(sparse.csr_matrix(np.array([[9.0, 9], [0, 9], [0, -9]])))
    assert leaves.tolist() == [[1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_is_scikit_learns_where_that_can_do_the_same(seed):
    """Weighted variance is plain variance of label vectors scaled by the roots of the weights."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(150, 4)) * (rng.random((150, 4)) < 0.8)
    chances = 1 / (1 + np.exp(-2 * rows @ rng.normal(size=(4, 16))))  # with few labels, splits tie
    labels, weights = (rng.random((150, 16)) < chances).astype(np.int32), rng.uniform(0.3, 1, size=16)
    other = DecisionTreeRegressor(min_samples_leaf=8, random_state=0).fit(rows, labels * np.sqrt(weights))
    tree = grown(rows, labels, weights=weights, min_leaf=8).cut(1.0)
    mine = Forest.of([tree]).scores(sparse.csr_matrix(rows))
    np.testing.assert_allclose(mine, other.predict(rows) / np.sqrt(weights), atol=1e-5)
    assert tree.means.shape[0] == other.get_n_leaves()


def test_cutting_back_is_growing_with_a_stricter_test():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 5))
    labels = (rows[:, :3] + rng.normal(size=(200, 3)) > 0.5).astype(np.int32)
    loose = grown(rows, labels, min_leaf=4, significance=0.5)
    sizes = set()
    for significance in (1e-8, 1e-3, 0.05, 0.5):
        one, other = loose.cut(significance), grown(rows, labels, min_leaf=4, significance=significance).cut(1.0)
        for name in ("feature", "threshold", "left", "right"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert np.array_equal(one.means.toarray(), other.means.toarray())
        sizes.add(len(one.feature))
    assert len(sizes) == 4


def walked(tree, row):
    node = 0
    while tree.feature[node] != LEAF:
        node = tree.right[node] if row[tree.feature[node]] > tree.threshold[node] else tree.left[node]
    return tree.left[node]


def test_a_forest_is_the_mean_of_its_trees_and_a_leaf_the_mean_of_its_bootstrapped_documents():
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.6)
    labels = (rows[:, :4] + rng.normal(size=(120, 4)) > 0.4).astype(np.int32)
    trees, expected = [], np.zeros((120, 4))
    for seed in range(5):
        times = np.bincount(rng.integers(120, size=120), minlength=120).astype(float)
        tree = grown(rows, labels, min_leaf=5, features=2, times=times, seed=seed).cut(1.0)
        at = np.array([walked(tree, row) for row in rows])
        for leaf in range(tree.means.shape[0]):
            inside = at == leaf
            assert times[inside].sum() >= 5
            mean = np.average(labels[inside], axis=0, weights=times[inside])
            np.testing.assert_allclose(tree.means.toarray()[leaf], mean, atol=1e-6)
            expected[inside] += mean / 5
        trees.append(tree)
    np.testing.assert_allclose(Forest.of(trees).scores(sparse.csr_matrix(rows)), expected, atol=1e-6)
    assert len({int(tree.feature[0]) for tree in trees}) > 1


# -- condensing -------------------------------------------------------------------------------------------------------


@st.composite
def scored_labels(draw, dag=True):
    taxonomy = draw(taxonomies(max_labels=8, dag=dag))
    scores = draw(st.lists(st.integers(-20, 20), min_size=len(taxonomy), max_size=len(taxonomy)))
    return taxonomy, np.array([scores], dtype=np.float64) / 8


def best_by_size(taxonomy, scores) -> dict[int, float]:
    """The largest sum of scores of a consistent set of each size, by looking at all of them."""
    above = taxonomy.parent_matrix.toarray()
    best: dict[int, float] = {}
    for chosen in itertools.product([0, 1], repeat=len(taxonomy)):
        if all(chosen[parent] for label, parent in zip(*np.nonzero(above), strict=True) if chosen[label]):
            size = sum(chosen)
            best[size] = max(best.get(size, -np.inf), float(np.dot(chosen, scores)))
    return best


@settings(max_examples=80)
@given(st.booleans().flatmap(lambda dag: scored_labels(dag=dag)))
def test_whole_supernodes_are_the_best_consistent_sets_of_their_size(case):
    taxonomy, scores = case
    values, best = condensed(scores, taxonomy)[0], best_by_size(taxonomy, scores[0])
    for value in np.unique(values):
        chosen = values >= value
        assert not taxonomy.inconsistent_rows(sparse.csr_array(chosen[None].astype(np.int32))).any()
        assert scores[0][chosen].sum() == pytest.approx(best[int(chosen.sum())], abs=1e-9)


@settings(max_examples=40)
@given(scored_labels())
def test_for_every_number_of_labels_the_relaxed_problem_is_solved(case):
    """The last supernode in part: what linear programming finds where labels may be had in part."""
    taxonomy, scores = case
    values = -np.sort(-condensed(scores, taxonomy)[0])
    edges = np.argwhere(taxonomy.parent_matrix.toarray())
    never_above = np.zeros((len(edges), len(taxonomy)))
    for k, (label, parent) in enumerate(edges):
        never_above[k, label], never_above[k, parent] = 1, -1
    for size in range(1, len(taxonomy) + 1):
        found = linprog(
            -scores[0],
            A_ub=never_above if len(edges) else None,
            b_ub=np.zeros(len(edges)) if len(edges) else None,
            A_eq=np.ones((1, len(taxonomy))),
            b_eq=[size],
            bounds=(0, 1),
        )
        assert values[:size].sum() == pytest.approx(-found.fun, abs=1e-7)


def test_where_greedy_merging_goes_wrong_the_best_set_is_still_found():
    """`s` is best and stands under both; merged with the lower parent first, `p` would have to wait for `q`."""
    taxonomy = Taxonomy.of({"p": [], "q": [], "s": ["p", "q"], "c": ["p"], "d": ["p"]})
    scores = np.array([[0.0, 1.0, 10.0, 9.9, 9.9]])
    values = condensed(scores, taxonomy)
    assert values[0] == pytest.approx([6.6, 5.5, 5.5, 6.6, 6.6])
    assert of_size(values, 3)[0].tolist() == [True, False, False, True, True]
    assert best_by_size(taxonomy, scores[0])[3] == pytest.approx(19.8)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_on_a_chain_it_is_isotonic_regression(scores):
    names = [str(i) for i in range(len(scores))]
    chain = Taxonomy.of({name: names[i - 1 : i] if i else [] for i, name in enumerate(names)})
    expected = IsotonicRegression(increasing=False).fit_transform(np.arange(len(scores)), scores)
    np.testing.assert_allclose(condensed(np.array([scores]), chain)[0], expected, atol=1e-9)


@given(st.integers(0, 1000))
def test_merging_on_a_tree_and_cutting_on_a_dag_agree(seed):
    """A tree with one more edge to a grandparent allows the same sets, but is no tree."""
    rng = np.random.default_rng(seed)
    parents = {str(i): [str(rng.integers(max(0, i - 4), i))] if i > 1 else ["0"][:i] for i in range(40)}
    tree, scores = Taxonomy.of(parents), rng.normal(size=(3, 40))
    deep = next(label for label in parents if parents[label] and parents[parents[label][0]])
    dag = Taxonomy.of({**parents, deep: [*parents[deep], parents[parents[deep][0]][0]]})
    assert tree.is_tree
    assert not dag.is_tree
    np.testing.assert_allclose(condensed(scores, tree), condensed(scores, dag), atol=1e-9)


@given(scored_labels(), st.sampled_from([-1.0, 0.0, 0.3]))
def test_a_floor_changes_nothing_above_it_and_no_label_gets_above_a_parent(case, floor):
    taxonomy, scores = case
    free, floored = condensed(scores, taxonomy)[0], condensed(scores, taxonomy, floor)[0]
    np.testing.assert_allclose(floored, np.maximum(free, floor), atol=1e-12)
    for values in (free, floored):
        for label, parent in np.argwhere(taxonomy.parent_matrix.toarray()):
            assert values[label] <= values[parent]


@given(scored_labels(), st.integers(1, 9))
def test_a_set_of_a_given_size_is_the_whole_set_nearest_to_it(case, size):
    taxonomy, scores = case
    values = condensed(scores, taxonomy)
    chosen = of_size(values, size)[0]
    sizes = [int((values[0] >= value).sum()) for value in [np.inf, *np.unique(values)]]
    wanted = min(size, len(taxonomy))
    assert abs(int(chosen.sum()) - wanted) == min(abs(other - wanted) for other in sizes)
    assert not taxonomy.inconsistent_rows(sparse.csr_array(chosen[None].astype(np.int32))).any()


TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": [], "f": ["e"], "g": ["e"], "h": ["g"]})
DAG = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": [], "f": ["d", "e"], "g": ["e"], "h": ["g"]})


@pytest.mark.parametrize("taxonomy", [TREE, DAG], ids=["tree", "dag"])
@pytest.mark.parametrize("unseen", [(), ("h",), ("g", "h")], ids=len)
@pytest.mark.parametrize("shift", [-2.0, 0.0])
def test_every_number_of_labels_gives_the_best_set_of_labels_that_were_learned(taxonomy, unseen, shift):
    """Also where scores are below 0, and below those of labels that no training document has, which score 0."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(40, 3)).astype(np.float32)
    labels = [[label for label in "abcdefgh" if label not in unseen and rng.random() < 0.5] for _ in rows]
    model = CSSA(taxonomy, ridge=1.0).fit(rows, labels)
    seen = np.array([label not in unseen for label in taxonomy.labels])
    assert np.array_equal(model._seen, seen)
    regressed = np.where(seen, rng.normal(size=(40, 8)) + shift, 0.0)
    model.dependency_ = SimpleNamespace(scores=lambda _: regressed.copy())
    for size in range(1, 10):
        found = model.with_decoding(labels=size).predict(rows)
        assert not taxonomy.inconsistent_rows(found).any()
        for chosen, scores in zip(found.toarray() > 0, regressed, strict=True):
            alone = np.where(seen, scores, scores.min() - 100)
            assert not chosen[~seen].any()
            assert scores[chosen].sum() == pytest.approx(best_by_size(taxonomy, alone)[int(chosen.sum())], abs=1e-9)
            values = condensed(alone[None], taxonomy)[0][seen]
            sizes = [int((values >= value).sum()) for value in [np.inf, *np.unique(values)]]
            wanted = min(size, int(seen.sum()))
            assert abs(int(chosen.sum()) - wanted) == min(abs(other - wanted) for other in sizes)


# -- kernel dependency estimation -------------------------------------------------------------------------------------


def regression_data(n=60, n_features=5, n_labels=9, seed=2):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, n_features))
    labels = (rng.random((n, n_labels)) < 0.3).astype(np.int32)
    return rows, labels, rng.normal(size=(7, n_features))


def scores_of(rows, labels, new, kernel, *, components=4, ridge=0.7, landmarks=1000):
    rng = np.random.default_rng(0)
    given, gold = sparse.csr_matrix(rows), sparse.csr_array(labels)
    projection = Projection.fitted(gold, components, rng)
    regression = Regression.fitted(given, projection(gold), kernel, landmarks, rng)
    return Dependency.of(kernel, regression, ridge, projection).scores(sparse.csr_matrix(new))


@pytest.mark.parametrize(("name", "n", "n_features"), [("rbf", 60, 5), ("linear", 60, 5), ("linear", 12, 40)])
def test_scores_are_those_of_scikit_learns_pca_and_kernel_ridge(name, n, n_features):
    rows, labels, new = regression_data(n, n_features)
    pca = PCA(4, svd_solver="full").fit(labels)
    other = KernelRidge(kernel=name, gamma=0.3, alpha=0.7).fit(rows, pca.transform(labels))
    expected = pca.inverse_transform(other.predict(new))
    found = scores_of(rows, labels, new, Kernel(name, 0.3))
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize(("n", "n_labels"), [(60, 9), (9, 60)])
def test_projections_are_those_of_scikit_learn_by_either_side_and_by_lanczos_steps(n, n_labels, monkeypatch):
    _, labels, _ = regression_data(n, 5, n_labels)
    expected = PCA(4, svd_solver="full").fit(labels)
    for exact in (4000, 3):
        monkeypatch.setattr(dependency, "_EXACT", exact)
        found = Projection.fitted(sparse.csr_array(labels), 4, np.random.default_rng(0))
        np.testing.assert_allclose(
            found.components.T @ found.components, expected.components_.T @ expected.components_, atol=1e-7
        )
        np.testing.assert_allclose(
            found(labels) @ found.components, expected.transform(labels) @ expected.components_, atol=1e-7
        )


def test_with_landmarks_the_best_combination_of_their_kernels_is_found():
    """What minimises |Z - K a|² + ridge a' C a, by solving for a directly."""
    rows, labels, new = regression_data()
    rng = np.random.default_rng(0)
    gold = sparse.csr_array(labels)
    projection = Projection.fitted(gold, 4, rng)
    found = scores_of(rows, labels, new, Kernel("rbf", 0.3), landmarks=15)
    chosen = np.sort(np.random.default_rng(0).choice(60, 15, replace=False))
    wide, small = rbf_kernel(rows, rows[chosen], gamma=0.3), rbf_kernel(rows[chosen], gamma=0.3)
    a = np.linalg.solve(wide.T @ wide + 0.7 * small, wide.T @ projection(gold))
    expected = rbf_kernel(new, rows[chosen], gamma=0.3) @ a @ projection.components + labels.mean(0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
