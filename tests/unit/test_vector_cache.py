"""Vectors of texts that were encoded already: found again by their text alone, never stale, never damaged."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from hilap.encoders import remembering
from hilap.encoders.remembering import Memory
from hilap.encoders.vector_cache import KeptVectors
from hilap.errors import SettingError

TEXTS = [f"text {i} é\ud800" for i in range(40)]
WIDTH = 5


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(remembering, "_BLOCK", 8)


class Run:
    """A process of its own, as far as a folder can tell: it remembers nothing, and notes what it has to encode."""

    def __init__(self, folder: Path | None, about: str = "a") -> None:
        self.memory, self.about, self.encoded = Memory(folder), about, []
        self.body = nn.Linear(2, 3, bias=False)
        nn.init.ones_(self.body.weight)

    def __call__(self, texts=TEXTS) -> np.ndarray:
        def encode(block):
            self.encoded.extend(block)
            return vectors(block)

        return self.memory.vectors(texts, encode, self.body, {"about": self.about}, WIDTH)


def vectors(texts) -> np.ndarray:
    lines = [np.frombuffer(text.encode("utf-8", "surrogatepass")[-WIDTH:].rjust(WIDTH), np.uint8) for text in texts]
    return np.array(lines, dtype=np.float32).reshape(-1, WIDTH) / 7


def test_what_is_in_the_folder_is_not_encoded_again(tmp_path):
    folder = tmp_path / "new" / "folder"
    first, second = Run(folder), Run(folder)
    for run in (first, first, second, second):
        assert np.array_equal(run(), vectors(TEXTS))
    assert first.encoded == TEXTS
    assert second.encoded == []
    assert {path.suffix for path in folder.iterdir()} == {".vectors"}


def test_texts_are_found_whatever_stands_around_them(tmp_path):
    Run(tmp_path)()
    changed = ["new first", *TEXTS[:10], "new", *TEXTS[11:], TEXTS[3]]
    for texts, unknown in ((changed, ["new first", "new"]), (TEXTS[::-1], []), (changed[::-3], []), ([], [])):
        run = Run(tmp_path)
        assert np.array_equal(run(texts), vectors(texts))
        assert run.encoded == unknown


def test_what_another_run_has_written_meanwhile_is_found(tmp_path):
    first, second = Run(tmp_path), Run(tmp_path)
    first(TEXTS[:9])
    second(TEXTS)
    first(TEXTS)
    assert first.encoded == TEXTS[:9]
    assert second.encoded == TEXTS[9:]


def test_vectors_of_other_weights_or_other_settings_are_not_taken(tmp_path):
    Run(tmp_path)()
    other = Run(tmp_path, about="b")
    other()
    moved = Run(tmp_path)
    nn.init.zeros_(moved.body.weight)
    moved()
    assert other.encoded == moved.encoded == TEXTS


def damages(data: bytes) -> dict[str, bytes]:
    def flipped(at: int) -> bytes:
        at %= len(data)
        return data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :]

    ends = {"empty": b"", "short": data[:20], "cut": data[:-1], "longer": data + b"\0", "of old": b"\x93NUMPY" + data}
    places = {"magic": 1, "count": 16, "width": 24, "seal": 40, "key": 64, "first": 200, "last": -2}
    return {**ends, "sizes": data[:16] + b"\xff" * 16 + data[32:], **{name: flipped(at) for name, at in places.items()}}


@pytest.mark.parametrize("kind", damages(bytes(100)))
def test_a_damaged_file_is_noticed_and_made_anew(tmp_path, kind):
    Run(tmp_path)()
    path = sorted(tmp_path.iterdir())[1]
    whole = path.read_bytes()
    path.write_bytes(damages(whole)[kind])
    run = Run(tmp_path)
    assert np.array_equal(run(), vectors(TEXTS))
    assert len(run.encoded) == 8
    assert path.read_bytes() == whole
    run.memory._known.clear()
    run()
    assert len(run.encoded) == 8
    again = Run(tmp_path)
    again()
    assert again.encoded == []


@pytest.mark.parametrize("at", range(0, 64 + 8 * (16 + 4 * WIDTH), 7))
def test_any_flipped_byte_is_noticed(tmp_path, at):
    Run(tmp_path)(TEXTS[:8])
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    run = Run(tmp_path)
    assert np.array_equal(run(TEXTS[:8]), vectors(TEXTS[:8]))
    assert run.encoded == TEXTS[:8]


def test_a_file_of_another_source_under_this_name_is_not_taken(tmp_path):
    mine, other = KeptVectors(tmp_path / "a", "mine", WIDTH), KeptVectors(tmp_path / "b", "other", WIDTH)
    keys = [bytes(16), bytes(range(16))]
    for kept in (mine, other):
        kept.check()
        kept.put(keys, np.ones((2, WIDTH), dtype=np.float32))
    (wanted,), (foreign,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    assert {*KeptVectors(tmp_path / "a", "mine", WIDTH).find(keys)} == {*keys}
    assert KeptVectors(tmp_path / "a", "mine", WIDTH + 1).find(keys) == {}
    wanted.write_bytes(foreign.read_bytes())
    assert KeptVectors(tmp_path / "a", "mine", WIDTH).find(keys) == {}


def test_deleted_files_are_made_again_while_what_is_known_stays_good(tmp_path):
    run = Run(tmp_path)
    run()
    run.memory._known.clear()
    run()
    for path in tmp_path.iterdir():
        path.unlink()
    run.memory._known.clear()
    assert np.array_equal(run(), vectors(TEXTS))
    later = Run(tmp_path)
    later()
    assert run.encoded == later.encoded == TEXTS


def _write_often(folder: str) -> None:
    for _ in range(25):
        for path in os.listdir(folder):
            if path.endswith(".vectors"):
                with suppress(FileNotFoundError):  # the other process was faster
                    os.unlink(os.path.join(folder, path))
        if not np.array_equal(Run(Path(folder))(), vectors(TEXTS)):
            raise SystemExit(1)


def test_two_processes_may_write_and_delete_in_one_folder(tmp_path):
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=_write_often, args=(str(tmp_path),)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert [run.exitcode for run in runs] == [0, 0]
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


@pytest.mark.parametrize("name", ["file", "file/below", "zero\0byte"])
def test_a_folder_that_cannot_be_one_is_said_before_anything_is_encoded(tmp_path, name):
    (tmp_path / "file").write_text("x")
    run = Run(Path(f"{tmp_path}/{name}"))
    with pytest.raises(SettingError, match=r"cache: .* cannot be used as a folder .*; give another"):
        run()
    assert run.encoded == []


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="no folder that nobody may write to")
def test_a_folder_that_cannot_be_written_to_is_said_before_anything_is_encoded():
    run = Run(Path("/sys/kernel"))
    with pytest.raises(SettingError, match=r"cache: nothing can be written into '/sys/kernel' \(.+\); give another"):
        run()
    assert run.encoded == []
