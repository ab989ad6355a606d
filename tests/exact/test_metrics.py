"""Metrics against figures worked out by hand, and tests against full enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from hilap.metrics import calibration, compare, f1_from_counts, flat, groups, hierarchical, lca, ranking, significance
from hilap.taxonomy import Taxonomy

GOLD = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]])
FOUND = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0]])


def test_f1_from_counts_by_hand():
    found = f1_from_counts(np.array([0, 0, 0, 1, 2]), np.array([0, 2, 0, 1, 3]), np.array([0, 0, 2, 1, 2]))
    np.testing.assert_allclose(found, [1, 0, 0, 1, 0.8])
    assert f1_from_counts(0.0, 0.0, 0.0, empty=0.0) == 0


def test_f1_from_counts_is_the_same_in_torch():
    torch = pytest.importorskip("torch")
    hits, predicted, gold = np.array([0, 0, 1, 2]), np.array([0, 2, 1, 3]), np.array([0, 0, 1, 2])
    for kind in (torch.int64, torch.float32):
        found = f1_from_counts(*(torch.tensor(c, dtype=kind) for c in (hits, predicted, gold)))
        np.testing.assert_allclose(found.numpy(), f1_from_counts(hits, predicted, gold), rtol=1e-6)


def test_f1_from_counts_needs_plain_arithmetic_only():
    """Anything that can add, multiply, divide and compare with 0 will do: no branch looks at a value."""

    class Lazy:
        def __init__(self, value):
            self.value = value

        def __bool__(self):
            raise AssertionError("a branch on a value")

        def _with(self, other, what):
            return Lazy(what(self.value, other.value if isinstance(other, Lazy) else other))

        def __add__(self, other):
            return self._with(other, lambda a, b: a + b)

        def __mul__(self, other):
            return self._with(other, lambda a, b: a * b)

        __rmul__ = __mul__

        def __truediv__(self, other):
            return self._with(other, lambda a, b: a / b)

        def __eq__(self, other):
            return self._with(other, lambda a, b: float(a == b))

    assert f1_from_counts(Lazy(1), Lazy(1), Lazy(3)).value == 0.5
    assert f1_from_counts(Lazy(0), Lazy(0), Lazy(0)).value == 1


def test_flat_scores_by_hand():
    # right 2, predicted 3, gold 4; labels: (2,2,2), (0,1,1), (0,0,1); documents: 1/2 of 1 and 2, 1 of 2 and 1, -, 0
    assert flat.micro(GOLD, FOUND) == pytest.approx((2 / 3, 2 / 4, 4 / 7))
    assert flat.macro(GOLD, FOUND, "all") == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert flat.macro(GOLD, FOUND, "both", [5, 1, 0]) == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    assert flat.example(GOLD, FOUND) == pytest.approx(
        ((1 + 1 / 2 + 1 + 0) / 4, (1 / 2 + 1 + 1 + 0) / 4, (2 / 3 * 2 + 1) / 4)
    )
    assert flat.hamming_loss(GOLD, FOUND) == pytest.approx(3 / 12)
    assert flat.subset_accuracy(GOLD, FOUND) == pytest.approx(1 / 4)


def test_labels_without_gold_documents_count_under_all_only():
    gold, found = [[1, 0, 0]], [[1, 0, 1]]
    assert flat.macro(gold, found, "all").f1 == pytest.approx(1 / 3)
    assert flat.macro(gold, found, "gold").f1 == 1


def test_macro_over_no_label_is_not_a_number():
    assert np.isnan(flat.macro([[0, 0]], [[0, 1]], "gold").f1)
    assert flat.macro([[0, 0]], [[0, 1]], "all").f1 == 0


def test_label_table_by_hand():
    table = flat.LabelScores.of(GOLD, FOUND)
    assert table.counts.gold.tolist() == [2, 1, 1]
    assert table.counts.predicted.tolist() == [2, 1, 0]
    assert table.counts.true_positives.tolist() == [2, 0, 0]
    assert table.f1.tolist() == [1, 0, 0]


def test_hierarchical_scores_by_hand(tree):
    gold, found = tree.encode([["beer"], ["shops"]]), tree.encode([["dominican"], ["shops", "bars"]])
    # document 1: food bars beer / food caribbean dominican; document 2: shops / shops food bars
    assert hierarchical.hierarchical(gold, found, tree) == pytest.approx((2 / 6, 2 / 4, 4 / 10))
    assert hierarchical.hierarchical_example(gold, found, tree) == pytest.approx((1 / 3, (1 / 3 + 1) / 2, 5 / 12))


def test_consistent_scores_by_hand(tree):
    gold = tree.encode([["beer"], ["shops"], ["bars"]], close=True)
    found = tree.encode([["food", "beer"], ["shops"], ["bars"]])
    assert tree.decode(hierarchical.consistent_part(found, tree)) == [("food",), ("shops",), ()]
    assert hierarchical.consistent_micro(gold, found, tree) == pytest.approx((1, 2 / 6, 1 / 2))
    # food 1 of 2, bars 0, beer 0, shops 1
    assert hierarchical.consistent_macro(gold, found, tree).f1 == pytest.approx((2 / 3 + 0 + 0 + 1) / 4)
    assert hierarchical.inconsistent_share(found, tree) == pytest.approx(2 / 3)


def test_a_label_of_a_dag_needs_all_its_parents_to_be_consistent(dag):
    found = dag.encode([["a", "b", "d"], ["a", "b", "c", "d"]])
    assert dag.decode(hierarchical.consistent_part(found, dag)) == [("a", "b"), ("a", "b", "c", "d")]


def test_consistent_part_is_the_same_in_small_blocks(tree, monkeypatch):
    rows = np.array(list(product([0, 1], repeat=len(tree))))
    whole = hierarchical.consistent_part(rows, tree).toarray()
    monkeypatch.setattr(hierarchical, "MOST_ENTRIES", 20)
    np.testing.assert_array_equal(hierarchical.consistent_part(rows, tree).toarray(), whole)


@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        (["beer"], ["beer"], (1, 1)),
        (["beer"], ["bars"], (1, 1 / 2)),  # Y⁺ = beer bars, P⁺ = bars
        (["beer"], ["dominican"], (1 / 3, 1 / 3)),  # beer bars food, dominican caribbean food
        (["beer"], ["shops"], (0, 0)),  # they meet at the root, which does not count
        (["beer"], ["caribbean"], (1 / 2, 1 / 3)),
        (["beer", "shops"], ["shops"], (1 / 1, 1 / 4)),  # beer's way to shops is over the root: beer bars food, shops
        ([], [], (1, 1)),
        (["beer"], [], (0, 0)),
        ([], ["beer"], (0, 0)),
    ],
)
def test_lca_scores_by_hand(tree, gold, found, expected):
    for close in (False, True):  # only the most specific labels matter
        matrices = tree.encode([gold], close=close), tree.encode([found], close=close)
        assert lca.lca_scores(*matrices, tree)[:2] == pytest.approx(expected)


def test_lca_counts_the_root_if_asked(tree):
    found = lca.lca_scores(tree.encode([["food"]]), tree.encode([["shops"]]), tree, count_root=True)
    assert found == pytest.approx((1 / 2, 1 / 2, 1 / 2))


def test_lca_takes_all_shortest_ways_of_a_dag(dag):
    # d meets a over b and over c: both are on the way
    gold_up, found_up = lca.augmented(dag.encode([["d"]]), dag.encode([["a"]]), dag)
    assert gold_up.toarray().tolist() == [[1, 1, 1, 1, 0, 0]]
    assert found_up.toarray().tolist() == [[1, 0, 0, 0, 0, 0]]
    # e has a shortcut to a
    assert lca.augmented(dag.encode([["e"]]), dag.encode([["a"]]), dag)[0].toarray().tolist() == [[1, 0, 0, 0, 1, 0]]


def test_average_precision_by_hand():
    # order 0.9 right, 0.8 wrong, 0.7 right: (1 + 2/3) / 2
    assert ranking.pooled_area([[1, 0, 1]], [[0.9, 0.8, 0.7]]) == pytest.approx(5 / 6)
    assert ranking.pooled_area([[1, 0]], [[0.5, 0.5]]) == pytest.approx(1 / 2)


def test_interpolated_area_by_hand():
    # from (recall 1/2, precision 1), one false positive, then t / (t + 1) from 1 to 2
    expected = (1 + 1 - np.log(3 / 2)) / 2
    assert ranking.pooled_area([[1, 0, 1]], [[0.9, 0.8, 0.7]], "interpolated") == pytest.approx(expected)
    assert ranking.pooled_area([[1, 0]], [[0.5, 0.5]], "interpolated") == pytest.approx(1 / 2)
    assert ranking.pooled_area([[0, 1]], [[0.9, 0.5]], "interpolated") == pytest.approx(1 - np.log(2))


def test_areas_without_gold_are_not_numbers():
    assert all(np.isnan(area) for area in ranking.au_prc([[0, 0]], [[0.1, 0.2]]))
    assert np.isnan(ranking.r_precision([[0, 0]], [[0.1, 0.2]]))


def test_labels_without_gold_are_left_out_of_macro_areas():
    found = ranking.au_prc([[1, 0], [0, 0], [1, 0]], [[0.9, 0.9], [0.8, 0.1], [0.7, 0.2]])
    assert found.macro == found.weighted == pytest.approx(5 / 6)


def test_ranking_cuts_by_hand():
    gold, scores = [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]], [[0.9, 0.8, 0.1, 0.0], [1, 1, 1, 1], [0.5, 0.5, 0, 0]]
    assert ranking.r_precision(gold, scores) == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert ranking.precision_at(gold, scores, [1, 3, 9]) == pytest.approx(
        [3 / 4, (2 / 3 + 1 / 3) / 2, (2 / 9 + 1 / 9) / 2]
    )


def test_level_scores_by_hand(tree):
    gold = tree.encode([["beer"], ["shops"]], close=True)
    found = tree.encode([["bars"], ["food"]], close=True)
    first, second, third = groups.by_level(gold, found, tree)
    # level 1: food 1 of 2 predicted, 1 gold; shops missed. level 2: bars right. level 3: beer missed
    assert (first.name, first.labels, first.support) == ("L1", 2, 2)
    assert (first.micro_f1, first.macro_f1) == pytest.approx((1 / 2, (2 / 3 + 0) / 2))
    assert (second.labels, second.macro_f1, third.labels, third.macro_f1) == (1, 1, 1, 0)


def test_popularity_thirds_by_hand():
    gold = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]])
    found = np.array([[1, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    thirds = groups.by_popularity(gold, found)  # 3, 2, 2, 1 documents: two labels, then one, then one
    assert [(t.name, t.labels, t.support) for t in thirds] == [("P1", 2, 5), ("P2", 1, 2), ("P3", 1, 1)]
    assert [t.macro_f1 for t in thirds] == pytest.approx([1 / 2, 2 / 3, 0])
    by_training = groups.by_popularity(gold, found, training=[0, 5, 9, 7])
    assert [t.support for t in by_training] == [3, 2, 3]  # labels 2 and 3; 1; 0


def test_calibration_error_by_hand():
    gold, p = [[1, 0], [0, 1]], [[0.9, 0.2], [0.7, 0.6]]
    # two bins: below 0.5 one bet of 0.2, none right; above three, mean 2.2/3, two right
    assert calibration.calibration_error(gold, p, bins=2) == pytest.approx(0.25 * 0.2 + 0.75 * (2.2 / 3 - 2 / 3))
    # by mass: 0.2 and 0.6, one right; 0.7 and 0.9, one right
    assert calibration.calibration_error(gold, p, bins=2, binning="mass") == pytest.approx((0.1 + 0.3) / 2)
    # by label: |0.8 - 0.5|; 0.2 alone and 0.6 alone
    assert calibration.calibration_error(gold, p, over="labels", bins=2) == pytest.approx((0.3 + (0.2 + 0.4) / 2) / 2)
    assert calibration.calibration_error(gold, p, over="top", bins=1) == pytest.approx(0.8 - 0.5)
    found = calibration.calibration_error(gold, p, over="predicted", predicted=[[0, 1], [0, 1]], bins=1)
    assert found == pytest.approx(abs(0.4 - 0.5))
    assert calibration.brier_score(gold, p) == pytest.approx((0.01 + 0.04 + 0.49 + 0.16) / 4)


def test_reliability_table_by_hand():
    table = calibration.reliability([[1, 0], [0, 1]], [[1.0, 0.2], [0.7, 0.6]], bins=3)
    assert table.counts.tolist() == [1, 1, 2]
    np.testing.assert_allclose(table.probability, [0.2, 0.6, 0.85])
    np.testing.assert_allclose(table.share, [0, 1, 0.5])
    assert np.isnan(calibration.reliability([[1]], [[1.0]], bins=2).share[0])


def test_calibration_of_no_predicted_label_is_not_a_number():
    assert np.isnan(calibration.calibration_error([[1, 0]], [[0.5, 0.5]], over="predicted", predicted=[[0, 0]]))


def random_systems(documents, seed, difference=0.0):
    """Gold sets and two systems that err at random; the second errs less by `difference`."""
    rng = np.random.default_rng(seed)
    gold = rng.random((documents, 5)) < 0.4
    first = gold ^ (rng.random(gold.shape) < 0.3)
    return gold, first, gold ^ (rng.random(gold.shape) < 0.3 - difference)


def test_permutation_p_is_that_of_the_full_enumeration():
    gold, first, second = random_systems(9, seed=4, difference=0.2)
    swaps = np.array(list(product([0, 1], repeat=9))).T
    every = significance.swapped_differences(gold, first, second, swaps)
    sampled = significance.permutation_test(gold, first, second, permutations=20_000, seed=1)
    for name, values in every.items():
        exact = np.mean(np.abs(values) >= abs(values[0]) - 1e-12)  # the first column swaps nothing
        assert sampled[name] == pytest.approx(exact, abs=0.015)


def test_permutation_p_is_spread_evenly_where_systems_are_equally_good():
    p = [
        significance.permutation_test(*random_systems(60, seed), permutations=199, seed=seed)["example_f1"]
        for seed in range(200)
    ]
    assert np.abs(np.quantile(p, [0.25, 0.5, 0.75]) - [0.25, 0.5, 0.75]).max() < 0.12
    assert np.mean(np.array(p) <= 0.05) < 0.11


def test_permutation_p_is_tiny_for_a_clear_difference_and_one_for_none():
    gold, first, second = random_systems(300, seed=2, difference=0.2)
    clear = significance.permutation_test(gold, first, second, permutations=999)
    assert clear == pytest.approx(dict.fromkeys(significance.METRICS, 1 / 1000))
    same = significance.permutation_test(gold, first, first, permutations=99)
    assert same == pytest.approx(dict.fromkeys(significance.METRICS, 1.0))


def test_bootstrap_interval_is_that_of_a_plain_loop_over_the_same_draws():
    gold, first, second = random_systems(40, seed=3)
    weights = np.hstack(list(significance.draws(40, 50, seed=9)))
    assert (weights.sum(axis=0) == 40).all()
    one, two = [], []
    for column in weights.T.astype(int):
        rows = np.repeat(np.arange(40), column)
        one.append([f(gold[rows], first[rows]).f1 for f in (flat.micro, flat.macro, flat.example)])
        two.append([f(gold[rows], second[rows]).f1 for f in (flat.micro, flat.macro, flat.example)])
    expected = np.quantile(one, [0.05, 0.95], axis=0)
    found = significance.bootstrap(gold, first, samples=50, seed=9, confidence=0.9)
    np.testing.assert_allclose(np.array(list(found.values())).T, expected)
    expected = np.quantile(np.array(two) - one, [0.05, 0.95], axis=0)
    found = significance.bootstrap_difference(gold, first, second, samples=50, seed=9, confidence=0.9)
    np.testing.assert_allclose(np.array(list(found.values())).T, expected)


def test_bootstrap_is_the_same_in_small_blocks(monkeypatch):
    gold, first, _ = random_systems(30, seed=3)
    whole = significance.bootstrap(gold, first, samples=20)
    monkeypatch.setattr(significance, "MOST_WEIGHTS", 70)
    again = significance.bootstrap(sparse.csr_array(gold), first, samples=20)
    for name, interval in whole.items():
        assert again[name] == pytest.approx(interval)


def test_bootstrap_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(150):
        right = rng.random((80, 1)) < 0.7  # one gold label each, found with probability 0.7: EBF 0.7
        low, high = significance.bootstrap(np.ones((80, 1)), right, samples=200, seed=seed, confidence=0.9)[
            "example_f1"
        ]
        covered.append(low <= 0.7 <= high)
    assert 0.82 < np.mean(covered) < 0.96


def test_bootstrap_without_any_gold_label_has_no_macro_interval():
    found = significance.bootstrap([[0, 0]], [[0, 1]], samples=5)
    assert np.isnan(found["macro_f1"]).all()
    assert np.isnan(significance.permutation_test([[0, 0]], [[0, 1]], [[1, 0]], permutations=5)["macro_f1"])


def test_comparison_closes_gold_and_counts_second_minus_first():
    taxonomy = Taxonomy.of({"A": [], "B": ["A"]})
    gold = taxonomy.encode([["B"]] * 30)  # means A and B
    first, second = taxonomy.encode([["A"]] * 30), taxonomy.encode([["A", "B"]] * 30)
    found = compare(gold, first, second, taxonomy, samples=100, permutations=199)
    row = found["micro_f1"]
    assert (row.first, row.second, row.difference) == pytest.approx((2 / 3, 1, 1 / 3))
    assert row.interval == pytest.approx((1 / 3, 1 / 3))
    assert row.p_value == pytest.approx(1 / 200)
