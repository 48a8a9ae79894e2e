"""Triton kernels against what they stand for: in the interpreter on a CPU, compiled on a GPU.

Run as a program, with TRITON_INTERPRET=1, it prints what was wrong with each, as JSON.
"""

from __future__ import annotations

import importlib
import itertools
import json
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from operation_cases import Case, define, every_case, expected, slopes_of
from torch import Tensor

from headwise.algorithms.base import Acted, ReplayBatch
from headwise.ops.adam import adam_step
from headwise.ops.buffers import Buffer
from headwise.ops.operation import Operation, operations
from headwise.ops.philox import tensor_uniforms
from headwise.population import Keys, Stream
from headwise.training.replay import Replay
from headwise.training.transition import Transition

ERROR = 1e-5
SEEDS = (3, 2**63 + 5, 11)
CLOCKS = (0, 9, 2**32 + 1)


def checks() -> dict[str, Callable[[str], None]]:
    """What there is to check, by name; each is told the device."""
    found: dict[str, Callable[[str], None]] = {
        "uniform": check_uniforms,
        "replay": check_replay,
        "expm1": check_expm1,
    }
    for max_norm, follows, size in itertools.product([0.0, 0.05], [False, True], [40, 700]):
        name = f"adam-{max_norm:g}-{'followed' if follows else 'alone'}-{size}"
        found[name] = partial(check_adam, max_norm=max_norm, size=size, follows=follows)
    for name, operation in operations.items():
        if operation.triton is not None:
            for k in range(len(every_case(name))):
                found[f"{name}-{k}"] = partial(_check_case, name, k)
    return found


def kernels(module: str) -> Any:
    """A file of kernels, where there is triton."""
    return importlib.import_module(f"headwise.ops.triton.{module}")


def _check_case(name: str, k: int, device: str) -> None:
    check_operation(operations.get(name), every_case(name)[k], device)


def check_operation(operation: Operation, case: Case, device: str) -> None:
    """Numbers and gradients of an operation's kernels, against the definition in float64."""
    forward, backward = (operation._kernels(operation.name + x) for x in ("", "_backward"))

    def play(inputs: list[Buffer | None], outputs: list[Buffer]) -> None:
        forward(*inputs, *outputs, **case.settings)
        if case.learns:
            backward(*inputs, *outputs, **case.settings)

    check_played(operation, case, device, play)


def check_played(
    operation: Operation,
    case: Case,
    device: str,
    play: Callable[[list[Buffer | None], list[Buffer]], None],
    before: float = 0.0,
) -> None:
    """What somebody made of a case's buffers on a device, against the definition in float64.

    Args:
        operation: The operation.
        case: The case, with settings for the CPU.
        device: Where the buffers are.
        play: The operation forward, and backward if something learns.
        before: What gradients are added to.
    """
    found, (outputs, gradients) = define(operation, case), expected(operation, case)
    learns = bool(case.learns)
    inputs = [
        None if x is None else _buffer(x, device, learns=i in case.learns)
        for i, x in enumerate(case.inputs)
    ]
    slopes = range(len(found)) if case.slopes is None else case.slopes
    made = [
        _buffer(torch.zeros_like(y), device, learns=learns and k in slopes)
        for k, y in enumerate(found)
    ]
    for y, slope in zip(made, slopes_of(found), strict=True):
        if y.has_gradient:
            y.gradient.copy_(slope)
    learned = [x for x in inputs if x is not None and x.has_gradient]
    for x in learned:
        x.gradient.fill_(before)
    play(inputs, made)
    for k, (y, wanted) in enumerate(zip(made, outputs, strict=True)):
        assert_close(y.tensor, wanted, f"output {k}")
    for k, (x, wanted) in enumerate(zip(learned, gradients, strict=True)):
        assert_close(x.gradient - before, wanted, f"gradient {k}")


def _buffer(x: Tensor, device: str, *, learns: bool) -> Buffer:
    """Columns of something wider, beside which nobody may read."""
    members, copies, rows, width = x.shape
    wide = Buffer(members, rows, width + 4, copies=copies, gradient=learns, device=device)
    wide.tensor.fill_(torch.nan)
    own = wide.columns(2, width)
    own.tensor.copy_(x)
    return own


def assert_close(found: Tensor, wanted: Tensor, name: str) -> None:
    """Each member's numbers, except impossible options, whose logits are beyond all others."""
    one, other = (x.detach().cpu().double().flatten(1) for x in (found, wanted))
    never = other < -1e29
    assert torch.equal(one < -1e29, never), f"{name}: which options are impossible"
    one, other = (x.masked_fill(never, 0.0) for x in (one, other))
    error = (one - other).abs().amax(-1) / other.abs().amax(-1).clamp_min(1e-3)
    assert (error < ERROR).all(), f"{name} is off by {error.tolist()}"  # NaN is not less


# --- Adam -----------------------------------------------------------------------------------------


