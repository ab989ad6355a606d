"""Are capped probabilities the smallest on the way up, by brute force?"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from hilap.decoding import Coherence
from tests.strategies import taxonomies


@settings(max_examples=60, deadline=None)
@given(taxonomies())
def test_a_label_gets_the_least_probability_of_itself_and_its_ancestors(taxonomy):
    chances = np.random.default_rng(len(taxonomy)).random((3, len(taxonomy))).astype(np.float32)
    capped = Coherence(taxonomy)(chances)
    for i, label in enumerate(taxonomy.labels):
        above = [taxonomy.index(ancestor) for ancestor in taxonomy.ancestors(label)]
        np.testing.assert_array_equal(capped[:, i], chances[:, [i, *above]].min(1))


def test_nothing_is_changed_where_all_fits_already():
    from hilap.taxonomy import Taxonomy

    taxonomy = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    chances = np.array([[0.9, 0.5, 0.7, 0.5]])
    np.testing.assert_array_equal(Coherence(taxonomy)(chances), chances)
