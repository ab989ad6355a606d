"""Graphs of words against a literal construction, the layers against torch's own, and HR-DGCNN's coupling by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import hilap
from hilap.baselines.hr_dgcnn import HRDGCNN, RecursiveHead
from hilap.corpus import Examples
from hilap.encoders import WordGraph
from hilap.encoders.graphs import neighbourhoods
from hilap.errors import CorpusError, SettingError
from hilap.taxonomy import Taxonomy
from tests.contract.classifiers import TREE, texts

TEXT = "the cat sat on the mat and the cat saw a rat near the mat while the rat ran"
WORDS = TEXT.split()


def literal_grid(words: list[str], skip: set[str], window: int, nodes: int, size: int) -> list[list[str]]:
    """The grid as one would write it down from the article."""
    kept = [word for word in words if word not in skip]
    near: Counter = Counter()
    for i, one in enumerate(kept):
        for other in kept[i + 1 : i + window]:
            if one != other:
                near[one, other] += 1
                near[other, one] += 1
    different = list(dict.fromkeys(kept))
    company = {word: sum(near[word, other] for other in different) for word in different}
    count = Counter(kept)
    grid = []
    for first in sorted(different, key=lambda word: (-count[word], -company[word], different.index(word)))[:nodes]:
        row, at = [first], 0
        while at < len(row) and len(row) < size:
            here = row[at]
            at += 1
            others = [word for word in different if near[here, word] and word not in row]
            row += sorted(others, key=lambda word: (-near[here, word], different.index(word)))[: size - len(row)]
        grid.append(row)
    return grid


@pytest.mark.parametrize("window", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_grid_is_what_the_article_says(window, seed):
    rng = np.random.default_rng(seed)
    words = list(rng.permutation(WORDS * 2)) if seed else WORDS
    vocabulary = sorted({*words})
    skip = {"the", "a"}
    number = {word: i + 2 for i, word in enumerate(vocabulary)}
    tokens = np.array([number[word] for word in words])
    skipped = np.array([True, True, *(word in skip for word in vocabulary)])
    grids = np.zeros((1, 6, 4), dtype=np.int64)
    neighbourhoods(tokens, np.array([0, len(tokens)]), skipped, window, grids)
    names = {value: word for word, value in number.items()}
    found = [[names[value] for value in row if value] for row in grids[0] if row.any()]
    assert found == literal_grid(words, skip, window, 6, 4)


def encoder_of(**options) -> tuple[WordGraph, Examples]:
    examples = Examples.of(TREE, [[] for _ in range(3)], texts=[TEXT, "", "cat rat"])
    given = {"nodes": 20, "neighbours": 3, "maps": [5, 4], "span": 3, "hidden": [7], "dimensions": 6, **options}
    return WordGraph("light", **given).fit(examples, generator=torch.Generator().manual_seed(1)), examples


def test_the_layers_are_convolutions_and_pools():
    encoder, examples = encoder_of()
    encoder.eval()
    batch = encoder.prepare(examples).batch(np.arange(3))
    with torch.no_grad():
        found = encoder(batch)
        vectors = encoder.word_vectors.weight[batch]  # (B, N, g, D)
        first = encoder.filters[0].view(5, 1, 3, 6)
        maps = F.conv2d(vectors.flatten(0, 1).unsqueeze(1), first, encoder.filter_biases[0]).view(3, 20, 5).relu()
        maps = F.max_pool1d(maps.transpose(1, 2), 2)
        second = encoder.filters[1].view(4, 5, 3)
        maps = F.max_pool1d(F.conv1d(maps, second, encoder.filter_biases[1]).relu(), 2)
        expected = F.linear(maps.transpose(1, 2).flatten(1), encoder.layers[0], encoder.layer_biases[0]).relu()
    torch.testing.assert_close(found, expected)


def test_gradients_reach_every_parameter():
    encoder, examples = encoder_of()
    encoder.train()
    torch.manual_seed(0)
    encoder(encoder.prepare(examples).batch(np.arange(3))).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in encoder.parameters())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"maps": []}, "maps must be one or several whole numbers above 0"),
        ({"hidden": [0]}, "hidden must be one or several whole numbers above 0"),
        ({"nodes": 3}, "2 layers of filters over 3 rows leave nothing of 3 nodes"),
        ({"stop_words": "yes"}, "stop_words must be True or False"),
    ],
)
def test_bad_settings_are_named(options, says):
    with pytest.raises(SettingError, match=says):
        encoder_of(**options)


def test_function_words_are_no_nodes_unless_asked_for():
    for left_out in (True, False):
        encoder, examples = encoder_of(stop_words=left_out)
        grid = encoder.prepare(examples).batch([0])
        there = {encoder.words[number - 2] for number in grid.unique().tolist() if number >= 2}
        assert ("the" in there) != left_out


# -- HR-DGCNN ---------------------------------------------------------------------------------------------------------


def test_the_coupling_is_half_the_squared_distance_over_all_edges():
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["a", "b"]})
    head = RecursiveHead(2, taxonomy, 0.5)
    with torch.no_grad():
        head.output.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
    by_hand = ((1 + 4) + (0 + 1) + (1 + 1)) / 2  # a-b, a-c, b-c
    assert head.apart().item() == pytest.approx(by_hand)
    outputs, gold = torch.zeros(4, 3), torch.ones(4, 3)
    assert head.loss(outputs, gold).item() == pytest.approx(3 * np.log(2) + 0.5 * by_hand, rel=1e-6)


def made(**changes) -> HRDGCNN:
    options = {"preset": "light", "nodes": 12, "maps": [8, 8], "span": 2, "hidden": [16], "dropout": 0.0}
    given = {"encoder_options": options, "epochs": 25, "learning_rate": 0.01, "batch_size": 8}
    return HRDGCNN(TREE, **{**given, **changes})


def test_strong_coupling_brings_parents_and_children_together():
    X, y = texts()
    apart = [made(coupling=coupling).fit(X, y).network_.head.apart().item() for coupling in (0.0, 1.0)]
    assert apart[1] < apart[0] / 4


def test_it_learns_and_is_the_same_after_saving(tmp_path):
    X, y = texts()
    model = made(coupling=1e-4).fit(X, y, valid=(X, y))
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "model")
    opened = hilap.load(tmp_path / "model")
    assert np.array_equal(opened.predict_proba(X), model.predict_proba(X))
    alone = np.concatenate([model.predict_proba([text]) for text in X[:9]])
    assert np.array_equal(alone, model.predict_proba(X)[:9])


def test_features_have_no_words():
    with pytest.raises(CorpusError, match="the wordgraph encoder reads texts, but these documents have none"):
        made().fit(np.zeros((20, 3)), [["a"]] * 20)
