"""How much each head matters in a state, where the critic can tell."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.algorithms.importance import importance_weights
from headwise.algorithms.ppo_learner import PPOLearner
from headwise.training.loop import Loop


@torch.no_grad()
def head_importance(
    loop: Loop, rows: NDArray[np.float32], member: int
) -> NDArray[np.float64] | None:
    """Shares of the credit (B, H) that sum to one, for observations (B, O) of one member.

    Only a branching critic of PPO (vdn, qplex) tells heads apart; for others the answer is None.
    """
    learner = loop.algorithm
    if not isinstance(learner, PPOLearner) or learner.branching is None:
        return None
    members = loop.keys.num_members
    obs = torch.from_numpy(np.broadcast_to(rows, (members, *rows.shape)).copy())
    obs = obs.to(loop.keys.device)
    if loop.normaliser is not None:
        obs = loop.normaliser.obs(obs, update=False)
    raw = learner.actor.mode(obs)
    unit = learner.actor.to_unit(raw)
    masses = learner.branching.masses(learner.actor.judge(obs, raw).heads)
    _, advantage = learner.branching.centred(obs, masses)
    kind = "range" if learner.importance == "uniform" else learner.importance
    found = learner.branching.importance(advantage, obs, learner.branching.bins(unit), kind)
    weights = importance_weights(found, 1.0, 0.0)[member]
    shares: NDArray[np.float64] = weights.cpu().double().numpy()
    return shares
