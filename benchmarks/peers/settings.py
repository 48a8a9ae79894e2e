"""The settings that both sides of a comparison of scores have in common."""

SETTINGS = {
    "ppo": {
        "learning_rate": 5e-4, "gamma": 0.99, "net_arch": (128, 128), "n_steps": 128,
        "batch_size": 64, "n_epochs": 4, "gae_lambda": 0.95, "ent_coef": 0.01,
    },
    "sac": {
        "learning_rate": 5e-4, "gamma": 0.99, "net_arch": (128, 128), "buffer_size": 50_000,
        "batch_size": 128, "learning_starts": 5000, "tau": 0.01,
    },
    "dqn": {
        "learning_rate": 5e-4, "gamma": 0.99, "net_arch": (256, 256), "buffer_size": 100_000,
        "batch_size": 256, "learning_starts": 1000, "tau": 0.01, "exploration_final_eps": 0.05,
    },
}  # fmt: skip
STEPS = {"ppo": 200_000, "sac": 60_000, "dqn": 60_000}
