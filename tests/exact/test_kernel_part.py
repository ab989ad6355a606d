"""The kernel part against the regression written out, and against its own machines one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import QuantileTransformer

import hilap
from hilap import HiLAPClassifier, kernel_part
from hilap.corpus import Examples
from hilap.errors import ModelError, SettingError
from hilap.kernel_part import KernelPart, alike, cross_fit
from hilap.network import averaged
from hilap.storage import load_folder
from hilap.taxonomy import Taxonomy
from tests.faults.test_saving import opened, put, take

TREE = Taxonomy.of({"A": [], "B": ["A"], "C": ["A"], "D": []})
SMALL = {"preset": "residual", "encoder": "mlp", "flat_epochs": 2, "reinforced_epochs": 1, "folds": 3}


def documents(n=90, seed=0, missing=0.1):
    """Labels that features say by their place on both sides of a limit, which no line can."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4)).astype(np.float32)
    sets = [[k for k, yes in (("B", z[0] > 0.5), ("C", z[1] > 0.3), ("D", abs(z[2]) > 1)) if yes] for z in rows]
    rows[rng.random(rows.shape) < missing] = np.nan
    return Examples.of(TREE, sets, features=rows)


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 3)).astype(np.float32)
    labels = sparse.csr_array((rng.random((40, 4)) < 0.4).astype(np.int8))
    folds = [np.sort(fold) for _ in range(2) for fold in np.array_split(rng.permutation(40), 4)]
    made = cross_fit(rows, labels, folds, repeats=2, width=1.5, ridge=0.7, points=40, seed=0)
    return rows, labels, folds, made


def test_honest_scores_are_those_of_kernel_ridge_regressions_without_the_fold(found):
    rows, labels, folds, made = found
    gold = labels.toarray().astype(float)
    for number, fold in enumerate(folds):
        rest = np.setdiff1d(np.arange(40), fold)
        mean = gold[rest].mean(0)
        oracle = KernelRidge(alpha=0.7, kernel="rbf", gamma=1 / (3 * 1.5**2)).fit(rows[rest], gold[rest] - mean)
        expected = np.clip(oracle.predict(rows[fold]) + mean, 1e-5, 1 - 1e-5)
        said = 1 / (1 + np.exp(-made.honest[number // 4, fold].astype(float)))
        np.testing.assert_allclose(said, expected, atol=1e-5)


def test_new_documents_get_the_mean_of_all_machines(found):
    rows, labels, folds, made = found
    gold, new = labels.toarray().astype(float), np.random.default_rng(2).normal(size=(7, 3)).astype(np.float32)
    each = []
    for fold in folds:
        rest = np.setdiff1d(np.arange(40), fold)
        mean = gold[rest].mean(0)
        oracle = KernelRidge(alpha=0.7, kernel="rbf", gamma=1 / (3 * 1.5**2)).fit(rows[rest], gold[rest] - mean)
        each.append(oracle.predict(new) + mean)
    part = KernelPart(3, 40, 4)
    part.know(made)
    with torch.no_grad():
        np.testing.assert_allclose(part.chances(torch.from_numpy(new)).numpy(), np.mean(each, 0), atol=1e-5)


def test_some_points_solve_the_regression_on_their_span():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 2)).astype(np.float32)
    labels = sparse.csr_array((rng.random((60, 3)) < 0.5).astype(np.int8))
    folds = np.array_split(np.arange(60), 3)
    made = cross_fit(rows, labels, folds, repeats=1, width=1.0, ridge=0.5, points=15, seed=0)
    points, gold = made.points.astype(float), labels.toarray().astype(float)
    rest = np.arange(20, 60)
    seen, among = alike(rows[rest].astype(float), points, 0.5), alike(points, points, 0.5)
    target = gold[rest] - gold[rest].mean(0)

    def objective(weight):
        return np.sum((seen @ weight - target) ** 2) + 0.5 * np.sum(weight * (among @ weight))

    best = np.linalg.lstsq(seen.T @ seen + 0.5 * among, seen.T @ target, rcond=None)[0]
    said = 1 / (1 + np.exp(-made.honest[0, :20].astype(float)))
    expected = alike(rows[:20].astype(float), points, 0.5) @ best + gold[rest].mean(0)
    np.testing.assert_allclose(said, np.clip(expected, 1e-5, 1 - 1e-5), atol=1e-4)
    for _ in range(20):
        assert objective(best) <= objective(best + 1e-3 * rng.normal(size=best.shape)) + 1e-9


def test_a_regression_on_some_points_is_the_same_in_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(70, 3)).astype(np.float32)
    labels = sparse.csr_array((rng.random((70, 4)) < 0.3).astype(np.int8))
    folds = [np.sort(fold) for _ in range(2) for fold in np.array_split(rng.permutation(70), 3)]
    whole, blocks = (
        cross_fit(rows, labels, folds, repeats=2, width=1.2, ridge=0.3, points=20, seed=1)
        for size in (4_096, 7)
        if monkeypatch.setattr(kernel_part, "_BLOCK", size) is None
    )
    np.testing.assert_array_equal(blocks.points, whole.points)
    np.testing.assert_allclose(blocks.honest, whole.honest, atol=1e-5)
    np.testing.assert_allclose(blocks.weight, whole.weight, atol=1e-5)