class Stepped:
    """Adam's buffers after some steps, one member of which diverges in the fourth."""

    def __init__(self, device: str, max_norm: float, size: int, *, follows: bool) -> None:
        new = torch.Generator().manual_seed(2)

        def made(columns: int = 1, *, gradient: bool = False) -> Buffer:
            return Buffer(3, 1, columns, gradient=gradient, device=device)

        self.values, self.mean, self.square = made(size, gradient=True), made(size), made(size)
        self.follower, self.count = made(size), made(2)
        self.rate, self.alive, self.norm = made(), made(), made()
        for x in (self.values, self.follower):
            x.tensor.copy_(torch.randn(x.tensor.shape, generator=new))
        self.rate.tensor.copy_(torch.tensor([1e-2, 1e-3, 1e-1]).view(3, 1, 1, 1))
        self.alive.tensor.fill_(1.0)
        self.settings: dict[str, Any] = {
            "betas": (0.9, 0.999), "eps": 1e-8, "max_norm": max_norm,
            "follower": self.follower if follows else None, "tau": 0.1,
        }  # fmt: skip
        self._new, self._follows = new, follows

    def run(self, step: Any = adam_step) -> dict[str, Tensor]:
        """Five steps by the public operation, or by kernels."""
        for k in range(5):
            slope = torch.randn(self.values.tensor.shape, generator=self._new)
            if k == 3:
                slope[1, ..., 7] = torch.nan
            self.values.gradient.copy_(slope)
            step(
                self.values, self.mean, self.square, self.count, self.rate, self.alive, self.norm,
                **self.settings,
            )  # fmt: skip
        names = ("values", "mean", "square", "follower", "alive")
        found = {name: getattr(self, name).tensor.cpu().clone() for name in names}
        return found | {"count": self.count.longs.cpu().clone()}


def check_adam(device: str, max_norm: float, size: int, *, follows: bool) -> None:
    """Adam by kernels, against the compiled module."""
    wanted = Stepped("cpu", max_norm, size, follows=follows).run()
    step = kernels("adam").adam_step
    found = Stepped(device, max_norm, size, follows=follows).run(step)
    assert wanted["alive"].flatten().tolist() == [1.0, 0.0, 1.0]
    for name, x in wanted.items():
        torch.testing.assert_close(found[name], x, rtol=2e-6, atol=5e-7, msg=name)


# --- chance ---------------------------------------------------------------------------------------


def check_uniforms(device: str) -> None:
    """The same words as the definition's and the compiled module's, for every clock at once."""
    fill, keys = kernels("philox").fill_uniforms, Keys(SEEDS)
    seeds, clocks = keys.bits.view(-1, 1, 1, 1), torch.tensor(CLOCKS).view(-1, 1, 1, 1)
    for rows, width in ((1, 1), (5, 3), (40, 77)):
        out = torch.full((3, 1, rows, width), torch.nan, device=device)
        fill(out, seeds.to(device), clocks.to(device), 16 + Stream.ACT)
        size = rows * width
        defined = tensor_uniforms(seeds.flatten(), clocks.flatten(), size, Stream.ACT)
        assert torch.equal(out.cpu().view(3, -1), defined)
        for member, clock in enumerate(CLOCKS):
            compiled = keys.uniform(Stream.ACT, clock, (rows, width))[member]
            assert torch.equal(out[member, 0].cpu(), compiled)


# --- replay ---------------------------------------------------------------------------------------


class ByKernels(Replay):
    """A replay that takes in and draws by kernels wherever it is."""

    def write(self, step: Transition) -> None:
        if not self._tensors:
            self._allocate(step.parts())
        self._write_kernel(step)

    def sample(self, uniform: Tensor, gamma: Tensor) -> ReplayBatch:
        return self._draw_kernel(uniform, gamma)


def check_replay(device: str) -> None:
    """What kernels write to a ring that turns twice, and draw from it, on the way."""
    new, gamma = torch.Generator().manual_seed(4), torch.tensor([0.9, 0.99])
    plain, other = Replay(40, 4), ByKernels(40, 4)
    for k in range(25):
        step = _transition(new)
        plain.add(step)
        other.add(_moved(step, device))
        if k in (0, 3, 24):
            uniform = torch.rand(2, 37, 2, generator=new)
            wanted = plain.sample(uniform, gamma)
            found = other.sample(uniform.to(device), gamma.to(device))
            for one, x in zip(found, wanted, strict=True):
                assert x is None if one is None else torch.equal(one.cpu(), x)
    known, kept = plain.state_dict(), other.state_dict()
    for name in known.keys() - {"even"}:
        assert torch.equal(kept[name].cpu(), known[name]), name


def _transition(new: torch.Generator) -> Transition:
    def numbers(*shape: int) -> Tensor:
        return torch.randn(2, 4, *shape, generator=new)

    def coins(share: float) -> Tensor:
        return torch.rand(2, 4, generator=new) < share

    return Transition(
        obs=numbers(5), acted=Acted(numbers(3), {}), reward=numbers(), next_obs=numbers(5),
        terminated=coins(0.3), truncated=coins(0.2), valid=coins(0.8),
    )  # fmt: skip


def _moved(step: Transition, device: str) -> Transition:
    parts = {name: x.to(device) for name, x in step.parts().items()}
    return Transition(acted=Acted(parts.pop("action"), {}), **parts)


# --- functions ------------------------------------------------------------------------------------


def check_expm1(device: str) -> None:
    """To a few units in the last place, also next to zero; large numbers have no use for it."""
    from expm1_kernel import each

    size = torch.logspace(-8.0, 1.9, 512)
    x = torch.cat([-size, size.clamp_max(1.0)])
    y = torch.empty_like(x, device=device)
    each[(1,)](x.to(device), y, BLOCK=len(x))
    torch.testing.assert_close(y.cpu().double(), torch.expm1(x.double()), rtol=1e-6, atol=0.0)


def troubles(device: str) -> Iterator[tuple[str, str | None]]:
    """What was wrong with each kernel, None where nothing was."""
    for name, check in checks().items():
        try:
            check(device)
        except Exception:
            yield name, traceback.format_exc()
        else:
            yield name, None


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(dict(troubles("cpu"))))
