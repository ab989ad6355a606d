"""Metrics on random label sets: equal to scikit-learn's, and to each other where theory says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics as sk

from hilap.metrics import calibration, counts, flat, groups, hierarchical, lca, ranking, report, significance
from hilap.taxonomy import Taxonomy

SHORT = settings(max_examples=40)


@st.composite
def indicators(draw, rows=None, columns=None, how_many=2):
    """A few 0/1 matrices of one shape."""
    n = rows or draw(st.integers(1, 8))
    m = columns or draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    density = draw(st.sampled_from([0.1, 0.4, 0.8]))
    rng = np.random.default_rng(seed)
    return [(rng.random((n, m)) < density).astype(int) for _ in range(how_many)]


@st.composite
def taxonomies(draw, most=9):
    """A random tree or DAG: each label takes parents among the earlier ones."""
    size = draw(st.integers(1, most))
    several = draw(st.booleans())
    parents: dict[str, list[str]] = {}
    for i in range(size):
        above = draw(st.lists(st.integers(0, i - 1), max_size=3 if several else 1, unique=True)) if i else []
        parents[f"l{i}"] = [f"l{p}" for p in above]
    order = draw(st.permutations(list(parents)))  # columns need not be in topological order
    return Taxonomy.of({label: parents[label] for label in order})


@st.composite
def judged(draw, closed=False):
    """A taxonomy with gold (closed) and predicted sets."""
    taxonomy = draw(taxonomies())
    gold, predicted = draw(indicators(columns=len(taxonomy)))
    gold = taxonomy.close_matrix(gold)
    return taxonomy, gold, taxonomy.close_matrix(predicted) if closed else sparse.csr_array(predicted)


@st.composite
def scored(draw):
    """Gold sets and scores, with many ties."""
    (gold,) = draw(indicators(how_many=1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = draw(st.sampled_from([2, 5, 1000]))
    return gold, rng.integers(0, steps + 1, gold.shape) / steps


def sklearn_prf(gold, predicted, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sk.precision_recall_fscore_support(gold, predicted, **how)[:3]


def wide(*matrices):
    """scikit-learn takes a single column for a binary problem: an empty second column changes no sum."""
    return [np.hstack([m, np.zeros_like(m[:, :1])]) for m in matrices]


@given(indicators())
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array, lambda m: m.astype(bool)])
def test_micro_equals_scikit_learn(form, matrices):
    gold, predicted = matrices
    expected = sklearn_prf(*wide(gold, predicted), average="micro", zero_division=0)
    np.testing.assert_allclose(flat.micro(form(gold), form(predicted)), expected)


@given(indicators())
def test_macro_over_all_labels_equals_scikit_learn(matrices):
    gold, predicted = matrices
    expected = sklearn_prf(*wide(gold, predicted), average="macro", zero_division=0, labels=range(gold.shape[1]))
    np.testing.assert_allclose(flat.macro(gold, predicted, "all"), expected)


@given(indicators())
def test_macro_over_gold_labels_equals_scikit_learn_on_those(matrices):
    gold, predicted = matrices
    supported = np.flatnonzero(gold.any(axis=0))
    assume(len(supported))
    expected = sklearn_prf(*wide(gold, predicted), average="macro", zero_division=0, labels=supported)
    np.testing.assert_allclose(flat.macro(gold, predicted, "gold"), expected)


@given(indicators(how_many=3))
def test_macro_over_both_equals_scikit_learn_on_labels_of_training_and_test(matrices):
    gold, predicted, training = matrices
    supported = np.flatnonzero(gold.any(axis=0) & training.any(axis=0))
    assume(len(supported))
    expected = sklearn_prf(*wide(gold, predicted), average="macro", zero_division=0, labels=supported)
    for given_as in (training, sparse.csr_array(training), training.sum(axis=0), training.any(axis=0)):
        np.testing.assert_allclose(flat.macro(gold, predicted, "both", given_as), expected)


@given(indicators())
def test_example_f1_equals_scikit_learn_where_empty_against_empty_is_one(matrices):
    gold, predicted = matrices
    expected = sklearn_prf(*wide(gold, predicted), average="samples", zero_division=1)[2]
    assert flat.example(gold, predicted).f1 == pytest.approx(expected)


@given(indicators())
def test_example_precision_and_recall_equal_scikit_learn_with_zero_for_one_empty_set(matrices):
    gold, predicted = matrices
    both_empty = np.mean(~gold.any(axis=1) & ~predicted.any(axis=1))
    expected = sklearn_prf(*wide(gold, predicted), average="samples", zero_division=0)
    np.testing.assert_allclose(flat.example(gold, predicted), np.array(expected) + both_empty)


@given(indicators())
def test_hamming_loss_and_subset_accuracy_equal_scikit_learn(matrices):
    gold, predicted = matrices
    wrong = sk.hamming_loss(*wide(gold, predicted)) * (gold.shape[1] + 1) / gold.shape[1]
    assert flat.hamming_loss(gold, predicted) == pytest.approx(wrong)
    assert flat.subset_accuracy(gold, predicted) == pytest.approx(sk.accuracy_score(*wide(gold, predicted)))


@given(judged(closed=True))
def test_closed_sets_have_micro_hf_equal_to_micro_f1(case):
    taxonomy, gold, predicted = case
    np.testing.assert_allclose(hierarchical.hierarchical(gold, predicted, taxonomy), flat.micro(gold, predicted))


@given(judged(closed=True))
def test_closed_sets_have_hf_by_document_equal_to_example_f1(case):
    taxonomy, gold, predicted = case
    expected = flat.example(gold, predicted)
    np.testing.assert_allclose(hierarchical.hierarchical_example(gold, predicted, taxonomy), expected)


@given(judged(closed=True), st.sampled_from(["all", "gold"]))
def test_closed_sets_have_consistent_f1_equal_to_f1(case, over):
    taxonomy, gold, predicted = case
    micro = hierarchical.consistent_micro(gold, predicted, taxonomy)
    macro = hierarchical.consistent_macro(gold, predicted, taxonomy, over)
    np.testing.assert_allclose(micro, flat.micro(gold, predicted))
    np.testing.assert_allclose(macro, flat.macro(gold, predicted, over))
    assert hierarchical.inconsistent_share(predicted, taxonomy) == 0


@given(judged())
def test_hierarchical_scores_are_scikit_learns_on_sets_closed_by_hand(case):
    taxonomy, gold, predicted = case
    closed = [
        np.array([[label in taxonomy.close(s) for label in taxonomy] for s in taxonomy.decode(m)], dtype=int)
        for m in (gold, predicted)
    ]
    expected = sklearn_prf(*wide(*closed), average="micro", zero_division=0)
    np.testing.assert_allclose(hierarchical.hierarchical(gold, predicted, taxonomy), expected)


@given(judged())
def test_consistent_part_keeps_labels_whose_ancestors_are_all_there(case):
    taxonomy, _, predicted = case
    expected = [
        {label for label in labels if set(taxonomy.ancestors(label)) <= set(labels)}
        for labels in taxonomy.decode(predicted)
    ]
    assert [set(s) for s in taxonomy.decode(hierarchical.consistent_part(predicted, taxonomy))] == expected


@given(judged())
def test_lca_scores_equal_a_plain_reading_of_the_definition(case):
    taxonomy, gold, predicted = case
    for count_root in (False, True):
        documents = zip(taxonomy.decode(gold), taxonomy.decode(predicted), strict=True)
        expected = np.mean([naive_lca(taxonomy, y, p, count_root) for y, p in documents], axis=0)
        np.testing.assert_allclose(lca.lca_scores(gold, predicted, taxonomy, count_root=count_root), expected)


@given(judged())
@SHORT
def test_lca_scores_do_not_depend_on_the_size_of_blocks(case):
    taxonomy, gold, predicted = case
    expected = lca.lca_scores(gold, predicted, taxonomy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lca, "MOST_PAIRS", 1)
        assert lca.lca_scores(gold, predicted, taxonomy) == pytest.approx(expected)


@given(judged())
def test_swapping_gold_and_predicted_swaps_lca_precision_and_recall(case):
    taxonomy, gold, predicted = case
    there, back = lca.lca_scores(gold, predicted, taxonomy), lca.lca_scores(predicted, gold, taxonomy)
    assert (there.precision, there.recall, there.f1) == pytest.approx((back.recall, back.precision, back.f1))


@given(scored())
def test_average_precision_equals_scikit_learn(case):
    gold, scores = case
    assume(gold.any())
    expected = sk.average_precision_score(gold.ravel(), scores.ravel())
    assert ranking.pooled_area(gold, scores) == pytest.approx(expected)
    assert ranking.pooled_area(sparse.csr_array(gold), sparse.csr_array(scores)) == pytest.approx(expected)
    assert ranking.pooled_area(gold, sparse.csr_array(scores - 0.4)) == pytest.approx(expected)


@given(scored())
def test_average_precision_of_labels_equals_scikit_learn(case):
    gold, scores = case
    supported = np.flatnonzero(gold.any(axis=0))
    assume(len(supported))
    each = [sk.average_precision_score(gold[:, k], scores[:, k]) for k in supported]
    for form in (np.asarray, sparse.csr_array):
        found = ranking.au_prc(gold, form(scores))
        assert found.macro == pytest.approx(np.mean(each))
        assert found.weighted == pytest.approx(np.average(each, weights=gold.sum(axis=0)[supported]))


@given(scored())
@SHORT
def test_interpolated_area_equals_a_fine_numerical_integral(case):
    gold, scores = case
    assume(gold.any())
    assert ranking.pooled_area(gold, scores, "interpolated") == pytest.approx(
        naive_interpolated(gold.ravel(), scores.ravel()), abs=2e-4
    )
    areas = ranking.label_areas(gold, scores, "interpolated")
    for k in np.flatnonzero(gold.any(axis=0)):
        assert areas[k] == pytest.approx(naive_interpolated(gold[:, k], scores[:, k]), abs=2e-4)


@given(scored())
@SHORT
def test_ranking_does_not_depend_on_the_size_of_blocks(case):
    gold, scores = case
    areas, cut = ranking.label_areas(gold, scores), ranking.ndcg_at(gold, scores)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "MOST_SCORES", 1)
        np.testing.assert_allclose(ranking.label_areas(gold, scores), areas)
        np.testing.assert_allclose(ranking.ndcg_at(gold, scores), cut)


@given(scored())
@SHORT
def test_ranked_cuts_equal_the_mean_over_random_orders_of_ties(case):
    gold, scores = case
    assume(gold.any())
    rows = [(g, s) for g, s in zip(gold, scores, strict=True) if g.any()]
    found = (ranking.r_precision(gold, scores), *ranking.precision_at(gold, scores, [2]))
    assert found == pytest.approx(
        (np.mean([expected_hits(g, s, g.sum()) / g.sum() for g, s in rows]),
         np.mean([expected_hits(g, s, 2) / 2 for g, s in rows]))
    )  # fmt: skip


@given(scored(), st.integers(1, 7))
def test_ndcg_equals_scikit_learn(case, k):
    gold, scores = case
    assume(gold.shape[1] > 1)
    rows = gold.any(axis=1)
    assume(rows.any())
    expected = sk.ndcg_score(gold[rows], scores[rows], k=k)  # averages over ties as we do
    assert ranking.ndcg_at(gold, scores, [k]) == pytest.approx([expected])


@given(judged(), st.randoms(use_true_random=False))
@SHORT
def test_no_score_depends_on_the_order_of_documents(case, random):
    taxonomy, gold, predicted = case
    order = list(range(gold.shape[0]))
    random.shuffle(order)
    scores = np.random.default_rng(0).random(gold.shape)
    first = report(gold, predicted, taxonomy, scores=scores).scores
    again = report(gold[order], predicted[order], taxonomy, scores=scores[order]).scores
    assert again == pytest.approx(first, nan_ok=True)


@given(judged())
@SHORT
def test_documents_without_gold_and_predictions_change_only_what_is_averaged_over_documents(case):
    taxonomy, gold, predicted = case
    n = gold.shape[0]
    empty = sparse.csr_array((n, len(taxonomy)), dtype=int)
    first = report(gold, predicted, taxonomy).scores
    more = report(sparse.vstack([gold, empty]), sparse.vstack([predicted, empty]), taxonomy).scores
    for name, score in first.items():
        if name.startswith(("micro", "macro", "consistent")) or name in {f"hierarchical_{s}" for s in flat.PRF._fields}:
            assert more[name] == pytest.approx(score, nan_ok=True), name
        elif name in ("hamming_loss", "inconsistent_share"):
            assert more[name] == pytest.approx(score / 2), name
        else:
            assert more[name] == pytest.approx((score + 1) / 2), name


@given(indicators(how_many=3), st.sampled_from(["all", "gold", "both"]), st.integers(0, 99))
@SHORT
def test_weighted_scores_equal_scores_of_repeated_documents(matrices, over, seed):
    gold, predicted, training = matrices
    weights = np.random.default_rng(seed).multinomial(len(gold), np.full(len(gold), 1 / len(gold)), size=5).T
    found = significance.weighted_scores(gold, predicted, weights, over=over, training=training)
    for r in range(5):
        rows = np.repeat(np.arange(len(gold)), weights[:, r])
        drawn, answered = gold[rows], predicted[rows]
        assert found["micro_f1"][r] == pytest.approx(flat.micro(drawn, answered).f1)
        assert found["macro_f1"][r] == pytest.approx(flat.macro(drawn, answered, over, training).f1, nan_ok=True)
        assert found["example_f1"][r] == pytest.approx(flat.example(drawn, answered).f1)


@given(indicators(how_many=3), st.sampled_from(["all", "gold"]), st.integers(0, 99))
@SHORT
def test_swapped_differences_equal_scores_of_swapped_rows(matrices, over, seed):
    gold, first, second = matrices
    swaps = np.random.default_rng(seed).integers(0, 2, (len(gold), 4))
    found = significance.swapped_differences(gold, first, second, swaps, over=over)
    for r in range(4):
        mask = swaps[:, [r]].astype(bool)
        a, b = np.where(mask, second, first), np.where(mask, first, second)
        expected = {
            "micro_f1": flat.micro(gold, b).f1 - flat.micro(gold, a).f1,
            "macro_f1": flat.macro(gold, b, over).f1 - flat.macro(gold, a, over).f1,
            "example_f1": flat.example(gold, b).f1 - flat.example(gold, a).f1,
        }
        assert {name: values[r] for name, values in found.items()} == pytest.approx(expected, nan_ok=True, abs=1e-12)


@given(scored(), st.integers(1, 6), st.sampled_from(["width", "mass"]))
def test_calibration_error_is_the_same_for_dense_and_sparse_probabilities(case, bins, binning):
    gold, scores = case
    for over in ("pairs", "labels", "predicted", "top"):
        found = [
            calibration.calibration_error(gold, form(scores), over=over, predicted=gold, bins=bins, binning=binning)
            for form in (np.asarray, sparse.csr_array)
        ]
        assert found[0] == pytest.approx(found[1], nan_ok=True)


@given(scored(), st.integers(1, 6))
def test_calibration_error_equals_a_loop_over_bins(case, bins):
    gold, scores = case
    expected = naive_error(gold.ravel(), scores.ravel(), bins)
    assert calibration.calibration_error(gold, scores, bins=bins) == pytest.approx(expected)
    supported = np.flatnonzero(gold.any(axis=0))
    assume(len(supported))
    each = [naive_error(gold[:, k], scores[:, k], bins) for k in supported]
    assert calibration.calibration_error(gold, scores, over="labels", bins=bins) == pytest.approx(np.mean(each))


@given(scored())
def test_brier_score_equals_the_mean_square(case):
    gold, scores = case
    for form in (np.asarray, sparse.csr_array):
        assert calibration.brier_score(gold, form(scores)) == pytest.approx(np.mean((gold - scores) ** 2))


@given(judged())
def test_levels_and_thirds_split_the_macro_mean(case):
    taxonomy, gold, predicted = case
    whole = flat.macro(gold, predicted, "all").f1
    thirds = groups.by_popularity(gold, predicted, over="all")
    for parts in (groups.by_level(gold, predicted, taxonomy, over="all"), thirds):
        assert sum(p.labels for p in parts) == len(taxonomy)
        assert sum(p.support for p in parts) == gold.nnz
        assert sum(p.labels * p.macro_f1 for p in parts if p.labels) / len(taxonomy) == pytest.approx(whole)
    sizes = [p.labels for p in thirds]
    assert max(sizes) - min(sizes) <= 1


@given(indicators())
def test_counting_leaves_the_given_matrix_as_it_was(matrices):
    gold, _ = matrices
    rows, columns = gold.nonzero()
    order = np.lexsort((-columns, rows))  # unsorted within a row, and a stored zero
    starts = np.concatenate([[0], np.cumsum(gold.sum(axis=1))])
    given_ = sparse.csr_array((np.ones(len(rows)), columns[order], starts), shape=gold.shape)
    before = given_.indices.copy()
    np.testing.assert_array_equal(counts.indicator(given_, "gold").toarray(), gold)
    np.testing.assert_array_equal(given_.indices, before)


def naive_lca(taxonomy, gold, predicted, count_root):
    """The definition in `hilap.metrics.lca`, word for word, with dictionaries and sets."""
    up = {label: ways_up(taxonomy, label) for label in taxonomy} | {"": {"": 0}}
    y, p = set(taxonomy.most_specific(gold)), set(taxonomy.most_specific(predicted))
    length, tops = {}, {}
    for a in y:
        for b in p:
            meet = {node: up[a][node] + up[b][node] for node in up[a] if node in up[b]}
            length[a, b] = min(meet.values())
            tops[a, b] = [node for node, far in meet.items() if far == length[a, b]]
    links = {(a, b) for a in y for b in p if length[a, b] == min(length[a, other] for other in p)}
    links |= {(a, b) for a in y for b in p if length[a, b] == min(length[other, b] for other in y)}
    big_y, big_p = set(y), set(p)
    for a, b in links:
        for top in tops[a, b]:
            big_y |= {n for n in up[a] if top in up[n] and up[a][n] + up[n][top] == up[a][top]}
            big_p |= {n for n in up[b] if top in up[n] and up[b][n] + up[n][top] == up[b][top]}
    if not count_root:
        big_y, big_p = big_y - {""}, big_p - {""}
    if not big_y and not big_p:
        return 1, 1, 1
    common = len(big_y & big_p)
    return (
        common / len(big_p) if big_p else 0,
        common / len(big_y) if big_y else 0,
        2 * common / (len(big_y) + len(big_p)),
    )


def ways_up(taxonomy, label):
    """Distances to all ancestors, breadth first; the root is the empty string."""
    found, frontier, far = {label: 0}, [label], 0
    while frontier:
        far += 1
        above = [p for node in frontier if node for p in taxonomy.parents(node) or ("",)]
        frontier = [p for p in dict.fromkeys(above) if p not in found]
        found |= dict.fromkeys(frontier, far)
    return found


def naive_interpolated(gold, scores, steps=4000):
    """Davis and Goadrich: between two thresholds false positives grow in proportion to true positives."""
    total, found, wrong = 0.0, 0, 0
    for value in sorted(set(scores), reverse=True):
        more = int(((scores == value) & (gold == 1)).sum())
        more_wrong = int(((scores == value) & (gold == 0)).sum())
        if more:
            t = (np.arange(steps) + 0.5) / steps * more
            total += float(np.mean((found + t) / (found + t + wrong + more_wrong * t / more))) * more
        found, wrong = found + more, wrong + more_wrong
    return total / gold.sum()


def expected_hits(gold, scores, k):
    """Gold labels expected among the k best, if equal scores are put in random order."""
    hits, left = 0.0, k
    for value in sorted(set(scores), reverse=True):
        tied = scores == value
        taken = min(left, int(tied.sum()))
        hits += gold[tied].sum() * taken / tied.sum()
        left -= taken
    return hits


def naive_error(gold, scores, bins):
    total = 0.0
    for b in range(bins):
        mine = np.array([min(int(s * bins), bins - 1) == b for s in scores])
        if mine.any():
            total += mine.mean() * abs(scores[mine].mean() - gold[mine].mean())
    return total
