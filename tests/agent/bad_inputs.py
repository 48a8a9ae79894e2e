"""Bad inputs by the hundred: settings, spaces, observations, masks, paths, checkpoints.

`python tests/agent/bad_inputs.py` writes the table docs/bad-inputs.md: what was tried, what it got.
"""

import json
import re
import tempfile
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
from bad_case import SHOOT, TINY, Bad, toy, trained
from bad_environments import env_cases

import headwise as hw

TABLE = Path(__file__).parents[2] / "docs" / "bad-inputs.md"


# --- settings -------------------------------------------------------------------------------------

NUMBERS = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus one": -1,
    "a word": "fast",
    "None": None,
    "a list of words": ["a"],
    "True": True,
    "a million": 1e6,
}
FITTING = {
    ("learning_rate", "a million"),
    ("ent_coef", "a million"),
    ("buffer_size", "a million"),
    ("clip_range", "a million"),
    ("n_steps", "a million"),
    ("n_epochs", "a million"),
    ("batch_size", "a million"),
    ("n_step", "a million"),
    ("max_grad_norm", "a million"),
}
"""Strange, but possible; or whole numbers that are given as 1e6, which are tried elsewhere."""
SETTINGS = {
    "ppo": (
        "learning_rate",
        "gamma",
        "clip_range",
        "gae_lambda",
        "ent_coef",
        "n_steps",
        "n_epochs",
        "max_grad_norm",
    ),
    "dqn": (
        "exploration_final_eps",
        "tau",
        "buffer_size",
        "batch_size",
        "n_step",
        "updates_per_step",
    ),
    "sac": ("target_entropy", "ent_coef", "actor_lr_scale"),
}


def setting_cases():
    for algo, names in SETTINGS.items():
        for name in names:
            for word, value in NUMBERS.items():
                if (name, word) not in FITTING:
                    yield Bad(
                        "settings",
                        f"{algo} {name}={word}",
                        lambda _, a=algo, n=name, v=value: trained(algo=a, **{n: v}),
                    )
    words = {
        "activation": "sinus",
        "ratio": "heads",
        "normalize_advantage": "each",
        "importance": "most",
        "weight_place": "left",
        "critic_target": "two_step",
        "center_advantage": "middle",
        "range_entropy": "max",
        "range_kind": "gauss",
        "inspect": "nobody",
        "net_arch": (0,),
        "bins": "many",
        "critic_net_arch": (-3,),
        "anneal_share": 2.0,
        "clip_range_vf": -1.0,
        "kl_coef": -1.0,
        "importance_floor": 1.5,
        "offline_rows": -1,
        "branch_width": 1.5,
    }
    for name, value in words.items():
        yield Bad("settings", f"ppo {name}={value!r}", lambda _, n=name, v=value: trained(**{n: v}))
    for algo, name, value in (
        ("ppo", "net_arch", 64),
        ("ppo", "critic_net_arch", 64),
        ("dqn", "branch_width", 0),
        ("sac", "order", 1),
    ):
        yield Bad(
            "settings",
            f"{algo} {name}={value}",
            lambda _, a=algo, n=name, v=value: trained(algo=a, factorization="ar", **{n: v}),
        )
    for name in (
        "lr",
        "rollout",
        "first_temperature",
        "gama",
        "learning_Rate",
        "seed",
        "verbose",
        "policy",
        "net_archh",
        "",
    ):
        yield Bad("settings", f"unknown setting {name!r}", lambda _, n=name: trained(**{n: 1}))


def agent_cases():
    def make(**settings):
        return lambda _: hw.Agent(**{"algo": "ppo", "env": SHOOT, **TINY, **settings})

    tries = {
        "algo": ("PPO2", "", None, 7, [], object),
        "factorization": ("qmix", "", None, 3, "joint "),
        "seeds": (0, -1, 1.5, "5", [], [0, 0], [-1], [2**64], ["a"], None, True, [1.5]),
        "num_envs": (0, -4, 2.5, "16", True, [1]),
        "view": ("hybridd", "", 3, [], True),
        "device": ("gpu", "cuda:99", "", 3.5, "tpu"),
        "normalize_obs": ("yes", 1, None),
        "env_settings": (
            "fast",
            [1],
            {"targets": 3},
            {"num_targets": 0},
            {"num_targets": "a"},
            {3: 4},
        ),
        "env": (
            "HybridShot",
            "CartPole-v99",
            "",
            None,
            7,
            {},
            [],
            object(),
            "nowhere:Env-v0",
            "headwise/X",
            lambda: None,
            lambda: 3,
            int,
            lambda: 1 / 0,
        ),
    }
    for name, values in tries.items():
        for number, value in enumerate(values):
            plain = not callable(value) and type(value) is not object
            shown = repr(value) if plain else f"something strange ({number})"
            yield Bad("agent", f"{name}={shown}", make(**{name: value}))
    yield Bad(
        "agent",
        "learning_rate for three seeds of two",
        make(seeds=2, learning_rate=(0.1, 0.1, 0.1)),
    )
    yield Bad("agent", "joint with numbers", make(factorization="joint"))
    yield Bad(
        "agent",
        "joint of too many actions",
        make(algo="dqn", env="CoopPush", factorization="joint", view="discrete", max_joint=10),
    )
    yield Bad("agent", "dqn without bins", make(algo="dqn", bins=None))
    yield Bad(
        "agent", "sac vdn without options", make(algo="sac", view="continuous", factorization="vdn")
    )
    yield Bad("agent", "one environment for many slots", make(env=toy()(), num_envs=4))
    yield Bad(
        "agent", "a vector environment of another size", make(env=gym.make_vec("CartPole-v1", 3))
    )


