"""Vocabularies, sentences, and token rows kept in a folder."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from hilap.corpus.examples import Examples
from hilap.encoders import make, token_cache
from hilap.encoders.token_rows import TokenRows
from hilap.encoders.tokens import sentences, words
from hilap.encoders.vocabulary import Vocabulary
from hilap.errors import HilapError, SettingError
from hilap.taxonomy import Taxonomy

TEXTS = [f"word{i % 7} word{i % 11}. Then word{i} é" for i in range(40)]


# -- vocabulary -------------------------------------------------------------------------------------------------------


def test_words_come_by_count_then_by_alphabet():
    texts = ["b a b c", "a d c", "e b"]
    for most in range(1, 7):
        found = Vocabulary.most_frequent(texts, most=most, max_words=256)
        assert found.words == ("b", "a", "c", "d", "e")[:most]
        assert len(found) == len(found.words) + 2


def test_only_the_first_words_are_counted_and_read():
    found = Vocabulary.most_frequent(["a b c", "c b a a"], most=9, max_words=2)
    assert found.words == ("b", "a", "c")
    rows = found.rows(["c b a", "x a", ""], max_words=2)
    assert rows.tokens.tolist() == [4, 2, 1, 3]
    assert rows.starts.tolist() == [0, 2, 4, 4]
    assert rows.begins is None


def test_counts_are_pythons_own():
    counts = Counter(word for text in TEXTS for word in words(text))
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    assert list(Vocabulary.most_frequent(TEXTS, most=20, max_words=256).words) == expected[:20]


def test_sentences_begin_where_they_begin():
    rows = Vocabulary(["a", "b"]).rows(["a b. A b b a. B", "", "a b a b a"], max_words=6, longest_sentence=3)
    assert rows.tokens.tolist() == [2, 3, 2, 3, 3, 2, 2, 3, 2, 3, 2]
    assert rows.begins.tolist() == [True, False, True, False, False, True, True, False, False, True, False]
    batch = rows.batch(np.array([2, 1]))
    assert batch.begins.tolist() == [True, False, False, True, False]
    assert batch.starts.tolist() == [0, 5, 5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two. Three four", ["one two", "three four"]),
        ("Is it? Yes! So… And on", ["is it", "yes", "so", "and on"]),
        ("He said “so.” Then (left.) Now", ["he said so", "then left", "now"]),
        ("e.g. this, i.e. that", ["e g this i e that"]),
        ("By J. R. Tolkien", ["by j r tolkien"]),
        ("3.5 GHz vs. 4.0", ["3 5 ghz vs", "4 0"]),
        ("one\n\ntwo\n \nthree\nfour", ["one", "two", "three four"]),
        ("漢字。日本！次", ["漢 字", "日 本", "次"]),
        ("... !!! ???", []),
        ("", []),
    ],
)
def test_where_sentences_end(text, expected):
    assert [" ".join(line) for line in sentences(text, 256, 50)] == expected


# -- the cache --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(token_cache, "FEWEST_DOCUMENTS", 10)


class Maker:
    """Makes rows, and counts how often."""

    def __init__(self, longest: int | None = None, texts=TEXTS) -> None:
        self.longest, self.texts, self.made = longest, texts, 0

    def __call__(self, block=None) -> TokenRows:
        self.made += 1
        return Vocabulary.most_frequent(self.texts, most=9, max_words=9).rows(
            self.texts if block is None else block, max_words=9, longest_sentence=self.longest
        )


def same(one: TokenRows, other: TokenRows) -> bool:
    if (one.begins is None) != (other.begins is None):
        return False
    pairs = [(one.tokens, other.tokens), (one.starts, other.starts), (one.begins, other.begins)]
    return all(np.array_equal(a, b) for a, b in pairs if a is not None)


@pytest.mark.parametrize("longest", [None, 3])
def test_what_is_in_the_cache_is_mapped_and_not_made_again(tmp_path, longest):
    make_rows = Maker(longest)
    for _ in range(3):
        found = token_cache.cached_rows(tmp_path / "new" / "folder", TEXTS, ["v"], make_rows)
        assert same(found, Maker(longest)())
        assert isinstance(found.tokens.base, np.memmap) or isinstance(found.tokens, np.memmap)
        batch = found.batch(np.arange(5, 20))
        assert torch.equal(batch.tokens, Maker(longest)().batch(np.arange(5, 20)).tokens)
    assert make_rows.made == 1
    assert [path.suffix for path in (tmp_path / "new" / "folder").iterdir()] == [".tokens"]


@pytest.mark.parametrize("longest", [None, 3])
@pytest.mark.parametrize("size", [1, 7, 39, 40])
def test_rows_made_block_by_block_are_those_made_at_once(tmp_path, monkeypatch, longest, size):
    monkeypatch.setattr(token_cache, "_BLOCK", size)
    make_rows = Maker(longest)
    assert same(token_cache.cached_rows(tmp_path, TEXTS, [], make_rows), Maker(longest)())
    assert make_rows.made == -(-len(TEXTS) // size)


def test_anything_else_that_rows_depend_on_is_another_file(tmp_path):
    make_rows = Maker()
    changed = [*TEXTS[:-1], TEXTS[-1] + "!"]
    shifted = [TEXTS[0] + TEXTS[1][:1], TEXTS[1][1:], *TEXTS[2:]]
    for texts, rest in ((TEXTS, ["v"]), (TEXTS, ["w"]), (changed, ["v"]), (TEXTS[::-1], ["v"]), (shifted, ["v"])):
        token_cache.cached_rows(tmp_path, texts, rest, make_rows)
    assert make_rows.made == 5
    assert len([*tmp_path.iterdir()]) == 5


def test_without_a_folder_and_for_small_blocks_nothing_is_written(tmp_path):
    make_rows = Maker(texts=TEXTS[:9])
    token_cache.cached_rows(None, TEXTS, [], Maker())
    token_cache.cached_rows(tmp_path, TEXTS[:9], [], make_rows)
    assert [*tmp_path.iterdir()] == []
    assert make_rows.made == 1


def damages(data: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "short": data[:20],
        "cut": data[:-1],
        "longer": data + b"\0",
        "other magic": b"x" + data[1:],
        "header": data[:20] + bytes([data[20] ^ 1]) + data[21:],
        "sizes": data[:16] + b"\xff" * 24 + data[40:],
        "seal": data[:50] + bytes([data[50] ^ 1]) + data[51:],
        "first start": data[:72] + bytes([data[72] ^ 1]) + data[73:],
        "last token": data[:-2] + bytes([data[-2] ^ 4]) + data[-1:],
    }


@pytest.mark.parametrize("kind", damages(bytes(100)))
@pytest.mark.parametrize("longest", [None, 3])
def test_a_damaged_file_is_noticed_and_written_anew(tmp_path, kind, longest):
    token_cache.cached_rows(tmp_path, TEXTS, [], Maker(longest))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damages(whole)[kind])
    make_rows = Maker(longest)
    assert same(token_cache.cached_rows(tmp_path, TEXTS, [], make_rows), Maker(longest)())
    assert make_rows.made == 1
    assert path.read_bytes() == whole


def test_a_file_of_other_texts_under_this_name_is_not_taken(tmp_path):
    token_cache.cached_rows(tmp_path / "a", TEXTS, [], Maker())
    token_cache.cached_rows(tmp_path / "b", TEXTS[::-1], [], Maker(texts=TEXTS[::-1]))
    (wanted,), (other,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    wanted.write_bytes(other.read_bytes())
    make_rows = Maker()
    assert same(token_cache.cached_rows(tmp_path / "a", TEXTS, [], make_rows), Maker()())
    assert make_rows.made == 1


def test_a_deleted_file_is_made_again_while_the_old_rows_stay_good(tmp_path):
    first = token_cache.cached_rows(tmp_path, TEXTS, [], Maker())
    (path,) = tmp_path.iterdir()
    path.unlink()
    make_rows = Maker()
    again = token_cache.cached_rows(tmp_path, TEXTS, [], make_rows)
    assert make_rows.made == 1
    assert same(first, again)


def _write_often(folder: str) -> None:
    token_cache.FEWEST_DOCUMENTS = 10
    expected = Maker()()
    for _ in range(25):
        for path in os.listdir(folder):
            if path.endswith(".tokens"):
                with suppress(FileNotFoundError):  # the other process was faster
                    os.unlink(os.path.join(folder, path))
        if not same(token_cache.cached_rows(folder, TEXTS, [], Maker()), expected):
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


def test_texts_with_half_characters_have_a_place_in_the_cache(tmp_path):
    texts = [f"\ud800 a{i}" for i in range(12)]
    found = token_cache.cached_rows(tmp_path, texts, [], Maker(texts=texts))
    assert same(found, Maker(texts=texts)())


@pytest.mark.parametrize("name", ["file", "file/below", "zero\0byte"])
def test_a_folder_that_cannot_be_one_is_said(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingError, match=r"cache: .* cannot be used as a folder .*; give another"):
        token_cache.cached_rows(f"{tmp_path}/{name}", TEXTS, [], Maker())


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="no folder that nobody may write to")
def test_a_folder_that_cannot_be_written_to_is_said_before_anything_is_made():
    make_rows = Maker()
    with pytest.raises(SettingError, match=r"cache: nothing can be written into '/sys/kernel' \(.+\); give another"):
        token_cache.cached_rows("/sys/kernel", TEXTS, [], make_rows)
    assert make_rows.made == 0


def test_a_place_that_is_taken_by_a_folder_is_said(tmp_path):
    token_cache.cached_rows(tmp_path, TEXTS, [], Maker())
    (path,) = tmp_path.iterdir()
    path.unlink()
    path.mkdir()
    with pytest.raises(HilapError, match="this is a folder"):
        token_cache.cached_rows(tmp_path, TEXTS, [], Maker())


@pytest.mark.parametrize("name", ["textcnn", "han", "bowcnn"])
def test_an_encoder_with_a_cache_gives_what_it_gives_without(tmp_path, name):
    examples = Examples.of(Taxonomy.of({"a": []}), [[]] * len(TEXTS), texts=TEXTS)
    options = {"hidden": 3} if name == "han" else {"filters": 3}
    found = []
    for cache in (None, tmp_path, tmp_path):
        encoder = make(name, cache=cache, **options).fit(examples, generator=torch.Generator().manual_seed(0))
        assert "cache" not in encoder.settings()
        encoder.eval()
        with torch.no_grad():
            found.append(encoder(encoder.prepare(examples).batch(np.arange(len(TEXTS)))))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert len([*tmp_path.iterdir()]) == 1
