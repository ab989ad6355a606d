"""What users hand in as labels: matrices that are none, frames in another order; settings that would be overwritten."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hilap import HiLAPClassifier, Taxonomy
from hilap.corpus import Examples
from hilap.errors import SettingError, TaxonomyError
from hilap.inputs import examples_of

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": []})
X = np.zeros((2, 4), dtype=np.float32)
Y = np.array([[1, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("bad", "told"), [(2 * Y - 1, "-1"), (0.3 * Y, "0.3"), (np.where(Y, np.nan, 0), "nan")])
def test_an_indicator_matrix_has_zeros_and_ones(bad, told, kind):
    with pytest.raises(TaxonomyError, match=f"1 where a document has it and 0 where not, got the value {told}"):
        examples_of(X, kind(bad), TREE)


def test_columns_of_a_frame_are_found_by_their_names():
    frame = pd.DataFrame(Y[:, [2, 0, 1]], columns=["c", "a", "b"])
    assert np.array_equal(examples_of(X, frame, TREE).labels.toarray(), Y)
    assert np.array_equal(examples_of(X, frame[["b", "c"]], TREE).labels.toarray(), Y)  # closed upward
    assert np.array_equal(examples_of(X, pd.DataFrame(Y), TREE).labels.toarray(), Y)  # no names: by position


def test_a_frame_with_a_column_that_is_no_label_is_refused():
    frame = pd.DataFrame(np.ones((2, 2), dtype=int), columns=["a", "price"])
    with pytest.raises(SettingError, match="y has columns that are no labels, 'price' first; leave them out"):
        examples_of(X, frame, TREE)


@pytest.mark.parametrize("name", ["stop_bias", "prior_bias", "level_bias", "count_bias"])
def test_a_bias_that_tuning_would_overwrite_is_refused(name):
    with pytest.raises(SettingError, match=f"{name} would be overwritten: tune='mean' chooses it"):
        HiLAPClassifier(TREE, preset="residual", **{name: 0.5}).check()
    kept = HiLAPClassifier(TREE, preset="residual", tune="off", **{name: 0.5})
    assert getattr(kept.check()._settings(text=False)[2], name) == 0.5


def test_off_switches_off_what_a_preset_switches_on():
    plain, off = (
        HiLAPClassifier(TREE, preset="residual", clip=clip)._settings(text=False)[1] for clip in (None, "off")
    )
    assert (plain.clip, off.clip) == (1.0, None)
    with pytest.raises(SettingError, match="gamma must be a number between 0 and 1, got 'off'"):
        HiLAPClassifier(TREE, gamma="off").check()


SHORT = {"folds": 2, "flat_epochs": 1, "reinforced_epochs": 1, "rollouts": 2, "seed": 0}
ROWS = np.random.default_rng(0).normal(size=(24, 4)).astype(np.float32)
GIVEN = [["b"], ["c"], ["a"]] * 8


def trained(documents, **settings):
    return HiLAPClassifier(TREE, preset="recommended", **{**SHORT, **settings}).fit(documents, GIVEN)


def test_the_recommended_preset_has_a_kernel_part_and_deep_networks_for_dense_features():
    made = trained(ROWS)
    assert (made.policy_settings_.kernel_share, made.policy_settings_.max_constraint) == (0.5, True)
    assert made.network_.kernel is not None
    assert (made.network_.encoder.hidden, made.network_.encoder.dropout) == ((1000, 1000, 1000), 0.7)
    assert (made.train_settings_.biased_walks, len(made.train_settings_.rewards)) == (True, 3)


def test_what_the_user_says_goes_before_the_recommended_preset():
    made = trained(ROWS, encoder="mlp", encoder_options={"hidden": (9,)}, kernel_share=0.0, reward="example_f1")
    assert made.network_.kernel is None
    assert made.train_settings_.rewards == {"example_f1": 1.0}
    assert (made.network_.encoder.hidden, made.network_.encoder.dropout) == ((9,), 0.0)  # all of them or none
    wider = trained(ROWS, encoder_options={"hidden": (9,)}, kernel_width=2.0)
    assert wider.train_settings_.kernel_width == 2.0
    assert wider.network_.kernel is not None


def test_the_recommended_preset_has_no_kernel_part_for_sparse_features_or_texts():
    rows = trained(sparse.csr_array(np.where(ROWS > 0, ROWS, 0)))
    assert rows.network_.kernel is None
    assert rows.network_.encoder.hidden == (150,)
    texts = trained(["one two", "three", "four five"] * 8)
    assert texts.network_.kernel is None
    assert texts.network_.wide is not None
    assert texts.train_settings_.biased_walks


def test_features_beside_texts_count_only_where_they_are_read():
    words = ["one two", "three", "four five"] * 8
    both = Examples.of(TREE, GIVEN, texts=words, features=ROWS)
    for settings in ({"encoder": "tfidf"}, {"wide": True}):
        made = HiLAPClassifier(TREE, preset="recommended", **SHORT, **settings).fit(both)
        assert made.network_.kernel is None
        assert made.predict(words).shape == (24, 3)
    assert HiLAPClassifier(TREE, preset="recommended", **SHORT).fit(both).network_.kernel is not None


@pytest.mark.parametrize(
    ("documents", "settings"),
    [
        (["one two", "three", "four five"] * 8, {"wide": False, "encoder": "tfidf"}),
        (sparse.csr_array(np.where(ROWS > 0, ROWS, 0)), {"encoder": "mlp"}),
        (ROWS, {"max_constraint": False}),
        (ROWS, {"max_constraint": False, "wide": False}),
    ],
)
def test_scores_are_condensed_where_there_is_no_linear_part_to_choose(documents, settings):
    made = trained(documents, condense=True, **settings)
    assert made.policy_settings_.condense
    assert made.train_settings_.wide_loss == "squared_hinge"  # of a part that is not there: the default


def test_settings_of_a_fitted_model_are_its_own():
    made = trained(ROWS)
    made.train_settings_.reward["example_f1"] = 7.0
    assert trained(ROWS).train_settings_.reward["example_f1"] == 1.0


def test_the_residual_preset_is_as_it_was():
    _, train, _ = HiLAPClassifier(TREE, preset="residual")._settings(text=False, dense=True)
    policy, same, _ = HiLAPClassifier(TREE, preset="residual")._settings(text=False)
    assert train == same
    assert (train.biased_walks, train.reward, train.flat_epochs) == (False, "example_f1", 30)
    assert (policy.kernel_share, policy.max_constraint) == (0.0, False)


def test_options_of_a_wide_part_that_is_not_there_are_refused():
    with pytest.raises(SettingError, match="wide_options are of the wide part, which is not there"):
        HiLAPClassifier(TREE, wide_options={"max_words": 10}).check()


def test_a_walk_that_never_learned_to_stop_is_refused():
    with pytest.raises(SettingError, match="has to learn when to stop: set reinforced_epochs or imitation_epochs"):
        HiLAPClassifier(TREE, reinforced_epochs=0).check()
    HiLAPClassifier(TREE, reinforced_epochs=0, imitation_epochs=1).check()
    HiLAPClassifier(TREE, reinforced_epochs=0, variant="sl").check()


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "sl", "threshold": 0.2, "supervised_epochs": 2},
        {"stop_bias": 1.5, "level_bias": 0.5, "supervised_epochs": 1, "reinforced_epochs": 2},
        {"variant": "flat", "threshold": 0.2, "supervised_epochs": 2},
    ],
)
def test_epochs_are_judged_by_the_threshold_and_the_biases_that_predictions_will_have(settings):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(90, 4)).astype(np.float32)
    gold = np.stack([features[:, 0] > -0.5, features[:, 0] > 0.5, features[:, 1] > 0], axis=1).astype(int)
    small = {"hidden": 8, "width": 4, "encoder_options": {"hidden": (5,)}, "learning_rate": 0.01}
    made = HiLAPClassifier(TREE, **small, **settings).fit(features, gold)
    phase = made.history_[-1]["phase"]
    judged = [record["example_f1"] for record in made.history_ if record["phase"] == phase and "example_f1" in record]
    assert max(judged) == pytest.approx(made.validation_.scores["example_f1"])
