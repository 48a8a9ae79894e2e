"""How much randomness is worth: temperatures that are tuned until entropy meets its target."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from headwise.algorithms.base import LazyMetrics, Metrics
from headwise.factorizations.parts.layout import Layout
from headwise.population import Adam, Keys, Packed, along, member_mean


class Temperatures(nn.Module):
    """Temperatures of every head, (P, H), learned in log space.

    Discrete and continuous heads have one each, or every head has its own. The target entropy of a
    Choice is a fraction of the largest there is, the logarithm of how many options it has; that of
    a Range is minus one.

    Args:
        layout: The heads.
        keys: The members' seeds.
        first: The first temperature of all.
        per_head: Whether every head has its own.
        lr: Step size of each member, (P,).
        most: The largest entropy of each head where all options are legal, (H,); None is the
            layout's.
        alive: Which members have not diverged, (P,), if others say so as well.
    """

    def __init__(
        self,
        layout: Layout,
        keys: Keys,
        first: float,
        *,
        per_head: bool,
        lr: Tensor,
        most: Tensor | None = None,
        alive: Tensor | None = None,
    ) -> None:
        super().__init__()
        groups = torch.arange(layout.num_heads, device=layout.device)
        if not per_head:
            groups = torch.where(layout.is_choice, 0, 1)
            groups = groups - groups.min()  # one kind of head alone is group 0
        num_groups = int(groups.max()) + 1
        self._group = groups
        self._members_of = torch.nn.functional.one_hot(groups, num_groups).float()  # (H, groups)
        self._most = layout.largest_entropy() if most is None else most
        self._of_range = torch.where(layout.is_choice, 0.0, -1.0)
        shape = (keys.num_members, num_groups)
        self.log_alpha = nn.Parameter(torch.full(shape, math.log(first), device=layout.device))
        self.optimiser = Adam(Packed(self), lr, alive=alive)

    def forward(self) -> Tensor:
        """The temperature of each head, (P, H), as a constant."""
        if self.log_alpha.device.type == "cuda":
            return self._forward_kernel()
        return self.log_alpha.detach().exp().index_select(-1, self._group)

    def target(self, fraction: Tensor, most: Tensor | None = None) -> Tensor:
        """The target entropy of each head, (P, H), for fractions (P,) of the largest.

        If `most` (P, B, H) gives the largest entropy in each state, there is a target for each.
        """
        if most is None:
            return torch.addcmul(self._of_range, fraction.unsqueeze(-1), self._most)
        return torch.addcmul(self._of_range, along(fraction, most), most)

    def update(
        self,
        entropy: Tensor,
        fraction: Tensor,
        in_use: Tensor | None = None,
        most: Tensor | None = None,
    ) -> LazyMetrics:
        """Raises temperatures where entropy (P, B, H) is below target, lowers them elsewhere.

        A head that is seldom in use (`in_use`, (P, B, H)) has as little entropy to reach, and so
        has one of whose options few are legal (`most`, the largest entropy there is, (P, B, H)).
        """
        # The loss is log alpha times the surplus, so its slope is the surplus.
        assert self.log_alpha.grad is not None
        if entropy.device.type == "cuda" and most is None:
            mean, target, surplus = self._surplus_kernel(entropy, fraction, in_use)
        else:
            mean, target = entropy.detach().mean(-2), self.target(fraction, most)
            if most is not None:
                used = 1.0 if in_use is None else in_use.detach()
                target = (target * used).mean(-2)
            elif in_use is not None:
                target = target * in_use.detach().mean(-2)
            surplus = (mean - target) @ self._members_of  # (P, groups): summed over their heads
            self.log_alpha.grad.copy_(surplus)
        self.optimiser.step()

        def metrics() -> Metrics:
            alpha = self()
            return {
                "train/ent_coef_loss": (self.log_alpha.detach() * surplus).sum(-1),
                "train/ent_coef": member_mean(alpha),
                "heads/alpha": alpha,
                "heads/entropy": mean,
                "heads/target_entropy": target,
                "warn/temperature": (alpha > RUNAWAY).any(-1).float(),
            }

        return metrics

    @torch.no_grad()
    def _forward_kernel(self) -> Tensor:
        from headwise.algorithms.kernels.sac import temperatures

        (members, groups), heads = self.log_alpha.shape, len(self._group)
        out = torch.empty(members, heads, device=self._group.device)
        temperatures[(-(-out.numel() // _BLOCK),)](
            self.log_alpha, self._group, out, out.numel(), heads, groups, BLOCK=_BLOCK
        )
        return out

    @torch.no_grad()
    def _surplus_kernel(
        self, entropy: Tensor, fraction: Tensor, in_use: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, target (P, H) and surplus (P, groups), which is also the gradient from then on."""
        from headwise.algorithms.kernels.sac import surplus as kernel

        members, rows, heads = entropy.shape
        groups = self.log_alpha.shape[-1]
        entropy = entropy.contiguous()
        used = entropy if in_use is None else in_use.contiguous()  # what is not there is not read
        mean, target = torch.empty((2, members, heads), device=entropy.device).unbind(0)
        surplus = torch.empty(members, groups, device=entropy.device)
        kernel[(members,)](
            entropy, used, fraction, self._most, self._of_range, self._group, mean, target,
            surplus, self.log_alpha.grad, rows, heads, groups, IN_USE=in_use is not None,
            ROWS=_ROWS, HEADS=1 << (heads - 1).bit_length(),
            GROUPS=1 << (groups - 1).bit_length(),
        )  # fmt: skip
        return mean, target, surplus


_BLOCK, _ROWS = 256, 64  # of the kernels

RUNAWAY = 50.0
"""A temperature above this drowns any reward: its target entropy cannot be reached."""
