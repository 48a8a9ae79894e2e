"""What other libraries call our settings, for those who come from there.

`registry.unknown` looks here before it looks for names that are spelt alike, and
docs/from-sb3.md has the same table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Elsewhere(NamedTuple):
    """A name of another library for one of our settings."""

    theirs: str
    ours: str
    note: str = ""
    """What is different, as a sentence."""


_TIMES = "Ours counts all environments together: n_steps times n_envs."
_TARGET = "The target follows at every update, by so much."
_RATIO = "Updates for each environment step of a seed: gradient_steps / (train_freq * n_envs)."
_SHOWN = "It is shown unless you say False, or --no-progress."
_SEED = "[3] is the seed 3 alone; 3 is how many."

SB3 = (
    Elsewhere("learning_rate", "lr"),
    Elsewhere("net_arch", "hidden"),
    Elsewhere("policy_kwargs", "hidden", "The activation is a setting too."),
    Elsewhere("activation_fn", "activation"),
    Elsewhere("n_steps", "rollout", _TIMES),
    Elsewhere("n_steps", "n_step"),
    Elsewhere("batch_size", "minibatch"),
    Elsewhere("n_epochs", "epochs"),
    Elsewhere("clip_range", "clip"),
    Elsewhere(
        "clip_range_vf",
        "value_clip",
        "Ours takes the larger of two losses, each a mean over the minibatch: of the value as it "
        "is, and of the clipped one.",
    ),
    Elsewhere("ent_coef", "entropy_coef"),
    Elsewhere("ent_coef", "first_temperature", "It is learned from there, as with 'auto'."),
    Elsewhere("vf_coef", "value_coef"),
    Elsewhere("normalize_advantage", "normalise", "It is a word: rollout, minibatch or off."),
    Elsewhere("target_kl", "kl_target", "Ours is the aim of a penalty, which kl_coef turns on."),
    Elsewhere("buffer_size", "replay"),
    Elsewhere("learning_starts", "warmup"),
    Elsewhere("train_freq", "updates_per_step", _RATIO),
    Elsewhere("gradient_steps", "updates_per_step", _RATIO),
    Elsewhere("target_update_interval", "tau", _TARGET),
    Elsewhere("exploration_fraction", "epsilon_share"),
    Elsewhere("exploration_initial_eps", "epsilon_start"),
    Elsewhere("exploration_final_eps", "epsilon"),
    Elsewhere("n_envs", "num_envs"),
    Elsewhere("seed", "first_seed", "With --seeds 1 it is trained alone."),
    Elsewhere("seed", "seeds", _SEED),
    Elsewhere("total_timesteps", "steps", "Each seed takes so many."),
    Elsewhere("verbose", "progress", _SHOWN),
    Elsewhere("progress_bar", "progress", _SHOWN),
    Elsewhere("callback", "callbacks", "They are functions of a Report, in a list."),
    Elsewhere("log_interval", "log_every", "Ours counts environment steps of a seed."),
    Elsewhere("tensorboard_log", "sinks", "They are a list: [hw.TensorBoardSink(folder)]."),
    Elsewhere("tensorboard_log", "log", "--log tensorboard writes into the folder of --out."),
    Elsewhere("n_eval_episodes", "episodes"),
)
"""Stable-Baselines3's."""

CLEANRL = (
    Elsewhere("num_steps", "rollout", "Ours counts all environments: num_steps times num_envs."),
    Elsewhere("num_minibatches", "minibatch", "Ours is the rows of one, not how many there are."),
    Elsewhere("update_epochs", "epochs"),
    Elsewhere("clip_coef", "clip"),
    Elsewhere("clip_vloss", "value_clip", "Ours is how far a value may move."),
    Elsewhere("norm_adv", "normalise", "It is a word: rollout, minibatch or off."),
    Elsewhere("train_frequency", "updates_per_step", "It is 1 / (train_frequency * num_envs)."),
    Elsewhere("target_network_frequency", "tau", _TARGET),
    Elsewhere("start_e", "epsilon_start"),
    Elsewhere("end_e", "epsilon"),
    Elsewhere("q_lr", "lr"),
    Elsewhere("policy_lr", "actor_lr_scale", "It is a multiple of lr, the critics' step size."),
    Elsewhere("alpha", "first_temperature", "It is learned from there, as with autotune."),
    Elsewhere("env_id", "env"),
    Elsewhere("cuda", "device", "It is a word: cpu, cuda or auto."),
)
"""CleanRL's, where they differ from those."""

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
AT_LEARN = {
    "steps": _STEPS,
    "total_timesteps": _STEPS,
    "verbose": _SHOW,
    "progress": _SHOW,
    "tensorboard_log": "Say it to learn: learn(..., sinks=[hw.TensorBoardSink(folder)]).",
    "observation": "Say predict(obs).",
    "state": _NO_STATE,
    "episode_start": _NO_STATE,
    "reset_num_timesteps": "learn goes on where it is called again; a new Agent begins anew.",
}
"""What is said when an agent is made elsewhere, and to `learn` or to nobody here."""


def suggestion(name: str, known: Collection[str]) -> str | None:
    """What to write instead of another library's name, if one of the known names is meant by it."""
    nearest = NOT_OFFERED.get("".join(filter(str.isalnum, name.lower())))
    if nearest in known:
        return f"{name} is not offered; {nearest!r} is the nearest."
    for library, names in (("Stable-Baselines3", SB3), ("CleanRL", CLEANRL)):
        for theirs, ours, note in names:
            if name == theirs and ours in known:
                return f"Did you mean {ours!r}, which {library} calls {theirs}? {note}".rstrip()
    return None
