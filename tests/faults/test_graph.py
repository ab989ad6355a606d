"""What a taxonomy says to those who build or ask it wrongly."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hilap.errors import HilapError, TaxonomyError
from hilap.taxonomy import Taxonomy

CHAIN = {str(i): [str(i - 1)] if i else [] for i in range(100_000)}


def complaint(call) -> str:
    with pytest.raises(TaxonomyError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("parents", "sentence"),
    [
        ({"a": ["a"]}, "the taxonomy has a cycle: 'a' -> 'a'; remove one of these parents"),
        (
            {"top": [], "a": ["b", "top"], "b": ["c"], "c": ["a"], "below": ["a"]},
            "the taxonomy has a cycle: 'a' -> 'b' -> 'c' -> 'a'; remove one of these parents",
        ),
        ({"food": [], "bars": ["fod"]}, "parent 'fod' of label 'bars' is not in the taxonomy; did you mean 'food'?"),
        ({"a": ["xyz"]}, "parent 'xyz' of label 'a' is not in the taxonomy; add it as a label of its own"),
        ({"a": [], "1": [1]}, "parent 1 of label '1' is not in the taxonomy; did you mean '1'?"),
        ({"a": [["b"]]}, "parent ['b'] of label 'a' is not in the taxonomy; add it as a label of its own"),
        ({"food": [], "bars": "food"}, "the parents of 'bars' must be a list of labels, got the string 'food'"),
        ({"a": None}, "the parents of 'a' must be a list of labels, got None"),
        ({1: []}, "label ids must be strings, got 1"),
    ],
)
def test_parents_that_make_no_taxonomy(parents, sentence):
    assert complaint(lambda: Taxonomy.of(parents)) == sentence


def test_a_cycle_below_a_cycle_is_still_found_whole():
    graph = {"x": ["a"], "a": ["b"], "b": ["a"]}
    assert "'a' -> 'b' -> 'a'" in complaint(lambda: Taxonomy.of(graph))


def test_duplicate_ids():
    assert complaint(lambda: Taxonomy(["a", "b", "a"], [[], [], []])) == "label 'a' is given twice; ids must be unique"


def test_columns_of_different_length():
    said = complaint(lambda: Taxonomy(["a", "b"], [[]], ["A", "B", "C"]))
    assert said == "labels, parents and names must be of one length, got 2, 1 and 3"


def test_names_that_are_no_strings():
    assert complaint(lambda: Taxonomy(["a"], [[]], [None])) == "names must be strings, got None"  # type: ignore[list-item]


def test_a_name_for_an_unknown_label():
    said = complaint(lambda: Taxonomy.of({"a": []}, {"b": "B"}))
    assert said == "a name is given for 'b', which is not a label of the taxonomy"


@pytest.mark.parametrize("aliases", [{"b": "a"}, {"x": "y"}])
def test_aliases_that_are_labels_or_of_nothing(aliases):
    said = complaint(lambda: Taxonomy.of({"a": [], "b": []}, aliases=aliases))
    assert said.endswith("must be a new id for a label of the taxonomy")


def test_extending_by_a_label_that_is_there(tree):
    assert (
        complaint(lambda: tree.extended({"bars": []})) == "label 'bars' is in the taxonomy already and cannot be added"
    )


def test_extending_does_not_rename(tree):
    said = complaint(lambda: tree.extended({"wine": ["bars"]}, {"bars": "Pubs"}))
    assert said == "a name is given for 'bars', which is not among the labels to be added"


def test_extending_with_a_string_for_parents(tree):
    said = complaint(lambda: tree.extended({"wine": "bars"}))
    assert said == "the parents of 'wine' must be a list of labels, got the string 'bars'"


@pytest.mark.parametrize("ask", ["index", "name", "parents", "children", "ancestors", "descendants", "path", "level"])
def test_an_unknown_label_gets_the_nearest_known(tree, ask):
    said = complaint(lambda: getattr(tree, ask)("bear"))
    assert said == "label 'bear' is not in the taxonomy; did you mean 'beer'?"


def test_a_name_instead_of_an_id_gets_a_word_about_it(tree):
    said = complaint(lambda: tree.index("Quite another thing"))
    assert said.endswith("is not in the taxonomy; the taxonomy has 6 labels; ids, not names, are asked for")


def test_a_label_that_cannot_be_one(tree):
    assert complaint(lambda: tree.index(["bars"])).startswith("label ['bars'] is not in the taxonomy")


@pytest.mark.parametrize("ask", ["close", "most_specific", "is_consistent", "lowest_common_ancestors"])
def test_a_string_where_a_collection_is_needed(tree, ask):
    said = complaint(lambda: getattr(tree, ask)("bars"))
    assert said == "a collection of labels is needed, got the string 'bars'; write ['bars']"


@pytest.mark.parametrize("sets", ["bars", ["bars"], [["food"], "bars"]])
def test_encoding_strings_is_never_taken_for_letters(sets):
    letters = Taxonomy.of({letter: [] for letter in "bars"})
    said = complaint(lambda: letters.encode(sets))
    assert said == "a collection of labels is needed, got the string 'bars'; write ['bars']"


def test_encoding_an_unknown_label(tree):
    said = complaint(lambda: tree.encode([["bars"], ["bear"]]))
    assert said == "label 'bear' is not in the taxonomy; did you mean 'beer'?"


@pytest.mark.parametrize("sets", [[None], [[["bars"]]], None, [3]])
def test_encoding_what_are_no_sets(tree, sets):
    assert complaint(lambda: tree.encode(sets)).startswith("one collection of label ids for each document is needed (")


@pytest.mark.parametrize("columns", [[6], [-1]])
def test_indices_outside_the_taxonomy(tree, columns):
    said = complaint(lambda: tree.from_indices(np.array(columns), np.array([0, 1])))
    assert said == "label indices must be from 0 to 5, and starts must rise from 0 to their number"


@pytest.mark.parametrize("starts", [[], [0], [0, 2], [1, 1], [0, 1, 0, 1]])
def test_starts_that_fit_no_indices(tree, starts):
    said = complaint(lambda: tree.from_indices(np.array([0]), np.array(starts, dtype=int)))
    assert said.endswith("starts must rise from 0 to their number")


@pytest.mark.parametrize("ask", ["decode", "close_matrix", "most_specific_matrix", "inconsistent_rows"])
@pytest.mark.parametrize("shape", [(2, 5), (2, 7), (6,)])
def test_a_matrix_of_another_width(tree, ask, shape):
    said = complaint(lambda: getattr(tree, ask)(np.zeros(shape)))
    assert said == f"an indicator matrix with 6 columns is needed, one a label, got shape {shape}"


@pytest.mark.parametrize("matrix", [[["a", "b"]], "text", None, [[1], [1, 2]]])
def test_what_is_no_matrix(tree, matrix):
    assert complaint(lambda: tree.decode(matrix)).startswith("an indicator matrix with 6 columns is needed")


@pytest.mark.parametrize(
    "value", [None, [], {}, {"format": 2, "labels": []}, {"format": 1, "labels": "a"}, {"format": 1}]
)
def test_json_that_is_no_taxonomy(value):
    said = complaint(lambda: Taxonomy.from_json(value))
    assert said == "this is no taxonomy as hilap writes it: an object with format 1 and labels is needed"


@pytest.mark.parametrize(
    "record",
    [
        {"label": "a", "name": "A"},
        {"label": "a", "parents": []},
        {"name": "A", "parents": []},
        {"label": 1, "name": "A", "parents": []},
        {"label": "a", "name": "A", "parents": "a"},
        {"label": "a", "name": "A", "parents": [1]},
        ["a"],
        None,
    ],
)
def test_json_with_a_label_that_lacks_something(record):
    good = {"label": "x", "name": "X", "parents": []}
    said = complaint(lambda: Taxonomy.from_json({"format": 1, "labels": [good, record]}))
    assert said == f"label 2 of this taxonomy lacks label, name or parents, got {record!r}"


@pytest.mark.parametrize("aliases", [["a"], {"x": 1}, None])
def test_json_with_bad_aliases(aliases):
    said = complaint(lambda: Taxonomy.from_json({"format": 1, "labels": [], "aliases": aliases}))
    assert said == f"aliases must be an object of ids, got {aliases!r}"


def test_a_taxonomy_too_deep_to_close_is_built_in_no_time_and_says_so_at_once():
    began = time.perf_counter()
    taxonomy = Taxonomy.of(CHAIN)
    assert taxonomy.depth == 100_000
    said = complaint(lambda: taxonomy.closure)
    assert said == (
        "the taxonomy is too deep to list all ancestors: 100,000 labels on 100,000 levels; cut it, or read fewer levels"
    )
    assert time.perf_counter() - began < 10  # 0.3 s on an ordinary day; it once was 15


def test_a_closure_that_turns_out_too_large_says_so_too(dag, monkeypatch):
    monkeypatch.setattr("hilap.taxonomy.graph.MOST_CLOSURE_ENTRIES", 12)  # the levels add up to 11, the closure has 13
    monkeypatch.setattr("hilap.taxonomy.graph._SQUARING_LEVELS", 0)
    assert complaint(lambda: dag.closure).startswith("the taxonomy is too deep to list all ancestors: 5 labels")


def test_every_taxonomy_error_is_a_value_error_and_ours():
    assert issubclass(TaxonomyError, HilapError)
    assert issubclass(TaxonomyError, ValueError)