# --- calls ----------------------------------------------------------------------------------------


def call_cases():
    observations = {
        "too short": np.zeros(8),
        "too long": np.zeros(10),
        "a number": 3.0,
        "None": None,
        "a word": "left",
        "NaN": np.full(9, np.nan),
        "infinity": np.full(9, np.inf),
        "three axes": np.zeros((1, 1, 9)),
        "a dict": {"x": 1},
        "ragged": [[1], [1, 2]],
        "no rows": [],
        "complex": np.zeros(9, complex),
        "words": np.array(["a"] * 9),
    }
    for what, obs in observations.items():
        yield Bad("calls", f"predict({what})", lambda _, o=obs: trained().predict(o))
    for member in (2, -1, 1.0, "best", True, None):
        if member is not None:
            yield Bad("calls", f"member {member!r}", lambda _, m=member: trained(seeds=2).member(m))
            yield Bad(
                "calls",
                f"predict with member {member!r}",
                lambda _, m=member: trained(seeds=2).predict(np.zeros(9), member=m),
            )
    for steps in (0, -5, 2.5, "many", True, [1], None):
        yield Bad(
            "calls", f"learn({steps!r})", lambda _, s=steps: trained().learn(s, progress=False)
        )
    for name in ("checkpoint_every", "log_every"):
        for value in (0, -1, 1.5, "often"):
            yield Bad(
                "calls",
                f"learn({name}={value!r})",
                lambda f, n=name, v=value: trained().learn(
                    8, progress=False, checkpoint=f / "x.zip", **{n: v}
                ),
            )
    yield Bad(
        "calls",
        "learn(checkpoint_every=10) without a checkpoint",
        lambda _: trained().learn(8, progress=False, checkpoint_every=10),
    )
    yield Bad("calls", "learn(steps=8)", lambda _: trained().learn(steps=8))
    yield Bad(
        "calls", "evaluate(n_eval_episodes=1)", lambda _: trained().evaluate(n_eval_episodes=1)
    )
    for episodes in (0, -1, 1.5, "all", None):
        yield Bad("calls", f"evaluate({episodes!r})", lambda _, e=episodes: trained().evaluate(e))
    yield Bad("calls", "evaluate(seed=-1)", lambda _: trained().evaluate(1, seed=-1))
    for what in (3, "print", [None], None):
        yield Bad(
            "calls",
            f"callbacks={what!r}",
            lambda _, w=what: trained().learn(8, progress=False, callbacks=w),
        )
        yield Bad(
            "calls",
            f"loggers={what!r}",
            lambda _, w=what: trained().learn(8, progress=False, loggers=w),
        )
    for score in ("high", float("nan"), None):
        yield Bad("calls", f"StopOnReturn({score!r})", lambda _, s=score: hw.StopOnReturn(s))
    yield Bad("calls", "StopOnReturn of some", lambda _: hw.StopOnReturn(1.0, "some"))


# --- files ----------------------------------------------------------------------------------------


def saved(folder, change=None):
    path = folder / "x.zip"
    agent = trained(seeds=2)
    agent.learn(20, progress=False)
    agent.save(path)
    if change is not None:
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        info = json.loads(parts["checkpoint.json"])
        change(info, parts)
        parts.setdefault("checkpoint.json", b"")
        if parts["checkpoint.json"] != b"":
            parts["checkpoint.json"] = json.dumps(info).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
    return path


