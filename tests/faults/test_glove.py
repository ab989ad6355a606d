"""Word vectors in GloVe's text format: what is read, and what is said about files that are something else."""

from __future__ import annotations

import gzip
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap.corpus.examples import Examples
from hilap.encoders import make, restore
from hilap.encoders.glove import read_vectors
from hilap.errors import CorpusError, HilapError, SettingError
from hilap.taxonomy import Taxonomy

GOOD = "the 0.1 -0.2 3e-1\nbeer 1 2 3\n. 0 0 0\nrum 4 5 6\nbeer 7 8 9\n"
EXAMPLES = Examples.of(Taxonomy.of({"a": []}), [[], []], texts=["the beer the stranger", "beer and rum"])


def written(folder, text, name="vectors.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_only_words_that_are_wanted_are_read_and_the_first_of_two_counts(tmp_path):
    places, vectors = read_vectors(written(tmp_path, GOOD), ["rum", "stranger", "beer"], 3)
    assert places.tolist() == [0, 2]
    assert vectors.tolist() == [[4, 5, 6], [1, 2, 3]]
    assert vectors.dtype == np.float32


@pytest.mark.parametrize(
    "text",
    [
        "5 3\n" + GOOD,  # as word2vec writes it
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", " \n"),
        GOOD + "beer garden 1 2 3\nrum and coke 1 2 3\n",  # words of several words, as GloVe's largest file has them
        GOOD + "stranger 1 2\nother x y z\n",  # not wanted, not looked at
        gzip.compress(GOOD.encode(), mtime=0),
    ],
)
def test_other_ways_to_write_the_same(tmp_path, text):
    places, vectors = read_vectors(written(tmp_path, text), ["rum", "beer"], 3)
    assert places.tolist() == [0, 1]
    assert vectors.tolist() == [[4, 5, 6], [1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            GOOD.replace("1 2 3", "1 2"),
            CorpusError,
            r"vectors\.txt:2: the vector of 'beer' has 2 numbers, needed are 3",
        ),
        (
            GOOD.replace("1 2 3", "1 2 3 4"),
            CorpusError,
            r"vectors\.txt:2: the vector of 'beer' has 4 numbers, needed are",
        ),
        (
            GOOD.replace("1 2 3", "1 two 3"),
            CorpusError,
            r"vectors\.txt:2: the vector of 'beer' holds something that is no",
        ),
        (GOOD.replace("1 2 3", "1 nan 3"), CorpusError, r"vectors\.txt:2: .* or an infinite one; the file is damaged"),
        (GOOD.replace("1 2 3", "1 1e99 3"), CorpusError, r"vectors\.txt:2: .* or an infinite one"),
        (GOOD.replace("1 2 3", "1  3"), CorpusError, r"vectors\.txt:2: .* no number"),
        (
            "the 1 2\nbeer 1 2\n",
            SettingError,
            r"dimensions must be the width of the vectors: .*vectors\.txt has 2 numbers a",
        ),
        (GOOD.replace(" ", "\t"), CorpusError, r"vectors\.txt: its columns are parted by tabs, .* by single blanks"),
        ("5\t3\n" + GOOD, CorpusError, r"vectors\.txt: its columns are parted by tabs"),
        ("the\t1 2 3\n", CorpusError, r"vectors\.txt: its columns are parted by tabs"),
        ("", CorpusError, r"vectors\.txt: none of the 2 words of the training texts has a vector in this file"),
        ("no vectors here\nat all", CorpusError, r"vectors\.txt: none of the 2 words .* is it in GloVe's text format"),
        (b"the 1 2 3\nbeer \xff 2 3\n", CorpusError, r"vectors\.txt:2: not valid UTF-8"),
        ("the " + "1 " * 600_000, CorpusError, r"vectors\.txt:1: the line is longer than"),
        (gzip.compress(GOOD.encode(), mtime=0)[:-9], CorpusError, r"vectors\.txt: the compressed file ends too early"),
    ],
)
def test_a_file_that_is_something_else_is_said_with_its_line(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        read_vectors(written(tmp_path, text), ["rum", "beer"], 3)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(CorpusError, match=r"nothing\.txt: there is no such file; check the path"):
        make("textcnn", vectors=tmp_path / "nothing.txt").fit(EXAMPLES, generator=torch.Generator())


@given(content=st.binary(max_size=80) | st.text("beru m0123.-enaif\n\t", max_size=80).map(str.encode))
@settings(max_examples=150)
def test_arbitrary_bytes_give_vectors_or_our_own_error(tmp_path_factory, content):
    path = written(tmp_path_factory.getbasetemp(), content, "fuzzed")
    with suppress(HilapError):
        places, vectors = read_vectors(path, ["rum", "beer"], 2)
        assert vectors.shape == (len(places), 2)
        assert np.isfinite(vectors).all()


# -- in encoders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["textcnn", "han"])
@pytest.mark.parametrize("tuned", [True, False])
def test_known_words_start_with_their_vectors_and_loading_needs_no_file(tmp_path, name, tuned):
    path = written(tmp_path, GOOD)
    encoder = make(name, preset="light", dimensions=3, vectors=path, tune_vectors=tuned)
    encoder.fit(EXAMPLES, generator=torch.Generator().manual_seed(0))
    assert encoder.words == ("beer", "the", "and", "rum", "stranger")
    table = encoder.word_vectors.weight.detach()
    assert table[0].tolist() == [0, 0, 0]
    assert table[2].tolist() == [1, 2, 3]
    torch.testing.assert_close(table[3], torch.tensor([0.1, -0.2, 0.3]))
    assert table[[1, 4, 6]].abs().max() <= 0.25  # those without a vector
    assert table[[1, 4, 6]].abs().min() > 0
    path.unlink()
    again = restore(name, encoder.settings(), encoder.learned())
    again.load_state_dict(encoder.state_dict())
    batch = encoder.prepare(EXAMPLES).batch([0, 1])
    with torch.no_grad():
        assert torch.equal(again.eval()(batch), encoder.eval()(batch))


@pytest.mark.parametrize("name", ["textcnn", "han"])
def test_frozen_vectors_stay_and_tuned_ones_move(tmp_path, name):
    for tuned in (True, False):
        encoder = make(name, preset="light", dimensions=3, vectors=written(tmp_path, GOOD), tune_vectors=tuned)
        encoder.fit(EXAMPLES, generator=torch.Generator().manual_seed(0))
        before = encoder.word_vectors.weight.detach().clone()
        optimizer = torch.optim.Adam(encoder.parameters(), lr=0.1)
        encoder.eval()(encoder.prepare(EXAMPLES).batch([0, 1])).sum().backward()
        optimizer.step()
        assert torch.equal(encoder.word_vectors.weight[0], before[0])  # nothing stays nothing
        assert torch.equal(encoder.word_vectors.weight, before) != tuned


def test_a_width_that_is_not_the_files_is_said(tmp_path):
    encoder = make("han", vectors=str(written(tmp_path, GOOD)))
    with pytest.raises(SettingError, match=r"vectors\.txt has 3 numbers a word, got 50"):
        encoder.fit(EXAMPLES, generator=torch.Generator())


@pytest.mark.data
def test_the_real_file_is_read_in_seconds(data_folder):
    places, vectors = read_vectors(
        data_folder / "vectors" / "glove.6B.50d.top100k.txt.gz", ["the", "beer", "qqqqzzzz", "law"], 50
    )
    assert places.tolist() == [0, 1, 3]
    assert vectors.shape == (3, 50)
    np.testing.assert_allclose(vectors[0][:2], [0.418, 0.24968], rtol=1e-5)


def test_a_file_that_has_changed_is_read_again(tmp_path):
    from hilap.encoders.glove import read_vectors

    path = tmp_path / "vectors.txt"
    path.write_text("beer 1 2\n")
    places, vectors = read_vectors(path, ("rum", "beer"), 2)
    vectors += 5  # one's own, to do with as one likes
    assert read_vectors(path, ("rum", "beer"), 2)[1].tolist() == [[1, 2]]
    path.write_text("beer 3 4\nrum 5 6\n")
    places, vectors = read_vectors(path, ("rum", "beer"), 2)
    assert places.tolist() == [0, 1]
    assert vectors.tolist() == [[5, 6], [3, 4]]