def test_a_very_large_taxonomy_has_fewer_points(monkeypatch):
    monkeypatch.setattr(kernel_part, "MOST_WEIGHTS", 50)
    assert KernelPart.scaled(documents(30), 30).weight.shape == (4, 12)
    monkeypatch.setattr(kernel_part, "MOST_WEIGHTS", 3)
    with pytest.raises(SettingError, match="the kernel part would have 1 documents x 4 labels; set kernel_share to 0"):
        KernelPart.scaled(documents(30), 30)


def test_ranks_are_those_of_another_library():
    train = documents(500, missing=0.0)
    part = KernelPart.scaled(train, 10)
    rows = np.random.default_rng(5).normal(size=(50, 4)) * 2
    oracle = QuantileTransformer(n_quantiles=201, output_distribution="normal", subsample=None)
    expected = np.clip(oracle.fit(train.features.astype(float)).transform(rows), -3, 3)
    np.testing.assert_allclose(part.ranked(rows), expected, atol=1e-3)


def test_a_missing_value_is_the_median_and_a_constant_feature_says_nothing():
    rows = np.array([[1.0, 5.0, np.nan], [2.0, 5.0, np.nan], [3.0, 5.0, np.nan]], dtype=np.float32)
    train = Examples.of(TREE, [["A"], [], []], features=rows)
    ranked = KernelPart.scaled(train, 3).ranked(np.array([[np.nan, 5.0, 1.0], [2.0, 5.0, np.nan]]))
    np.testing.assert_allclose(ranked[:, 0], 0, atol=1e-6)
    assert ranked[0, 1] == ranked[1, 1] == 0
    assert np.isfinite(ranked).all()


def test_shares_weigh_probabilities():
    one, other = torch.tensor([0.3]), torch.tensor([-2.0])
    mixed = averaged([one, other], "probabilities", [0.8, 0.2])
    expected = 0.8 * torch.sigmoid(one) + 0.2 * torch.sigmoid(other)
    torch.testing.assert_close(torch.sigmoid(mixed), expected)


# -- in the classifier ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return HiLAPClassifier(TREE, **SMALL, kernel_share=0.5).fit(documents())


def test_with_the_whole_share_networks_say_nothing():
    train, new = documents(), documents(30, seed=9)
    said = [
        HiLAPClassifier(TREE, **SMALL, kernel_share=1.0, learning_rate=rate).fit(train).predict_proba(new)
        for rate in (1e-3, 1e-2)
    ]
    np.testing.assert_array_equal(*said)


