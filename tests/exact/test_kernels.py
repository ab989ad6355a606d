"""The compiled kernels against plain torch and against walks taken by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap import compiling, pairs
from hilap.decoding import Constraints, beam, decode
from hilap.decoding.scoring import log_probs, table_log_probs
from hilap.policy import EXAMPLE_F1, FirstGreedy, Policy, greedy, oracle, returns, sampler
from hilap.taxonomy import Taxonomy
from tests.strategies import taxonomies

STEPS = 7


def by_hand(log_probs, rows, columns):
    """The best action, by a function that the kernels do not know: so the loop in torch is taken."""
    return greedy(log_probs, rows, columns)


def policy_of(taxonomy: Taxonomy, seed: int, *, rule: str = "ancestors", residual: bool = False, **sizes) -> Policy:
    generator = torch.Generator().manual_seed(seed)
    sizes = {"hidden": 11, "width": 6, **sizes}
    policy = Policy(taxonomy, 4, dag_rule=rule, residual=residual, generator=generator, **sizes).double()
    for parameter in policy.parameters():
        parameter.data.mul_(2)
    return policy


def documents_of(policy: Policy, count: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    flat = torch.randn(count, policy.n_labels, generator=generator, dtype=torch.float64)
    bias = 0.3 * torch.randn(policy.n_labels + 1, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        return policy.documents(embeddings, flat, bias)


def closed_sets(taxonomy: Taxonomy, count: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    sets = [rng.choice(taxonomy.labels, min(2, len(taxonomy)), replace=False).tolist() for _ in range(count)]
    return torch.from_numpy(taxonomy.encode(sets, close=True).toarray().astype(bool))


def same(one, other) -> None:
    for name in ("docs", "actions", "placed", "row", "step", "starts", "items"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    torch.testing.assert_close(one.rewards, other.rewards)


@settings(max_examples=40)
@given(taxonomies(max_labels=12), st.integers(0, 99), st.sampled_from(["ancestors", "any"]), st.booleans())
def test_compiled_walks_are_those_of_the_loop_in_torch(taxonomy, seed, rule, residual):
    policy = policy_of(taxonomy, seed, rule=rule, residual=residual)
    documents, gold = documents_of(policy, 3, seed), closed_sets(taxonomy, 3, seed)
    docs = torch.tensor([2, 0, 1, 0, 2])
    common = {"max_steps": STEPS, "docs": docs, "scores": (EXAMPLE_F1,)}
    same(
        policy.rollout(documents, gold, choose=greedy, **common),
        policy.rollout(documents, gold, choose=by_hand, **common),
    )
    same(
        policy.rollout(documents, gold, choose=greedy, follow=gold[docs], **common),
        policy.rollout(documents, gold, choose=by_hand, follow=gold[docs], **common),
    )


@settings(max_examples=30)
@given(taxonomies(max_labels=10), st.integers(0, 99), st.booleans())
def test_a_draw_takes_the_action_at_which_the_sum_of_probabilities_exceeds_the_number_drawn(taxonomy, seed, following):
    policy = policy_of(taxonomy, seed)
    documents, gold = documents_of(policy, 4, seed), closed_sets(taxonomy, 4, seed)
    uniform = np.random.default_rng(seed).random((STEPS, 4))
    uniform[:, 1] = -1  # the best action
    walker = policy.walker()
    batch = walker.batch(documents.half, documents.flat, documents.bias)
    follow = gold.numpy() if following else None
    actions, log_prob = walker.walk(batch, np.arange(4), steps=STEPS, uniform=uniform, follow=follow)
    for doc in range(4):
        walk, total = policy.start(1), 0.0
        for t in range(STEPS):
            if not walk.open[0, : policy.stop].any():
                break
            step = policy.log_probs(documents, torch.tensor([doc]), walk.at, walk.open)[0]
            may = oracle(walk.open, gold[doc : doc + 1])[0] if following else walk.open[0]
            chances = step.exp() * may
            if uniform[t, doc] < 0:
                action = int(chances.argmax())
            else:
                action = int((chances.cumsum(0) <= uniform[t, doc] * chances.sum()).sum())
            assert actions[doc, t] == action
            total += step[action].item()
            walk = policy.step(walk, torch.tensor([action]))
        assert log_prob[doc] == pytest.approx(total, abs=1e-9)
        assert torch.equal(torch.from_numpy(walker.sets(actions))[doc], walk.placed[0])


def test_walks_of_one_document_that_share_states_are_the_walks_they_would_be_alone():
    taxonomy = Taxonomy.of({str(i): [str((i - 1) // 3)] if i else [] for i in range(60)})
    policy = policy_of(taxonomy, 3, hidden=70, width=33).float()
    with torch.no_grad():
        documents = policy.documents(torch.randn(9, 4, generator=torch.Generator().manual_seed(1)))
    walker = policy.walker()
    batch = walker.batch(documents.half, None, None)
    docs = np.random.default_rng(0).permutation(np.repeat(np.arange(9), 13))
    uniform = np.random.default_rng(1).random((STEPS, len(docs)))
    together, chances = walker.walk(batch, docs, steps=STEPS, uniform=uniform)
    for r, doc in enumerate(docs):
        alone, chance = walker.walk(batch, np.array([doc]), steps=STEPS, uniform=uniform[:, r : r + 1])
        assert together[r, : alone.shape[1]].tolist() == alone[0].tolist()
        assert chances[r] == chance[0]  # to the last bit


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("count", [2, 3])
def test_the_number_of_threads_changes_no_bit(count, learning):
    taxonomy = Taxonomy.of({str(i): [str((i - 1) // 3)] if i else [] for i in range(60)})
    policy = policy_of(taxonomy, 3, hidden=70, width=33).float().train(learning)
    with torch.no_grad():
        documents = policy.documents(torch.randn(70, 4, generator=torch.Generator().manual_seed(1)))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        single = decode(policy, documents, max_steps=STEPS)
        torch.set_num_threads(count)
        found = decode(policy, documents, max_steps=STEPS)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found.actions, single.actions)
    assert torch.equal(found.log_prob, single.log_prob)


@settings(max_examples=20)
@given(taxonomies(max_labels=12), st.integers(0, 99), st.booleans())
def test_candidates_by_themselves_and_the_table_of_all_open_labels_agree(taxonomy, seed, residual):
    """The way on the CPU and the way on other devices."""
    policy = policy_of(taxonomy, seed, residual=residual)
    documents = documents_of(policy, 3, seed)
    walk, docs = policy.start(3), torch.arange(3)
    for _ in range(2):
        arguments = (policy, documents, docs, walk.at, walk.open)
        torch.testing.assert_close(log_probs(*arguments), table_log_probs(*arguments))
        walk = policy.step(walk, log_probs(*arguments)[:, : policy.stop].argmax(1))


def ragged(seed: int):
    """States, labels, stop and segments of pairs, some of them empty."""
    generator = torch.Generator().manual_seed(seed)
    states, label, stop = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in [(5, 7), (9, 7), (7,)])
    lengths = torch.tensor([3, 0, 13, 1, 6])
    items = torch.randint(0, 9, (int(lengths.sum()),), generator=generator)  # 8 is stop
    starts = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    return [x.requires_grad_() for x in (states, label, stop)], starts, items


@pytest.mark.parametrize("seed", range(3))
def test_products_of_pairs_and_their_gradients_are_those_of_the_dense_product(seed):
    weights, starts, items = ragged(seed)
    mine, dense = pairs.products(*weights, starts, items), pairs.dense_products(*weights, starts, items)
    torch.testing.assert_close(mine, dense)
    grad = torch.randn(len(items), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for a, b in zip(torch.autograd.grad(mine, weights, grad), torch.autograd.grad(dense, weights, grad), strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_of_pairs_are_those_of_finite_differences():
    weights, starts, items = ragged(4)
    assert torch.autograd.gradcheck(lambda *w: pairs.log_softmax(pairs.products(*w, starts, items), starts), weights)


def test_only_the_gradients_that_are_asked_for_are_computed():
    (states, label, stop), starts, items = ragged(5)
    for states_learn, labels_learn in ((True, False), (False, True)):
        given = [
            states.detach().requires_grad_(states_learn),
            *(x.detach().requires_grad_(labels_learn) for x in (label, stop)),
        ]
        pairs.products(*given, starts, items).sum().backward()
        assert [x.grad is not None for x in given] == [states_learn, labels_learn, labels_learn]


def test_the_softmax_of_segments_is_that_of_torch_on_each():
    values = torch.tensor([0.5, -1.0, 3.0, 700.0, 699.0, -2.0], dtype=torch.float64)
    starts = torch.tensor([0, 3, 3, 5, 6])
    expected = torch.cat([values[a:b].log_softmax(0) for a, b in pairwise(starts)])
    torch.testing.assert_close(pairs.log_softmax(values, starts), expected)
    torch.testing.assert_close(pairs.plain_log_softmax(values, starts), expected)


def test_the_self_critical_loss_has_the_gradients_of_a_dense_scoring():
    """Walks in kernels, pairs in kernels: against log-probabilities over all labels, step by step, in plain torch."""
    taxonomy = Taxonomy.of({str(i): [str((i - 1) // 2)] if i > 1 else [] for i in range(20)})
    policy = policy_of(taxonomy, 8, residual=True)
    generator = torch.Generator().manual_seed(2)
    embeddings, flat = torch.randn(6, 4, generator=generator).double(), torch.randn(6, 20, generator=generator).double()
    documents, gold = policy.documents(embeddings, flat), closed_sets(taxonomy, 6, 1)
    choose = FirstGreedy(6, sampler(torch.Generator().manual_seed(3)))
    walks = policy.rollout(documents, gold, choose=choose, max_steps=STEPS, docs=torch.arange(6).repeat(2))
    rewards = walks.rewards.view(-1, 2, 6)
    values = returns(rewards[:, 1] - rewards[:, 0], 0.9)
    replay = policy.replay(documents, walks.part(slice(6, None)))
    mine = replay.add_up(-replay.taken * values[replay.step, replay.row], 6).sum()

    walk, theirs = policy.start(6), torch.zeros((), dtype=torch.float64)
    for t, action in enumerate(walks.actions[:, 6:]):
        steps = policy.log_probs(documents, torch.arange(6), walk.at, walk.open)
        theirs = theirs - (steps.gather(1, action.unsqueeze(1)).squeeze(1) * values[t]).sum()
        walk = policy.step(walk, action)
    torch.testing.assert_close(mine, theirs)
    parameters = [p for p in policy.parameters() if p.requires_grad]
    graphs = (torch.autograd.grad(loss, parameters, retain_graph=True) for loss in (mine, theirs))
    for a, b in zip(*graphs, strict=True):
        torch.testing.assert_close(a, b)


# -- what is derived from the weights is never stale ------------------------------------------------------------------


def fused_step(policy):
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.5, fused=True)
    for parameter in policy.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def in_place(policy):
    with torch.no_grad():
        policy.label.mul_(-1)


def replaced(policy):
    policy.second.weight = torch.nn.Parameter(-policy.second.weight.detach())


def loaded(policy):
    policy.load_state_dict({name: -value for name, value in policy.state_dict().items()})


def through_data(policy):
    policy.train()
    policy.of_label.weight.data.mul_(-3)
    policy.eval()


def colder(policy):
    policy.temperature = 0.2


@pytest.mark.parametrize("change", [fused_step, in_place, replaced, loaded, through_data, colder])
def test_after_a_change_of_weights_walks_are_those_of_the_new_weights(change):
    taxonomy = Taxonomy.of({str(i): [str((i - 1) // 3)] if i else [] for i in range(30)})
    policy = policy_of(taxonomy, 3).eval()
    documents = documents_of(policy, 5, 1)
    decode(policy, documents, max_steps=STEPS)
    change(policy)
    found = decode(policy, documents, max_steps=STEPS)
    plain = policy.rollout(documents, None, choose=by_hand, max_steps=STEPS)
    replay = policy.replay(documents, plain)
    assert torch.equal(found.actions, plain.actions)
    torch.testing.assert_close(found.log_prob, replay.add_up(replay.taken, 5).detach())


def test_in_evaluation_mode_the_policy_is_prepared_once():
    policy = policy_of(Taxonomy.of({"a": [], "b": ["a"]}), 0)
    assert policy.walker() is not policy.walker()
    policy.eval()
    prepared = policy.walker()
    assert policy.eval().walker() is prepared


# -- odd numbers and odd machines -------------------------------------------------------------------------------------


def test_weights_that_are_no_numbers_do_not_hang_or_crash_and_stay_visible():
    policy = policy_of(Taxonomy.of({"a": [], "b": ["a"], "c": []}), 0)
    with torch.no_grad():
        policy.of_document.weight.fill_(math.nan)
    found = decode(policy, documents_of(policy, 3, 0), max_steps=STEPS)
    assert found.log_prob.isnan().all()


def test_where_no_cache_folder_can_be_written_the_kernels_are_compiled_all_the_same(monkeypatch):
    asked = []

    def njit(**options):
        asked.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiling.numba, "njit", njit)
    assert compiling.compiled(len)("abc") == 3
    assert asked == [True, False]


@settings(max_examples=40)
@given(
    taxonomies(max_labels=12),
    st.integers(0, 99),
    st.sampled_from(["ancestors", "any"]),
    st.booleans(),
    st.sampled_from([1, 2, 5]),
)
def test_compiled_beams_are_those_of_the_loop_in_torch(taxonomy, seed, rule, residual, width):
    policy = policy_of(taxonomy, seed, rule=rule, residual=residual).eval()
    documents = documents_of(policy, 3, seed)
    ours = beam(policy, documents, width=width, max_steps=STEPS)
    theirs = beam(policy, documents, width=width, max_steps=STEPS, constraints=Constraints())  # takes the loop
    torch.testing.assert_close(ours.log_probs, theirs.log_probs, rtol=1e-9, atol=1e-9)
    assert torch.equal(ours.sets, theirs.sets)


def test_compiled_beams_are_the_same_on_several_threads():
    policy = policy_of(Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": []}), 3).eval()
    documents = documents_of(policy, 70, 4)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(beam(policy, documents, width=4, max_steps=STEPS))
    torch.set_num_threads(before)
    assert torch.equal(found[0].sets, found[1].sets)
    assert torch.equal(found[0].log_probs, found[1].log_probs)
