"""How labels are understood: ids, aliases, names, paths; and what happens to those that are not."""

from __future__ import annotations

import numpy as np
import pytest

from hilap.corpus import Corpus, read
from hilap.corpus.labels import BadLabelsError, Resolver, UnresolvedError, grow
from hilap.errors import CorpusError
from hilap.taxonomy import Taxonomy


@pytest.fixture
def twins() -> Taxonomy:
    """Two labels called Other, below Food and below Shops; `fd` is another id of food."""
    return Taxonomy.of(
        {"food": [], "shops": [], "o1": ["food"], "o2": ["shops"], "a/b": ["food"]},
        {"food": "Food", "shops": "Shops", "o1": "Other", "o2": "Other", "a/b": "Either"},
        {"fd": "food"},
    )


def one(taxonomy: Taxonomy, given: object, **options: object) -> str:
    return taxonomy.labels[Resolver(taxonomy, **options).indices([given])[0]]


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ("food", "food"),  # an id
        ("fd", "food"),  # an alias
        ("Food", "food"),  # a name
        ("Food > Other", "o1"),  # a path of names
        ("shops > o2", "o2"),  # a path of ids
        ("fd > Other", "o1"),  # a path that starts with an alias
        ("Food :: Other", "o1"),
        ("Shops/Other", "o2"),
        ("/Shops/Other", "o2"),
        ("a/b", "a/b"),  # an id first, though it looks like a path
        (["Food", "Other"], "o1"),
        (("Food", "Other"), "o1"),
        (["Food"], "food"),
        ({"label": "Food", "probability": 0.3}, "food"),
        ({"label": ["Food", "Other"]}, "o1"),
    ],
)
def test_a_label_may_be_an_id_an_alias_a_name_or_a_path(twins, given, label):
    assert one(twins, given) == label


@pytest.mark.parametrize(
    ("given", "label"), [(7, "7"), (7.5, "7.5"), (np.int64(7), "7"), (np.float32(7.5), "7.5"), (np.str_("7"), "7")]
)
def test_a_number_is_the_label_of_its_digits(given, label):
    assert one(Taxonomy.of({"7": [], "7.5": []}), given) == label


def test_an_id_goes_before_a_name():
    taxonomy = Taxonomy.of({"x": [], "y": []}, {"x": "y", "y": "x"})
    assert one(taxonomy, "x") == "x"


def test_a_separator_that_is_given_is_the_only_one(twins):
    assert one(twins, "Food|Other", path_separator="|") == "o1"
    with pytest.raises(UnresolvedError, match="'Food > Other' is not in the taxonomy"):
        one(twins, "Food > Other", path_separator="|")


@pytest.mark.parametrize("path", ["Other > Food", "Food > Shops", "Other > Other", "Food > Other > Food"])
def test_a_path_follows_edges_from_the_top(twins, path):
    with pytest.raises(UnresolvedError, match="is not in the taxonomy"):
        one(twins, path)


def test_a_name_of_two_labels_is_an_error_with_their_ids(twins):
    with pytest.raises(UnresolvedError, match="label 'Other' is ambiguous; give one of the ids 'o1', 'o2'"):
        one(twins, "Other")


def test_a_path_in_a_dag_leads_to_one_label_whichever_way(dag):
    assert one(dag, "a > b > d") == one(dag, "a > c > d") == "d"
    assert one(dag, "a > e") == one(dag, "a > c > d > e") == "e"


@pytest.mark.parametrize(
    "given", [None, True, "", [], {"name": "Food"}, float("nan"), ["Food", None], [[]], b"x", 10**400]
)
def test_what_cannot_be_a_label_makes_a_bad_line(twins, given):
    with pytest.raises(BadLabelsError, match="label"):
        one(twins, given)


def test_true_is_not_the_number_one():
    resolver = Resolver(Taxonomy.of({"1": []}))
    assert resolver.indices([1, "1"]) == [0, 0]
    with pytest.raises(BadLabelsError):
        resolver.indices([True])


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("Beer Bar", "did you mean 'Beer Bars'?"),
        ("BEER", "did you mean 'beer'?"),
        ("Restaurants > Bar", "did you mean 'Restaurants > Bars'?"),
        ("zzzzzz", "add it to the taxonomy, or read with unknown='drop'"),
        ("Restaurants > zzzzzz", "add it to the taxonomy, or read with unknown='drop'"),
    ],
)
def test_an_unknown_label_gets_a_hint(tree, given, hint):
    with pytest.raises(UnresolvedError) as caught:
        one(tree, given)
    assert str(caught.value) == f"label {given!r} is not in the taxonomy; {hint}"


# -- adding ----------------------------------------------------------------------------------------------------------


