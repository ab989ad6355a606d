"""Statistics of a corpus, counted by hand and by brute force."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.corpus.source import Corpus
from hilap.corpus.statistics import combine, statistics
from hilap.errors import CorpusError
from hilap.taxonomy import Taxonomy


def random_examples(taxonomy: Taxonomy, n: int, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    sets = [rng.choice(taxonomy.labels, size=rng.integers(0, 4), replace=False).tolist() for _ in range(n)]
    return Examples.of(taxonomy, sets, texts=["word " * int(k) for k in rng.integers(0, 9, n)])


class Stream:
    """A corpus that is read three documents at a time, once."""

    def __init__(self, examples: Examples) -> None:
        self.taxonomy = examples.taxonomy
        self._examples = examples

    def batches(self) -> Iterator[Examples]:
        for start in range(0, len(self._examples), 3):
            yield self._examples.take(range(start, min(start + 3, len(self._examples))))


def test_every_figure_by_hand(tree: Taxonomy) -> None:
    sets = [["beer", "shops"], ["bars"], ["dominican"], []]
    found = statistics(Examples.of(tree, sets, texts=["two words", "one", "", "and three words"]))
    assert found.to_json() == {
        "documents": 4,
        "labels": 6,
        "structure": "tree",
        "levels": 3,
        "average_labels": (4 + 2 + 3 + 0) / 4,
        "most_labels": 4,
        "several_paths_share": 1 / 4,
        "inner_share": 1 / 4,
        "documents_without_labels": 1,
        "labels_without_documents": 0,
        "by_level": [
            {"level": 1, "labels": 2, "with_documents": 2},
            {"level": 2, "labels": 2, "with_documents": 2},
            {"level": 3, "labels": 2, "with_documents": 2},
        ],
        "average_words": 6 / 4,
    }


def test_a_dag_counts_one_label_below_two_parents_as_one_path(dag: Taxonomy) -> None:
    found = statistics(Examples.of(dag, [["e"], ["d"], ["b", "c"]]))
    assert found.structure == "DAG"
    assert found.on_several_paths == 1
    assert found.ending_at_inner == 2  # d has e below it; b and c have d
    assert found.most_labels == 5


def test_counts_equal_brute_force(dag: Taxonomy) -> None:
    examples = random_examples(dag, 200)
    found = statistics(examples)
    ends = [dag.most_specific(labels) for labels in examples.label_sets]
    assert found.on_several_paths == sum(len(end) > 1 for end in ends)
    assert found.ending_at_inner == sum(any(dag.children(label) for label in end) for end in ends)
    assert found.most_labels == max(map(len, examples.label_sets))
    assert found.average_labels == sum(map(len, examples.label_sets)) / 200
    assert found.average_words == sum(len(t.split()) for t in examples.texts or ()) / 200


def test_unused_labels_are_named(tree: Taxonomy) -> None:
    assert statistics(Examples.of(tree, [["caribbean"]])).labels_without_documents == (
        "bars",
        "beer",
        "dominican",
        "shops",
    )


def test_a_stream_gives_the_same_as_one_block(tree: Taxonomy) -> None:
    examples = random_examples(tree, 50)
    assert statistics(Stream(examples)) == statistics(examples)


def test_a_corpus_is_counted_as_it_is_read(tree: Taxonomy) -> None:
    examples = random_examples(tree, 50)
    corpus = Corpus.of(examples.texts, examples.label_sets, tree)
    assert statistics(corpus) == statistics(examples)


def test_parts_combined_give_the_same_as_the_whole(tree: Taxonomy) -> None:
    examples = random_examples(tree, 50)
    parts = [examples.take(range(7)), examples.take(range(7, 50))]
    assert combine(statistics(part) for part in parts) == statistics(examples)
    assert statistics(parts) == statistics(examples)


def test_an_empty_stream_has_the_taxonomys_figures(tree: Taxonomy) -> None:
    found = statistics(Stream(Examples.of(tree, [])))
    assert (found.documents, found.labels, found.average_labels, found.inner_share) == (0, 6, 0.0, 0.0)
    assert found.average_words is None


def test_missing_features_are_counted(tree: Taxonomy) -> None:
    features = np.array([[1, np.nan, 0, 2], [np.nan, np.nan, 1, 1]], dtype=np.float32)
    found = statistics(Examples.of(tree, [[], []], features=features))
    assert (found.features, found.missing_share) == (4, 3 / 8)
    sparsely = Examples.of(tree, [[], []], features=sparse.csr_array(features))
    assert statistics(sparsely).missing_share == 3 / 8


def test_the_table_says_the_same_as_the_json(tree: Taxonomy) -> None:
    rows = dict(statistics(Examples.of(tree, [["beer", "shops"], ["bars"]], features=np.zeros((2, 3)))).rows())
    assert rows["documents"] == "2"
    assert rows["labels"] == "6 (tree, 3 levels)"
    assert rows["labels per document"] == "3.00 on average, 4 at most"
    assert rows["on several paths"] == "50% of documents"
    assert rows["labels without documents"] == "2"
    assert rows["labels with documents, by level"] == "2 of 2, 1 of 2, 1 of 2"
    assert rows["features"] == "3, 0.0% of values missing"


def test_json_survives_a_round_trip(tree: Taxonomy) -> None:
    value = statistics(random_examples(tree, 9)).to_json()
    assert json.loads(json.dumps(value)) == value


def test_what_does_not_belong_together_is_not_added_up(tree: Taxonomy, dag: Taxonomy) -> None:
    with pytest.raises(CorpusError, match="different taxonomies cannot be counted together"):
        statistics([Examples.of(tree, [[]]), Examples.of(dag, [[]])])
    with pytest.raises(CorpusError, match="parts with 2 and 3 features cannot be counted together"):
        statistics([Examples.of(tree, [[]], features=np.zeros((1, k))) for k in (2, 3)])
    with pytest.raises(CorpusError, match="there is nothing to count"):
        statistics([])
