"""Are the neural baselines what their papers say? Against literal loops, dense tensors and torch's own modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import nn

from hilap.baselines.c_hmcnn import MaxConstraintHead
from hilap.baselines.conditional import ConditionalHead, conditional_priors
from hilap.baselines.flat import FlatHead
from hilap.baselines.heads import draw
from hilap.baselines.hmcn import HMCN, HMCNHead, Normalised
from hilap.baselines.judging import Judge
from hilap.baselines.thresholds import candidates, f1_curves, score_sets, tuned
from hilap.corpus import Examples
from hilap.levels import Levels, highest
from hilap.taxonomy import Taxonomy
from tests.strategies import taxonomies

DAG = Taxonomy.of({"d": ["b", "c"], "a": [], "b": ["a"], "e": ["d", "a"], "c": ["a"], "f": []})


def random_values(taxonomy: Taxonomy, n: int = 4) -> np.ndarray:
    return np.random.default_rng([len(taxonomy), taxonomy.n_edges]).normal(size=(n, len(taxonomy)))


def random_gold(taxonomy: Taxonomy, n: int = 4) -> np.ndarray:
    """(n, L) gold sets, closed upward."""
    some = np.random.default_rng([len(taxonomy), 3]).random((n, len(taxonomy))) < 0.4
    return taxonomy.close_matrix(some).toarray().astype(np.float64)


def below(taxonomy: Taxonomy, label: str) -> list[int]:
    return [taxonomy.index(label), *map(taxonomy.index, taxonomy.descendants(label))]


def above(taxonomy: Taxonomy, label: str) -> list[int]:
    return [taxonomy.index(label), *map(taxonomy.index, taxonomy.ancestors(label))]


# -- values along the taxonomy ----------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(taxonomies())
def test_the_highest_and_lowest_values_are_those_of_brute_force(taxonomy):
    values, levels = random_values(taxonomy), Levels(taxonomy)
    before = values.copy()
    up = [values[:, below(taxonomy, label)].max(1) for label in taxonomy]
    down = [values[:, above(taxonomy, label)].min(1) for label in taxonomy]
    np.testing.assert_array_equal(levels.highest(values), np.stack(up, 1))
    np.testing.assert_array_equal(levels.lowest(values), np.stack(down, 1))
    with torch.no_grad():
        np.testing.assert_array_equal(highest(torch.from_numpy(values), levels).numpy(), np.stack(up, 1))
    np.testing.assert_array_equal(values, before)


@settings(max_examples=15)
@given(taxonomies(max_labels=6))
def test_the_gradient_of_the_highest_value_is_that_of_finite_differences(taxonomy):
    values = torch.from_numpy(random_values(taxonomy, n=2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: highest(x, Levels(taxonomy)), values)


# -- C-HMCNN ----------------------------------------------------------------------------------------------------------


def literal_max_constraint(chances: torch.Tensor, taxonomy: Taxonomy) -> torch.Tensor:
    """MCM by the (B, L, L) tensor of the definition."""
    reach = torch.from_numpy(taxonomy.descendant_matrix.toarray().astype(np.float64))
    return (reach[None] * chances[:, None, :]).max(2).values


@settings(max_examples=30)
@given(taxonomies())
def test_the_max_constraint_loss_and_its_gradient_are_the_paper_s(taxonomy):
    gold = torch.from_numpy(random_gold(taxonomy))
    logits = torch.from_numpy(random_values(taxonomy)).requires_grad_()
    ours = MaxConstraintHead(2, taxonomy).loss(logits, gold)
    (our_gradient,) = torch.autograd.grad(ours, logits)
    h = torch.sigmoid(logits)
    positive, negative = literal_max_constraint(gold * h, taxonomy), literal_max_constraint(h, taxonomy)
    literal = -(gold * positive.clamp(min=1e-300).log() + (1 - gold) * (1 - negative).log()).mean()
    (gradient,) = torch.autograd.grad(literal, logits)
    assert ours.item() == pytest.approx(literal.item())
    torch.testing.assert_close(our_gradient, gradient)


@settings(max_examples=30)
@given(taxonomies())
def test_probabilities_under_the_max_constraint_are_the_module_s_and_no_child_is_above_a_parent(taxonomy):
    logits = torch.from_numpy(random_values(taxonomy))
    with torch.no_grad():
        found = MaxConstraintHead(2, taxonomy).chances(logits)
    torch.testing.assert_close(found, literal_max_constraint(torch.sigmoid(logits), taxonomy))
    for label in taxonomy:
        for parent in taxonomy.parents(label):
            assert (found[:, taxonomy.index(label)] <= found[:, taxonomy.index(parent)]).all()


def test_the_max_constraint_loss_survives_logits_that_a_sigmoid_would_round_to_0_or_1():
    head, logits = MaxConstraintHead(2, DAG), torch.full((1, len(DAG)), 200.0).requires_grad_()
    loss = head.loss(logits, torch.zeros(1, len(DAG)))
    loss.backward()
    assert loss.item() == pytest.approx(200)
    assert logits.grad.sum().item() == pytest.approx(1)


# -- conditional ------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(taxonomies(), st.sampled_from([0.0, 0.7]))
def test_the_conditional_loss_counts_labels_whose_parents_a_document_carries(taxonomy, adjust):
    gold, logits = random_gold(taxonomy), random_values(taxonomy)
    examples = Examples(taxonomy, list("0123"), sparse.csr_array(gold.astype(np.int32)))
    head = ConditionalHead(2, taxonomy, adjust).double()
    head.begin(examples)
    prior = conditional_priors(examples)
    total = 0.0
    for row in range(len(gold)):
        for label in taxonomy:
            at = taxonomy.index(label)
            if all(gold[row, taxonomy.index(parent)] for parent in taxonomy.parents(label)):
                chance = 1 / (1 + np.exp(-(logits[row, at] + adjust * prior[at])))
                total -= np.log(chance if gold[row, at] else 1 - chance)
    head.prior = head.prior.double()
    assert head.loss(torch.from_numpy(logits), torch.from_numpy(gold)).item() == pytest.approx(
        total / gold.size, rel=1e-5
    )


@settings(max_examples=30)
@given(taxonomies())
def test_conditional_priors_are_counted_among_documents_with_all_parents(taxonomy):
    gold = random_gold(taxonomy, n=9)
    examples = Examples(taxonomy, list("012345678"), sparse.csr_array(gold.astype(np.int32)))
    for at, label in enumerate(taxonomy):
        parents = [taxonomy.index(parent) for parent in taxonomy.parents(label)]
        asked = gold[gold[:, parents].all(1)]
        held = asked[:, at].sum()
        assert conditional_priors(examples)[at] == pytest.approx(np.log((held + 1) / (len(asked) - held + 1)))


@settings(max_examples=30)
@given(taxonomies())
def test_conditional_probabilities_are_multiplied_down_by_the_least_probable_parent(taxonomy):
    logits = torch.from_numpy(random_values(taxonomy))
    given_parents = torch.sigmoid(logits).numpy()

    def chance(row: int, label: str) -> float:
        own = given_parents[row, taxonomy.index(label)]
        return own * min([chance(row, parent) for parent in taxonomy.parents(label)], default=1.0)

    with torch.no_grad():
        found = ConditionalHead(2, taxonomy, 0.0).chances(logits).numpy()
    literal = [[chance(row, label) for label in taxonomy] for row in range(len(found))]
    np.testing.assert_allclose(found, literal, rtol=1e-12)


def test_a_linear_conditional_network_finds_the_conditional_shares_of_its_training_documents():
    """Without features, the best logit of each label is that of its share among documents with all parents."""
    gold = random_gold(DAG, n=40)
    head = ConditionalHead(1, DAG, 0.0)
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = head.loss(head(torch.zeros(40, 1)), torch.from_numpy(gold.astype(np.float32)))
        loss.backward()
        return loss

    optimizer.step(closure)
    for at, label in enumerate(DAG):
        asked = gold[gold[:, [DAG.index(parent) for parent in DAG.parents(label)]].all(1)]
        if 0 < asked[:, at].mean() < 1:
            assert torch.sigmoid(head.output.bias)[at].item() == pytest.approx(asked[:, at].mean(), abs=1e-2)


# -- HMCN -------------------------------------------------------------------------------------------------------------


def hmcn(taxonomy: Taxonomy = DAG, dim: int = 3, **changes) -> HMCNHead:
    made = HMCN(taxonomy, **{"hidden": 5, "dropout": 0.0, **changes})._head(dim, taxonomy)
    draw(made, torch.Generator().manual_seed(1))
    return made


def relu(rows: np.ndarray) -> np.ndarray:
    return np.maximum(rows, 0)


@pytest.mark.parametrize(("batch_norm", "rereads"), [(True, True), (False, True), (False, False)])
@given(taxonomy=taxonomies())
@settings(max_examples=15)
def test_the_feed_forward_form_equals_a_plain_computation(batch_norm, rereads, taxonomy):
    head = hmcn(taxonomy, batch_norm=batch_norm, rereads=rereads).eval()
    for layer in head.modules():
        if isinstance(layer, nn.BatchNorm1d):  # statistics as training would leave them
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
    weights = {name: value.numpy().astype(np.float64) for name, value in head.state_dict().items()}
    x = np.random.default_rng(0).normal(size=(2, 3))

    def dense(name: str, rows: np.ndarray) -> np.ndarray:
        found = relu(rows @ weights[f"{name}.linear.weight"].T + weights[f"{name}.linear.bias"])
        if not batch_norm:
            return found
        mean, variance = weights[f"{name}.norm.running_mean"], weights[f"{name}.norm.running_var"]
        scaled = (found - mean) / np.sqrt(variance + 1e-5)
        return scaled * weights[f"{name}.norm.weight"] + weights[f"{name}.norm.bias"]

    local, state = np.zeros((2, len(taxonomy))), np.zeros((2, 0))
    for level in range(taxonomy.depth):
        state = dense(f"flow.layers.{level}", np.hstack([state, x]))
        hidden = dense(f"flow.transitions.{level}", state)
        of_level = [i for i in range(len(taxonomy)) if taxonomy.longest_levels[i] == level + 1]
        local[:, of_level] = hidden @ weights[f"local.{level}.weight"].T + weights[f"local.{level}.bias"]
    last = np.hstack([state, x]) if rereads else state
    whole = last @ weights["whole.weight"].T + weights["whole.bias"]
    with torch.no_grad():
        found = head(torch.from_numpy(x.astype(np.float32)))
    np.testing.assert_allclose(found[0].numpy(), local, atol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), whole, atol=1e-5)


@pytest.mark.parametrize("rereads", [False, True])
def test_the_recurrent_form_equals_torch_s_lstm_cell_with_shared_weights(rereads):
    head = hmcn(form="R", batch_norm=False, rereads=rereads).eval()
    cell = nn.LSTMCell(3, 5)
    enter, forget, leave, new = range(4)  # ours; torch's order is enter, forget, new, leave
    order = [part for block in (enter, forget, new, leave) for part in range(5 * block, 5 * block + 5)]
    with torch.no_grad():
        cell.weight_ih.copy_(head.flow.of_document.weight[order])
        cell.bias_ih.copy_(head.flow.of_document.bias[order])
        cell.weight_hh.copy_(head.flow.of_state.weight[order])
        cell.bias_hh.copy_(head.flow.of_state.bias[order])
        x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
        state = memory = torch.zeros(2, 5)
        local = torch.zeros(2, len(DAG))
        for level in range(DAG.depth):
            state, memory = cell(x, (state, memory))
            of_level = torch.from_numpy(np.flatnonzero(DAG.longest_levels == level + 1))
            local[:, of_level] = head.local[level](F.relu(head.flow.transition(state)))
        found = head(x)
        torch.testing.assert_close(found[0], local)
        torch.testing.assert_close(found[1], head.whole(torch.cat([state, x], dim=1) if rereads else state))


@pytest.mark.parametrize("form", ["F", "R"])
def test_a_normalised_network_judges_as_it_has_learned(form):
    """Levels have states of different size; one running mean for all of them would be right for none."""
    head = hmcn(form=form, batch_norm=True, dropout=0.0)
    rows = 3 * torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for _ in range(200):  # the running means settle
            learned = head(rows)
        judged = head.eval()(rows)
    for one, other in zip(learned, judged, strict=True):
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("order", ["sigmoid-sum", "sum-sigmoid"])
@pytest.mark.parametrize("objective", ["parts", "final"])
def test_the_loss_of_hmcn_equals_one_worked_out_by_loops(order, objective):
    head = hmcn(order=order, objective=objective, beta=0.3, penalty=0.2)
    gold, local, whole = random_gold(DAG), random_values(DAG), random_values(DAG)[::-1].copy()

    def sigmoid(z: float) -> float:
        return 1 / (1 + np.exp(-z))

    def entropy(chance: float, truth: float) -> float:
        return -np.log(chance if truth else 1 - chance)

    total = 0.0
    for row in range(len(gold)):
        final = []
        for at in range(len(DAG)):
            mix = 0.3 * local[row, at] + 0.7 * whole[row, at]
            apart = 0.3 * sigmoid(local[row, at]) + 0.7 * sigmoid(whole[row, at])
            final.append(sigmoid(mix) if order == "sum-sigmoid" else apart)
            parts = [sigmoid(local[row, at]), sigmoid(whole[row, at])] if objective == "parts" else [final[-1]]
            total += sum(entropy(chance, gold[row, at]) for chance in parts)
        for label in DAG:
            for parent in DAG.parents(label):
                total += 0.2 * max(0, final[DAG.index(label)] - final[DAG.index(parent)]) ** 2
    outputs = (torch.from_numpy(local), torch.from_numpy(whole))
    assert head.loss(outputs, torch.from_numpy(gold)).item() == pytest.approx(total / gold.size)
    with torch.no_grad():
        np.testing.assert_allclose(head.chances(outputs).numpy()[-1], final)


def test_the_violation_by_hand():
    """In d, b, c, a of the diamond: d is 0.3 above b and 0.1 above c, and e is 0.2 above d and 0.1 above a."""
    chances = {"a": 0.8, "b": 0.4, "c": 0.6, "d": 0.7, "e": 0.9, "f": 0.1}
    found = hmcn().violation(torch.tensor([[chances[label] for label in DAG]]))
    assert found.item() == pytest.approx((0.3**2 + 0.1**2 + 0.2**2 + 0.1**2) / 6)


def test_normalisation_in_evaluation_equals_torch_s():
    ours, torchs = Normalised(4), nn.BatchNorm1d(4)
    rows = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 3 + 1
    for layer in (ours, torchs):
        nn.init.constant_(layer.weight, 1.5)
        nn.init.constant_(layer.bias, 0.2)
        layer(rows)
        layer.eval()
    torch.testing.assert_close(ours(rows), torchs(rows))
    assert ours.train()(rows[:1]).isfinite().all()  # torch's own refuses a batch of one


# -- flat, and how epochs are judged ----------------------------------------------------------------------------------


def test_the_flat_head_is_a_sigmoid_and_binary_cross_entropy():
    head, gold = FlatHead(3, 2), torch.tensor([[1.0, 0.0]])
    with torch.no_grad():
        logits = head(torch.tensor([[0.3, -1.0, 2.0]]))
        chances = head.chances(logits)
        expected = torch.sigmoid(torch.tensor([[0.3, -1.0, 2.0]]) @ head.output.weight.T + head.output.bias)
        torch.testing.assert_close(chances, expected)
        literal = -(expected[0, 0].log() + (1 - expected[0, 1]).log()) / 2
        assert head.loss(logits, gold).item() == pytest.approx(literal.item())


@settings(max_examples=30)
@given(
    taxonomies(),
    st.sampled_from([None, "add", "drop"]),
    st.sampled_from(["example_f1", "macro_f1", "mean"]),
    st.booleans(),
)
def test_an_epoch_is_judged_at_the_threshold_that_trying_all_would_find(taxonomy, repair, tune, unseen):
    from hilap.baselines.flat import Flat

    model = Flat(taxonomy, repair=repair)
    model.taxonomy_ = taxonomy
    gold = sparse.csr_array(random_gold(taxonomy, n=12).astype(np.int32))
    scores = (1 / (1 + np.exp(-random_values(taxonomy, n=12)))).astype(np.float32)
    scores = np.round(scores, 1)  # with equal scores
    seen = (gold[:2].sum(0) > 0) | (not unseen)  # closed upward, as documents are: what is not seen is never given
    found = Judge(gold, tune, tune, 0.5, model._repaired, seen)(scores, 0.0)
    threshold = tuned(gold, scores, tune, model._repaired, 0.5, seen)
    sets = model._repaired((scores > threshold) & seen)
    tried = [
        score_sets(gold, model._repaired((scores > t) & seen), tune)
        for t in candidates(gold, model._repaired(scores), 0.5)
    ]
    assert score_sets(gold, sets, tune) == pytest.approx(max(tried))
    for name in ("example_f1", "micro_f1", "macro_f1"):
        if tune == name:
            assert found[name] == pytest.approx(score_sets(gold, sets, name))
    assert found["select"] == pytest.approx(score_sets(gold, sets, tune))


def test_the_curves_equal_the_metrics_at_every_threshold():
    rng = np.random.default_rng(2)
    gold = sparse.csr_array((rng.random((30, 7)) < 0.3).astype(np.int32))
    scores = rng.random((30, 7)).round(2)
    thresholds = np.unique([0.0, *scores[:4].ravel(), 1.0])
    curves = f1_curves(gold, scores, thresholds)
    for i, threshold in enumerate(thresholds):
        for name, curve in curves.items():
            assert curve[i] == pytest.approx(score_sets(gold, scores > threshold, name))
