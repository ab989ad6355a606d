"""What holds for every taxonomy and every set of labels."""

from __future__ import annotations

import io
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilap.taxonomy import Taxonomy
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.draw import svg, tree
from hilap.taxonomy.lint import errors_of, lint
from hilap.taxonomy.statistics import statistics

WORDS = st.text(min_size=1, max_size=8)


@st.composite
def taxonomies(draw, max_labels: int = 10, min_labels: int = 0) -> Taxonomy:
    """Any tree or DAG: parents are drawn among the labels made before, then the labels are shuffled."""
    labels = draw(st.lists(WORDS, unique=True, min_size=min_labels, max_size=max_labels))
    parents = {
        label: draw(st.lists(st.sampled_from(labels[:i]), unique=True, max_size=3)) if i else []
        for i, label in enumerate(labels)
    }
    names = {label: draw(st.text(max_size=6)) for label in labels}
    definitions = {label: draw(st.text(max_size=6)) for label in labels}
    order = draw(st.permutations(labels))
    return Taxonomy.of({label: parents[label] for label in order}, names, definitions=definitions)


@st.composite
def with_sets(draw, sets: int = 1):
    """A taxonomy and some sets of its labels."""
    taxonomy = draw(taxonomies(min_labels=1))
    some = st.sets(st.sampled_from(taxonomy.labels))
    return (taxonomy, *(draw(some) for _ in range(sets)))


def parents_of(taxonomy: Taxonomy) -> dict[str, tuple[str, ...]]:
    return {label: taxonomy.parents(label) for label in taxonomy}


def names_of(taxonomy: Taxonomy) -> dict[str, str]:
    return dict(zip(taxonomy.labels, taxonomy.names, strict=True))


def definitions_of(taxonomy: Taxonomy) -> dict[str, str]:
    return dict(zip(taxonomy.labels, taxonomy.definitions, strict=True))


@given(with_sets())
def test_closing_twice_is_closing_once(pair):
    taxonomy, labels = pair
    once = taxonomy.close(labels)
    assert taxonomy.close(once) == once
    assert set(once) >= labels
    assert taxonomy.is_consistent(once)


@given(with_sets(sets=2))
def test_closing_more_gives_more(triple):
    taxonomy, some, others = triple
    assert set(taxonomy.close(some)) <= set(taxonomy.close(some | others))
    assert set(taxonomy.close(some | others)) == {*taxonomy.close(some), *taxonomy.close(others)}


@given(with_sets())
def test_the_most_specific_labels_tell_the_whole_closed_set(pair):
    taxonomy, labels = pair
    lowest = taxonomy.most_specific(labels)
    assert set(lowest) <= labels
    assert taxonomy.close(lowest) == taxonomy.close(labels)
    assert taxonomy.most_specific(taxonomy.close(labels)) == lowest


@given(with_sets(sets=3))
def test_matrices_say_what_sets_say(quadruple):
    taxonomy, *sets = quadruple
    matrix = taxonomy.encode(sets)
    assert [set(row) for row in taxonomy.decode(matrix)] == sets
    assert [set(row) for row in taxonomy.decode(taxonomy.close_matrix(matrix))] == [
        set(taxonomy.close(s)) for s in sets
    ]
    assert [set(row) for row in taxonomy.decode(taxonomy.most_specific_matrix(matrix))] == [
        set(taxonomy.most_specific(s)) for s in sets
    ]
    assert (~taxonomy.inconsistent_rows(matrix)).tolist() == [taxonomy.is_consistent(s) for s in sets]


@given(with_sets())
def test_common_ancestors_are_above_all(pair):
    taxonomy, labels = pair
    for found in taxonomy.lowest_common_ancestors(labels):
        assert all(found in taxonomy.close([label]) for label in labels)


@given(taxonomies())
def test_ancestors_and_descendants_mirror_each_other(taxonomy):
    for label in taxonomy:
        for up in taxonomy.ancestors(label):
            assert label in taxonomy.descendants(up)
        assert taxonomy.path(label)[-1] == label
        assert set(taxonomy.path(label)) <= set(taxonomy.close([label]))


@given(taxonomies())
def test_json_and_back_is_the_same_taxonomy(taxonomy):
    again = Taxonomy.from_json(json.loads(json.dumps(taxonomy.to_json())))
    assert again == taxonomy
    assert hash(again) == hash(taxonomy)
    assert again.fingerprint == taxonomy.fingerprint


@given(taxonomies(), st.randoms(use_true_random=False))
def test_the_fingerprint_does_not_know_the_order(taxonomy, chance: random.Random):
    order = list(taxonomy.labels)
    chance.shuffle(order)
    above = {label: taxonomy.parents(label)[::-1] for label in order}
    other = Taxonomy.of(above, names_of(taxonomy), definitions=definitions_of(taxonomy))
    assert other.fingerprint == taxonomy.fingerprint
    assert other.canonical() == taxonomy.canonical()
    assert (other == taxonomy) == (list(taxonomy.labels) == order)


