"""Are capped probabilities the smallest on the way up, by brute force?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap.decoding import Coherence, Lifting
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


@settings(max_examples=40)
@given(taxonomies(max_labels=12), st.integers(0, 99))
def test_lifting_takes_the_highest_of_all_descendants_with_gradients_and_without(taxonomy, seed):
    scores = torch.randn(5, len(taxonomy), generator=torch.Generator().manual_seed(seed))
    above = torch.from_numpy(taxonomy.closure.toarray() > 0)  # row: a label; columns: itself and its ancestors
    expected = torch.stack([scores[:, above[:, k]].amax(1) for k in range(len(taxonomy))], dim=1)
    assert torch.equal(Lifting(taxonomy)(scores), expected)
    learning = scores.clone().requires_grad_()
    lifted = Lifting(taxonomy)(learning)
    assert torch.equal(lifted.detach(), expected)
    lifted.sum().backward()
    assert learning.grad.sum().item() == pytest.approx(scores.numel())  # every label's gradient goes to one label
