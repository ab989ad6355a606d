"""Model folders and checkpoints that are damaged, foreign, hostile or half-written."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hilap.errors import HilapError, ModelError
from hilap.storage import content, load_folder, read_checkpoint, save_folder, write_checkpoint
from hilap.storage import folder as folder_module


def save(folder, **changes):
    given = {
        "kind": "hilap",
        "settings": {"seed": 3, "rate": 0.125},
        "taxonomy": {"format": 1, "labels": [], "aliases": {}},
        "tensors": {"w": torch.arange(4.0), "b": torch.tensor([True])},
        "extra": {"encoder": {"terms": ["a", "b"]}},
    }
    save_folder(folder, **(given | changes))
    return folder


def content_of(stored):
    tensors = {name: (tensor.dtype, tensor.tolist()) for name, tensor in stored.tensors.items()}
    return stored.kind, stored.settings, stored.taxonomy, tensors, stored.extra


def resealed(folder: Path, **changes) -> None:
    """Change `settings.json` as a stranger would who makes all hashes right."""
    header = json.loads((folder / "settings.json").read_text()) | changes
    header["check"] = folder_module._seal(header)
    (folder / "settings.json").write_text(json.dumps(header))


def planted(folder: Path, name: str, data: bytes) -> None:
    """Put a file into a model with the right hash."""
    (folder / name).write_bytes(data)
    files = json.loads((folder / "settings.json").read_text())["files"]
    resealed(folder, files=files | {name: hashlib.sha256(data).hexdigest()})


# -- any damage ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return save(tmp_path_factory.mktemp("whole") / "model")


@st.composite
def damages(draw):
    name = draw(
        st.sampled_from(["settings.json", "settings.json", "taxonomy.json", "weights.safetensors", "encoder.json"])
    )
    kind = draw(st.sampled_from(["flip", "flip", "cut", "remove", "append", "replace"]))
    return name, kind, draw(st.integers(0, 10_000)), draw(st.integers(1, 255)), draw(st.binary(max_size=40))


def damaged_bytes(data: bytes, kind: str, at: int, flip: int, noise: bytes) -> bytes:
    at %= max(len(data), 1)
    return {
        "flip": data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :],
        "cut": data[:at],
        "append": data + noise,
        "replace": data[:at] + noise + data[at + len(noise) :],
    }[kind]


@given(damages())
def test_a_damaged_folder_loads_equal_content_or_our_error(whole, damage):
    name, kind, at, flip, noise = damage
    folder = whole.parent / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    if kind == "remove":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(damaged_bytes((folder / name).read_bytes(), kind, at, flip, noise))
    try:
        found = load_folder(folder)
    except HilapError:
        return
    assert content_of(found) == content_of(load_folder(whole))


@given(damages(), st.integers(0, 3))
def test_a_damaged_checkpoint_gives_equal_content_or_our_error(whole, damage, times):
    path = whole.parent / "checkpoint.safetensors"
    tensors, state = {"w": torch.arange(4.0), "n": torch.tensor([7])}, {"epoch": 3, "loss": [0.25]}
    write_checkpoint(path, tensors, state)
    _, kind, at, flip, noise = damage
    data = path.read_bytes()
    for _ in range(times):
        data = data[:at] if kind == "remove" or not data else damaged_bytes(data, kind, at, flip, noise)
    path.write_bytes(data)
    try:
        found, read = read_checkpoint(path)
    except HilapError:
        return
    assert read == state
    assert {n: t.tolist() for n, t in found.items()} == {n: t.tolist() for n, t in tensors.items()}


@given(st.binary(max_size=300))
def test_any_bytes_with_the_right_hash_as_weights_give_our_error_or_tensors(whole, data):
    folder = whole.parent / "planted"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    planted(folder, "weights.safetensors", data)
    with contextlib.suppress(ModelError):
        load_folder(folder)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(["format", "kind", "hilap", "files", "settings", "check"])


@given(st.dictionaries(_KEYS, _VALUES, max_size=3), st.dictionaries(st.text(max_size=9), _VALUES, max_size=2))
def test_any_header_with_the_right_seal_gives_our_error_or_a_model(whole, changes, files):
    folder = whole.parent / "header"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    old = json.loads((folder / "settings.json").read_text())["files"]
    resealed(folder, **({"files": old | files} | changes))
    with contextlib.suppress(HilapError):
        load_folder(folder)


_ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "I64", "BOOL", "F8_E5M2", "C64", "", []]) | st.text(max_size=3),
        "shape": st.lists(st.integers(-2, 2**65), max_size=3) | st.none(),
        "data_offsets": st.lists(st.integers(-1, 2**65), max_size=3) | st.just([0, 8]) | st.none(),
    }
)


@given(st.dictionaries(st.text(max_size=4), _ENTRIES | _VALUES, max_size=3), st.binary(max_size=20))
def test_any_header_of_tensors_gives_our_error_or_tensors(whole, header, body):
    text = json.dumps(header).encode()
    path = whole.parent / "tensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    with pytest.raises(HilapError):
        read_checkpoint(path)
    with contextlib.suppress(HilapError):
        folder_module.tensors_of(path.read_bytes(), path)


# -- what a message says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["taxonomy.json", "weights.safetensors", "encoder.json"])
def test_the_damaged_file_is_named(tmp_path, name):
    folder = save(tmp_path / "model")
    (folder / name).write_bytes((folder / name).read_bytes()[:-3])
    with pytest.raises(ModelError, match=rf"{name}: the file is damaged or truncated .*get it again"):
        load_folder(folder)


@pytest.mark.parametrize("name", ["taxonomy.json", "weights.safetensors", "encoder.json"])
def test_the_missing_file_is_named(tmp_path, name):
    folder = save(tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(ModelError, match=rf"{name}: the file is missing; get it again"):
        load_folder(folder)


def test_changed_settings_are_noticed(tmp_path):
    folder = save(tmp_path / "model")
    text = (folder / "settings.json").read_text()
    (folder / "settings.json").write_text(text.replace('"seed": 3', '"seed": 4'))
    with pytest.raises(ModelError, match=r"settings\.json: the file is damaged or was changed by hand"):
        load_folder(folder)


def test_a_newer_format_says_update(tmp_path):
    folder = save(tmp_path / "model")
    resealed(folder, format=2, hilap="9.1")
    with pytest.raises(
        ModelError, match=r"made by a newer hilap \(format 2, hilap 9.1\); update: pip install -U hilap"
    ):
        load_folder(folder)


def test_a_foreign_folder_is_no_model(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(ModelError, match=r"photos: this is no hilap model: it has no settings\.json"):
        load_folder(tmp_path / "photos")
    (tmp_path / "photos" / "settings.json").write_text('{"colour": "red"}')
    with pytest.raises(ModelError, match=r"this is no hilap model: its settings\.json lacks format, kind or files"):
        load_folder(tmp_path / "photos")


@pytest.mark.parametrize("name", ["nowhere", "zero\0byte"])
def test_no_folder_at_all(tmp_path, name):
    with pytest.raises(ModelError, match="check the path"):
        load_folder(tmp_path / name)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="this is a file; a model is a folder"):
        load_folder(tmp_path / "model.bin")
    with pytest.raises(ModelError, match="this is a file; give the name of a folder"):
        save(tmp_path / "model.bin")


def test_another_kind_of_model_is_named(tmp_path):
    with pytest.raises(ModelError, match="a model of kind 'hilap'; needed: svm"):
        load_folder(save(tmp_path / "model"), kinds=["svm"])


# -- hostile ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "sub/file.json", "settings.json", "x.pkl", "..", ""])
def test_a_name_that_no_model_has_is_refused(tmp_path, name):
    folder = save(tmp_path / "model")
    files = json.loads((folder / "settings.json").read_text())["files"]
    resealed(folder, files=files | {name: "0" * 64})
    with pytest.raises(ModelError, match="is no file that a hilap model has; do not trust this model"):
        load_folder(folder)


@pytest.mark.parametrize("name", ["encoder.json", "settings.json"])
def test_a_link_out_of_the_folder_is_refused(tmp_path, name):
    folder = save(tmp_path / "model")
    os.replace(folder / name, tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="this link leads out of the model's folder"):
        load_folder(folder)


def test_a_link_inside_the_folder_is_followed(tmp_path):
    folder = save(tmp_path / "model")
    os.replace(folder / "encoder.json", folder / "blob")
    (folder / "encoder.json").symlink_to("blob")
    assert load_folder(folder).extra == {"encoder": {"terms": ["a", "b"]}}


def test_links_in_a_circle_and_pipes_do_not_hang(tmp_path):
    folder = save(tmp_path / "model")
    (folder / "encoder.json").unlink()
    (folder / "encoder.json").symlink_to("encoder.json")
    with pytest.raises(ModelError, match=r"encoder\.json"):
        load_folder(folder)
    (folder / "encoder.json").unlink()
    os.mkfifo(folder / "encoder.json")
    with pytest.raises(ModelError, match="this is no ordinary file"):
        load_folder(folder)


@pytest.mark.parametrize("bomb", [b"[" * 200_000, b'{"a":' * 100_000, b"9" * 10_000, b"\xff\xfe[]", b"", b"[1,]"])
def test_json_that_is_none_or_a_bomb_is_damage(tmp_path, bomb):
    folder = save(tmp_path / "model")
    planted(folder, "encoder.json", bomb)
    with pytest.raises(ModelError, match=r"encoder\.json: the file is damaged or truncated \(not valid JSON"):
        load_folder(folder)
    (folder / "settings.json").write_bytes(bomb)
    with pytest.raises(ModelError, match=r"settings\.json"):
        load_folder(folder)


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    folder = save(tmp_path / "model")
    monkeypatch.setattr(folder_module, "MOST_JSON_BYTES", 5_000)
    os.truncate(folder / "encoder.json", 1 << 40)  # sparse: takes no room on the disk
    with pytest.raises(ModelError, match="bytes; at most 5,000 are read"):
        load_folder(folder)


def test_a_pickle_is_not_opened(tmp_path):
    folder = save(tmp_path / "model")
    torch.save({"w": torch.ones(2)}, tmp_path / "pickled")
    planted(folder, "weights.safetensors", (tmp_path / "pickled").read_bytes())
    with pytest.raises(ModelError, match=r"weights\.safetensors: the file is damaged"):
        load_folder(folder)


def test_too_many_files_are_refused(tmp_path):
    folder = save(tmp_path / "model")
    files = json.loads((folder / "settings.json").read_text())["files"]
    resealed(folder, files=files | {f"x{i}.json": "0" for i in range(1_000)})
    with pytest.raises(ModelError, match="a model has at most 1,000 files"):
        load_folder(folder)


# -- saving what cannot be saved ----------------------------------------------------------------------------------


def test_a_folder_that_is_no_model_is_not_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(ModelError, match=r"thesis: this folder is no hilap model \(it holds 'chapter.txt'\)"):
        save(tmp_path / "thesis")
    (tmp_path / "thesis" / "settings.json").write_text("{}")
    with pytest.raises(ModelError, match="this is no hilap model"):
        save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_a_file_of_the_user_with_the_name_of_a_new_file_is_not_overwritten(tmp_path):
    folder = save(tmp_path / "model")
    (folder / "scores.json").write_text("mine")
    with pytest.raises(ModelError, match=r"scores.json: this file is not part of the model there; move it"):
        save(folder, extra={"scores": 1})
    assert (folder / "scores.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra": {"history": {1: 2}}}, "history cannot be saved: it holds an object whose keys are not all texts"),
        ({"settings": {"path": Path("x")}}, "settings cannot be saved: it holds a PosixPath"),
        ({"extra": {"scores": np.ones(2)}}, "scores cannot be saved: it holds a ndarray"),
        ({"extra": {"../x": 1}}, "extra '../x' cannot be the name of a file in a model"),
        ({"extra": {"settings": 1}}, "extra 'settings' cannot be the name of a file in a model"),
        ({"extra": {"taxonomy": 1}}, "extra 'taxonomy' cannot be the name of a file in a model"),
        ({"extra": {"x": "\ud800"}}, r"x cannot be saved, as '\\ud800' is no character that UTF-8 can hold"),
        ({"tensors": {"w": torch.zeros(2, dtype=torch.complex64)}}, r"tensor 'w' \(complex64\) cannot be saved"),
        ({"tensors": {"w": torch.eye(2).to_sparse()}}, "tensor 'w' .* cannot be saved; dense tensors can"),
        ({"tensors": {"w": np.ones(2)}}, r"tensor 'w' \(ndarray\) cannot be saved"),
        ({"tensors": {"__metadata__": torch.ones(1)}}, "tensor '__metadata__' .* cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_said_and_the_former_model_stays(tmp_path, changes, message):
    folder = save(tmp_path / "model")
    with pytest.raises(ModelError, match=message):
        save(folder, **changes)
    assert load_folder(folder).settings["seed"] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_value_that_holds_itself_is_said(tmp_path):
    circle: list = []
    circle.append(circle)
    with pytest.raises(ModelError, match="nested too deeply"):
        save(tmp_path / "model", extra={"history": circle})
    with pytest.raises(ModelError, match="nested too deeply"):
        write_checkpoint(tmp_path / "c", {}, {"history": circle})


# -- stopped on the way -------------------------------------------------------------------------------------------


class Stop(BaseException):
    """As sudden as Ctrl-C."""


@pytest.mark.parametrize("call", ["write", "rename", "sync_folder", "rmtree"])
@pytest.mark.parametrize("number", range(6))
def test_a_save_that_is_stopped_leaves_the_old_model_or_the_new_one(tmp_path, monkeypatch, call, number):
    folder = save(tmp_path / "model")
    home = {"write": folder_module, "sync_folder": folder_module, "rename": os, "rmtree": shutil}[call]
    real, calls = getattr(home, call), []

    def stopping(*args, **kwargs):
        calls.append(1)
        if len(calls) == number + 1:
            raise Stop
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(home, call, stopping)
        with contextlib.suppress(Stop):
            save(folder, settings={"seed": 4})
    assert load_folder(folder).settings["seed"] in (3, 4)
    save(folder, settings={"seed": 5})
    assert load_folder(folder).settings == {"seed": 5}


def test_a_model_set_aside_by_a_killed_save_is_named_and_put_back(tmp_path):
    folder = save(tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    os.rename(folder, tmp_path / ".model.before")  # what a kill between the two renames leaves
    with pytest.raises(ModelError, match=r"the former one is in .*\.model\.before; rename it, or save again"):
        load_folder(folder)
    save(folder, settings={"seed": 4})
    assert load_folder(folder).settings == {"seed": 4}
    assert (folder / "notes.txt").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HilapError, match=r"file.model: cannot be written"):
        save(tmp_path / "file" / "model")
    with pytest.raises(HilapError, match="cannot be written"):
        write_checkpoint(tmp_path / "nowhere" / "c", {}, {})
    with pytest.raises(ModelError, match="a checkpoint is not compressed"):
        write_checkpoint(tmp_path / "c.gz", {}, {})


def test_a_full_disk_leaves_the_former_checkpoint(tmp_path, monkeypatch):
    write_checkpoint(tmp_path / "c", {"w": torch.ones(3)}, {"epoch": 1})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(content.os, "fsync", full)
    with pytest.raises(HilapError, match="No space left on device"):
        write_checkpoint(tmp_path / "c", {"w": torch.zeros(3)}, {"epoch": 2})
    monkeypatch.undo()
    assert read_checkpoint(tmp_path / "c")[1] == {"epoch": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


WRITER = """
import sys, torch
from hilap.storage import write_checkpoint
print("ready", flush=True)
for epoch in range(1_000_000):
    write_checkpoint(sys.argv[1], {"w": torch.full((100_000,), float(epoch))}, {"epoch": epoch})
    if not epoch:
        print("written", flush=True)
