"""The settings that both sides of a comparison of scores have in common."""

SETTINGS = {
    "ppo": {
        "lr": 5e-4, "gamma": 0.99, "hidden": (128, 128), "rollout": 2048, "minibatch": 64,
        "epochs": 4, "gae_lambda": 0.95, "entropy_coef": 0.01,
    },
    "sac": {
        "lr": 5e-4, "gamma": 0.99, "hidden": (128, 128), "replay": 50_000, "batch_size": 128,
        "warmup": 5000, "tau": 0.01,
    },
    "dqn": {
        "lr": 5e-4, "gamma": 0.99, "hidden": (256, 256), "replay": 100_000, "batch_size": 256,
        "warmup": 1000, "tau": 0.01, "epsilon": 0.05,
    },
}  # fmt: skip
STEPS = {"ppo": 200_000, "sac": 60_000, "dqn": 60_000}
