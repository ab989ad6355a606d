"""The figures of a taxonomy, counted by hand."""

from __future__ import annotations

from hilap.taxonomy import Taxonomy
from hilap.taxonomy.statistics import statistics


def test_figures_of_a_tree(tree):
    assert statistics(tree).to_json() == {
        "kind": "tree",
        "labels": 6,
        "edges": 4,
        "top_labels": 2,
        "leaves": 3,
        "levels": 3,
        "labels_per_level": [2, 2, 2],
        "several_parents": 0,
        "mean_children": 4 / 3,
        "most_children": 2,
        "closure_size": 12,
        "fingerprint": tree.fingerprint,
    }


def test_figures_of_a_dag(dag):
    figures = statistics(dag)
    assert (figures.kind, figures.edges, figures.several_parents) == ("DAG", 6, 2)
    assert figures.labels_per_level == (1, 2, 1, 1)
    assert figures.closure_size == 1 + 2 + 2 + 4 + 5


def test_figures_of_nothing():
    figures = statistics(Taxonomy.of({}))
    assert (figures.labels, figures.levels, figures.labels_per_level, figures.mean_children) == (0, 0, (), 0.0)


def test_a_tree_too_deep_to_close_still_has_its_closure_counted():
    chain = Taxonomy.of({str(i): [str(i - 1)] if i else [] for i in range(50_000)})
    assert statistics(chain).closure_size == 50_000 * 50_001 // 2


def test_where_a_dag_is_too_deep_to_close_no_figure_is_given(dag, monkeypatch):
    monkeypatch.setattr("hilap.taxonomy.graph.MOST_CLOSURE_ENTRIES", 3)
    assert statistics(dag).closure_size is None
