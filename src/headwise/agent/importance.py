"""How much each head matters in a state, where the critic can tell."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.algorithms.ppo.learner import PPOLearner
from headwise.training.loop import Loop


@torch.no_grad()
def head_importance(
    loop: Loop, rows: NDArray[np.float32], member: int
) -> NDArray[np.float64] | None:
    """Shares of the credit (B, H) that sum to one, for observations (B, O) of one member.

    Only a branching critic of PPO (vdn, qplex) tells heads apart; for others the answer is None.
    """
    learner = loop.algorithm
    if not isinstance(learner, PPOLearner):
        return None
    members = loop.keys.num_members
    obs = torch.from_numpy(np.broadcast_to(rows, (members, *rows.shape)).copy())
    obs = obs.to(loop.keys.device)
    if loop.normalizer is not None:
        obs = loop.normalizer.obs(obs)
    shares = learner.head_shares(obs)
    if shares is None:
        return None
    mine: NDArray[np.float64] = shares[member].cpu().double().numpy()
    return mine
