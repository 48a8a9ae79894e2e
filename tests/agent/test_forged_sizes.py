"""Checkpoints whose settings or tensors are of other sizes than they should be."""

import resource

import gymnasium as gym
import pytest
import torch
from robots import DQN, PPO, Masked, Robot

import headwise as hw
from headwise.agent import agent as room
from headwise.agent import storage
from headwise.algorithms import algorithms
from headwise.algorithms.base import Task
from headwise.factorizations import factorizations
from headwise.population import Keys, ShapesOnly
from headwise.training.checkpoint import read_checkpoint, write_checkpoint

VIEW = {"bins": 3}
AGENTS = {
    "ppo": ("ppo", {**PPO, "seeds": 2, "factorization": "qplex"}),
    "ppo of two networks": ("ppo", {**PPO, "critic_net_arch": (4,), "factorization": "ar"}),
    "dqn": ("dqn", {**DQN, **VIEW, "factorization": "qplex"}),
    "dqn of all joint actions": ("dqn", {**DQN, **VIEW, "factorization": "joint"}),
    "sac": ("sac", {**DQN, "factorization": "vdn"}),
}


@pytest.fixture(scope="module", params=AGENTS)
def trained(request, tmp_path_factory):
    """An agent of each kind in the middle of training, as a file, and what is in it."""
    algo, settings = AGENTS[request.param]
    path = tmp_path_factory.mktemp("agents") / "x.zip"
    steps = 88 if algo == "ppo" else 80  # a rollout is under way
    hw.Agent(algo, Robot, normalize_reward=True, **settings).learn(steps, progress=False).save(path)
    hw.Agent.load(path, env=Robot)
    return path, read_checkpoint(path)


def peak():
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def refused(path, info, tensors, words, monkeypatch):
    """Loads a forged file: it must be refused before anything is built, in little memory."""
    write_checkpoint(path, storage.Checkpoint(info, tensors))
    before = peak()
    with monkeypatch.context() as patch:
        patch.setattr(room, "make_loop", lambda *_, **__: pytest.fail("a learner was built"))
        with pytest.raises(hw.CheckpointError, match=words):
            hw.Agent.load(path, env=Robot)
    assert peak() - before < 100e6


def other_settings(info, part, **settings):
    return info | {"plan": info["plan"] | {part: info["plan"][part] | settings}}


SIZES = {
    "net_arch": [10**5, 10**5],
    "critic_net_arch": [10**5, 10**5],
    "branch_width": 10**8,
    "mixer_width": 10**7,
    "bins": 10**6,
}


@pytest.mark.parametrize("name", SIZES)
def test_settings_that_promise_gigabytes_are_refused_before_anything_is_built(
    trained, name, tmp_path, monkeypatch
):
    _, (info, tensors) = trained
    for part in ("settings", "factorization_settings"):
        if name in info["plan"][part]:
            info = other_settings(info, part, **{name: SIZES[name]})
            words = "does not fit its settings|promise more than it holds|cannot be used"
            refused(tmp_path / "y.zip", info, tensors, words, monkeypatch)
            small = SIZES[name][:1] if isinstance(SIZES[name], list) else 7
            info = other_settings(info, part, **{name: [9] if isinstance(small, list) else small})
            refused(tmp_path / "y.zip", info, tensors, words, monkeypatch)
            return
    pytest.skip("this learner has no such setting")


def test_all_sizes_that_a_setting_can_have_are_tried():
    """A new setting of a width belongs into `SIZES`."""
    named = set()
    for registry in (algorithms, factorizations):
        for kind in dict(registry.items()).values():
            named |= {
                name for name in kind.__dataclass_fields__ if "width" in name or "net_arch" in name
            }
    assert named <= SIZES.keys()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plan: {"num_envs": 10**9}, "num_envs must be a count; got 1000000000"),
        (lambda plan: {"num_envs": 10**6}, "does not fit its settings"),
        (lambda plan: {"seeds": list(range(50_000))}, "promise more|does not fit its settings"),
        (lambda plan: {"factorization": "joint", "factorization_settings": {"max_joint": 2**24}},
         "does not fit|promise more|cannot be used"),
        (lambda plan: {"factorization": "independent", "factorization_settings": {}},
         "does not fit|lacks parts|cannot be used"),
    ],
)  # fmt: skip
def test_so_are_members_slots_and_other_networks(trained, change, words, tmp_path, monkeypatch):
    _, (info, tensors) = trained
    change = change(info["plan"])
    if change.get("factorization") == info["plan"]["factorization"]:
        pytest.skip("it is what it was")
    forged = info | {"plan": info["plan"] | change}
    refused(tmp_path / "y.zip", forged, tensors, words, monkeypatch)


def test_slots_alone_can_promise_gigabytes(tmp_path, monkeypatch):
    wide = gym.spaces.Box(-1, 1, (100,))
    monkeypatch.setattr(Robot, "observation_space", wide)
    hw.Agent("ppo", Robot, **PPO).save(tmp_path / "x.zip")  # no tensor in it is of any slot
    info, tensors = read_checkpoint(tmp_path / "x.zip")
    forged = info | {"plan": info["plan"] | {"num_envs": 10**6}}  # the most that may be asked for
    refused(tmp_path / "y.zip", forged, tensors, "1,000,000 environments", monkeypatch)


