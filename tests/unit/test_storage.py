"""Model folders and checkpoints: what is saved is what is loaded."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest
import torch
from safetensors import safe_open

from hilap import __version__
from hilap.storage import load_folder, read_checkpoint, save_folder, write_checkpoint

TENSORS = {
    "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 7,
    "count": torch.tensor([1, -(2**62)]),
    "mask": torch.tensor([True, False]),
    "empty": torch.zeros(0, 4),
    "scalar": torch.tensor(2.5),
}


def save(folder, **changes):
    given = {
        "kind": "hilap",
        "settings": {"seed": 3, "hidden": (150, 20), "name": "Größe"},
        "taxonomy": {"format": 1, "labels": [{"label": "a", "name": "A", "parents": []}], "aliases": {}},
        "tensors": TENSORS,
        "extra": {"encoder": {"terms": ["bier", "öl"]}, "history": [{"loss": 0.5}]},
        "card": "# A model\n",
    }
    save_folder(folder, **(given | changes))
    return folder


def assert_same_tensors(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_a_loaded_model_is_what_was_saved(tmp_path):
    stored = load_folder(save(tmp_path / "model"))
    assert (stored.kind, stored.hilap) == ("hilap", __version__)
    assert stored.settings == {"seed": 3, "hidden": [150, 20], "name": "Größe"}
    assert stored.taxonomy["labels"] == [{"label": "a", "name": "A", "parents": []}]
    assert stored.extra == {"encoder": {"terms": ["bier", "öl"]}, "history": [{"loss": 0.5}]}
    assert_same_tensors(stored.tensors, TENSORS)


def test_the_folder_holds_plain_files_with_their_hashes(tmp_path):
    folder = save(tmp_path / "model")
    header = json.loads((folder / "settings.json").read_text("utf-8"))
    assert header["format"] == 1
    assert header["files"].keys() == {p.name for p in folder.iterdir()} - {"settings.json", "README.md"}
    for name, digest in header["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert (folder / "README.md").read_text() == "# A model\n"
    with safe_open(folder / "weights.safetensors", "pt") as weights:  # any reader of safetensors can open it
        assert torch.equal(weights.get_tensor("weight"), TENSORS["weight"])


def test_the_same_model_gives_the_same_bytes(tmp_path):
    one, two = save(tmp_path / "one"), save(tmp_path / "two")
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}


def test_the_model_card_may_be_edited_or_removed(tmp_path):
    folder = save(tmp_path / "model")
    (folder / "README.md").write_text("my words")
    load_folder(folder)
    (folder / "README.md").unlink()
    load_folder(folder)


def test_a_model_is_replaced_and_what_else_lies_there_stays(tmp_path):
    folder = save(tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    (folder / "runs").mkdir()
    (folder / "runs" / "events").write_text("log")
    save(folder, extra={"scores": [1]}, settings={"seed": 4})
    stored = load_folder(folder)
    assert (stored.settings, stored.extra) == ({"seed": 4}, {"scores": [1]})
    assert not (folder / "encoder.json").exists()
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "runs" / "events").read_text() == "log"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_log_that_is_open_goes_on_in_the_new_folder(tmp_path):
    folder = save(tmp_path / "model")
    with open(folder / "log.jsonl", "w") as log:
        log.write("one\n")
        save(folder)
        log.write("two\n")
    assert (folder / "log.jsonl").read_text() == "one\ntwo\n"


def test_an_empty_folder_and_one_with_only_known_files_are_taken(tmp_path):
    (tmp_path / "empty").mkdir()
    load_folder(save(tmp_path / "empty"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(b"x")
    load_folder(save(tmp_path / "run", beside=["checkpoint.safetensors"]))
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == b"x"


def test_folders_above_are_made_and_links_are_followed(tmp_path):
    save(tmp_path / "a" / "b" / "model")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b" / "model")
    save(tmp_path / "link", settings={"seed": 9})
    assert (tmp_path / "link").is_symlink()
    assert load_folder(tmp_path / "a" / "b" / "model").settings == {"seed": 9}


def test_rights_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        folder = save(tmp_path / "model")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o750
    assert (folder / "settings.json").stat().st_mode & 0o777 == 0o640


def test_numbers_of_numpy_become_plain_and_what_is_none_becomes_null(tmp_path):
    stored = load_folder(save(tmp_path / "m", extra={"scores": {"f1": np.float32(0.5), "n": np.int64(3), "x": np.nan}}))
    assert stored.extra["scores"] == {"f1": 0.5, "n": 3, "x": None}


def test_views_tied_and_foreign_layouts_of_tensors_are_saved(tmp_path):
    base = torch.arange(12.0).reshape(3, 4)
    tensors = {"all": base, "again": base, "row": base[1], "turned": base.T, "grad": base.clone().requires_grad_()}
    found = load_folder(save(tmp_path / "m", tensors=tensors)).tensors
    assert_same_tensors(found, {name: tensor.detach() for name, tensor in tensors.items()})


def test_loaded_tensors_can_be_changed(tmp_path):
    stored = load_folder(save(tmp_path / "model"))
    stored.tensors["weight"].add_(1)
    assert torch.equal(stored.tensors["weight"], TENSORS["weight"] + 1)


def test_a_wanted_kind_is_opened(tmp_path):
    assert load_folder(save(tmp_path / "model"), kinds=["hilap", "flat"]).kind == "hilap"


def test_a_model_without_tensors_or_extras_is_saved(tmp_path):
    stored = load_folder(save(tmp_path / "model", tensors={}, extra=None))
    assert (stored.tensors, stored.extra) == ({}, {})


# -- checkpoints --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [{}, {"epoch": 3, "losses": [0.1, float("inf")], "name": "ü", "none": None}])
def test_a_checkpoint_gives_back_tensors_and_state(tmp_path, state):
    tensors = TENSORS | {"random": torch.Generator().manual_seed(0).get_state()}
    write_checkpoint(tmp_path / "c.safetensors", tensors, state)
    found, read = read_checkpoint(tmp_path / "c.safetensors")
    assert read == state
    assert_same_tensors(found, tensors)


def test_a_number_that_is_none_survives_in_a_checkpoint(tmp_path):
    write_checkpoint(tmp_path / "c", {}, {"loss": float("nan")})
    assert np.isnan(read_checkpoint(tmp_path / "c")[1]["loss"])


def test_a_checkpoint_is_an_ordinary_safetensors_file(tmp_path):
    write_checkpoint(tmp_path / "c.safetensors", TENSORS, {"epoch": 3})
    with safe_open(tmp_path / "c.safetensors", "pt") as file:
        assert json.loads(file.metadata()["hilap"])["state"] == {"epoch": 3}
        assert torch.equal(file.get_tensor("weight"), TENSORS["weight"])


def test_a_checkpoint_replaces_the_former_one(tmp_path):
    for epoch in range(3):
        write_checkpoint(tmp_path / "c", {"w": torch.full((4,), float(epoch))}, {"epoch": epoch})
    tensors, state = read_checkpoint(tmp_path / "c")
    assert (tensors["w"].tolist(), state) == ([2.0] * 4, {"epoch": 2})
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
