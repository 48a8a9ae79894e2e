"""A team from PettingZoo as one agent: all particles of CoopPush, each with heads of its own."""

import sys

import headwise as hw
from headwise.envs.native.parallel_env import parallel_env


def make():
    return parallel_env("CoopPush", view="discrete")


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    # Agents x heads become one action. All earn the same, so the mean is the team's reward.
    agent = hw.Agent("ppo", make, env_settings={"team_reward": "mean"})
    print(agent)
    agent.learn(steps)
    team = make()
    observations, _ = team.reset(seed=0)
    total = 0.0
    while team.agents:
        actions = agent.predict(observations, deterministic=True)  # a dict by agent
        observations, rewards, *_ = team.step(actions)
        total += sum(rewards.values()) / len(rewards)
    print(f"return of the team: {total:.1f}")
