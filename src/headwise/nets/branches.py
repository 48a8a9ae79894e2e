"""What follows the encoder as one kernel on a GPU, where products may be in TF32.

A branch is a layer with tanh, the embedding, and the linear outputs above it: a value, advantages,
or each from its half of the same embedding. Layer by layer that is six kernels, and twice as many
on the way back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.nets.mlp import MLP
from headwise.population import Linear, bf16
from headwise.population.bf16_network import fits_at_once, through
from headwise.population.layers import Copy, Part

_WIDTHS = (32, 64, 128, 256)
_MOST_OUTPUTS = 64
_FEW_ROWS, _ROWS, _MANY_ROWS = 16, 32, 64  # of a program of the kernels
_MANY_PROGRAMS = 128  # keep a GPU busy
_FEATURES_THERE, _UNITS_BACK = 64, 32  # at a time
_SUMMED, _TILE = 128, 32  # of the one for biases and outputs
_PRECISION = "tf32"


def fits_branches(features: Tensor, embedding: Part, *outputs: Part) -> bool:
    """Whether `branch` or `two_branches` can take these features through these layers."""
    if features.device.type != "cuda" or torch.get_float32_matmul_precision() == "highest":
        return False
    widths = [*embedding.weight.shape[-2:], *(part.weight.shape[-2] for part in outputs)]
    if any(width not in _WIDTHS for width in widths):
        return False
    if any(part.weight.shape[-1] > _MOST_OUTPUTS for part in outputs):
        return False
    parts = (embedding, *outputs)
    learns = torch.is_grad_enabled() and any(part.weight.requires_grad for part in parts)
    return not learns or all(part.to_weight is not None for part in parts)


def by_way_of(
    encoder: MLP, embedding: Linear, output: Linear, x: Tensor, copy: Copy | None = None
) -> Tensor:
    """What an output makes of inputs (..., B, F) by way of an encoder and a layer with tanh.

    With `copy` by one of the copies of all three, (P, B, F) to (P, B, n).
    """
    if bf16.fits(x):
        trunk = [*encoder.pieces(copy), embedding.piece("tanh", copy)]
        leaf = output.piece(None, copy)
        if fits_at_once(trunk, [leaf]):
            return through(x, trunk, [leaf])[0]
    features: Tensor = encoder(x) if copy is None else encoder.one(copy, x)
    if features.device.type == "cuda":
        parts = [y.part() if copy is None else y.part_of(copy) for y in (embedding, output)]
        if fits_branches(features, *parts):
            return branch(features, *parts)
    if copy is None:
        outputs: Tensor = output(embedding(features, "tanh"))
        return outputs
    return output.one(copy, embedding.one(copy, features, "tanh"))


def second_half(embedding: Part) -> Part:
    """The second half of an embedding's units."""
    width = embedding.weight.shape[-1] // 2
    weight, bias = (x.narrow(-1, width, width) for x in embedding[:2])
    to_weight, to_bias = (x if x is None else x.narrow(-1, width, width) for x in embedding[2:])
    return Part(weight, bias, to_weight, to_bias)


def branch(features: Tensor, embedding: Part, output: Part) -> Tensor:
    """Features (P, *copies, B, F) to outputs (P, *copies, B, n), by way of all the units."""
    if output.weight.shape[-1] == 1:
        value, _, _ = _through(features, _Net(embedding, output, None), keep=False)
        assert value is not None
        return value.unsqueeze(-1)
    _, advantages, _ = _through(features, _Net(embedding, None, output), keep=False)
    assert advantages is not None
    return advantages


