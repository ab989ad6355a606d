"""What the linear systems promise beside their mathematics: checks, saving, consistency, cores, memory."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hilap import samples
from hilap.baselines import hsvm
from hilap.baselines.chances import ALWAYS, NEVER
from hilap.baselines.hr_svm import HRSVM
from hilap.baselines.hsvm import HSVM
from hilap.baselines.leaf_svm import LeafSVM
from hilap.baselines.linear import LinearModels, column, solve_svm
from hilap.baselines.svm import SVM
from hilap.baselines.td_svm import TopDownSVM
from hilap.baselines.thresholds import TUNES
from hilap.errors import HilapError, ModelError, SettingError
from hilap.metrics.hierarchical import inconsistent_share
from hilap.taxonomy import Taxonomy
from tests.contract.classifiers import DAG, N_FEATURES, TAXONOMIES, TREE, documents, texts

MAKERS = {
    "svm": SVM,
    "leaf-svm": LeafSVM,
    "td-svm": TopDownSVM,
    "hsvm": HSVM,
    "hr-svm": HRSVM,
    "hr-lr": lambda taxonomy=None, **more: HRSVM(taxonomy, **{"loss": "logistic", **more}),
    "hr-leaves": lambda taxonomy=None, **more: HRSVM(taxonomy, **{"trained": "leaves", **more}),
}
CONSISTENT = ("leaf-svm", "td-svm", "hsvm", "hr-leaves")


@pytest.fixture(params=MAKERS)
def name(request) -> str:
    return request.param


@pytest.fixture(params=TAXONOMIES)
def kind(request) -> str:
    return request.param


# -- answers ----------------------------------------------------------------------------------------------------------


def test_documents_are_answered_alike_alone_in_any_order_and_after_saving(name, kind, tmp_path):
    model = MAKERS[name](TAXONOMIES[kind]).fit(*documents(kind))
    X, _ = documents(kind, n=40, seed=6)
    together, order = model.predict_proba(X), np.random.default_rng(0).permutation(40)
    assert np.array_equal(model.predict_proba(X[order]), together[order])
    for i in (0, 17):
        assert np.array_equal(model.predict_proba(X[[i]])[0], together[i])
    model.save(tmp_path / "model")
    opened = type(model).load(tmp_path / "model")
    assert np.array_equal(opened.predict_proba(X), together)
    assert np.array_equal(opened.predict(X).toarray(), model.predict(X).toarray())
    assert opened.history_ == model.history_ == json.loads(json.dumps(model.history_))


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"hsvm"}))
def test_the_number_of_cores_changes_nothing(name):
    X, y = documents("dag")
    one, two = (MAKERS[name](DAG, jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize("name", CONSISTENT)
@pytest.mark.parametrize("tune", [None, "mean", "scut"])
def test_sets_are_consistent_whatever_tunes_the_thresholds(name, kind, tune):
    taxonomy = TAXONOMIES[kind]
    model = MAKERS[name](taxonomy, tune=tune).fit(*documents(kind, n=80))
    X, _ = documents(kind, n=80, seed=3)
    found = model.predict(X)
    assert found.nnz
    assert inconsistent_share(found, taxonomy) == 0
    chances = model.predict_proba(X)
    child, parent = taxonomy.parent_matrix.nonzero()
    assert (chances[:, child] <= chances[:, parent]).all()


def test_they_learn_what_texts_give_away(name):
    X, y = texts(80)
    model = MAKERS[name](TREE, row_options={"min_df": 1}).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("tune", TUNES)
def test_a_label_that_no_training_document_has_is_given_at_no_threshold(name, tune, tmp_path):
    X, y = documents(n=60)
    valid = documents(n=30, seed=1)
    tempting = [[*labels, "never"] if "f" in labels else labels for labels in valid[1]]  # "e" is above both
    model = MAKERS[name](TREE, tune=tune).fit(X, y, valid=(valid[0], tempting))
    model.save(tmp_path / "model")
    for made in (model, type(model).load(tmp_path / "model"), model.with_decoding(threshold=-5000)):
        assert not made.predict(valid[0]).toarray()[:, TREE.index("never")].any()
    assert np.isfinite(model.thresholds_).all()
    if name != "hsvm":  # there such a label is learned like any other
        assert (model.predict_proba(valid[0])[:, TREE.index("never")] < 1e-3).all()
    bare = MAKERS[name](TREE, tune=tune).fit(X, y, valid=valid)
    assert model.sigmoid_ == bare.sigmoid_  # constants say nothing about how margins become probabilities


@pytest.mark.parametrize("name", ["leaf-svm", "hr-leaves"])
def test_an_inner_label_whose_leaves_have_no_documents_says_nothing_about_probabilities(name):
    """It follows from leaves that were never learned, so its margin is a constant, though documents have it."""
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["d"]})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).astype(np.float32)
    y = [["b" if row[0] > 0 else "c", *(["d"] if row[1] > 1 else [])] for row in X]  # never e, the leaf below d
    model = MAKERS[name](taxonomy).fit(X[:80], y[:80], valid=(X[80:], y[80:]))
    bare = MAKERS[name](taxonomy).fit(X[:80], [one[:1] for one in y[:80]], valid=(X[80:], [one[:1] for one in y[80:]]))
    assert model.sigmoid_ == bare.sigmoid_
    chances = model.predict_proba(X[80:])
    assert chances[:, taxonomy.index("b")].max() > 0.9 > 0.1 > chances[:, taxonomy.index("b")].min()


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("hsvm", {"passes": 1, "tolerance": 1e-6}, "hsvm: after 1 passes the objective may be .*% above its optimum"),
        ("hr-svm", {"rounds": 1, "tolerance": 1e-9}, "hr-svm: not settled after 1 rounds"),
    ],
)
def test_a_solver_that_is_ended_before_its_goal_says_so(name, changes, words):
    with pytest.warns(ConvergenceWarning, match=words):
        MAKERS[name](TREE, **changes).fit(*documents(n=60))


@pytest.mark.parametrize("name", ["hsvm", "hr-svm"])
def test_a_solver_that_has_reached_its_goal_says_nothing(name, recwarn):
    MAKERS[name](TREE, tolerance=0.05, strength=0.01).fit(*documents(n=60))
    assert not [one for one in recwarn if issubclass(one.category, ConvergenceWarning)]


def test_hr_svm_settles_on_the_bundled_sample_with_its_own_settings(recwarn):
    parts = samples.load("pypi_topics")
    made = HRSVM().fit(parts["train"], valid=parts["valid"])
    assert not [one for one in recwarn if issubclass(one.category, ConvergenceWarning)]
    sweeps, *rounds = made.history_  # by rounds alone it took 26
    assert 0 < len(rounds) < 5
    assert rounds[-1]["objective"] - sweeps["bound"] <= made.tolerance * rounds[-1]["objective"]


def test_documents_without_any_label_teach_to_give_none(name):
    X, _ = documents(n=24)
    model = MAKERS[name](TREE).fit(X, [[] for _ in X])
    assert model.score(X, [[] for _ in X]) == 1


def test_a_label_that_all_documents_have_is_given_to_all(name):
    X, y = documents(n=40)
    model = MAKERS[name](TREE).fit(X, [[*labels, "f"] for labels in y])
    assert model.predict(X).toarray()[:, [TREE.index("e"), TREE.index("f")]].all()


def test_any_seed_is_a_seed(name):
    assert MAKERS[name](TREE, seed=2**70).fit(*documents(n=30)).predict(documents(n=3)[0]).shape == (3, len(TREE))


def test_training_touches_no_random_numbers_of_others(name):
    np.random.seed(0)  # noqa: NPY002 - the global state is what must not change
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    MAKERS[name](TREE).fit(*documents(n=30))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize(("name", "unit"), [("svm", "labels"), ("leaf-svm", "leaves"), ("hsvm", "passes")])
def test_progress_is_shown_on_standard_error(name, unit, capsys):
    MAKERS[name](TREE, progress=True).fit(*documents(n=30))
    shown = capsys.readouterr()
    assert unit in shown.err
    assert not shown.out


def test_a_round_is_recorded_with_its_objective():
    history = HRSVM(TREE, rounds=3, tolerance=1e-9).fit(*documents()).history_
    sweeps, *rounds = history
    assert sweeps["phase"] == "sweeps"
    assert [(record["phase"], record["epoch"]) for record in rounds] == [("rounds", 1), ("rounds", 2), ("rounds", 3)]
    assert rounds[0]["objective"] > rounds[2]["objective"] > sweeps["bound"] > 0


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("svm", {"strength": 0}, "strength must be a number above 0, got 0"),
        ("leaf-svm", {"strength": "much"}, "strength must be a number above 0, got 'much'"),
        ("td-svm", {"tolerance": -1}, "tolerance must be a number above 0, got -1"),
        ("svm", {"jobs": 0}, "jobs must be -1, or a whole number above 0, got 0"),
        ("svm", {"row_options": {"max_df": 3}}, "row_options of texts are .*; got 'max_df'"),
        ("svm", {"repair": "mend"}, "repair must be one of None, 'add', 'drop', got 'mend'"),
        ("hsvm", {"passes": 0}, "passes must be a whole number, at least 1, got 0"),
        ("hr-svm", {"rounds": 1.5}, "rounds must be a whole number, at least 1, got 1.5"),
        ("hr-svm", {"loss": "log"}, "loss must be one of 'hinge', 'squared_hinge', 'logistic', got 'log'"),
        ("hr-svm", {"trained": "some"}, "trained must be one of 'all', 'leaves', got 'some'"),
        (
            "hr-leaves",
            {"repair": "add"},
            "repair must be None where only leaves are trained: their ancestors are always added, got 'add'",
        ),
        ("hr-svm", {"coupling": 1.5}, "coupling must be a number from 0 to 1, got 1.5"),
        ("hr-svm", {"coupling": -0.5}, "coupling must be a number, at least 0, got -0.5"),
    ],
)
def test_a_bad_setting_gets_one_sentence(name, change, says):
    with pytest.raises(SettingError, match=f"^{says}$"):
        MAKERS[name](TREE, **change).fit(*documents())


def test_hsvm_says_when_its_weights_would_not_fit(monkeypatch):
    monkeypatch.setattr(hsvm, "MOST_WEIGHTS", 40)
    says = r"at most 40; 6 features x 7 labels are 49: take fewer features \(row_options\), or hr-svm$"
    with pytest.raises(SettingError, match=says):
        HSVM(TREE).fit(*documents())


def test_every_setting_survives_a_clone(name):
    made = MAKERS[name](TREE, strength=0.3, tolerance=0.02, seed=4)
    assert {k: v for k, v in clone(made).get_params().items() if k != "taxonomy"} == {
        k: v for k, v in made.get_params().items() if k != "taxonomy"
    }


# -- weights ----------------------------------------------------------------------------------------------------------


def test_weights_of_many_features_and_labels_are_never_dense():
    """20,000 million weights of which two are not zero."""
    there = np.array([3, 999_999], dtype=np.int32)
    models = LinearModels.of_columns({7: (there, np.ones(2, np.float32), 0.5)}, (1_000_000, 20_000))
    assert models.weight.nnz == 2
    row = sparse.csr_matrix(([2.0], ([0], [999_999])), shape=(1, 1_000_000))
    found = models.margins(row)
    assert (found[0, 7], found[0, 8]) == (2.5, NEVER)


def test_a_constant_target_needs_no_solver():
    rows = sparse.csr_matrix(np.ones((3, 2)))
    for target, margin in ((np.zeros(3, bool), NEVER), (np.ones(3, bool), ALWAYS), (np.zeros(0, bool), NEVER)):
        weights, offset = solve_svm(rows[: len(target)], target, strength=1.0, tolerance=1e-4, seed=0)
        assert not weights.any()
        assert offset == margin
    assert column(np.array([0.0, 2.0]), 1.0)[0].tolist() == [1]


def test_rows_of_another_width_are_refused():
    models = LinearModels.of_columns({}, (4, 2))
    with pytest.raises(ModelError, match="the weights are for 4 features, the rows have 3"):
        models.margins(sparse.csr_matrix((1, 3)))


@pytest.fixture(scope="module")
def stored():
    model = SVM(TREE).fit(*documents())
    return model, *model._stored()


@pytest.mark.parametrize(
    ("tensor", "change", "says"),
    [
        ("values", lambda t: t.double(), "tensor 'linear.values' must be a row of torch.float32, got torch.float64"),
        ("values", lambda t: t[None], "tensor 'linear.values' must be a row of"),
        ("values", lambda t: t * torch.inf, "the tensors 'linear.*' are no matrix"),
        ("columns", lambda t: t + 7, "the tensors 'linear.*' are no matrix"),
        ("columns", lambda t: t - 1, "the tensors 'linear.*' are no matrix"),
        ("columns", lambda t: t[:-1], "the tensors 'linear.*' are no matrix"),
        ("starts", lambda t: t.flip(0), "the tensors 'linear.*' are no matrix"),
        ("starts", lambda t: t[:0], "the tensors 'linear.*' are no matrix"),
        ("offset", lambda t: t[1:], "the tensors 'linear.*' are no matrix"),
        ("starts", lambda t: torch.cat([t, t[-1:]]), "7 features have weights, but rows have 6"),
    ],
)
def test_weights_that_do_not_fit_are_refused(stored, tensor, change, says):
    model, tensors, facts = stored
    damaged = {**tensors, f"linear.{tensor}": change(tensors[f"linear.{tensor}"])}
    with pytest.raises(ModelError) as caught:
        copy.copy(model)._open(damaged, facts)
    assert says in str(caught.value)


@settings(max_examples=80)
@given(data=st.data())
def test_any_tensors_give_a_model_or_our_own_error(stored, data):
    model, tensors, _ = stored
    arrays = {}
    for name, kind in (("values", np.float32), ("columns", np.int32), ("starts", np.int64), ("offset", np.float32)):
        whole = np.issubdtype(kind, np.integer)
        numbers = st.integers(-2, 12) if whole else st.floats(width=32)
        length = data.draw(st.sampled_from([0, 1, 2, 7, len(tensors[f"linear.{name}"])]))
        drawn = data.draw(st.lists(numbers, min_size=min(length, 8), max_size=min(length, 8)))
        arrays[f"linear.{name}"] = torch.from_numpy(np.resize(np.array(drawn, dtype=kind), length).astype(kind))
    try:
        models = LinearModels.opened({**tensors, **arrays}, len(model.taxonomy_))
    except HilapError:
        return
    rows = sparse.csr_matrix(np.ones((2, models.weight.shape[0])))
    assert models.margins(rows).shape == (2, len(TREE))


def test_sparse_and_dense_features_are_the_same_documents(name):
    X, y = documents()
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.5, 0, np.nan_to_num(X)).astype(np.float32)
    dense = MAKERS[name](TREE, row_options={"standardise": False}).fit(X, y)
    thin = MAKERS[name](TREE, row_options={"standardise": False}).fit(sparse.csr_array(X), y)
    assert np.array_equal(dense.predict_proba(X), dense.predict_proba(sparse.csr_matrix(X)))
    np.testing.assert_allclose(dense.predict_proba(X), thin.predict_proba(X), atol=1e-6)
    assert X.shape[1] == N_FEATURES


# -- learning anew from all documents -------------------------------------------------------------------------------


def test_refit_learns_from_all_documents_and_keeps_thresholds_and_what_validation_said(name, kind, tmp_path):
    train, valid = documents(kind, n=60), documents(kind, n=30, seed=7)
    both = np.concatenate([train[0], valid[0]]), [*train[1], *valid[1]]
    make = MAKERS[name]
    plain = make(TAXONOMIES[kind], tune="mean").fit(*train, valid=valid)
    anew = make(TAXONOMIES[kind], tune="mean", refit=True).fit(*train, valid=valid)
    by_hand = make(TAXONOMIES[kind], tune="mean").fit(*both, valid=valid)
    anew.save(tmp_path)
    for made in (anew, type(anew).load(tmp_path)):
        tensors, expected, before = (one._stored()[0] for one in (made, by_hand, plain))
        assert all(torch.equal(tensors[key], expected[key]) for key in expected)
        assert not torch.equal(tensors["linear.values"], before["linear.values"])
        assert np.array_equal(made.thresholds_, plain.thresholds_)
        assert (made.sigmoid_.slope, made.sigmoid_.intercept) == (plain.sigmoid_.slope, plain.sigmoid_.intercept)
        assert [record["epoch"] for record in made.history_] == [record["epoch"] for record in plain.history_]
        assert made.validation_.to_json(per_label=True) == plain.validation_.to_json(per_label=True)
        assert (plain.n_documents_, made.n_documents_) == (60, 90)
        assert np.array_equal(made.label_counts_, by_hand.label_counts_)