@pytest.mark.parametrize("space", ["action_space", "observation_space"])
def test_a_space_of_a_billion_options_takes_no_memory(space, tmp_path, monkeypatch):
    hw.Agent("ppo", Robot, **PPO).save(tmp_path / "x.zip")
    info, tensors = read_checkpoint(tmp_path / "x.zip")
    face = info["face"] | {space: {"discrete": 10**9, "start": 0, "dtype": "int64"}}
    words = "does not describe its spaces|does not fit its settings"
    refused(tmp_path / "y.zip", info | {"face": face}, tensors, words, monkeypatch)


# --- tensors --------------------------------------------------------------------------------------


def test_tensors_of_another_shape_or_type_are_refused_at_load(trained, tmp_path, monkeypatch):
    """Each of them, whatever part it is in: not later, in `learn`."""
    _, (info, tensors) = trained
    assert {"counters", "learner", "normalizer", "memory", "metrics", "episodes"} <= tensors.keys()
    tried = 0
    for part, named in tensors.items():
        if part in ("env", "scores"):
            continue
        for name, x in named.items():
            others = [
                torch.cat([x[:1], x]) if x.dim() else x.view(1),
                x.unsqueeze(-1).unsqueeze(-1),
            ]
            if part == "episodes":  # of which there may be any number
                others[0] = x[:, :3]
            if part != "metrics":
                others.append(x.to(torch.float16))
            for other in others:
                changed = {**tensors, part: {**named, name: other}}
                write_checkpoint(tmp_path / "y.zip", storage.Checkpoint(info, changed))
                with pytest.raises(hw.CheckpointError, match=rf"the {part} in .* does not fit its"):
                    pytest.fail(f"{name} as {other.shape}: {hw.Agent.load(tmp_path / 'y.zip')}")
                tried += 1
    assert tried > 50


def test_a_memory_that_lacks_something_or_has_more_is_refused(trained, tmp_path):
    _, (info, tensors) = trained
    memory = tensors["memory"]
    changes = [{n: x for n, x in memory.items() if n != left_out} for left_out in memory]
    changes += [{**memory, "more": memory["reward"]}, {**memory, "legal": memory["obs"]}]
    changes += [{**memory, "extra_more": memory["reward"]}]
    for changed in changes:
        write_checkpoint(
            tmp_path / "y.zip", storage.Checkpoint(info, {**tensors, "memory": changed})
        )
        with pytest.raises(hw.CheckpointError, match="memory"):
            hw.Agent.load(tmp_path / "y.zip", env=Robot)


def test_counters_below_zero_are_refused(trained, tmp_path):
    _, (info, tensors) = trained
    for name in tensors["counters"]:
        counters = {**tensors["counters"], name: torch.tensor(-1)}
        write_checkpoint(
            tmp_path / "y.zip", storage.Checkpoint(info, {**tensors, "counters": counters})
        )
        with pytest.raises(hw.CheckpointError, match=rf"counters .* at '{name}'; got -1"):
            hw.Agent.load(tmp_path / "y.zip", env=Robot)


def test_masks_in_memory_have_a_shape_too(tmp_path):
    agent = hw.Agent("ppo", Masked, **PPO).learn(88, progress=False)
    agent.save(tmp_path / "x.zip")
    hw.Agent.load(tmp_path / "x.zip", env=Masked)
    info, tensors = read_checkpoint(tmp_path / "x.zip")
    for wrong in (tensors["memory"]["legal"][..., :-1], tensors["memory"]["legal"].float()):
        memory = {**tensors["memory"], "legal": wrong}
        write_checkpoint(
            tmp_path / "y.zip", storage.Checkpoint(info, {**tensors, "memory": memory})
        )
        with pytest.raises(hw.CheckpointError, match=r"memory in the checkpoint .* at 'legal'"):
            hw.Agent.load(tmp_path / "y.zip", env=Masked)


# --- what is told from shapes is what is built ----------------------------------------------------


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
@pytest.mark.parametrize("view", ["hybrid", "discrete", "continuous"])
def test_a_learner_of_shapes_is_that_of_numbers(algo, view):
    for name, kind in factorizations.items():
        agent = hw.Agent("ppo", "HybridShoot", seeds=2, num_envs=2, view=view)
        spec = agent.face.spec
        config = algorithms.get(algo)(net_arch=(8, 6))
        parts = {"spec": spec, "obs_spec": hw.ObsSpec.flat(9), "num_slots": 2, "total_steps": 10}
        try:
            built = config.build(Task(factorization=kind(), keys=Keys((3, 4)), **parts))
        except hw.ConfigError:
            continue  # they do not go together
        shapes = config.build(Task(factorization=kind(), keys=ShapesOnly((3, 4)), **parts))
        told, there = shapes.state_dict(), built.state_dict()
        assert {n: (x.shape, x.dtype) for n, x in told.items()} == {
            n: (x.shape, x.dtype) for n, x in there.items()
        }, name
        assert any(x.device.type == "meta" for x in told.values())
