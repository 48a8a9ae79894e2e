"""What a network can be taught: HybridShoot's scripted player, imitated step by step.

A learner that is told the right action at every step has nothing to explore and nothing to value.
What it cannot do even so is hard to represent, and not for want of exploration.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from benchmarks.machine import description
from benchmarks.results import renew, table
from headwise.envs.make import make_vec
from headwise.envs.reference import measure, normalize, scripted_policy
from headwise.spaces import ActionSpec

TASKS = tuple(
    (mode, view)
    for mode in ("dependent", "independent")
    for view in ("discrete", "hybrid", "continuous")
)
UPDATES = (2_500, 10_000, 20_000)
BATCH, EPISODES = 256, 1024
NUMBERS_WEIGH = 10.0
"""Errors of numbers from -1 to 1, squared, are small beside the surprise of options."""


class Imitator:
    """The paper's network, [256, 256] and tanh, and Adam with its step size."""

    def __init__(self, observations: int, spec: ActionSpec) -> None:
        torch.manual_seed(0)
        self.widths = [head_size or 1 for head_size in spec.cardinalities]
        self.is_choice = list(spec.is_choice)
        self.net = nn.Sequential(
            nn.Linear(observations, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(),
            nn.Linear(256, sum(self.widths)),
        )  # fmt: skip
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=5e-4)

    def learn(self, obs: NDArray[np.float32], wanted: NDArray[np.float32]) -> None:
        """One step towards the wanted actions: likelier options, nearer numbers."""
        target = torch.as_tensor(wanted)
        losses = [
            cross_entropy(out, target[:, head].long())
            if is_choice
            else NUMBERS_WEIGH * mse_loss(out[:, 0], target[:, head])
            for head, (out, is_choice) in enumerate(self._outputs(obs))
        ]
        self.optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        self.optimizer.step()

    @torch.no_grad()
    def act(self, obs: NDArray[np.floating]) -> NDArray[np.float32]:
        """The likeliest options, and the numbers."""
        columns = [
            out.argmax(-1).float() if is_choice else out[:, 0].clamp(-1.0, 1.0)
            for out, is_choice in self._outputs(obs)
        ]
        return torch.stack(columns, -1).numpy()

    def _outputs(self, obs: NDArray[np.floating]) -> list[tuple[Tensor, bool]]:
        out = self.net(torch.as_tensor(np.ascontiguousarray(obs, dtype=np.float32)))
        return list(zip(out.split(self.widths, -1), self.is_choice, strict=True))


def scores(
    mode: str, view: str, updates: tuple[int, ...] = UPDATES, episodes: int = EPISODES
) -> list[float]:
    """The imitator's score after so many updates each, 0 is random play and 1 the player's."""
    env, test = (
        make_vec("HybridShoot", [seed], slots, mode=mode, view=view)
        for seed, slots in ((0, BATCH), (1, min(episodes, 512)))
    )
    player = scripted_policy("HybridShoot", env.spec)
    obs = env.reset().reshape(BATCH, -1)
    imitator = Imitator(obs.shape[-1], env.spec)
    found = []
    for update in range(1, max(updates) + 1):
        wanted = player(obs)
        imitator.learn(obs, wanted)
        obs = env.step(wanted.reshape(1, BATCH, -1)).obs.reshape(BATCH, -1)
        if update in updates:
            score = measure(test, imitator.act, episodes).mean
            found.append(float(normalize(score, "HybridShoot", mode=mode, view=view)))
    return found


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Teaches a network in every mode and view, and renews RESULTS.md."""
    torch.set_num_threads(1)  # a second one gains such a network nothing
    rows = []
    for mode, view in TASKS:
        rows.append([f"{mode}, {view}", *(f"{score:.2f}" for score in scores(mode, view))])
        sys.stderr.write(" | ".join(rows[-1]) + "\n")
    text = "\n\n".join(
        [
            "## Imitation",
            "HybridShoot: what a network [256, 256] scores, played greedily, after it was told the "
            "scripted player's action at every step; 0 is random play, 1 the player. One seed, "
            f"batches of {BATCH}, {EPISODES:,} episodes.",
            description(command) + ".",
            table(["mode, view", *(f"{n:,} updates" for n in UPDATES)], rows),
        ]
    )
    renew("imitation", text)
    return text