def two_branches(
    features: Tensor, embedding: Part, value: Part, advantage: Part, *, keep: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The value (P, *copies, B), the advantages (..., B, n), and the embedding if it is kept.

    The first half of the units is for the value, the second for the advantages. The embedding
    passes no gradient on.
    """
    values, advantages, units = _through(features, _Net(embedding, value, advantage), keep=keep)
    assert values is not None
    assert advantages is not None
    return values, advantages, units if keep else None


class _Net(NamedTuple):
    """The layers: one or two branches."""

    embedding: Part
    value: Part | None
    advantage: Part | None

    @property
    def units(self) -> int:
        """How many there are in the embedding."""
        return self.embedding.weight.shape[-1]

    @property
    def outputs(self) -> int:
        """How many advantages there are."""
        return 0 if self.advantage is None else self.advantage.weight.shape[-1]

    @property
    def above(self) -> tuple[Part, Part]:
        """Value and advantages; the one that is missing is the other, and never read."""
        value, advantage = self.value or self.advantage, self.advantage or self.value
        assert value is not None
        assert advantage is not None
        return value, advantage


_Found = tuple[Tensor | None, Tensor | None, Tensor | None]


def _through(features: Tensor, net: _Net, *, keep: bool) -> _Found:
    """Value, advantages and embedding, as far as they are asked for."""
    stack = features.shape[:-1]
    features = features.flatten(0, -3).contiguous()
    weight = net.embedding.weight
    found: _Found
    if torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad):
        found = _Branches.apply(features, weight, net)  # type: ignore[no-untyped-call]
    else:
        found = _go_out(features, net, keep=keep)
    value, advantages, embedding = found
    return (
        None if value is None else value.view(stack),
        None if advantages is None else advantages.view(*stack, net.outputs),
        None if embedding is None else embedding.view(*stack, net.units),
    )


class _Branches(torch.autograd.Function):
    """One kernel forward; on the way back one for rows, a product, and one for what is small."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, net: _Net) -> _Found:
        value, advantages, embedding = _go_out(features, net, keep=True)
        ctx.save_for_backward(features, weight, embedding)
        ctx.net = net
        ctx.set_materialize_grads(False)  # of the embedding there is none
        ctx.mark_non_differentiable(embedding)
        return value, advantages, embedding

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        from headwise.nets.kernels.branches import add_up, come_back

        features, weight, embedding = ctx.saved_tensors
        net: _Net = ctx.net
        by_inputs, by_weights = ctx.needs_input_grad[:2]
        copies, rows, units = embedding.shape
        slopes = _slopes(net, embedding, *grads[:2])
        to_embedding = torch.empty_like(embedding if by_weights else embedding[:0])
        to_features = torch.empty_like(features if by_inputs else features[:0])
        value, advantage = net.above
        blocks = _blocks(net, rows) | {"STEP": _UNITS_BACK}
        if rows > _ROWS and copies * rows >= _MANY_PROGRAMS * _MANY_ROWS:
            blocks["ROWS"] = _MANY_ROWS  # each does more with the weights that it has loaded
        come_back[(copies, -(-rows // blocks["ROWS"]))](
            *slopes, embedding, weight, value.weight, advantage.weight, to_embedding, to_features,
            *weight.stride()[:2], *_strides(value.weight, advantage.weight), rows, net.outputs,
            INPUTS=by_inputs, WEIGHTS=by_weights, **blocks,
        )  # fmt: skip
        if by_weights:
            to_weight, to_bias = _sums(net.embedding)
            to_weight.baddbmm_(features.transpose(-1, -2), to_embedding)
            small = (to_bias, *_sums(value), *_sums(advantage))
            add_up[(copies, units // _TILE)](
                *slopes, embedding, to_embedding, *small, *_strides(*small), rows, net.outputs,
                UNITS=units, VALUE=blocks["VALUE"], OUTPUTS=blocks["OUTPUTS"], ROWS=_SUMMED,
                TILE=_TILE, PRECISION=_PRECISION, num_warps=4, num_stages=1,
            )  # fmt: skip
        return to_features if by_inputs else None, None, None


def _go_out(features: Tensor, net: _Net, *, keep: bool) -> _Found:
    from headwise.nets.kernels.branches import go_out

    copies, rows, _ = features.shape
    value = features.new_empty(copies, rows)
    advantages = features.new_empty(copies, rows, net.outputs)
    embedding = features.new_empty((copies, rows, net.units) if keep else (0,))
    parameters = [x for part in (net.embedding, *net.above) for x in part[:2]]
    blocks = _blocks(net, rows)
    go_out[(copies, -(-rows // blocks["ROWS"]))](
        features, *parameters, embedding, value, advantages,
        *parameters[0].stride()[:2], *_strides(*parameters[1:]), rows, net.outputs,
        KEEP=keep, **blocks,
    )  # fmt: skip
    return (
        None if net.value is None else value,
        None if net.advantage is None else advantages,
        embedding if keep else None,
    )


def _blocks(net: _Net, rows: int) -> dict[str, Any]:
    value_units = 0 if net.value is None else net.value.weight.shape[-2]
    features = net.embedding.weight.shape[-2]
    return {
        "FEATURES": features, "UNITS": net.units, "VALUE": value_units,
        "OUTPUTS": max(1 << (net.outputs - 1).bit_length(), 16) if net.outputs else 16,
        "STEP": min(_FEATURES_THERE, features), "ROWS": _FEW_ROWS if rows <= _FEW_ROWS else _ROWS,
        "PRECISION": _PRECISION, "num_warps": 4, "num_stages": 2,
    }  # fmt: skip


def _slopes(
    net: _Net, embedding: Tensor, by_value: Tensor | None, by_advantages: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The gradients by both outputs: nothing was asked of one that has none."""
    shape = embedding.shape[:2]
    if net.value is not None and by_value is None:
        by_value = embedding.new_zeros(shape)
    if net.advantage is not None and by_advantages is None:
        by_advantages = embedding.new_zeros(*shape, net.outputs)
    unread = embedding
    return (
        unread if by_value is None else by_value.contiguous(),
        unread if by_advantages is None else by_advantages.contiguous(),
    )


def _sums(part: Part) -> tuple[Tensor, Tensor]:
    """Where the gradients of a layer are added up."""
    assert part.to_weight is not None
    assert part.to_bias is not None
    return part.to_weight, part.to_bias


def _strides(*parameters: Tensor) -> tuple[int, ...]:
    """How far one network's parameters are from the next one's."""
    return tuple(parameter.stride(0) for parameter in parameters)
