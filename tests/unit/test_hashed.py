"""Hashed n-grams against a naive recomputation in pure Python."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap.corpus.examples import Examples
from hilap.encoders import Hashed, hashed, make
from hilap.encoders.tokens import words
from hilap.errors import SettingError
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of({"a": []})
TEXTS = ["Craft beer, craft rum", "jerk chicken & plantain", "", "x", "a_b é漢字 \ud800 हिन्दी", "craft " * 300]


def documents(texts):
    return Examples.of(TAXONOMY, [[]] * len(texts), texts=texts)


def naive_hash(part: str, salt: int) -> int:
    """The sum of (c + 1) BASE^i modulo 2^64, then splitmix64's finish, in whole numbers of any size."""
    whole = 1 << 64
    value = sum((ord(letter) + 1) * pow(0x9E3779B97F4A7C15, i, whole) for i, letter in enumerate(part)) % whole
    value ^= salt
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % whole
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % whole
    return value ^ (value >> 31)


def naive_parts(text, word_ngrams, character_ngrams, max_words):
    line = words(text, max_words)
    for size in range(word_ngrams[0], word_ngrams[1] + 1) if word_ngrams else ():
        for i in range(len(line) - size + 1):
            yield " ".join(line[i : i + size]), 0x243F6A8885A308D3
    for size in range(character_ngrams[0], character_ngrams[1] + 1) if character_ngrams and line else ():
        letters = " " + " ".join(line) + " "
        for i in range(len(letters) - size + 1):
            part = letters[i : i + size]
            if " " not in part[1:-1]:
                yield part, 0x13198A2E03707344


def naive_row(text, features, word_ngrams, character_ngrams, max_words, sublinear, idf):
    counts = defaultdict(int)
    for part, salt in naive_parts(text, word_ngrams, character_ngrams, max_words):
        value = naive_hash(part, salt)
        counts[value % features] += -1 if value >> 63 else 1
    row = np.zeros(features)
    for column, count in counts.items():
        if count:
            size = 1 + math.log(abs(count)) if sublinear else abs(count)
            row[column] = math.copysign(size, count) * idf[column]
    length = np.sqrt((row**2).sum())
    return row / length if length else row


def compared(texts, **options):
    encoder = Hashed(hidden=(3,), **options).fit(documents(texts), generator=torch.Generator())
    found = encoder.matrix(documents(texts)).toarray()
    idf = np.ones(encoder.features)
    if encoder.idf:
        given = {
            "max_words": encoder.max_words,
            "sublinear": encoder.sublinear,
            "idf": idf,
            "features": encoder.features,
        }
        given |= {"word_ngrams": encoder.word_ngrams, "character_ngrams": encoder.character_ngrams}
        having = sum((naive_row(text, **given) != 0).astype(int) for text in texts)
        idf = 1 + np.log((1 + len(texts)) / (1 + having))
    for text, row in zip(texts, found, strict=True):
        expected = naive_row(
            text,
            encoder.features,
            encoder.word_ngrams,
            encoder.character_ngrams,
            encoder.max_words,
            encoder.sublinear,
            idf,
        )
        np.testing.assert_allclose(row, expected, atol=1e-6)


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("sublinear", [False, True])
@pytest.mark.parametrize(
    ("word_ngrams", "character_ngrams", "max_words"),
    [((1, 2), None, 256), ((2, 3), (3, 5), None), (None, (1, 2), 3), ((1, 1), (4, 4), 2)],
)
def test_rows_are_those_of_a_count_by_hand(word_ngrams, character_ngrams, max_words, sublinear, idf):
    compared(
        TEXTS,
        features=97,
        word_ngrams=word_ngrams,
        character_ngrams=character_ngrams,
        max_words=max_words,
        sublinear=sublinear,
        idf=idf,
    )


@settings(max_examples=40)
@given(st.lists(st.text(st.sampled_from("ab é_.漢\n") | st.characters(), max_size=25), min_size=1, max_size=6))
def test_rows_are_those_of_a_count_by_hand_for_any_texts(texts):
    compared(texts, features=64, word_ngrams=(1, 3), character_ngrams=(1, 4), idf=True)


def test_blocks_change_nothing(monkeypatch):
    texts = [f"{text} {i}" for i in range(9) for text in TEXTS]
    encoder = Hashed(features=512, hidden=(3,), character_ngrams=(2, 4))
    whole = encoder.fit(documents(texts), generator=torch.Generator()).matrix(documents(texts))
    monkeypatch.setattr(hashed, "_BLOCK", 4)
    monkeypatch.setattr(hashed, "_BLOCK_LETTERS", 50)
    parts = encoder.fit(documents(texts), generator=torch.Generator()).matrix(documents(texts))
    assert (whole != parts).nnz == 0
    assert whole.shape == parts.shape


def test_the_hash_is_the_same_for_ever():
    """A saved model would mean nothing if it changed."""
    encoder = Hashed(hidden=(2,), idf=False).fit(documents(["x"]), generator=torch.Generator())
    row = encoder.matrix(documents(["craft beer"]))
    signs = np.sign(row.data).astype(int).tolist()
    assert sorted(zip(row.indices.tolist(), signs, strict=True)) == [(26443, 1), (32584, 1), (48003, 1)]


def test_signs_are_spread_evenly_and_columns_too():
    texts = [" ".join(f"w{i}" for i in range(k, k + 250)) for k in range(0, 20_000, 250)]
    encoder = Hashed(features=64, hidden=(2,), word_ngrams=(1, 1), idf=False, sublinear=False)
    rows = encoder.fit(documents(texts), generator=torch.Generator())._counts(texts).toarray()
    assert abs(rows.sum()) < 4 * math.sqrt(20_000)  # signs of 20,000 words cancel as coins do
    assert np.abs(rows.sum(0)).max() < 6 * math.sqrt(20_000 / 64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 1}, "features must be a whole number from 2 to 67,108,864, got 1"),
        ({"features": 1 << 40}, "features must be"),
        ({"word_ngrams": (2, 1)}, "word_ngrams must be the shortest and the longest, from 1 to 20"),
        ({"word_ngrams": 2}, "word_ngrams must be"),
        ({"character_ngrams": (3, 50)}, "character_ngrams must be"),
        ({"word_ngrams": None}, "word_ngrams must be given where character_ngrams are not"),
        ({"idf": 1}, "idf must be True or False"),
        ({"sublinear": "no"}, "sublinear must be True or False"),
        ({"max_words": 0}, "max_words must be"),
        ({"dropout": 1}, "dropout must be"),
        ({"hidden": ()}, "hidden must be"),
    ],
)
def test_a_setting_that_cannot_be_is_said(options, message):
    with pytest.raises(SettingError, match=message):
        make("hashed", **options)
