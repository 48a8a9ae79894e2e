"""What other libraries, and we ourselves once, called our settings.

`registry.unknown` looks here before it looks for names that are spelt alike, and
docs/from-sb3.md has the same table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headwise.upgrade import RENAMED


class Elsewhere(NamedTuple):
    """A name of another library for one of our settings."""

    theirs: str
    ours: str
    note: str = ""
    """What is different, as a sentence."""


_TARGET = "The target follows at every update, by so much."
_RATIO = "Updates for each environment step of a seed: gradient_steps / (train_freq * n_envs)."
_SHOWN = "It is shown unless you say False, or --no-progress."
_SEED = "[3] is the seed 3 alone; 3 is how many."

SB3 = (
    Elsewhere("policy_kwargs", "net_arch", "The activation is a setting too."),
    Elsewhere("activation_fn", "activation"),
    Elsewhere("target_kl", "kl_target", "Ours is the aim of a penalty, which kl_coef turns on."),
    Elsewhere("train_freq", "updates_per_step", _RATIO),
    Elsewhere("gradient_steps", "updates_per_step", _RATIO),
    Elsewhere("target_update_interval", "tau", _TARGET),
    Elsewhere("n_steps", "n_step", "It is the steps of reward before the next value."),
    Elsewhere("n_envs", "num_envs"),
    Elsewhere("seed", "first_seed", "With --seeds 1 it is trained alone."),
    Elsewhere("seed", "seeds", _SEED),
    Elsewhere("verbose", "progress", _SHOWN),
    Elsewhere("progress_bar", "progress", _SHOWN),
    Elsewhere("callback", "callbacks", "They are functions of a Report, in a list."),
    Elsewhere("log_interval", "log_every", "Ours counts environment steps of a seed."),
    Elsewhere("tensorboard_log", "loggers", "They are a list: [hw.TensorBoardLogger(folder)]."),
    Elsewhere("tensorboard_log", "log", "--log tensorboard writes into the folder of --out."),
    Elsewhere("n_eval_episodes", "episodes"),
)
"""Stable-Baselines3's, where they differ from ours."""

CLEANRL = (
    Elsewhere("num_steps", "n_steps"),
    Elsewhere("num_minibatches", "batch_size", "Ours is the rows of one, not how many there are."),
    Elsewhere("update_epochs", "n_epochs"),
    Elsewhere("clip_coef", "clip_range"),
    Elsewhere("clip_vloss", "clip_range_vf", "Ours is how far a value may move."),
    Elsewhere("norm_adv", "normalize_advantage"),
    Elsewhere("train_frequency", "updates_per_step", "It is 1 / (train_frequency * num_envs)."),
    Elsewhere("target_network_frequency", "tau", _TARGET),
    Elsewhere("start_e", "exploration_initial_eps"),
    Elsewhere("end_e", "exploration_final_eps"),
    Elsewhere("q_lr", "learning_rate"),
    Elsewhere("policy_lr", "actor_lr_scale", "It is a multiple of learning_rate, the critics'."),
    Elsewhere("alpha", "ent_coef", "A number is fixed; 'auto_0.2' is learned from there."),
    Elsewhere("env_id", "env"),
    Elsewhere("cuda", "device", "It is a word: cpu, cuda or auto."),
)
"""CleanRL's, where they differ from those."""

_PER_ENV = "It counts each environment: rollout=4096 of 16 environments is n_steps=256."
EARLIER = (
    Elsewhere("rollout", "n_steps", _PER_ENV),
    Elsewhere("normalise", "normalize_advantage", "It is 'rollout', 'batch' or False."),
    Elsewhere("first_temperature", "ent_coef", "To begin at 0.2 it is 'auto_0.2'."),
    Elsewhere("steps", "total_timesteps"),
    Elsewhere("normalise_obs", "normalize_obs"),
    Elsewhere("normalise_reward", "normalize_reward"),
    Elsewhere("sinks", "loggers", "They are CSVLogger, TensorBoardLogger, ..."),
    Elsewhere("products", "matmul_precision"),
    *(Elsewhere(old, new) for names in RENAMED.values() for old, new in names.items()),
)
"""What our own settings were called before 0.1."""

_NEAREST = {
    "ppo": "a2c a3c acktr acer impala trpo reinforce ppg recurrentppo maskableppo",
    "dqn": "ddqn doubledqn duelingdqn qrdqn c51 iqn rainbow r2d2 bdq",
    "sac": "td3 ddpg d4pg tqc redq droq crossq",
    "qplex": "qmix",
    "independent": "iql ippo",
}
NOT_OFFERED = {theirs: ours for ours, names in _NEAREST.items() for theirs in names.split()}
"""Algorithms and factorizations of others, with ours that comes nearest; in small letters alone."""

_NO_STATE = "There is no state: action = agent.predict(obs)."
_SHOW, _STEPS = (
    "learn shows how it goes, unless progress=False.",
    "Say it to learn: learn(100_000).",
)
_OF_ENV = (
    "autoreset", "bounds", "masks", "reward_weights", "team_reward", "vectorization", "zoom_bins",
    "zoom_levels",
)  # fmt: skip
AT_LEARN = {
    "steps": _STEPS,
    "total_timesteps": _STEPS,
    "verbose": _SHOW,
    "progress": _SHOW,
    "tensorboard_log": "Say it to learn: learn(..., loggers=[hw.TensorBoardLogger(folder)]).",
    "observation": "Say predict(obs).",
    "state": _NO_STATE,
    "episode_start": _NO_STATE,
    "reset_num_timesteps": "learn goes on where it is called again; a new Agent begins anew.",
    **{name: f'Say it to the environment: env_settings={{"{name}": ...}}.' for name in _OF_ENV},
}
"""What is said when an agent is made elsewhere, and to `learn` or to nothing here."""


def suggestion(name: str, known: Collection[str]) -> str | None:
    """What to write instead of another library's name, if one of the known names is meant by it."""
    nearest = NOT_OFFERED.get("".join(filter(str.isalnum, name.lower())))
    if nearest in known:
        return f"{name} is not offered; {nearest!r} is the nearest."
    for earlier, ours, note in EARLIER:
        if name == earlier and ours in known:
            return f"Write {ours!r}, which is what {earlier} is called now. {note}".rstrip()
    for library, names in (("Stable-Baselines3", SB3), ("CleanRL", CLEANRL)):
        for theirs, ours, note in names:
            if name == theirs and ours in known:
                return f"Did you mean {ours!r}, which {library} calls {theirs}? {note}".rstrip()
    return None
