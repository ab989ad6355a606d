"""Rewards by hand, and against the metrics that reports use."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hilap import metrics
from hilap.metrics.counts import label_counts, pair
from hilap.policy import EXAMPLE_F1
from hilap.rewards import Standing, f_beta, hierarchical, macro_f1, micro_f1, mixed, rarity, weighted_f1


def sets(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.bool)


PLACED = sets([1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1])
GOLD = sets([1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0])


def test_example_f1_is_the_reported_one():
    rng = np.random.default_rng(0)
    placed, gold = (rng.random((50, 7)) < 0.3 for _ in range(2))
    each = EXAMPLE_F1.of_sets(torch.from_numpy(placed), torch.from_numpy(gold))
    expected = [metrics.example(gold[[i]], placed[[i]]).f1 for i in range(50)]
    np.testing.assert_allclose(each.numpy(), expected, rtol=1e-6)


def test_example_f1_by_hand():
    assert EXAMPLE_F1.of_sets(PLACED, GOLD).tolist() == [0.5, 1.0, 1.0, 0.0, 0.0]


def test_f_beta_by_hand():
    # Row 0: one hit, two placed, two gold: precision = recall = 1/2, so F is 1/2 for any beta.
    # A set with recall 1/2 and precision 1: F2 = 5 * (1/2) / (4 + 1/2) = 5/9.
    placed, gold = sets([1, 0, 0, 0]), sets([1, 1, 0, 0])
    assert f_beta(2.0).of_sets(placed, gold).item() == pytest.approx(5 / 9)
    assert f_beta(2.0).of_sets(PLACED, GOLD).tolist() == [0.5, 1.0, 1.0, 0.0, 0.0]
    assert f_beta(0.5).of_sets(placed, gold).item() > f_beta(2.0).of_sets(placed, gold).item()


def test_f_beta_of_one_is_f1():
    torch.testing.assert_close(f_beta(1.0).of_sets(PLACED, GOLD), EXAMPLE_F1.of_sets(PLACED, GOLD))


def test_weighted_f1_by_hand():
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    # Row 0: hits weigh 1, placed 1 + 2, gold 1 + 3: 2 * 1 / (3 + 4).
    assert weighted_f1(weights).of_sets(PLACED, GOLD).tolist() == pytest.approx([2 / 7, 1.0, 1.0, 0.0, 0.0])


def test_weighted_f1_with_equal_weights_is_f1():
    scores = weighted_f1(torch.full((4,), 3.0)).of_sets(PLACED, GOLD)
    torch.testing.assert_close(scores, EXAMPLE_F1.of_sets(PLACED, GOLD))


def test_hierarchical_cost_by_hand():
    levels = torch.tensor([1, 2, 2, 3])
    # Row 0: wrong are label 1 (cost 1/2) and label 2 (1/2), the union costs 1 + 1/2 + 1/2: 1 - 1/2.
    assert hierarchical(levels).of_sets(PLACED, GOLD).tolist() == pytest.approx([0.5, 1.0, 1.0, 0.0, 0.0])


def test_an_error_near_the_root_costs_more():
    score = hierarchical(torch.tensor([1, 2, 3]))
    gold = sets([1, 1, 1])
    assert (
        score.of_sets(sets([1, 1, 0]), gold)
        > score.of_sets(sets([1, 0, 1]), gold)
        > score.of_sets(sets([0, 1, 1]), gold)
    )


def test_rarity_falls_with_popularity_and_has_mean_one():
    weights = rarity(torch.tensor([0.5, 0.125, 0.0]), power=0.5)
    assert weights.mean().item() == pytest.approx(1)
    assert (weights[1] / weights[0]).item() == pytest.approx(2)
    assert (weights[2] / weights[0]).item() == pytest.approx((0.5 / 1e-3) ** 0.5)
    assert rarity(torch.tensor([0.5, 0.1]), power=0.0).tolist() == [1.0, 1.0]


def test_a_mix_is_the_weighted_mean():
    shares, levels = torch.tensor([0.5, 0.2, 0.1, 0.1]), torch.tensor([1, 2, 2, 3])
    parts = {"example_f1": 1.0, "f_beta": 2.0, "hierarchical": 1.0, "weighted_f1": 4.0}
    made = mixed(parts, shares=shares, levels=levels, beta=2.0, power=0.5)
    alone = [EXAMPLE_F1, f_beta(2.0), hierarchical(levels), weighted_f1(rarity(shares, 0.5))]
    expected = sum(w / 8 * s.of_sets(PLACED, GOLD) for w, s in zip(parts.values(), alone, strict=True))
    torch.testing.assert_close(sum(score.of_sets(PLACED, GOLD) for score in made), expected)


@pytest.mark.parametrize("name", ["example_f1", "f_beta", "weighted_f1", "hierarchical"])
def test_every_reward_lies_between_0_and_1_with_1_for_the_perfect_set(name):
    rng = np.random.default_rng(1)
    placed, gold = (torch.from_numpy(rng.random((200, 6)) < 0.4) for _ in range(2))
    (score,) = mixed({name: 3.0}, shares=torch.rand(6), levels=torch.arange(1, 7), beta=1.5, power=0.7)
    values = score.of_sets(placed, gold)
    assert ((values >= -1e-6) & (values <= 1 + 1e-6)).all()
    torch.testing.assert_close(score.of_sets(gold, gold), torch.ones(200))
    assert (score.of_sets(placed, gold)[(placed != gold).any(1)] < 1).all()


# -- rewards of all documents together --------------------------------------------------------------------------------


def standing(gold: np.ndarray, placed: np.ndarray) -> Standing:
    counts = label_counts(*pair(gold, placed))
    return Standing(*(torch.from_numpy(np.asarray(count, dtype=np.float64)) for count in counts), documents=len(gold))


@pytest.mark.parametrize("name", ["micro_f1", "macro_f1"])
def test_rewards_of_all_documents_say_to_first_order_what_one_document_adds(name):
    rng = np.random.default_rng(3)
    n = 20_000
    gold, placed = (rng.random((n, 5)) < [0.5, 0.3, 0.1, 0.05, 0.02] for _ in range(2))
    now = standing(gold, placed)
    score = micro_f1(now) if name == "micro_f1" else macro_f1(now, pseudo=0.0)
    metric = getattr(metrics, name.removesuffix("_f1"))
    before = metric(gold, placed).f1
    differences = []
    for row in range(40):
        changed = placed.copy()
        changed[row] = rng.random(5) < 0.5
        sets_ = torch.from_numpy(np.stack([placed[row], changed[row]]))
        told = score.of_sets(sets_, torch.from_numpy(gold[[row, row]]))
        added = n * (metric(gold, changed).f1 - before)
        assert (told[1] - told[0]).item() == pytest.approx(added, abs=0.02)
        differences.append(abs(added))
    assert max(differences) > 1  # far more than what the first order leaves out


def test_micro_f1_by_hand():
    # 2 hits of 4 placed and 6 gold ones in 10 documents: F = 0.4, and a label is one tenth of the sizes.
    now = Standing(torch.tensor([1.0, 1.0]), torch.tensor([3.0, 1.0]), torch.tensor([2.0, 4.0]), 10)
    found = micro_f1(now).of_sets(sets([1, 0], [1, 1], [0, 0]), sets([1, 0], [1, 0], [1, 1]))
    assert found.tolist() == pytest.approx([2 - 0.4, 2 - 0.8, 0.0])


def test_macro_f1_by_hand():
    # 12 documents, two labels with gold documents, of F1 2/4 and 2/8, so 3/8 in the mean; the third is not in the mean.
    now = Standing(torch.tensor([1.0, 1.0, 0.0]), torch.tensor([2.0, 2.0, 5.0]), torch.tensor([2.0, 6.0, 0.0]), 12)
    score, gold = macro_f1(now, pseudo=1.0), sets([1, 1, 0])
    first, second = 12 / (2 * 6), 12 / (2 * 10)  # what a right label weighs, with one more document placed and gold
    assert score.of_sets(sets([1, 0, 0]), gold).item() == pytest.approx(first * (2 - (2 + 2 * 3 / 8) / 6))
    assert score.of_sets(sets([0, 1, 0]), gold).item() == pytest.approx(second * (2 - (2 + 2 * 3 / 8) / 10))
    assert score.of_sets(sets([0, 0, 1]), gold).item() == 0


def test_a_label_is_worth_placing_above_half_of_its_f1():
    now = Standing(torch.tensor([30.0]), torch.tensor([60.0]), torch.tensor([90.0]), 200)  # F1 = 0.4
    score = macro_f1(now, pseudo=0.0)
    right, wrong = (score.of_sets(sets([1]), sets([truth])).item() for truth in (1, 0))
    assert 0.2 * right + 0.8 * wrong == pytest.approx(0, abs=1e-6)


def test_where_nothing_is_placed_or_gold_rewards_of_all_documents_are_finite():
    none = Standing(torch.zeros(3), torch.zeros(3), torch.zeros(3), 4)
    for score in (micro_f1(none), macro_f1(none), macro_f1(none, pseudo=0.0)):
        assert torch.isfinite(score.of_sets(sets([1, 1, 0], [0, 0, 0]), sets([1, 0, 0], [0, 0, 0]))).all()


def test_rewards_of_all_documents_mix_with_others():
    now = standing(GOLD.numpy(), PLACED.numpy())
    options = {"shares": torch.full((4,), 0.2), "levels": torch.tensor([1, 2, 2, 3]), "beta": 1.0, "power": 0.5}
    made = mixed({"example_f1": 1.0, "micro_f1": 1.0, "macro_f1": 2.0}, **options, now=now)
    expected = 0.25 * EXAMPLE_F1.of_sets(PLACED, GOLD).double() + 0.25 * micro_f1(now).of_sets(PLACED, GOLD)
    expected += 0.5 * macro_f1(now).of_sets(PLACED, GOLD)
    torch.testing.assert_close(sum(score.of_sets(PLACED, GOLD).double() for score in made), expected)
