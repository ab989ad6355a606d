"""Settings: every message, every preset, and the way to plain values and back."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields

import pytest

from hilap.errors import SettingError
from hilap.settings import METRICS, PRESETS, REWARDS, DecodeSettings, PolicySettings, TrainSettings

KINDS = (PolicySettings, TrainSettings, DecodeSettings)


@pytest.mark.parametrize("kind", KINDS)
def test_the_defaults_are_valid_and_survive_the_way_through_json(kind):
    assert kind.from_dict(json.loads(json.dumps(kind().to_dict()))) == kind()


def test_changed_settings_survive_too():
    made = TrainSettings(reward={"f_beta": 2.0, "weighted_f1": 1.0}, rollouts=3, baseline="leave-one-out", clip=0.5)
    again = TrainSettings.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert again.rewards == {"f_beta": 2.0, "weighted_f1": 1.0}
    assert again.but(clip=None).clip is None
    assert made.clip == 0.5


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        PolicySettings().hidden = 3


def test_no_name_belongs_to_two_kinds():
    names = [field.name for kind in KINDS for field in fields(kind)]
    assert len(names) == len(set(names))


def test_the_classifier_has_every_setting_as_a_parameter():
    import inspect

    from hilap.classifier import HiLAPClassifier

    settings = {field.name for kind in KINDS for field in fields(kind)}
    own = {"taxonomy", "encoder", "encoder_options", "preset", "output", "progress", "wide_options"}
    own |= {"wide_vector_options"}
    assert set(inspect.signature(HiLAPClassifier).parameters) == settings | own


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_valid(preset):
    known = {field.name: kind for kind in KINDS for field in fields(kind)}
    for kind in KINDS:
        kind.from_dict({name: value for name, value in PRESETS[preset].items() if known[name] is kind})


def test_a_single_reward_has_the_weight_one():
    assert TrainSettings(reward="hierarchical").rewards == {"hierarchical": 1.0}


WHOLE = "a whole number, at least"
BAD: list[tuple[type, dict, str]] = [
    (PolicySettings, {"hidden": 0}, f"hidden must be {WHOLE} 1, got 0"),
    (PolicySettings, {"width": 1.5}, f"width must be {WHOLE} 1, got 1.5"),
    (PolicySettings, {"hidden": True}, f"hidden must be {WHOLE} 1, got True"),
    (PolicySettings, {"dag_rule": "all"}, "dag_rule must be one of 'ancestors', 'any', got 'all'"),
    (PolicySettings, {"label_bias": 1}, "label_bias must be true or false, got 1"),
    (PolicySettings, {"residual": "yes"}, "residual must be true or false, got 'yes'"),
    (PolicySettings, {"sees": "text"}, "sees must be one of 'document', 'flat', 'profile', got 'text'"),
    (PolicySettings, {"temperature": 0}, "temperature must be a number between 0.001 and 1000, got 0"),
    (PolicySettings, {"temperature": float("nan")}, "temperature must be a number between 0.001 and 1000, got nan"),
    (PolicySettings, {"state_dropout": 1}, "state_dropout must be a number between 0 and 0.99, got 1"),
    (PolicySettings, {"start_scale": -1}, "start_scale must be a number between 0 and 10, got -1"),
    (PolicySettings, {"averaging": "odds"}, "averaging must be one of 'logits', 'probabilities', got 'odds'"),
    (TrainSettings, {"variant": "tree"}, "variant must be one of 'flat', 'sl', 'hilap', got 'tree'"),
    *(
        (TrainSettings, {name: -1}, f"{name} must be {WHOLE} 0, got -1")
        for name in ("flat_epochs", "supervised_epochs", "imitation_epochs", "reinforced_epochs", "seed")
    ),
    *(
        (TrainSettings, {name: 0}, f"{name} must be {WHOLE} 1, got 0")
        for name in ("batch_size", "rollouts", "folds", "repeats", "patience", "max_steps")
    ),
    (TrainSettings, {"repeats": 2}, "repeats must be 1 unless folds is above 1, got 2"),
    (TrainSettings, {"pool_validation": True}, "pool_validation must be false unless folds is above 1, got True"),
    (
        TrainSettings,
        {"folds": 2, "refit": True},
        "refit must be false where folds is above 1 (pool_validation learns from all documents there), got True",
    ),
    (TrainSettings, {"refit": 1}, "refit must be true or false, got 1"),
    (TrainSettings, {"wide": True}, "wide must be false unless folds is above 1, got True"),
    (TrainSettings, {"label_text": True}, "label_text must be false, 'start' or 'tied' unless wide is true, got True"),
    (TrainSettings, {"label_text": "begin"}, "label_text must be true, false, 'start' or 'tied', got 'begin'"),
    (TrainSettings, {"label_text": 1}, "label_text must be true, false, 'start' or 'tied', got 1"),
    (PolicySettings, {"max_constraint": 1}, "max_constraint must be true or false, got 1"),
    (PolicySettings, {"condense": 1}, "condense must be true or false, got 1"),
    (
        PolicySettings,
        {"condense": True, "max_constraint": True},
        "condense must be false where max_constraint is true, got True",
    ),
    (
        TrainSettings,
        {"wide_loss": "log"},
        "wide_loss must be one of 'squared_hinge', 'hinge', 'structured', 'chosen', got 'log'",
    ),
    (TrainSettings, {"wide_strength": 0}, "wide_strength must be a number between 1e-06 and 1e+06, got 0"),
    (TrainSettings, {"learning_rate": 11}, "learning_rate must be a number between 0 and 10, got 11"),
    (TrainSettings, {"weight_decay": "1"}, "weight_decay must be a number between 0 and 10, got '1'"),
    (TrainSettings, {"clip": -1}, "clip must be a number between 0 and 1e+06, got -1"),
    (
        TrainSettings,
        {"reinforced_learning_rate": -1},
        "reinforced_learning_rate must be a number between 0 and 1e+06, got -1",
    ),
    (TrainSettings, {"schedule": "steps"}, "schedule must be one of 'constant', 'linear', 'cosine', got 'steps'"),
    (TrainSettings, {"baseline": "mean"}, "baseline must be one of 'greedy', 'leave-one-out', got 'mean'"),
    (TrainSettings, {"baseline": "leave-one-out"}, "rollouts must be at least 2 for leave-one-out, got 1"),
    (TrainSettings, {"select": "f1"}, f"select must be one of {', '.join(map(repr, METRICS))}, got 'f1'"),
    *(
        (TrainSettings, {name: 1.5}, f"{name} must be a number between 0 and 1, got 1.5")
        for name in ("flat_share", "gamma", "reinforced_flat_share")
    ),
    *(
        (TrainSettings, {name: -1}, f"{name} must be a number between 0 and 1e+06, got -1")
        for name in ("supervised_weight", "reward_power", "entropy_bonus")
    ),
    (TrainSettings, {"reward_beta": 0}, "reward_beta must be a number between 0.001 and 1000, got 0"),
    (TrainSettings, {"reward_beta": 2.0}, "reward_beta must be 1 unless f_beta is among the rewards, got 2.0"),
    (
        TrainSettings,
        {"reward_power": 1.0, "reward": {"f_beta": 1.0}},
        "reward_power must be 0.5 unless weighted_f1 is among the rewards, got 1.0",
    ),
    (TrainSettings, {"validation_share": 1}, "validation_share must be a number between 0.001 and 0.9, got 1"),
    (TrainSettings, {"stay": 1}, "stay must be true or false, got 1"),
    (TrainSettings, {"standardise_returns": None}, "standardise_returns must be true or false, got None"),
    (TrainSettings, {"reward": "f2"}, f"reward must be one of {', '.join(map(repr, REWARDS))}, got 'f2'"),
    (
        TrainSettings,
        {"reward": 3},
        f"reward must be one of {', '.join(REWARDS)}, or several of them with weights, got 3",
    ),
    (
        TrainSettings,
        {"reward": {}},
        f"reward must be one of {', '.join(REWARDS)}, or several of them with weights, got {{}}",
    ),
    (
        TrainSettings,
        {"reward": {"f_beta": -1}},
        "the weight of reward 'f_beta' must be a number between 0 and 1e+06, got -1",
    ),
    (
        TrainSettings,
        {"reward": {"f_beta": 0}},
        "the weights of rewards must be above 0 at least once, got {'f_beta': 0}",
    ),
    (DecodeSettings, {"threshold": 2}, "threshold must be a number between 0 and 1, got 2"),
    (DecodeSettings, {"tune": "f1"}, f"tune must be one of {', '.join(map(repr, (*METRICS, None)))}, got 'f1'"),
    *(
        (DecodeSettings, {name: 1e4}, f"{name} must be a number between -1000 and 1000, got 10000.0")
        for name in ("stop_bias", "prior_bias", "level_bias", "count_bias")
    ),
    (DecodeSettings, {"min_labels": -1}, f"min_labels must be {WHOLE} 0, got -1"),
    (DecodeSettings, {"max_labels": 0}, f"max_labels must be {WHOLE} 1, got 0"),
    (DecodeSettings, {"min_labels": 3, "max_labels": 2}, "max_labels must be at least min_labels (3), got 2"),
    (DecodeSettings, {"single_path": 1}, "single_path must be true or false, got 1"),
    (DecodeSettings, {"must_reach_leaf": 1}, "must_reach_leaf must be true or false, got 1"),
    (DecodeSettings, {"probabilities": "exact"}, "probabilities must be one of 'beam', 'samples', 'flat', got 'exact'"),
    (DecodeSettings, {"beam_width": 0}, f"beam_width must be {WHOLE} 1, got 0"),
    (DecodeSettings, {"samples": 0}, f"samples must be {WHOLE} 1, got 0"),
    (PolicySettings, {"hiden": 1}, "PolicySettings has no 'hiden'; did you mean 'hidden'?"),
    (
        DecodeSettings,
        {"zzz": 1},
        "DecodeSettings has no 'zzz'; there are: " + ", ".join(field.name for field in fields(DecodeSettings)),
    ),
]


@pytest.mark.parametrize(
    ("kind", "values", "says"), BAD, ids=[f"{next(iter(v))}-{i}" for i, (_, v, _) in enumerate(BAD)]
)
def test_a_bad_value_gets_a_sentence(kind, values, says):
    with pytest.raises(SettingError) as caught:
        kind.from_dict(values)
    assert str(caught.value) == says
