"""Every set operation of a taxonomy against plain Python sets: on all 64 graphs over four labels, all their subsets."""

from __future__ import annotations

from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy import sparse

from hilap.taxonomy import Taxonomy

LETTERS = "dbca"  # stored in an order of their own, so that parents stand behind their children too


def every_graph() -> list[dict[str, list[str]]]:
    """All DAGs over a, b, c, d where parents come earlier in the alphabet."""
    pairs = list(combinations("abcd", 2))
    graphs = []
    for kept in product([False, True], repeat=len(pairs)):
        edges = [pair for pair, keep in zip(pairs, kept, strict=True) if keep]
        graphs.append({label: [up for up, down in edges if down == label] for label in LETTERS})
    return graphs


GRAPHS = every_graph()
SUBSETS = list(chain.from_iterable(combinations("abcd", size) for size in range(5)))


def above(parents: dict[str, list[str]], label: str) -> set[str]:
    return set(parents[label]).union(*(above(parents, parent) for parent in parents[label]))


def closed(parents: dict[str, list[str]], labels) -> set[str]:
    return set(labels).union(*(above(parents, label) for label in labels))


def lowest(parents: dict[str, list[str]], labels) -> set[str]:
    return {x for x in labels if not any(x in above(parents, other) for other in labels)}


def ways(parents: dict[str, list[str]], label: str) -> list[list[str]]:
    """All ways from the root down to a label."""
    if not parents[label]:
        return [[label]]
    return [[*way, label] for parent in parents[label] for way in ways(parents, parent)]


def root_first(parents: dict[str, list[str]], labels) -> tuple[str, ...]:
    return tuple(sorted(labels, key=lambda x: (max(map(len, ways(parents, x))), LETTERS.index(x))))


@pytest.fixture(scope="module")
def pairs() -> list[tuple[dict[str, list[str]], Taxonomy]]:
    return [(graph, Taxonomy.of(graph)) for graph in GRAPHS]


def test_parents_and_children_are_those_that_were_given(pairs):
    for graph, taxonomy in pairs:
        for label in LETTERS:
            assert set(taxonomy.parents(label)) == set(graph[label])
            assert set(taxonomy.children(label)) == {x for x in LETTERS if label in graph[x]}
        assert set(taxonomy.children()) == set(taxonomy.top_labels) == {x for x in LETTERS if not graph[x]}
        assert set(taxonomy.leaves) == {x for x in LETTERS if not any(x in up for up in graph.values())}
        assert taxonomy.n_edges == sum(map(len, graph.values()))
        assert taxonomy.is_tree == all(len(up) <= 1 for up in graph.values())


def test_ancestors_and_descendants(pairs):
    for graph, taxonomy in pairs:
        for label in LETTERS:
            assert taxonomy.ancestors(label) == root_first(graph, above(graph, label))
            below = {x for x in LETTERS if label in above(graph, x)}
            assert taxonomy.descendants(label) == root_first(graph, below)


def test_levels_are_the_shortest_and_the_longest_ways(pairs):
    for graph, taxonomy in pairs:
        for i, label in enumerate(LETTERS):
            lengths = [len(way) for way in ways(graph, label)]
            assert taxonomy.level(label) == taxonomy.levels[i] == min(lengths)
            assert taxonomy.longest_levels[i] == max(lengths)
        assert taxonomy.depth == max(len(way) for label in LETTERS for way in ways(graph, label))


def test_order_has_parents_before_children(pairs):
    for graph, taxonomy in pairs:
        place = {LETTERS[i]: n for n, i in enumerate(taxonomy.order)}
        assert sorted(place.values()) == [0, 1, 2, 3]
        assert all(place[up] < place[label] for label in LETTERS for up in graph[label])


def test_path_goes_through_the_first_parent(pairs):
    for graph, taxonomy in pairs:
        for label in LETTERS:
            expected = [label]
            while graph[expected[0]]:
                expected.insert(0, min(graph[expected[0]], key=LETTERS.index))
            assert taxonomy.path(label) == tuple(expected)


def test_close(pairs):
    for graph, taxonomy in pairs:
        for labels in SUBSETS:
            assert taxonomy.close(labels) == root_first(graph, closed(graph, labels))


def test_most_specific(pairs):
    for graph, taxonomy in pairs:
        for labels in SUBSETS:
            assert taxonomy.most_specific(labels) == root_first(graph, lowest(graph, labels))


def test_is_consistent(pairs):
    for graph, taxonomy in pairs:
        for labels in SUBSETS:
            every_parent_is_there = all(up in labels for label in labels for up in graph[label])
            assert taxonomy.is_consistent(labels) == every_parent_is_there


def test_lowest_common_ancestors(pairs):
    for graph, taxonomy in pairs:
        assert taxonomy.lowest_common_ancestors([]) == ()
        for labels in SUBSETS[1:]:
            common = set.intersection(*(closed(graph, [label]) for label in labels))
            assert taxonomy.lowest_common_ancestors(labels) == root_first(graph, lowest(graph, common))


