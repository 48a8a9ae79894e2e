"""Adam: every way takes the step of `torch.optim.Adam` in float64, at any age of a member."""

import pytest
import torch

from headwise.ops import Buffer, adam_step
from headwise.ops.adam import definition

SIZE, MEMBERS = 37, 3
BETAS, RATES = (0.9, 0.999), (0.1, 0.2, 0.3)


def gradients(steps):
    """Gradients (P, 1, 1, SIZE) of every step."""
    random = torch.Generator().manual_seed(0)
    return torch.randn(steps, MEMBERS, 1, 1, SIZE, generator=random)


class Compiled:
    """Members of any age, by the public operation."""

    def __init__(self, members=(0, 1, 2)):
        count = len(members)
        self.parameters = Buffer(count, 1, SIZE, gradient=True)
        self.mean, self.square = Buffer(count, 1, SIZE), Buffer(count, 1, SIZE)
        self.count, self.rate, self.alive = Buffer(count, 1, 2), Buffer(count), Buffer(count)
        self.rate.tensor.copy_(torch.tensor([RATES[m] for m in members]).view(-1, 1, 1, 1))
        self.alive.tensor.fill_(1.0)
        self.norm = Buffer(count)

    def step(self, gradient):
        self.parameters.gradient.copy_(gradient)
        self._step()
        return self.parameters.tensor.clone()

    def parts(self):
        return self.parameters, self.mean, self.square, self.count, self.rate, self.alive, self.norm

    def _step(self):
        adam_step(*self.parts(), betas=BETAS)


class Defined(Compiled):
    """The same in tensor operations."""

    def _step(self):
        self.count.longs.add_(1)
        parameters, mean, square, _, rate, alive, norm = (x.tensor for x in self.parts())
        definition(
            parameters, self.parameters.gradient, mean, square, self.count.longs, rate, alive,
            norm, BETAS, 1e-8, 0.0, None, 0.0,
        )  # fmt: skip


@pytest.mark.parametrize("way", [Compiled, Defined])
def test_every_step_is_that_of_torch_in_float64(way):
    """From the first, where the corrections of the running means are largest, to the 300th."""
    ours = way()
    exact = [torch.nn.Parameter(torch.zeros(1, 1, SIZE, dtype=torch.float64)) for _ in RATES]
    adams = [torch.optim.Adam([x], lr=r, betas=BETAS) for x, r in zip(exact, RATES, strict=True)]
    for gradient in gradients(300):
        before = [x.detach().clone() for x in exact]
        with torch.no_grad():  # each step from where the other one is: what is compared is a step
            ours.parameters.tensor.copy_(torch.stack(before))
        begun = ours.parameters.tensor.double()
        found = ours.step(gradient).double() - begun
        for parameter, adam, own in zip(exact, adams, gradient, strict=True):
            parameter.grad = own.double()
            adam.step()
        expected = torch.stack([x.detach() - y for x, y in zip(exact, before, strict=True)])
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("way", [Compiled, Defined])
def test_the_first_step_is_the_learning_rate(way):
    """Both corrections cancel what the running means begin with: lr g / (|g| + eps)."""
    (gradient,) = gradients(1)
    found = way().step(gradient)
    expected = -gradient / (gradient.abs() + 1e-8) * torch.tensor(RATES).view(-1, 1, 1, 1)
    torch.testing.assert_close(found, expected, rtol=3e-7, atol=3e-7)


@pytest.mark.parametrize("way", [Compiled, Defined])
def test_members_may_be_of_any_age(way):
    """Each takes the step that it would take alone."""
    together, alone, ages = way(), [way((m,)) for m in range(MEMBERS)], (0, 3, 20)
    given = gradients(21)
    for member, age in enumerate(ages):
        for gradient in given[:age]:
            alone[member].step(gradient[member : member + 1])
        for whole, own in zip(together.parts(), alone[member].parts(), strict=True):
            whole.tensor[member] = own.tensor[0]
        together.count.longs[member] = age
    found = together.step(given[20])
    for member, own in enumerate(alone):
        expected = own.step(given[20][member : member + 1])
        assert torch.equal(found[member : member + 1], expected)
    assert together.count.longs.flatten().tolist() == [age + 1 for age in ages]
