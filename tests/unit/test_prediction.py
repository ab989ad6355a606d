"""Predictions: their order, their JSON and how they print."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hilap.errors import CorpusError, HilapError
from hilap.outputs import predictions, records
from hilap.prediction import Prediction, ScoredLabel, Step
from hilap.taxonomy import Taxonomy

WALK = (
    Step("root", "food", 0.9, (("food", 0.9), ("shops", 0.06), ("stop", 0.04))),
    Step("food", "stop", 0.7, (("bars", 0.3), ("stop", 0.7))),
)


def test_the_documented_form():
    prediction = Prediction("42", (ScoredLabel("Bars", "Bars", 0.97), ScoredLabel("Beer Bars", "Beer Bars", 0.91)))
    expected = (
        '{"id": "42", "labels": [{"label": "Bars", "probability": 0.97}, {"label": "Beer Bars", "probability": 0.91}]}'
    )
    assert json.dumps(prediction.to_json()) == expected
    assert Prediction.from_json(json.loads(expected)) == prediction


def test_a_name_is_there_only_where_it_differs():
    assert ScoredLabel("GO:1", "growth", 0.5).to_json() == {"label": "GO:1", "name": "growth", "probability": 0.5}


def test_a_walk_goes_there_and_back():
    prediction = Prediction("1", (ScoredLabel("food", "Restaurants", 0.9),), WALK)
    value = json.loads(json.dumps(prediction.to_json()))
    assert value["walk"][1] == {
        "at": "food",
        "action": "stop",
        "probability": 0.7,
        "options": [{"action": "bars", "probability": 0.3}, {"action": "stop", "probability": 0.7}],
    }
    assert Prediction.from_json(value) == prediction


def test_labels_stand_root_first_then_by_probability_then_by_id():
    chances = {"deep": 0.99, "b": 0.5, "a": 0.5, "c": 0.8}
    labels = [ScoredLabel(label, label, chance) for label, chance in chances.items()]
    prediction = Prediction.of("1", labels, {"deep": 2, "a": 1, "b": 1, "c": 1}, WALK)
    assert [scored.label for scored in prediction.labels] == ["c", "a", "b", "deep"]
    assert prediction.walk == WALK


def test_a_file_has_six_digits_that_mean_something():
    assert ScoredLabel("a", "a", 0.9700000286102295).to_json()["probability"] == 0.97
    assert ScoredLabel("a", "a", 1.23456789e-9).to_json()["probability"] == 1.23457e-9


_CHANCES = st.floats(0, 1)
_PREDICTIONS = st.builds(
    Prediction,
    st.text(max_size=3),
    st.lists(st.builds(ScoredLabel, st.text(max_size=3), st.text(max_size=3), _CHANCES), max_size=3).map(tuple),
    st.none()
    | st.lists(
        st.builds(
            Step,
            st.text(max_size=3),
            st.text(max_size=3),
            _CHANCES,
            st.lists(st.tuples(st.text(max_size=3), _CHANCES), max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


@given(_PREDICTIONS)
def test_json_goes_there_and_back(prediction):
    value = json.loads(json.dumps(prediction.to_json()))
    again = Prediction.from_json(value)
    assert again.to_json() == value
    assert [(s.label, s.name) for s in again.labels] == [(s.label, s.name) for s in prediction.labels]
    for found, given_ in zip(again.labels, prediction.labels, strict=True):
        assert found.probability == pytest.approx(given_.probability, rel=1e-5, abs=1e-300)
    assert isinstance(str(again), str)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "labels", "label", "name", "probability", "walk", "at", "action", "options", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_ANY)
def test_any_value_gives_a_prediction_or_our_error(value):
    with contextlib.suppress(HilapError):
        Prediction.from_json(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], r"a prediction must be a JSON object, got \[\]"),
        ({"labels": []}, "a prediction must have 'id', a text, got None"),
        ({"id": 42, "labels": []}, "a prediction must have 'id', a text, got 42"),
        ({"id": "42"}, "prediction '42' must have 'labels', a list, got None"),
        ({"id": "42", "labels": ["a"]}, "a predicted label must be a JSON object, got 'a'"),
        ({"id": "42", "labels": [{"label": "a"}]}, "label 'a' must have 'probability', a number from 0 to 1, got None"),
        ({"id": "42", "labels": [{"label": "a", "probability": 1.5}]}, "got 1.5"),
        ({"id": "42", "labels": [{"label": "a", "probability": float("nan")}]}, "got nan"),
        ({"id": "42", "labels": [{"label": "a", "probability": True}]}, "got True"),
        ({"id": "42", "labels": [{"label": "a", "probability": 10**400}]}, r"got 10+\.\.\."),
        ({"id": "42", "labels": [{"label": "a", "name": 3, "probability": 1}]}, "must have 'name', a text, got 3"),
        ({"id": "42", "labels": [], "walk": 3}, "prediction '42' must have 'walk', a list, got 3"),
        ({"id": "42", "labels": [], "walk": [3]}, "a step of a walk must be a JSON object, got 3"),
        ({"id": "42", "labels": [], "walk": [{"at": "a", "action": "b"}]}, "must have 'options', a list"),
    ],
)
def test_what_is_no_prediction_is_said(value, message):
    with pytest.raises(CorpusError, match=message):
        Prediction.from_json(value)


def test_it_prints_for_people():
    prediction = Prediction("7", (ScoredLabel("food", "Restaurants", 0.9),), WALK)
    assert str(prediction) == (
        "7: Restaurants 0.90\n"
        "  1. root -> Restaurants  0.90  (open: shops 0.06, stop 0.04)\n"
        "  2. Restaurants -> stop  0.70  (open: bars 0.30)"
    )
    assert str(Prediction("8", ())) == "8: no label"
    assert str(prediction.labels[0]) == "Restaurants  0.90"


def test_a_step_shows_the_best_of_many_options():
    step = Step("root", "a", 0.5, (("b", 0.1), ("a", 0.5), ("c", 0.3), ("stop", 0.1)))
    assert str(step) == "root -> a  0.50  (open: c 0.30, b 0.10, stop 0.10)"
    assert step.describe({"c": "Cafés"}, most=1) == "root -> a  0.50  (open: Cafés 0.30, 2 more)"


@given(seed=st.integers(0, 99))
def test_records_are_predictions_as_json(seed):
    rng = np.random.default_rng(seed)
    taxonomy = Taxonomy(["b", "a", "c"], [[], ["b"], ["b"]], names=["Bars", "a", "Cafés"])
    found = sparse.csr_array(rng.integers(0, 2, (4, 3)).astype(np.int32))
    chances = rng.choice([0.25, 1 / 3, 1e-7, 1.0], (4, 3)).astype(np.float32)
    expected = [one.to_json() for one in predictions(taxonomy, list("wxyz"), found, chances)]
    assert records(taxonomy, list("wxyz"), found, chances) == expected