def test_encode_puts_a_one_at_every_label(pairs):
    for _, taxonomy in pairs[:3]:
        matrix = taxonomy.encode(SUBSETS)
        assert matrix.dtype == np.int32
        assert matrix.toarray().tolist() == [[int(x in labels) for x in LETTERS] for labels in SUBSETS]


def test_encode_and_close_at_once(pairs):
    for graph, taxonomy in pairs:
        dense = taxonomy.encode(SUBSETS, close=True).toarray()
        assert dense.tolist() == [[int(x in closed(graph, labels)) for x in LETTERS] for labels in SUBSETS]


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, np.asarray, np.ndarray.tolist])
def test_matrices_of_every_form_are_closed_reduced_and_judged_like_sets(pairs, form):
    dense = np.array([[int(x in labels) for x in LETTERS] for labels in SUBSETS])
    for graph, taxonomy in pairs[::7]:
        matrix = form(dense)
        assert [set(row) for row in taxonomy.decode(taxonomy.close_matrix(matrix))] == [
            closed(graph, labels) for labels in SUBSETS
        ]
        assert [set(row) for row in taxonomy.decode(taxonomy.most_specific_matrix(matrix))] == [
            lowest(graph, labels) for labels in SUBSETS
        ]
        assert taxonomy.inconsistent_rows(matrix).tolist() == [
            closed(graph, labels) != set(labels) for labels in SUBSETS
        ]


def test_closed_and_reduced_matrices_hold_nothing_but_ones(pairs):
    dense = np.array([[int(x in labels) for x in LETTERS] for labels in SUBSETS])
    for _, taxonomy in pairs[::9]:
        for matrix in (taxonomy.close_matrix(dense), taxonomy.most_specific_matrix(dense)):
            assert matrix.dtype == np.int32
            assert (matrix.data == 1).all()
            assert matrix.has_sorted_indices


def test_explicit_zeros_and_repeated_entries_of_a_matrix_change_nothing():
    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": []})
    rows, columns, values = [0, 0, 0, 1, 1], [1, 2, 0, 2, 2], [1, 0, 0, 1, 1]
    matrix = sparse.coo_array((values, (rows, columns)), shape=(2, 3))
    assert taxonomy.decode(matrix) == [("b",), ("c",)]
    assert taxonomy.decode(taxonomy.close_matrix(matrix)) == [("a", "b"), ("c",)]
    assert taxonomy.inconsistent_rows(matrix).tolist() == [True, False]
    assert matrix.nnz == 5  # and the caller's matrix is as it was


def test_decode_gives_labels_in_the_order_of_the_taxonomy():
    taxonomy = Taxonomy.of({"z": [], "y": [], "x": []})
    assert taxonomy.decode([[1, 0, 1], [0, 0, 0], [1, 1, 1]]) == [("z", "x"), (), ("z", "y", "x")]


def test_no_documents_and_no_labels_are_fine():
    taxonomy = Taxonomy.of({"a": [], "b": ["a"]})
    assert taxonomy.decode(taxonomy.encode([])) == []
    assert taxonomy.close_matrix(taxonomy.encode([])).shape == (0, 2)
    nothing = Taxonomy.of({})
    assert len(nothing) == nothing.depth == nothing.closure.nnz == 0
    assert nothing.close([]) == nothing.top_labels == ()
    assert nothing.encode([[], []], close=True).shape == (2, 0)


def test_from_indices_counts_a_repeated_label_once():
    taxonomy = Taxonomy.of({"a": [], "b": ["a"]})
    matrix = taxonomy.from_indices(np.array([1, 1, 0]), np.array([0, 2, 2, 3]))
    assert matrix.toarray().tolist() == [[0, 1], [0, 0], [1, 0]]


@pytest.mark.parametrize("by", ["squaring", "from the top", "from the top after squaring"])
def test_all_ways_of_building_the_closure_agree(by, monkeypatch):
    if by == "from the top":
        monkeypatch.setattr("hilap.taxonomy.graph._SQUARING_LEVELS", 0)
    if by == "from the top after squaring":
        monkeypatch.setattr("hilap.taxonomy.graph._SQUARING_STEPS", 8)
    for graph in GRAPHS:
        closure = Taxonomy.of(graph).closure
        assert closure.dtype == bool
        assert closure.has_canonical_format  # sorted, and nothing stored twice
        assert closure.nnz == sum(len(closed(graph, [label])) for label in LETTERS)
        assert closure.toarray().tolist() == [[up in closed(graph, [label]) for up in LETTERS] for label in LETTERS]


def test_a_chain_of_a_thousand_labels_closes_to_a_triangle():
    taxonomy = Taxonomy.of({str(i): [str(i - 1)] if i else [] for i in range(1000)})
    assert taxonomy.depth == 1000
    assert taxonomy.closure.nnz == 1000 * 1001 // 2
    assert taxonomy.ancestors("999") == tuple(map(str, range(999)))
