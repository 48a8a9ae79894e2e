"""`headwise train` of small networks, for tests."""

from headwise.cli import main

SMALL = "--net-arch 16 --n-steps 16 --batch-size 16 --num-envs 2 --no-progress --device cpu"
SHOOT = (
    "--env headwise/HybridShoot-v0 --view hybrid --factorization vdn --seeds 2 --total-timesteps 64"
)


def train(folder, *words):
    """64 steps of two seeds, unless the words say otherwise; returns the exit status."""
    return main(["train", *SHOOT.split(), *SMALL.split(), "--out", str(folder), *words])