def shape(taxonomy: Taxonomy) -> dict[str, tuple[str, ...]]:
    return {label: taxonomy.parents(label) for label in taxonomy}


def test_unknown_paths_grow_below_what_is_there_and_others_at_the_top(twins):
    grown = grow(twins, ["Food > Thai > Curry", "fd > Thai", "Zoos", ("Shops", "Books")])
    new = {k: v for k, v in shape(grown).items() if k not in twins}
    assert new == {
        "food > Thai": ("food",),
        "food > Thai > Curry": ("food > Thai",),
        "shops > Books": ("shops",),
        "Zoos": (),
    }
    assert grown.name("food > Thai > Curry") == "Curry"
    assert grown.labels[: len(twins)] == twins.labels


def test_what_was_added_is_found_again_in_every_way(twins):
    grown = grow(twins, ["Food/Thai"])
    assert {one(grown, g) for g in ("Food/Thai", "food > Thai", "Thai", ("fd", "Thai"))} == {"food/Thai"}


def test_a_plain_label_is_the_first_step_of_a_path_but_no_later_one():
    grown = grow(Taxonomy.of({}), ["B", "A > B", "A"])
    assert shape(grown) == {"A": (), "A > B": ("A",), "B": ()}
    assert (one(grown, "B"), one(grown, "A > B")) == ("B", "A > B")


def test_adding_does_not_depend_on_the_order_of_plain_labels_and_paths():
    given = ["B", "A > B", "C", "A > C > D"]
    assert set(grow(Taxonomy.of({}), given)) == set(grow(Taxonomy.of({}), given[::-1]))


def test_a_path_that_does_not_start_at_the_top_cannot_be_added(tree):
    rows = [{"text": "x", "labels": ["bars > sports"]}]
    with pytest.raises(CorpusError) as caught:
        read(rows, tree, unknown="add")
    assert str(caught.value) == (
        "records: label 'bars > sports' cannot be added: id 'bars' is taken; it is at 'food > bars'; "
        "paths start at a top label"
    )


def test_a_path_through_an_ambiguous_step_cannot_be_added():
    taxonomy = Taxonomy.of({"a": [], "x": ["a"], "y": ["a"]}, {"x": "Same", "y": "Same"})
    with pytest.raises(UnresolvedError, match="step 'Same' may be any of 'x', 'y'"):
        grow(taxonomy, ["a > Same > New"])


def test_a_corpus_can_build_its_taxonomy_from_paths():
    rows = [{"text": "x", "labels": ["01/01/03", "02"]}, {"text": "y", "labels": ["01/02"]}]
    corpus = read(rows, None, unknown="add")
    assert shape(corpus.taxonomy) == {
        "01": (),
        "01/01": ("01",),
        "01/01/03": ("01/01",),
        "02": (),
        "01/02": ("01",),
    }
    assert [set(e.labels) for e in corpus] == [{"01", "01/01", "01/01/03", "02"}, {"01", "01/02"}]


def test_adding_leaves_the_given_taxonomy_as_it_is(tree):
    corpus = read([{"text": "x", "labels": ["new"]}], tree, unknown="add")
    assert "new" not in tree
    assert "new" in corpus.taxonomy
    assert next(iter(corpus)).labels == ("new",)


def test_an_iterator_cannot_be_read_twice_for_adding(tree):
    with pytest.raises(CorpusError, match="unknown='add' reads twice, and an iterator can be read once; give a list"):
        read(iter([{"text": "x", "labels": ["new"]}]), tree, unknown="add")


# -- dropping --------------------------------------------------------------------------------------------------------


def test_dropped_labels_are_counted_most_frequent_first(tree):
    rows = [
        {"text": "x", "labels": ["beer", "gone", "gone too", "gone too"]},
        {"text": "y", "labels": ["gone too"]},
        {"text": "z", "labels": ["shops", ["no", "path"]]},
    ]
    corpus = read(rows, tree, unknown="drop")
    assert [e.labels for e in corpus] == [("food", "bars", "beer"), (), ("shops",)]
    assert list(corpus.report.dropped_labels.items()) == [("gone too", 3), ("gone", 1), ("no > path", 1)]
    assert corpus.report.without_labels == 1


def test_dropped_labels_are_counted_once_more_in_every_reading(tree):
    corpus = read([{"text": "x", "labels": ["gone"]}], tree, unknown="drop")
    for _ in range(3):
        corpus.load()
        assert corpus.report.dropped_labels == {"gone": 1}


def test_a_corpus_in_memory_resolves_names_too(tree):
    assert next(iter(Corpus.of(["x"], [["Beer Bars"]], tree))).labels == ("food", "bars", "beer")
