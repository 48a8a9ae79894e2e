"""The buffers of PPO: what happened in a rollout, what is made of it, and minibatches of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from headwise import ops
from headwise.heads.blueprint import Actions, Critic
from headwise.heads.layout import Layout
from headwise.nets.encoders import Encoder
from headwise.ops import Buffer, RatioGroups, Scratch

if TYPE_CHECKING:
    from headwise.algorithms.ppo import PPO


class Drawn(NamedTuple):
    """What the policy draws, (P, 1, E, H) each."""

    raw: Buffer
    unit: Buffer
    log_prob: Buffer


class Rows:
    """Rows by name, (P, 1, R, ...) each: a rollout, or a minibatch of it; `Widths` has the names.

    Args:
        widths: Columns by name.
    """

    def __init__(
        self, members: int, rows: int, widths: Mapping[str, int], device: torch.device
    ) -> None:
        self.num_rows = rows
        self.buffers = {
            name: Buffer(members, rows, width, device=device) for name, width in widths.items()
        }

    @classmethod
    def of(cls, obs: Tensor, widths: Mapping[str, int]) -> Rows:
        """Rows of observations (P, N, F), with room for the rest."""
        rows = cls(obs.shape[0], obs.shape[1], widths, obs.device)
        rows.write("obs", obs)
        return rows

    def __getitem__(self, name: str) -> Buffer:
        return self.buffers[name]

    def __contains__(self, name: str) -> bool:
        return name in self.buffers

    def get(self, name: str) -> Buffer | None:
        """The buffer of that name, if there is one."""
        return self.buffers.get(name)

    def part(self, start: int, count: int) -> Rows:
        """Some of the rows."""
        some = Rows.__new__(Rows)
        some.num_rows = count
        some.buffers = {name: x.rows(start, count) for name, x in self.buffers.items()}
        return some

    def write(self, name: str, x: Tensor | None) -> None:
        """Takes numbers (P, T, E, ...) as rows, step after step; ones where there are none."""
        to = self.buffers[name].tensor
        if x is None:
            to.fill_(1.0)
        else:
            to.copy_(x.reshape(to.shape) if x.numel() == to.numel() else x)

    def actions(self, mask: str = "mask") -> Actions:
        """The actions, and what goes with them."""
        rest = (self.get(name) for name in ("old", "option", "probs", "in_use"))
        return Actions(self["raw"], self["unit"], self.get(mask), *rest)


class Sight:
    """What policy and critic see of observations: by an encoder each, by one, or as they are.

    Args:
        policy: The policy's encoder; None: it sees observations themselves.
        critic: The critic's, which may be the same.
        scratch: Makes room for what lies between.
    """

    def __init__(self, policy: Encoder | None, critic: Encoder | None, scratch: Scratch) -> None:
        self._policy, self._critic, self._scratch = policy, critic, scratch
        self.is_shared = policy is not None and policy is critic
        """Whether there is one encoder for both."""
        self.encoders = (policy,) if self.is_shared else (policy, critic)

    def policy(self, obs: Buffer, *, learns: bool = False) -> Buffer:
        """What the policy sees; see `Encoder.forward`."""
        return obs if self._policy is None else self._policy.forward(obs, "policy", learns=learns)

    def critic(self, obs: Buffer, *, learns: bool = False) -> Buffer:
        """What the critic sees."""
        return obs if self._critic is None else self._critic.forward(obs, "critic", learns=learns)

    def critic_backward(self, x: Buffer) -> None:
        """From the critic's gradient by features to its encoder; a shared one waits for both."""
        if self.is_shared:
            ops.copy(x.gradient_buffer, out=self._of_critic(x))
        elif self._critic is not None:
            self._critic.backward(x)

    def policy_backward(self, x: Buffer) -> None:
        """From the policy's gradient by features, or that of both together, to the encoder."""
        if self.is_shared:
            ops.add(x.gradient_buffer, self._of_critic(x), out=x.gradient_buffer)
        if self._policy is not None:
            self._policy.backward(x)

    def _of_critic(self, x: Buffer) -> Buffer:
        return self._scratch("gradient of critic", x.num_rows, x.width, gradient=False)


class Widths:
    """Columns of everything that a rollout has, by name.

    - `raw`: actions as they were drawn, before a tanh or a cut at the bounds
    - `unit`: the same with numbers in [-1, 1]
    - `option`: the same with the bins of a branching critic for numbers
    - `in_use`: which heads actions use, those whose condition holds
    - `log_prob`: of each head, by the policy that acted
    - `probs`: how likely that policy was to choose each option of a branching critic; the current
      one where `center_advantage` is "batch"
    - `old`: the parameters of its distributions, for the divergence
    - `valid`: ones, and zero where an environment was only reset
    - `plain`: the advantage by GAE, before credit is shared out
    - `importance`: how much each head matters
    - `weight`: each head's share of the credit, by that
    - `credit`: the advantage of each head
    - `advantage`: that of each ratio, which the policy learns from

    Args:
        features: Inputs of the networks.
        options: Options of all heads of a branching critic; 0 for a plain one.
        ratios: Which heads have a ratio together.
        masked: Whether there are masks.
    """

    def __init__(
        self,
        config: PPO,
        layout: Layout,
        features: int,
        critic: Critic,
        options: int,
        ratios: RatioGroups,
        *,
        masked: bool,
    ) -> None:
        heads, values = layout.num_heads, critic.num_values
        credit = heads if options else values
        self.action = {"raw": heads, "unit": heads, "log_prob": heads}
        self.seen = {"obs": features} | ({"mask": layout.mask_width} if masked else {})
        """What is acted on."""
        learned = self.seen | self.action | {"valid": 1, "value": values, "target": values}
        learned["advantage"] = 1 if credit == 1 else ratios.count
        if config.kl_coef:
            learned["old"] = layout.total + 2 * layout.num_continuous
        if options:
            learned |= {"option": heads, "probs": options, "plain": 1}
            learned |= {"in_use": heads} if layout.is_conditional else {}
        self.learned = learned
        """What a minibatch has."""
        once = {"reward": 1, "terminated": 1, "truncated": 1, "next_obs": features}
        once |= {"next_mask": layout.mask_width} if masked else {}
        once |= {"next_value": values, "plain": values, "credit": credit}
        once |= {"importance": heads, "weight": heads} if options else {}
        once |= {"q": 1, "next_q": 1} if options and config.critic_target == "one_step_q" else {}
        self.rollout = once | learned
        """What a rollout has."""
        drop = {"value"} if config.clip_range_vf is None else set()
        drop |= {"probs"} if config.center_advantage == "batch" else set()
        self.gathered = [name for name in learned if name not in drop]
        """What a minibatch takes from it."""
        past = ("obs", "mask", "raw", "unit", "valid", "option", "probs", "in_use", "target")
        self.past = {name: learned[name] for name in past if name in learned}
        more = ("reward", "terminated", "next_obs", "next_mask", "next_value")
        self.past |= {name: once[name] for name in more if name in once} | {"row_weights": 1}
        """What a minibatch of past rows has."""
