"""Model folders whose files are whole but do not belong together: one clear error, nothing executed or allocated."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import hilap
from hilap import HiLAPClassifier
from hilap.encoders import make
from hilap.errors import ModelError
from hilap.storage import Stored, load_folder, save_folder
from hilap.storage import folder as folder_module
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": []})


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Stored:
    rows = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    labels = [["b"] if row[0] > 0 else ["c"] for row in rows]
    made = HiLAPClassifier(
        TREE, encoder=make("mlp", hidden=(4,)), hidden=6, width=3, supervised_epochs=1, reinforced_epochs=1
    ).fit(rows, labels)
    folder = tmp_path_factory.mktemp("model") / "m"
    made.save(folder)
    return load_folder(folder)


def opened(stored: Stored, folder, change, kind: str = "hilap", version: str = hilap.__version__):
    """The model after a change that its hashes know of: as a stranger could make it."""
    parts = {
        "settings": copy.deepcopy(stored.settings),
        "taxonomy": copy.deepcopy(stored.taxonomy),
        "tensors": dict(stored.tensors),
        "extra": copy.deepcopy(stored.extra),
    }
    change(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_module, "__version__", version)
        save_folder(folder, kind=kind, **parts)
    return hilap.load(folder)


def test_unchanged_it_opens(stored, tmp_path):
    made = opened(stored, tmp_path / "m", lambda parts: None)
    assert made.encoder.settings()["hidden"] == [4]  # an encoder given as an object is one again
    assert made.taxonomy == made.taxonomy_ == TREE


def put(*path, to):
    def change(parts):
        place = parts
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def take(*path):
    def change(parts):
        place = parts
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


KIND = ("extra", "encoders", "kinds", 0)
TRAINING = ("extra", "training")
FOREIGN = {
    "no policy": (take("settings", "policy"), "'policy' is missing"),
    "no parameters": (take("settings", "parameters"), "'parameters' is missing"),
    "no training": (take(*TRAINING), "'training' is missing"),
    "no validation": (take("extra", "validation"), "'validation' is missing"),
    "no weight": (take("tensors", "policy.label"), "'policy.label' is missing"),
    "no weight of the head": (
        take("tensors", "members.0.head.bias"),
        "(tensor 'members.0.head.bias' is missing); get it",
    ),
    "a weight too many": (put("tensors", "more", to=torch.zeros(2)), "(tensor 'more' has no place); get it again, or"),
    "a weight too short": (
        put("tensors", "members.0.head.bias", to=torch.zeros(2)),
        "tensor 'members.0.head.bias' is of shape (2,), needed is (3,)",
    ),
    "a huge policy": (put("settings", "policy", "hidden", to=10**12), "needed is"),
    "a huge encoder": (put(*KIND, "learned", "features", to=99_999_999), "do not fit together"),
    "another type": (put("tensors", "policy.label", to=torch.zeros(4, 3).double()), "is of type torch.float64"),
    "unknown encoder": (put(*KIND, "name", to="magic"), "there is no encoder 'magic'"),
    "unknown option": (put(*KIND, "settings", "speed", to=3), "has no setting 'speed'"),
    "members of nothing": (put("extra", "encoders", "members", to=[7]), "a member has encoder 7, but there are 1"),
    "negative member": (put("extra", "encoders", "members", to=[-1]), "a member has encoder -1, but there are 1"),
    "no member": (put("extra", "encoders", "members", to=[]), "it has no encoder"),
    "unknown setting": (put("settings", "train", "speed", to=3), "TrainSettings has no 'speed'"),
    "bad setting": (put("settings", "train", "gamma", to=3), "gamma must be"),
    "settings that are none": (put("settings", "policy", to=[1]), "do not fit together"),
    "unknown parameter": (put("settings", "parameters", "speed", to=3), "the model's parameters are not ours"),
    "bad encoder parameter": (put("settings", "parameters", "encoder", to={"name": "x"}), "parameters are not ours"),
    "counts": (put(*TRAINING, "label_counts", to=[1, 2]), "label_counts must be 3 whole numbers"),
    "negative counts": (put(*TRAINING, "label_counts", to=[1, 2, -1]), "label_counts must be 3 whole numbers"),
    "documents": (put(*TRAINING, "documents", to="many"), "documents must be a whole number, at least 1, got 'many'"),
    "fingerprints": (put(*TRAINING, "fingerprints", to=["a"]), "fingerprints must be two texts, got ['a']"),
    "steps": (put(*TRAINING, "max_steps", to=0), "max_steps must be a whole number, at least 1, got 0"),
    "history": (put(*TRAINING, "history", to=[{"phase": 1, "epoch": 2, "select": 0.5}]), "a record of the history"),
    "report": (put("extra", "validation", to={"scores": 3}), "'per_label' is missing"),
    "report of nonsense": (put("extra", "validation", "scores", to=3), "do not fit together"),
    "taxonomy": (put("taxonomy", "labels", to=[]), "needed is"),
    "no taxonomy": (put("taxonomy", to={"format": 99}), "no taxonomy as hilap writes it"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_parts_that_do_not_fit_are_named(case, stored, tmp_path):
    change, says = FOREIGN[case]
    with pytest.raises(ModelError) as caught:
        opened(stored, tmp_path / "m", change)
    assert says in str(caught.value)
    assert str(tmp_path / "m") in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_what_another_version_wrote_says_so(stored, tmp_path):
    with pytest.raises(
        ModelError, match=r"'more' has no place\); it was written by hilap 0\.0\.1, this is .* train it"
    ):
        opened(stored, tmp_path / "m", put("tensors", "more", to=torch.zeros(2)), version="0.0.1")


def test_an_unknown_kind_is_told(stored, tmp_path):
    with pytest.raises(ModelError, match=r"a model of kind 'forest' .* is not known here; update hilap"):
        opened(stored, tmp_path / "m", lambda parts: None, kind="forest")
    with pytest.raises(ModelError, match="this is a model of kind 'forest'; needed: hilap"):
        HiLAPClassifier.load(tmp_path / "m")


def test_a_folder_with_other_things_in_it_is_not_overwritten(stored, tmp_path):
    made = opened(stored, tmp_path / "m", lambda parts: None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match="is not overwritten"):
        made.save(tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "years of work"