"""


def test_a_killed_writer_leaves_a_whole_checkpoint(tmp_path):
    path = tmp_path / "c.safetensors"
    for pause in (0.0, 0.1357):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            writer.stdout.readline()
            writer.stdout.readline()
            time.sleep(pause)
            os.kill(writer.pid, signal.SIGKILL)
        tensors, state = read_checkpoint(path)
        assert (tensors["w"] == state["epoch"]).all()


# -- checkpoints that are none ------------------------------------------------------------------------------------


def test_a_missing_checkpoint_is_said(tmp_path):
    with pytest.raises(ModelError, match="the file is missing"):
        read_checkpoint(tmp_path / "c")


def test_a_truncated_checkpoint_is_said(tmp_path):
    write_checkpoint(tmp_path / "c", {"w": torch.ones(30)}, {"epoch": 1})
    data = (tmp_path / "c").read_bytes()
    for end in (0, 5, 40, len(data) - 1):
        (tmp_path / "c").write_bytes(data[:end])
        with pytest.raises(ModelError, match="c: the file is damaged or truncated"):
            read_checkpoint(tmp_path / "c")


def test_weights_without_a_state_are_no_checkpoint(tmp_path):
    folder = save(tmp_path / "model")
    with pytest.raises(ModelError, match="this is no checkpoint of hilap"):
        read_checkpoint(folder / "weights.safetensors")


def test_a_flipped_bit_in_the_tensors_is_noticed(tmp_path):
    write_checkpoint(tmp_path / "c", {"w": torch.ones(30)}, {"epoch": 1})
    data = bytearray((tmp_path / "c").read_bytes())
    data[-2] ^= 1
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(ModelError, match="its content is not what was written"):
        read_checkpoint(tmp_path / "c")


def test_a_checkpoint_of_a_newer_version_says_update(tmp_path):
    write_checkpoint(tmp_path / "c", {}, {})
    data = (tmp_path / "c").read_bytes().replace(b'\\"format\\": 1', b'\\"format\\": 7')
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(ModelError, match=r"made by a newer hilap \(format 7\); update"):
        read_checkpoint(tmp_path / "c")
