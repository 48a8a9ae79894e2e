"""That constraints matter: what may not be done need not be learned."""

import pytest
from constrained import TREE, Desk

import headwise as hw

SETTINGS = {
    "ppo": {"n_steps": 32, "batch_size": 64},
    "dqn": {"learning_starts": 200, "buffer_size": 5000, "batch_size": 64},
    "sac": {"learning_starts": 200, "buffer_size": 5000, "batch_size": 64, "target_entropy": 0.1},
}


@pytest.mark.parametrize(
    ("algo", "kind"), [("ppo", "ar"), ("ppo", "shared"), ("dqn", "vdn"), ("sac", "ar")]
)
def test_an_agent_under_constraints_is_ahead_of_one_that_pays_for_what_is_illegal(algo, kind):
    """The best policy has 8 points; nothing but the penalty tells the other what is legal."""
    found = {}
    for heeds in (True, False):
        agent = hw.Agent(
            algo, lambda: Desk(rules=TREE, strict=False), factorization=kind, seeds=2, num_envs=8,
            constraints=TREE if heeds else (), env_settings={"masks": heeds}, net_arch=(64,),
            gamma=0.5, learning_rate=2e-3, **SETTINGS[algo],
        )  # fmt: skip
        agent.learn(2500, progress=False)
        found[heeds] = agent.evaluate(episodes=20).scores.mean()
    assert found[True] > 7.7
    assert found[True] - found[False] > 0.8
