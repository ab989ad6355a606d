"""What bad input to the metrics gets: one clear sentence."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from hilap.errors import HilapError, SettingError
from hilap.metrics import calibration, compare, flat, ranking, report, significance
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of({"A": [], "B": ["A"]})
GOOD = np.array([[1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([[1, 0]], [[1, 0], [1, 1]], r"gold has 1 documents but predicted has 2; give one row for each document"),
        ([[1, 0]], [[1, 0, 0]], r"predicted must have 2 columns, one for each label, got shape \(1, 3\)"),
        ([1, 0], [1, 0], r"gold must be a matrix of numbers \(documents, labels\), got int64 of shape \(2,\)"),
        ([["A"]], [["B"]], r"for sets of label ids, use taxonomy.encode"),
        ([[1, 0], [1]], GOOD, r"gold must be a matrix \(documents, labels\); its rows differ in length"),
        (
            GOOD,
            [[0, 0], [0, 0.7]],
            r"predicted must hold zeros and ones only, got 0.7 in row 1, column 1; choose labels",
        ),
        (GOOD, [[0, 0], [np.nan, 0]], r"predicted must hold zeros and ones only, got nan in row 1, column 0"),
        (GOOD, sparse.csr_array([[0, 2], [0, 0]]), r"got 2 in row 0, column 1"),
        (GOOD, [[0, -1], [0, 0]], r"got -1 in row 0, column 1"),
        (np.zeros((0, 2)), np.zeros((0, 2)), r"there is nothing to score: gold has shape \(0, 2\)"),
        (np.zeros((2, 0)), np.zeros((2, 0)), r"there is nothing to score: gold has shape \(2, 0\)"),
        (sparse.coo_array([1, 0]), GOOD, r"gold must be a matrix \(documents, labels\), got shape \(2,\)"),
    ],
)
def test_bad_matrices_are_named(gold, predicted, message):
    with pytest.raises(SettingError, match=message):
        flat.micro(gold, predicted)


def test_a_matrix_of_another_taxonomy_is_refused():
    with pytest.raises(SettingError, match=r"gold must have 2 columns, one for each label, got shape \(1, 3\)"):
        report([[1, 0, 0]], [[1, 0, 0]], TAXONOMY)


def test_macro_must_be_one_of_three():
    with pytest.raises(SettingError, match=r"macro must be 'all' or 'gold' or 'both', got 'some'"):
        report(GOOD, GOOD, TAXONOMY, macro="some")


def test_macro_both_needs_training():
    with pytest.raises(
        SettingError, match=r"macro='both' averages over labels with training examples .* give training"
    ):
        report(GOOD, GOOD, TAXONOMY, macro="both")


@pytest.mark.parametrize("training", [[1, 2, 3], [0.5, 1], [-1, 0], "ab", [[1, 2]], [[1, 0, 0]]])
def test_bad_training_is_refused(training):
    with pytest.raises(SettingError, match="training must"):
        report(GOOD, GOOD, TAXONOMY, macro="both", training=training)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.1, 0.2]], r"scores must have the shape of gold, \(2, 2\), got \(1, 2\)"),
        ([[0.1, np.nan], [0, 0]], r"scores must be numbers, got NaN"),
        (sparse.csr_array([[0.1, np.nan], [0, 0]]), r"scores must be numbers, got NaN"),
        ([["a", "b"], ["c", "d"]], r"scores must be a matrix of numbers"),
    ],
)
def test_bad_scores_are_named(scores, message):
    with pytest.raises(SettingError, match=message):
        report(GOOD, GOOD, TAXONOMY, scores=scores)


def test_calibration_needs_probabilities():
    with pytest.raises(SettingError, match="probabilities must be between 0 and 1; calibrate scores first"):
        calibration.calibration_error(GOOD, GOOD * 1.5)


def test_calibration_of_predicted_labels_needs_them():
    with pytest.raises(SettingError, match="over='predicted' needs predicted"):
        calibration.calibration_error(GOOD, GOOD, over="predicted")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration.calibration_error(GOOD, GOOD, bins=0), "bins must be at least 1, got 0"),
        (lambda: calibration.calibration_error(GOOD, GOOD, binning="x"), "binning must be 'width' or 'mass', got 'x'"),
        (lambda: calibration.calibration_error(GOOD, GOOD, over="x"), "over must be 'pairs' or 'labels' or"),
        (lambda: calibration.reliability(GOOD, GOOD, over="labels"), "over must be 'pairs' or 'predicted' or 'top'"),
        (lambda: calibration.brier_score(np.zeros((0, 2)), np.zeros((0, 2))), "there is nothing to judge"),
        (lambda: ranking.au_prc(GOOD, GOOD, "x"), "curve must be 'average_precision' or 'interpolated', got 'x'"),
        (lambda: ranking.precision_at(GOOD, GOOD, [0]), "k must be at least 1, got 0"),
        (lambda: ranking.au_prc(np.zeros((0, 2)), np.zeros((0, 2))), "there is nothing to rank"),
        (lambda: significance.bootstrap(GOOD, GOOD, samples=0), "samples must be at least 1, got 0"),
        (lambda: significance.bootstrap(GOOD, GOOD, confidence=1), "confidence must be between 0 and 1, got 1"),
        (lambda: significance.bootstrap(GOOD, GOOD, seed=-1), "seed must be at least 0, got -1"),
        (lambda: significance.permutation_test(GOOD, GOOD, GOOD, permutations=0), "permutations must be at least 1"),
        (lambda: report(GOOD, GOOD, TAXONOMY, bootstrap=-1), "bootstrap must be at least 0, got -1"),
        (lambda: compare(GOOD, GOOD, GOOD[:1], TAXONOMY), "gold has 2 documents but second has 1"),
        (lambda: compare(GOOD, GOOD, GOOD, TAXONOMY)["hamming"], "'hamming' was not compared; there are: micro_f1"),
    ],
)
def test_bad_settings_are_named(call, message):
    with pytest.raises(SettingError, match=message):
        call()


@given(
    st.lists(
        hnp.arrays(
            st.sampled_from(["?", "i1", "u8", "f4", "f8", "O", "U2", "c16"]),
            st.just((2, 2)) | hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        ),
        min_size=3,
        max_size=3,
    )
)
def test_any_arrays_give_a_report_or_our_own_error(arrays):
    gold, predicted, scores = arrays
    with contextlib.suppress(HilapError):
        report(gold, predicted, TAXONOMY, scores=scores)