def test_half_the_share_is_the_mean_of_both():
    train, new = documents(), documents(30, seed=9)
    made = {share: HiLAPClassifier(TREE, **SMALL, kernel_share=share).fit(train).network_ for share in (0.0, 0.5, 1.0)}
    chances = {}
    for share, network in made.items():
        with torch.no_grad():
            prepared = network.eval().prepare(new)
            chances[share] = torch.sigmoid(network.see(prepared.batch(np.arange(30))).flat)
    expected = 0.5 * (chances[0.0].clamp(1e-5, 1) + chances[1.0])
    torch.testing.assert_close(chances[0.5], expected, atol=1e-4, rtol=1e-4)


def test_it_finds_what_networks_of_two_epochs_do_not(model):
    new = documents(200, seed=9, missing=0.0)
    without = HiLAPClassifier(TREE, **SMALL).fit(documents())
    assert model.score(new) > without.score(new) + 0.05


def test_a_document_gets_the_same_alone_and_in_any_company(model):
    new = documents(20, seed=4)
    together = model.predict_proba(new)
    for row in range(20):
        np.testing.assert_array_equal(model.predict_proba(new.take([row]))[0], together[row])


def test_saving_changes_nothing(model, tmp_path):
    new = documents(20, seed=4)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(hilap.load(tmp_path / "model").predict_proba(new), model.predict_proba(new))


def test_lent_members_may_have_another_share(model):
    new = documents(20, seed=4)
    lent = HiLAPClassifier(TREE, **SMALL, kernel_share=0.2).fit(documents(), members=model)
    own = HiLAPClassifier(TREE, **SMALL, kernel_share=0.2).fit(documents())
    np.testing.assert_array_equal(lent.predict_proba(new), own.predict_proba(new))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel_share": 0.5, "folds": 1, "repeats": 1, "pool_validation": False}, "unless folds is above 1, got 0.5"),
        ({"kernel_share": 1.5}, "kernel_share must be a number between 0 and 1"),
        ({"kernel_width": 2.0}, "kernel_width is of the kernel part, which is not there"),
        ({"kernel_ridge": 2.0}, "kernel_ridge is of the kernel part, which is not there"),
        ({"kernel_share": 0.5, "kernel_ridge": 0.0}, "kernel_ridge must be a number between"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        HiLAPClassifier(TREE, **{**SMALL, **settings}).fit(documents())


def test_texts_and_sparse_features_are_refused():
    texts = Examples.of(TREE, [["B"], ["D"]] * 20, texts=["beer bar", "court law"] * 20)
    with pytest.raises(SettingError, match="must be 0 beside a wide part"):
        HiLAPClassifier(TREE, preset="residual", kernel_share=0.5).fit(texts)
    with pytest.raises(SettingError, match="compares dense features, got texts alone"):
        HiLAPClassifier(TREE, preset="residual", wide=False, kernel_share=0.5).fit(texts)
    given = documents(missing=0.0)
    thin = Examples.of(TREE, TREE.decode(given.labels), features=sparse.csr_array(given.features))
    with pytest.raises(SettingError, match="got sparse features"):
        HiLAPClassifier(TREE, **SMALL, kernel_share=0.5).fit(thin)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("settings", "policy", "kernel_share", to=0.0), r"tensor 'kernel\.\w+' has no place"),
        (take("tensors", "kernel.points"), r"'kernel\.points' is missing"),
        (put("tensors", "kernel.points", to=torch.zeros(5)), r"'kernel\.points' is of shape \(5,\)"),
        (put("tensors", "kernel.points", to=torch.zeros(5, 4)), r"'kernel\.weight' is of shape"),
    ],
)
def test_a_kernel_part_that_does_not_fit_is_named(change, message, model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match=message):
        opened(load_folder(tmp_path / "model"), tmp_path / "other", change)
