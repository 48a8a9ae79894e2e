"""The tasks of `python -m benchmarks one_seed`, the same for every library."""

WARMUP = 1024
TINY = 1e-12
"""The learning rate: all sides keep playing at random, so that their episodes are as long."""
OFF_POLICY = {"net_arch": [256, 256], "batch_size": 256}
TASKS = {
    "PPO CartPole, 8 environments, [64, 64]": {
        "algo": "ppo", "env": "CartPole-v1", "num_envs": 8,
        "net_arch": [64, 64], "rollout": 2048, "batch_size": 64, "n_epochs": 10,
    },
    "PPO HybridShoot, 16 environments, [256, 256]": {
        "algo": "ppo", "env": "headwise/HybridShoot-v0", "view": "discrete", "num_envs": 16,
        "net_arch": [256, 256], "rollout": 4096, "batch_size": 128, "n_epochs": 4,
    },
    "DQN CartPole, 1 environment, [256, 256]": {
        "algo": "dqn", "env": "CartPole-v1", "num_envs": 1, "updates_per_step": 0.25, **OFF_POLICY,
    },
    "DQN CartPole, 16 environments, [256, 256]": {
        "algo": "dqn", "env": "CartPole-v1", "num_envs": 16, "updates_per_step": 0.25, **OFF_POLICY,
    },
    "SAC Pendulum, 1 environment, an update a step": {
        "algo": "sac", "env": "Pendulum-v1", "num_envs": 1, "updates_per_step": 1.0, **OFF_POLICY,
    },
    "SAC Pendulum, 16 environments, an update for 4 steps": {
        "algo": "sac", "env": "Pendulum-v1", "num_envs": 16, "updates_per_step": 0.25, **OFF_POLICY,
    },
}  # fmt: skip


def chunk_of(task):
    """Environment steps of a call of `learn`."""
    if task["algo"] == "ppo":
        return task["rollout"]
    return 1024 if task["algo"] == "dqn" else 256