@given(taxonomies(min_labels=1), st.data())
def test_the_fingerprint_knows_every_name_definition_edge_label_and_alias(taxonomy, data):
    label = data.draw(st.sampled_from(taxonomy.labels))
    parents, names, definitions = parents_of(taxonomy), names_of(taxonomy), definitions_of(taxonomy)
    new = "".join(taxonomy.labels) + "!"
    others = [
        Taxonomy.of(parents, {**names, label: names[label] + "!"}, definitions=definitions),
        Taxonomy.of(parents, names, definitions={**definitions, label: definitions[label] + "!"}),
        Taxonomy.of({**parents, new: []}, names, definitions=definitions),
        Taxonomy.of({**parents, new: [label]}, names, definitions=definitions),
        Taxonomy.of(parents, names, aliases={new: label}, definitions=definitions),
    ]
    if parents[label]:
        others.append(Taxonomy.of({**parents, label: parents[label][1:]}, names, definitions=definitions))
    assert len({taxonomy.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)
    assert all(other != taxonomy for other in others)


@given(taxonomies(min_labels=1), st.data())
def test_extending_keeps_every_index(taxonomy, data):
    new = "".join(taxonomy.labels) + "!"
    below = data.draw(st.lists(st.sampled_from(taxonomy.labels), unique=True, max_size=2))
    longer = taxonomy.extended({new: below}, {new: "New"}, {new: "What is new."})
    assert longer.labels == (*taxonomy.labels, new)
    assert longer.names == (*taxonomy.names, "New")
    assert longer.definitions == (*taxonomy.definitions, "What is new.")
    assert {**parents_of(taxonomy), new: longer.parents(new)} == parents_of(longer)
    assert set(longer.parents(new)) == set(below)


def drafts_of(taxonomy: Taxonomy) -> Draft:
    entries = [
        Entry(x, taxonomy.name(x), taxonomy.parents(x), i + 1, taxonomy.definition(x)) for i, x in enumerate(taxonomy)
    ]
    return Draft("file", "jsonl", entries)


@given(taxonomies(min_labels=1))
def test_what_can_be_built_has_no_errors_and_builds_the_same(taxonomy):
    draft = drafts_of(taxonomy)
    assert errors_of(draft) == []
    assert not any(finding.severity == "error" for finding in lint(draft))
    assert draft.build() == taxonomy


@given(taxonomies(min_labels=1))
def test_redundant_edges_are_those_that_can_go_without_changing_any_ancestor(taxonomy):
    found = {f.labels[:2] for f in lint(drafts_of(taxonomy)) if f.code == "redundant-edge"}
    parents = parents_of(taxonomy)
    expected = set()
    for label in taxonomy:
        for up in parents[label]:
            without = Taxonomy.of({**parents, label: [p for p in parents[label] if p != up]})
            if up in without.ancestors(label):
                expected.add((label, up))
    assert found == expected


ENTRIES = st.builds(
    Entry,
    st.sampled_from("abcdAB "),
    st.sampled_from(["x", "X", "y"]),
    st.lists(st.sampled_from("abcde"), max_size=3).map(tuple),
    st.integers(0, 9),
)


@given(st.lists(ENTRIES, max_size=8))
def test_the_linter_finds_an_error_exactly_where_no_taxonomy_can_be_built(entries):
    draft = Draft("file", "jsonl", entries)
    found = lint(draft)
    severities = [("error", "warning", "note").index(f.severity) for f in found]
    assert severities == sorted(severities)
    assert [f for f in found if f.severity == "error"] == errors_of(draft)
    try:
        Taxonomy([e.label for e in entries], [e.parents for e in entries])
        is_sound = bool(entries)
    except ValueError:
        is_sound = False
    assert is_sound == (not errors_of(draft))


@given(taxonomies(), st.integers(1, 3), st.integers(1, 3))
def test_any_taxonomy_can_be_drawn(taxonomy, max_depth, max_children):
    import xml.etree.ElementTree as ET

    from rich.console import Console

    picture = svg(taxonomy, max_depth=max_depth, max_children=max_children, title="".join(taxonomy.names))
    ET.fromstring(picture.encode("utf-8"))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(tree(taxonomy, max_depth=max_depth, max_children=max_children))
    console.export_text().encode("utf-8")


@given(taxonomies())
def test_figures_add_up(taxonomy):
    figures = statistics(taxonomy)
    assert sum(figures.labels_per_level) == figures.labels == len(taxonomy)
    assert len(figures.labels_per_level) == figures.levels == taxonomy.depth
    assert figures.closure_size == sum(len(taxonomy.close([label])) for label in taxonomy)
    assert figures.several_parents == sum(len(taxonomy.parents(label)) > 1 for label in taxonomy)
    inner = [len(taxonomy.children(label)) for label in taxonomy if taxonomy.children(label)]
    assert figures.most_children == max(inner, default=0)
    assert figures.mean_children == pytest.approx(sum(inner) / len(inner) if inner else 0)
    json.dumps(figures.to_json())
