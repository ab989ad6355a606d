"""Adam over rows: is it torch's Adam on the same gradients with their zeros?"""

import contextvars

import pytest
import torch

from hilap.adam import Adam, clip, gradients_by_rows, rows_of


@pytest.fixture(autouse=True)
def by_rows():
    with gradients_by_rows():
        yield


def loss_of(weight, other, used, take):
    """Rows of a weight, some of them twice, times another weight, which has a gradient everywhere."""
    again = used[: len(used) // 2]
    return (take(weight, used) @ other).square().sum() + (take(weight, again) @ other).sin().sum()


def batches(seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [torch.unique(torch.randint(0, 12, (5,), generator=draw)) for _ in range(30)]


def weights(dtype):
    draw = torch.Generator().manual_seed(1)
    shapes = ((12, 5), (5, 3))
    return [torch.randn(shape, generator=draw, dtype=dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("most", [None, 0.5])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "digits"), [(torch.float32, 1e-3), (torch.float64, 1e-9)])
def test_steps_over_rows_are_those_of_torchs_adam(dtype, digits, weight_decay, most):
    ours, theirs = weights(dtype), weights(dtype)
    close = {"rtol": digits, "atol": digits}  # thirty steps carry the rounding of the first along
    groups = [
        [{"params": [weight], "lr": rate} for weight, rate in zip(made, (0.1, 0.01), strict=True)]
        for made in (ours, theirs)
    ]
    mine = Adam(groups[0], weight_decay=weight_decay)
    plain = torch.optim.Adam(groups[1], weight_decay=weight_decay)
    for used in batches():
        mine.zero_grad()
        plain.zero_grad()
        loss_of(*ours, used, rows_of).backward()
        loss_of(*theirs, used, lambda weight, rows: weight[rows]).backward()
        assert ours[0].grad.is_sparse
        torch.testing.assert_close(ours[0].grad.to_dense(), theirs[0].grad, **close)
        if most is not None:
            clip(ours, most)
            torch.nn.utils.clip_grad_norm_(theirs, most)
        mine.step()
        plain.step()
        torch.testing.assert_close(ours, theirs, **close)


def test_what_was_written_down_goes_on_as_if_nothing_had_happened():
    unbroken, before = weights(torch.float32), weights(torch.float32)
    optimizer, first = Adam(unbroken, lr=0.1), Adam(before, lr=0.1)
    for used in batches():
        optimizer.zero_grad()
        loss_of(*unbroken, used, rows_of).backward()
        optimizer.step()
    for number, used in enumerate(batches()):
        if number == 10:
            written = first.state_dict()
            first = Adam(before, lr=0.1)
            first.load_state_dict(written)
        first.zero_grad()
        loss_of(*before, used, rows_of).backward()
        first.step()
    assert all(torch.equal(a, b) for a, b in zip(unbroken, before, strict=True))


def test_a_gradient_that_also_came_whole_is_taken_whole():
    ours, theirs = weights(torch.float64)[:1], weights(torch.float64)[:1]
    mine, plain = Adam(ours, lr=0.1), torch.optim.Adam(theirs, lr=0.1)
    for optimizer, (weight,), take in ((mine, ours, rows_of), (plain, theirs, lambda weight, rows: weight[rows])):
        (take(weight, torch.tensor([1, 4])).square().sum() + weight.sin().sum()).backward()
        optimizer.step()
    torch.testing.assert_close(ours, theirs)


def test_clipping_leaves_short_gradients_and_weights_without_any_alone():
    weight, other = weights(torch.float64)
    loss_of(weight, other.detach(), torch.tensor([0, 3]), rows_of).backward()
    before = weight.grad.coalesce().to_dense()
    clip([weight, other], 1e9)
    torch.testing.assert_close(weight.grad.to_dense(), before)
    assert other.grad is None
    clip([other], 1.0)


def test_where_nobody_asks_for_rows_any_optimizer_will_do():
    (weight,) = weights(torch.float32)[:1]
    found = contextvars.Context().run(rows_of, weight, torch.tensor([1, 4]))
    found.sum().backward()
    assert not weight.grad.is_sparse
    torch.optim.Adam([weight]).step()


def test_a_closure_is_asked_for_the_gradients_first():
    ours, theirs = weights(torch.float64), weights(torch.float64)
    mine, plain = Adam(ours, lr=0.1), torch.optim.Adam(theirs, lr=0.1)
    used = torch.tensor([1, 4, 5])

    def asked():
        mine.zero_grad()
        loss = loss_of(*ours, used, rows_of)
        loss.backward()
        return loss

    loss = loss_of(*theirs, used, lambda weight, rows: weight[rows])
    loss.backward()
    plain.step()
    torch.testing.assert_close(mine.step(asked), loss)
    torch.testing.assert_close(ours, theirs)