def file_cases():
    for path in ("", "\0", "nowhere/x.zip", ".", "/", None, 7, b"\xff"):
        yield Bad("files", f"load({path!r})", lambda _, p=path: hw.Agent.load(p))
        if path not in ("nowhere/x.zip", b"\xff"):
            yield Bad("files", f"save({path!r})", lambda _, p=path: trained().save(p))
    contents = {
        "empty": b"",
        "text": b"hello",
        "a pickle": b"\x80\x04cposix\nsystem\n",
        "zeros": b"\0" * 999,
        "an empty zip": b"PK\x05\x06" + b"\0" * 18,
    }
    for what, data in contents.items():

        def load(folder, data=data):
            (folder / "x.zip").write_bytes(data)
            return hw.Agent.load(folder / "x.zip")

        yield Bad("files", f"load a file that is {what}", load)
    for share in (0.2, 0.5, 0.99):

        def cut(folder, share=share):
            path = saved(folder)
            path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
            return hw.Agent.load(path)

        yield Bad("files", f"load {share:.0%} of a checkpoint", cut)
    forgeries = {
        "no plan": lambda i, p: i.pop("plan"),
        "a plan of another kind": lambda i, p: i.update(plan=[1]),
        "an unknown algorithm": lambda i, p: i["plan"].update(algorithm="os.system"),
        "an unknown setting": lambda i, p: i["plan"]["settings"].update(evil=1),
        "a setting of another kind": lambda i, p: i["plan"]["settings"].update(learning_rate="x"),
        "larger networks": lambda i, p: i["plan"]["settings"].update(net_arch=[10**9, 10**9]),
        "other networks": lambda i, p: i["plan"]["settings"].update(net_arch=[9]),
        "other seeds": lambda i, p: i["plan"].update(seeds=[0, 1, 2]),
        "no seeds": lambda i, p: i["plan"].update(seeds=[]),
        "slots without number": lambda i, p: i["plan"].update(num_envs=1e9),
        "a number as environment": lambda i, p: i["env"].update(id=7),
        "another environment": lambda i, p: i["env"].update(id="CartPole-v1"),
        "an environment without settings": lambda i, p: i["env"].update(settings=None),
        "no spaces": lambda i, p: i.pop("face"),
        "spaces of words": lambda i, p: i.update(face={"action_space": "all"}),
        "a space without end": lambda i, p: i["face"]["action_space"].update(tuple=[{"tuple": 3}]),
        "heads of another kind": lambda i, p: i["face"]["spec"].update(heads=[{"options": -1}]),
        "no learner": lambda i, p: (p.pop("learner.safetensors"), i["entries"].remove("learner")),
        "no counters": lambda i, p: (
            p.pop("counters.safetensors"),
            i["entries"].remove("counters"),
        ),
        "a learner that is the memory": lambda i, p: p.update(
            {"learner.safetensors": p["memory.safetensors"]}
        ),
        "a memory that is the learner": lambda i, p: p.update(
            {"memory.safetensors": p["learner.safetensors"]}
        ),
        "an environment's state that is none": lambda i, p: p.update(
            {"env.safetensors": p["counters.safetensors"]}
        ),
        "episodes that are none": lambda i, p: p.update(
            {"episodes.safetensors": p["counters.safetensors"]}
        ),
    }
    for what, change in forgeries.items():
        yield Bad(
            "files", f"a checkpoint with {what}", lambda f, c=change: hw.Agent.load(saved(f, c))
        )
    for kind in ("CSVLogger", "JSONLLogger", "ParquetLogger", "TensorBoardLogger"):
        for path in ("/proc/x/y", None, "\0"):
            yield Bad("files", f"{kind}({path!r})", lambda _, k=kind, p=path: getattr(hw, k)(p))
    yield Bad(
        "files",
        "a checkpoint below a file",
        lambda f: trained().learn(8, progress=False, checkpoint=saved(f) / "y.zip"),
    )
    yield Bad(
        "files",
        "load with another environment",
        lambda f: hw.Agent.load(saved(f), env="CartPole-v1"),
    )
    yield Bad("files", "load onto no device", lambda f: hw.Agent.load(saved(f), device="abacus"))


def all_cases():
    """Every bad input."""
    return [
        *setting_cases(),
        *agent_cases(),
        *env_cases(),
        *call_cases(),
        *file_cases(),
    ]


def outcome(case):
    """What a bad input got: the error, or None if nobody complained."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            case.do(Path(folder))
        except Exception as error:
            return error
    return None


def row(case, error):
    """The line of the table, up to the message."""
    what = case.what.replace("|", "\\|").replace("\0", "\\0")
    return f"| {case.group} | `{what}` | {type(error).__name__} |"


def main():
    """Writes the table."""
    rows = []
    for case in all_cases():
        error = outcome(case)
        text = re.sub(r"/tmp/[\w/]+", "FOLDER", str(error)).replace("|", "\\|").replace("\n", " ")
        text = re.sub(r"0x[0-9a-f]+", "0x...", text).replace("](", "]\\(")  # that is no link
        rows.append(f"{row(case, error)} {text[:220]} |")
    TABLE.write_text(
        "# Bad inputs\n\n"
        "This page is to judge by, and to search in, not to read: what Headwise says to "
        f"{len(rows)} things that nobody should do to it. A test does them all. It fails if one "
        "ends in anything but an error of ours, or if it is not on this page with that error.\n\n"
        "Made by `python tests/agent/bad_inputs.py`.\n\n"
        "| group | input | error | message |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()
