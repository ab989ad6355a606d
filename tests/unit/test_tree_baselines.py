"""Clus-HMC and CSSA as classifiers: their settings, what they choose, their model folders, the real data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hilap.baselines.clus_forest import Forest
from hilap.baselines.clus_hmc import SIGNIFICANCES, ClusHMC
from hilap.baselines.clus_tree import Growing
from hilap.baselines.cssa import CSSA, RIDGES
from hilap.baselines.dependency import Dependency
from hilap.baselines.thresholds import TUNES
from hilap.corpus import Examples
from hilap.corpus.datasets import load
from hilap.errors import HilapError, ModelError, SettingError
from hilap.metrics.hierarchical import inconsistent_share
from hilap.metrics.ranking import pooled_area
from hilap.storage import load_folder
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": [], "f": ["e"], "never": ["e"]})
DAG = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d", "a"], "f": [], "never": ["f"]})
LEAVES = {id(TREE): ["d", "c", "f"], id(DAG): ["e", "f", "b"]}
SMALL = {ClusHMC: {"min_leaf": 3, "jobs": 1}, CSSA: {}}
BOTH = pytest.mark.parametrize("method", [ClusHMC, CSSA])


def documents(taxonomy=TREE, n=80, seed=0):
    rows = np.random.default_rng([seed, 7]).normal(size=(n, 6)).astype(np.float32)
    return rows, [[leaf for k, leaf in enumerate(LEAVES[id(taxonomy)]) if row[k] > 0.3] for row in rows]


def fitted(method, taxonomy=TREE, **changes):
    return method(taxonomy, **{**SMALL[method], **changes}).fit(*documents(taxonomy))


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trees": 0}, "trees must be a whole number, at least 1, got 0"),
        ({"min_leaf": 2.5}, "min_leaf must be a whole number, at least 1, got 2.5"),
        ({"weight_decay": 0}, "weight_decay must be a number above 0, up to 1, got 0"),
        ({"weight_decay": "0.75"}, "weight_decay must be a number above 0, up to 1, got '0.75'"),
        ({"significance": 1.5}, "significance must be a number above 0, up to 1, got 1.5"),
        ({"features": "half"}, "features must be 'all', 'sqrt' or a share above 0 and up to 1.0, got 'half'"),
        ({"features": 3}, "features must be 'all', 'sqrt' or a share above 0 and up to 1.0, got 3"),
        ({"jobs": 0}, "jobs must be -1, or a whole number above 0, got 0"),
        ({"refit": 1}, "refit must be True or False, got 1"),
        ({"tune": "f1"}, "'scut', 'scutfbr', 'auto', got 'f1'"),
        ({"row_options": {"bins": 3}}, "got 'bins'"),
    ],
)
def test_a_tree_setting_with_a_bad_value_gets_a_sentence(changes, says):
    with pytest.raises(SettingError) as caught:
        ClusHMC(TREE, **changes).fit(*documents())
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": 0}, "labels must be a whole number above 0, 'tuned' or None, got 0"),
        ({"labels": "many"}, "labels must be a whole number above 0, 'tuned' or None, got 'many'"),
        ({"labels": "tuned", "tune": None}, "labels='tuned' needs a metric to tune for"),
        (
            {"labels": 5, "tune": "mean"},
            "tune='mean' has nothing to tune where labels=5 says how many there are; leave tune out, or set "
            "labels='tuned' or None (on the command line null)",
        ),
        ({"labels": np.int64(5), "tune": "micro_f1"}, "tune='micro_f1' has nothing to tune where labels="),
        ({"kernel": "poly"}, "kernel must be one of None, 'linear', 'rbf', got 'poly'"),
        ({"gamma": -1}, "gamma must be a number above 0, got -1"),
        ({"ridge": 0}, "ridge must be a number above 0, got 0"),
        ({"components": 0}, "components must be a whole number, at least 1, got 0"),
        ({"landmarks": None}, "landmarks must be a whole number, at least 1, got None"),
        (
            {"tune": "scut"},
            "tune must be one of None, 'example_f1', 'micro_f1', 'macro_f1', 'mean', 'balanced', 'auto', got 'scut'",
        ),
        (
            {"kernel": "linear", "gamma": 0.5},
            "gamma=0.5 is of the kernel 'rbf', but the kernel is 'linear', as it is for texts where none is named; "
            "leave gamma out, or set kernel='rbf'",
        ),
        (
            {"labels": 3, "threshold": 0.5},
            "threshold=0.5 is not looked at where labels=3 says how many there are; give one of them, and None (on the "
            "command line null) for the other",
        ),
        ({"labels": "tuned", "threshold": 0.5}, "threshold=0.5 is not looked at where labels='tuned' says how many"),
    ],
)
def test_a_cssa_setting_with_a_bad_value_gets_a_sentence(changes, says):
    with pytest.raises(SettingError) as caught:
        CSSA(TREE, **changes).fit(*documents())
    assert says in str(caught.value)


def test_gamma_is_refused_for_texts_too_whose_kernel_is_linear():
    texts, sets = ["beer bar", "court law"] * 10, [["d"], ["f"]] * 10
    with pytest.raises(SettingError, match="gamma=2 is of the kernel 'rbf', but the kernel is 'linear', as it is for"):
        CSSA(TREE, gamma=2).fit(texts, sets)
    one, other = (CSSA(TREE, gamma=gamma, kernel="rbf").fit(texts, sets) for gamma in (0.1, 2))
    assert not np.array_equal(one.predict_proba(texts), other.predict_proba(texts))


@BOTH
def test_a_threshold_is_tuned_unless_it_is_given(method):
    rows, labels = documents()
    tuned = fitted(method)
    assert (tuned.tune, tuned.get_params()["tune"]) == ("auto", "auto")
    assert np.array_equal(tuned.thresholds_, fitted(method, tune="example_f1").thresholds_)
    assert (fitted(method, tune=None).thresholds_ == 0.5).all()
    given = fitted(method, threshold=0.02)
    assert (given.thresholds_ == 0.02).all()
    assert np.array_equal(given.predict(rows).toarray() > 0, given.predict_proba(rows) > 0.02)
    with pytest.raises(SettingError, match=r"^threshold=0.9 would be overwritten: tune='mean' chooses it"):
        method(TREE, threshold=0.9, tune="mean").fit(rows, labels)


@BOTH
def test_a_stored_model_with_settings_that_were_not_looked_at_can_be_read(method, tmp_path):
    made = fitted(method, tune="mean", **({"kernel": "linear"} if method is CSSA else {}))
    made.save(tmp_path / "model")
    stored, rows = load_folder(tmp_path / "model"), documents(seed=1)[0]
    ignored = [{"threshold": 0.9}, *([{"labels": 3, "threshold": 0.9}, {"gamma": 2.0}] if method is CSSA else [])]
    for more in ignored:
        parameters = {**stored.settings["parameters"], **more}
        opened = method.from_stored(replace(stored, settings={"parameters": parameters}))
        assert np.array_equal(opened.predict(rows).toarray(), made.predict(rows).toarray())
        assert opened.threshold is None
        if getattr(opened, "labels", None) is None:  # a metric beside a number of labels is refused by fit alone
            opened.fit(*documents())


# -- what is learned --------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("taxonomy", [TREE, DAG], ids=["tree", "dag"])
def test_what_can_be_learned_is_learned_and_sets_are_consistent(method, taxonomy):
    made = method(taxonomy, **SMALL[method]).fit(*documents(taxonomy, n=300))
    rows, labels = documents(taxonomy, n=200, seed=1)
    assert made.score(rows, labels) > 0.8
    assert inconsistent_share(made.predict(rows), taxonomy) == 0


@BOTH
def test_texts_teach_as_features_do(method):
    words = {"d": "beer bar", "c": "wine cellar", "f": "law court"}
    sets = [[label for k, label in enumerate(words) if (i >> k) & 1] for i in range(80)]
    texts = [" ".join(["some", *(words[label] for label in labels)]) for labels in sets]
    made = method(TREE, **SMALL[method]).fit(texts, sets)
    assert made.score(texts, sets) > 0.9


@BOTH
def test_documents_without_any_label_teach_to_give_none(method):
    rows, _ = documents()
    made = method(TREE, **SMALL[method]).fit(rows, [[] for _ in rows])
    assert made.predict(rows).nnz == 0
    assert (made.predict_proba(rows) == 0).all()


@BOTH
def test_documents_that_are_all_alike_are_legal(method):
    rows, labels = documents(n=30)
    made = method(TREE, **SMALL[method]).fit(np.ones_like(rows), labels)
    assert len(np.unique(made.predict_proba(rows), axis=0)) == 1


def test_the_significance_with_the_best_area_on_validation_documents_is_chosen():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 6)).astype(np.float32)
    labels = [[leaf for k, leaf in enumerate("dcf") if row[k] + 2 * rng.normal() > 1] for row in rows]
    valid = (rows[200:], labels[200:])
    made = ClusHMC(TREE, jobs=1).fit(rows[:200], labels[:200], valid=valid)
    gold = TREE.encode(labels[200:], close=True)
    areas = {}
    for significance in SIGNIFICANCES:
        other = ClusHMC(TREE, significance=significance, jobs=1).fit(rows[:200], labels[:200], valid=valid)
        areas[significance] = pooled_area(gold, other.predict_proba(rows[200:]).astype(float), "interpolated")
    assert areas[made.significance_] == max(areas.values())
    assert made.used()["significance"] == made.significance_  # for people, who gave None
    assert len(set(areas.values())) > 1
    assert [record["select"] for record in made.history_] == pytest.approx(list(areas.values()), abs=1e-6)


@pytest.mark.parametrize("changes", [{}, {"trees": 4, "features": "sqrt"}], ids=["tree", "forest"])
def test_refit_grows_on_all_documents_at_the_chosen_significance_and_keeps_thresholds(changes, tmp_path):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 6)).astype(np.float32)
    labels = [[leaf for k, leaf in enumerate("dcf") if row[k] + 2 * rng.normal() > 1] for row in rows]
    rows[rng.random(rows.shape) < 0.05] = np.nan
    train, valid = (rows[:200], labels[:200]), (rows[200:], labels[200:])
    plain = ClusHMC(TREE, jobs=1, **changes).fit(*train, valid=valid)
    anew = ClusHMC(TREE, jobs=1, refit=True, **changes).fit(*train, valid=valid)
    direct = ClusHMC(TREE, jobs=1, significance=plain.significance_, **changes).fit(rows, labels, valid=valid)
    assert plain.significance_ not in (SIGNIFICANCES[-1], 1.0)  # so the tree is not only grown, but also stopped
    one, other, before = (made._stored()[0] for made in (anew, direct, plain))
    assert all(torch.equal(one[name], other[name]) for name in one)
    for name in ("trees.threshold", "rows.mean"):  # the means, too, are those of all documents
        assert not torch.equal(one[name], before[name])
    anew.save(tmp_path)
    for made in (anew, ClusHMC.load(tmp_path)):
        assert made.refit is True
        assert made.significance_ == plain.significance_
        assert made.history_ == plain.history_
        assert np.array_equal(made.thresholds_, plain.thresholds_)
        assert made.validation_.to_json(per_label=True) == plain.validation_.to_json(per_label=True)
        assert (plain.n_documents_, made.n_documents_) == (200, 300)
        assert np.array_equal(made.label_counts_, direct.label_counts_)
        assert np.array_equal(made.predict_proba(rows), direct.predict_proba(rows))


def test_the_ridge_with_the_best_area_on_validation_documents_is_chosen():
    made = fitted(CSSA)
    best = max(made.history_, key=lambda record: record["select"])
    assert [record["ridge"] for record in made.history_] == list(RIDGES)
    other = fitted(CSSA, ridge=best["ridge"])
    used = made.used()
    assert (used["ridge"], used["kernel"]) == (best["ridge"], "rbf")
    assert used["threshold"] == made.thresholds_[0]
    assert fitted(CSSA, labels=2).used()["threshold"] is None  # a number of labels needs none
    rows, _ = documents(seed=1)
    assert np.array_equal(made.predict_proba(rows), other.predict_proba(rows))
    assert not np.array_equal(made.predict_proba(rows), fitted(CSSA, ridge=0.01).predict_proba(rows))


def test_refit_regresses_on_all_documents_with_the_chosen_ridge_and_keeps_the_threshold_and_the_size():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 6)).astype(np.float32)
    labels = [[leaf for k, leaf in enumerate("dcf") if row[k] + 2 * rng.normal() > 1] for row in rows]
    train, valid = (rows[:200], labels[:200]), (rows[200:], labels[200:])
    for changes in ({}, {"labels": "tuned"}):
        plain = CSSA(TREE, **changes).fit(*train, valid=valid)
        anew = CSSA(TREE, refit=True, **changes).fit(*train, valid=valid)
        chosen = max(plain.history_, key=lambda record: record["select"])["ridge"]
        assert chosen not in (RIDGES[0], RIDGES[-1])  # so that another would have been possible on either side
        direct = CSSA(TREE, ridge=chosen, **changes).fit(rows, labels, valid=valid)
        assert np.array_equal(anew.predict_proba(rows), direct.predict_proba(rows))
        assert not np.array_equal(anew.predict_proba(rows), plain.predict_proba(rows))
        assert np.array_equal(anew.thresholds_, plain.thresholds_)
        assert (anew.size_, anew.history_) == (plain.size_, plain.history_)
        assert (plain.n_documents_, anew.n_documents_) == (200, 300)


@pytest.mark.parametrize(("method", "tune"), [*((ClusHMC, tune) for tune in TUNES), (CSSA, None), (CSSA, "mean")])
def test_a_label_that_no_training_document_has_is_given_at_no_threshold(method, tune, tmp_path):
    rows, labels = documents(n=60)
    valid, gold = documents(n=30, seed=1)
    tempting = [[*one, "never"] if "f" in one else one for one in gold]  # "e" is above both
    made = method(TREE, tune=tune, **SMALL[method]).fit(rows, labels, valid=(valid, tempting))
    made.save(tmp_path / "model")
    for one in (made, method.load(tmp_path / "model"), made.with_decoding(threshold=-1)):
        assert not one.predict(valid).toarray()[:, TREE.index("never")].any()
    if method is CSSA:
        assert not made.with_decoding(labels=7).predict(valid).toarray()[:, TREE.index("never")].any()


def test_a_label_of_validation_documents_alone_is_given_after_refit_where_it_is_probable():
    rows, labels = documents(n=60)
    valid, gold = documents(n=200, seed=1)
    tempting = [[*one, "never"] if "f" in one else one for one in gold]
    made = fitted(ClusHMC, tune="scut", refit=True).fit(rows, labels, valid=(valid, tempting))
    never = TREE.index("never")
    assert made.thresholds_[never] == 0.5  # nothing was learned by which to find another
    assert np.array_equal(made.predict(valid).toarray()[:, never] > 0, made.predict_proba(valid)[:, never] > 0.5)
    assert made.predict(valid).toarray()[:, never].any()


def test_each_tree_of_a_forest_is_grown_from_a_bootstrap_of_its_own_and_a_single_tree_from_all_documents(monkeypatch):
    drawn, grow = [], Growing.grow

    def watched(growing, times, rng):
        drawn.append(times)
        return grow(growing, times, rng)

    monkeypatch.setattr(Growing, "grow", watched)
    one, forest = fitted(ClusHMC), fitted(ClusHMC, trees=3, significance=1.0)
    assert (drawn[0] == 1).all()
    bags = np.array(drawn[1:])
    assert (bags.sum(1) == one.n_documents_).all()
    assert ((bags == 0).mean(1) > 0.25).all()  # about a third of the documents is left out: 1 / e
    assert len(np.unique(bags, axis=0)) == 3
    roots = forest.forest_.stored()["trees.roots"].tolist()
    assert len(roots) == 3
    assert len(set(forest.forest_.stored()["trees.threshold"][roots].tolist())) > 1  # and so they differ


@pytest.mark.parametrize(("weight_decay", "feature"), [(1.0, 1), (0.75, 1), (0.2, 0)])
def test_the_deeper_labels_count_the_less_the_smaller_the_weight_decay(weight_decay, feature):
    """The first feature tells a top label, the second two labels below another: together they vary more."""
    rows = np.random.default_rng(2).normal(size=(200, 2)).astype(np.float32)
    taxonomy = Taxonomy.of({"top": [], "other": [], "x": ["other"], "y": ["other"]})
    labels = [["other", *(["top"] if row[0] > 0 else []), *(["x", "y"] if row[1] > 0 else [])] for row in rows]
    made = ClusHMC(taxonomy, weight_decay=weight_decay, jobs=1).fit(rows, labels)
    assert made.forest_.stored()["trees.feature"][0] == feature


def test_leaves_have_at_least_the_asked_number_of_documents():
    few, many = (fitted(ClusHMC, min_leaf=size, significance=1.0).forest_.n_leaves for size in (2, 20))
    assert many < few
    assert many <= 72 // 20


def test_a_forest_is_the_same_on_any_number_of_cores_and_with_the_same_seed_only():
    rows, _ = documents(seed=1)
    one, two, other = (
        fitted(ClusHMC, trees=6, features="sqrt", jobs=jobs, seed=seed).predict_proba(rows)
        for jobs, seed in ((1, 0), (2, 0), (1, 1))
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(("features", "expected"), [("all", 77), ("sqrt", 9), (0.1, 8), (1.0, 77), (0.001, 1)])
def test_how_many_features_a_test_is_chosen_from(features, expected):
    assert ClusHMC(TREE, features=features)._features_of_a_test(77) == expected


def test_thresholds_by_label_can_be_repaired():
    rows, _ = documents(DAG, n=200, seed=1)
    broken = fitted(ClusHMC, DAG)
    broken.thresholds_ = np.where(np.arange(7) == DAG.index("a"), 2.0, 0.01)
    assert inconsistent_share(broken.predict(rows), DAG) > 0
    assert inconsistent_share(broken.with_decoding(repair="add").predict(rows), DAG) == 0


# -- how many labels --------------------------------------------------------------------------------------------------


def test_a_number_of_labels_is_kept_to_the_nearest_supernode():
    rows, _ = documents(seed=1)
    made = fitted(CSSA, labels=3)
    found = made.predict(rows).toarray()
    # Not probabilities: rounded to 32 bits, two supernodes of nearly the same value look like one.
    values = made._scores(Examples.of(TREE, [[] for _ in rows], features=rows))
    for labels, value in zip(found, values, strict=True):
        sizes = [int((value >= v).sum()) for v in np.unique(value)] + [0]
        assert abs(labels.sum() - 3) == min(abs(size - 3) for size in sizes)


@pytest.mark.parametrize("shift", [0, 2])
def test_a_tuned_number_of_labels_is_the_best_one_on_validation_documents(shift, monkeypatch):
    regressed = Dependency.scores
    monkeypatch.setattr(Dependency, "scores", lambda self, rows: regressed(self, rows) - shift)  # 2: all are below 0
    rows, labels = documents()
    valid = documents(seed=3)
    made = CSSA(TREE, labels="tuned").fit(rows, labels, valid=valid)
    scores = [CSSA(TREE, labels=size).fit(rows, labels, valid=valid).score(*valid) for size in range(1, 6)]
    assert made.score(*valid) == max(scores)
    assert made.size_ == int(np.argmax(scores)) + 1
    plain = CSSA(TREE).fit(rows, labels, valid=valid)
    assert np.array_equal(made.thresholds_, plain.thresholds_)  # so `with_decoding(labels=None)` is the other model
    assert np.array_equal(made.with_decoding(labels=None).predict(rows).toarray(), plain.predict(rows).toarray())


def test_the_number_of_labels_and_the_threshold_can_change_after_training():
    rows, _ = documents(seed=1)
    made = fitted(CSSA)
    few, more = made.with_decoding(labels=1).predict(rows), made.with_decoding(labels=5).predict(rows)
    assert few.nnz < more.nnz
    assert np.array_equal(
        made.with_decoding(labels=5).with_decoding(labels=None).predict(rows).toarray(), made.predict(rows).toarray()
    )
    chances = made.predict_proba(rows)
    assert np.array_equal(made.with_decoding(threshold=0.7).predict(rows).toarray() > 0, chances > 0.7)
    with pytest.raises(
        SettingError, match="'label' is no setting that can change after training; did you mean 'labels'"
    ):
        made.with_decoding(label=3)
    with pytest.raises(SettingError, match=r"'beam' is no setting that can change .*; there are: threshold, labels$"):
        made.with_decoding(beam=3)
    for both in (
        lambda: fitted(CSSA, labels=3).with_decoding(threshold=0.7),
        lambda: made.with_decoding(threshold=0.7).with_decoding(labels=3),
    ):
        with pytest.raises(SettingError, match=r"threshold=0.7 is not looked at where labels=3 says how many there"):
            both()
    changed = fitted(CSSA, labels=3).with_decoding(threshold=0.7, labels=None)
    assert np.array_equal(changed.predict(rows).toarray() > 0, chances > 0.7)
    with pytest.raises(SettingError, match="labels='tuned' is found by fit; give a number, or train again"):
        made.with_decoding(labels="tuned")


@pytest.mark.parametrize("labels", [None, "tuned"])
def test_a_tuned_model_takes_a_number_of_labels_later_and_gives_it_back(labels, tmp_path):
    rows, _ = documents(seed=1)
    tuned = fitted(CSSA, tune="mean", labels=labels)
    few = tuned.with_decoding(labels=2)
    few.save(tmp_path / "model")
    opened = CSSA.load(tmp_path / "model")
    plain = fitted(CSSA, tune="mean").predict(rows).toarray()
    for made in (few, opened):
        assert (made.labels, made.tune, made.size_) == (2, "mean", 2)
        assert np.array_equal(made.predict(rows).toarray(), fitted(CSSA, labels=2).predict(rows).toarray())
        assert np.array_equal(made.with_decoding(labels=None).predict(rows).toarray(), plain)
        with pytest.raises(SettingError, match=r"^tune='mean' has nothing to tune where labels=2 says how many"):
            made.fit(*documents())
        assert np.array_equal(made.with_decoding(labels=None).fit(*documents()).predict(rows).toarray(), plain)


# -- model folders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        (ClusHMC, {}),
        (ClusHMC, {"trees": 4, "features": 0.5}),
        (CSSA, {}),
        (CSSA, {"kernel": "linear"}),
        (CSSA, {"labels": "tuned", "landmarks": 20}),
    ],
)
def test_a_saved_model_says_the_same_to_the_last_bit(method, changes, tmp_path):
    made = fitted(method, DAG, **changes)
    made.save(tmp_path / "model")
    opened = method.load(tmp_path / "model")
    rows, _ = documents(DAG, seed=1)
    assert np.array_equal(opened.predict_proba(rows), made.predict_proba(rows))
    assert np.array_equal(opened.predict(rows).toarray(), made.predict(rows).toarray())


def forest_tensors():
    made = fitted(ClusHMC, trees=2, significance=1.0)
    return made.forest_.stored()


@pytest.mark.parametrize(
    ("name", "at", "value", "says"),
    [
        ("trees.left", 0, 0, "no trees"),  # its own child: a way without end
        ("trees.right", 0, 10**9, "no trees"),
        ("trees.left", 0, -1, "no trees"),
        ("trees.left", -1, 10**9, "no trees"),  # a leaf without a row
        ("trees.feature", 0, 6, "no trees"),
        ("trees.feature", 0, -5, "no trees"),
        ("trees.threshold", 0, float("nan"), "no trees"),
        ("trees.roots", 0, 1, "first node of each tree"),
        ("trees.roots", 1, 10**9, "first node of each tree"),
        ("leaves.columns", 0, 7, "no matrix of leaves"),
        ("leaves.columns", 0, -1, "no matrix of leaves"),
        ("leaves.values", 0, 2.0, "no matrix of leaves"),
        ("leaves.values", 0, float("nan"), "no matrix of leaves"),
        ("leaves.starts", -1, 10**9, "no matrix of leaves"),
        ("leaves.starts", 1, -4, "no matrix of leaves"),
    ],
)
def test_trees_that_are_none_are_refused(name, at, value, says):
    tensors = {key: tensor.clone() for key, tensor in forest_tensors().items()}
    tensors[name][at] = value
    with pytest.raises(ModelError, match=says):
        Forest.opened(tensors, 6, 7)


def test_tensors_of_another_kind_or_length_are_refused():
    tensors = forest_tensors()
    with pytest.raises(ModelError, match=r"'trees.left' must be a row of int64, got torch.float32"):
        Forest.opened({**tensors, "trees.left": tensors["trees.left"].float()}, 6, 7)
    with pytest.raises(ModelError, match="not of one length"):
        Forest.opened({**tensors, "trees.left": tensors["trees.left"][:-1]}, 6, 7)
    with pytest.raises(ModelError, match="not of one length"):
        Forest.opened({**tensors, "trees.roots": tensors["trees.roots"][:0]}, 6, 7)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("weights", lambda t: t[:, :-1], "do not fit each other"),
        ("weights", lambda t: t[:-1], "do not fit each other"),
        ("components", lambda t: t[:, :-1], "do not fit each other"),
        ("mean", lambda t: t[:-1], "do not fit each other"),
        ("mean", lambda t: t * float("inf"), "finite numbers"),
        ("mean", lambda t: t.float(), "finite numbers"),
        ("weights", lambda t: t.flatten(), "finite numbers"),
        ("points.columns", lambda t: t + 1, "no matrix of documents and features"),
        ("points.starts", lambda t: t + 1, "no matrix of documents and features"),
        ("points.starts", lambda t: t.flip(0), "no matrix of documents and features"),
        ("points.columns", lambda t: t.long(), "rows of int32 and int64"),
    ],
)
def test_a_regression_whose_parts_do_not_fit_is_refused(name, change, says):
    tensors, facts = fitted(CSSA).dependency_.stored()
    with pytest.raises(ModelError, match=says):
        Dependency.opened({**tensors, f"dependency.{name}": change(tensors[f"dependency.{name}"])}, facts, 6, 7)


@pytest.mark.parametrize(
    "facts", [{"kernel": "poly", "gamma": 0.5}, {"kernel": "rbf", "gamma": 0.0}, {"kernel": "rbf", "gamma": "1"}]
)
def test_a_kernel_that_there_is_not_is_refused(facts):
    tensors, _ = fitted(CSSA).dependency_.stored()
    with pytest.raises(ModelError, match="a kernel is one of linear, rbf with gamma above 0"):
        Dependency.opened(tensors, facts, 6, 7)


_stored: dict[str, object] = {}


@settings(max_examples=60)
@given(
    st.sampled_from(["trees.roots", "trees.feature", "trees.left", "trees.right", "leaves.columns", "leaves.starts"]),
    st.lists(st.tuples(st.integers(0, 40), st.integers(-3, 60)), min_size=1, max_size=4),
)
def test_any_numbers_in_a_tree_give_an_error_or_an_answer(name, changes):
    tensors = _stored.setdefault("forest", forest_tensors())
    changed = {key: tensor.clone() for key, tensor in tensors.items()}
    for at, value in changes:
        changed[name][at % len(changed[name])] = value
    try:
        opened = Forest.opened(changed, 6, 7)
    except HilapError:
        return
    scores = opened.scores(sparse.csr_matrix(documents()[0].astype(np.float64)))
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize(
    ("size", "fine"), [(None, True), (3, True), (0, False), (True, False), ("3", False), (2.0, False)]
)
def test_a_stored_number_of_labels_must_be_one(size, fine):
    made = fitted(CSSA)
    tensors, facts = made._stored()
    if fine:
        made._open(tensors, {**facts, "size": size})
        assert made.size_ == size
    else:
        with pytest.raises(ModelError, match="'size' must be a whole number above 0"):
            made._open(tensors, {**facts, "size": size})


# -- the real data ----------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize(("name", "published"), [("funcat", 0.172), ("go", 0.357)])
def test_the_area_of_a_single_tree_comes_close_to_the_published_one(data_folder, name, published, refit):
    """Vens et al. (2008), cellcycle. GO's three top labels, which every gene has, are left out: we suppose so there."""
    parts = load(name, data_folder / name)
    made = ClusHMC(jobs=1, refit=refit).fit(parts["train"], valid=parts["valid"])
    taxonomy, test = made.taxonomy_, parts["test"]
    always = np.asarray(parts["train"].labels.sum(0)).ravel() == len(parts["train"])
    assert always.sum() == (3 if name == "go" else 0)
    scores = made.predict_proba(test)
    assert len(taxonomy) == scores.shape[1]
    area = pooled_area(sparse.csr_array(test.labels[:, ~always]), scores[:, ~always], "interpolated")
    assert area == pytest.approx(published, abs=0.015)
