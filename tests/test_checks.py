"""Settings and counts: NumPy's numbers are numbers, and what is refused says what would do."""

import json
from dataclasses import asdict, dataclass, fields

import numpy as np
import pytest

import headwise as hw
from headwise.algorithms import algorithms
from headwise.algorithms.base import AlgorithmConfig, PerMember, config_from, per_member_fields
from headwise.algorithms.dqn import DQN
from headwise.algorithms.ppo import PPO
from headwise.checks import checked_count, checked_seed, is_whole, optional_count
from headwise.errors import ConfigError, EnvError
from headwise.factorizations import factorizations
from headwise.factorizations.ar import AR

KINDS = [*algorithms.items(), *factorizations.items()]


def as_numpy(value):
    """The same value as NumPy has it; a word stays what it is."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int | float):
        return np.asarray(value)[()]
    return np.array(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("name", "kind"), KINDS, ids=[name for name, _ in KINDS])
def test_every_setting_may_come_from_numpy_and_is_kept_plain(name, kind):
    plain = kind()
    numpy = kind(**{f.name: as_numpy(getattr(plain, f.name)) for f in fields(kind)})
    assert numpy == plain
    assert json.dumps(asdict(numpy)) == json.dumps(asdict(plain))  # so run ids are the same


def test_a_number_for_each_member_may_be_an_array_or_a_list():
    for rates in (np.array([0.5, 0.25], dtype=np.float32), [0.5, 0.25], (np.float64(0.5), 0.25)):
        config = PPO(learning_rate=rates)
        assert config.learning_rate == (0.5, 0.25)
        assert [type(rate) for rate in config.learning_rate] == [float, float]
    assert "learning_rate" in per_member_fields(PPO())


@dataclass(frozen=True, kw_only=True)
class Mine(AlgorithmConfig):
    """Annotations that are types and no text: this module has no `from __future__`."""

    name = "mine"
    noise: PerMember = 0.1
    last_noise: PerMember | None = None
    share: float = 0.5
    note: str = "PerMember"


@dataclass(frozen=True, kw_only=True)
class InWords(AlgorithmConfig):
    name = "in words"
    noise: "PerMember" = 0.1
    last_noise: "PerMember | None" = None
    share: "float" = 0.5


@pytest.mark.parametrize("kind", [Mine, InWords])
def test_settings_for_each_member_are_known_by_their_type(kind):
    assert per_member_fields(kind) == ("learning_rate", "gamma", "noise", "last_noise")
    assert per_member_fields(kind()) == per_member_fields(kind)
    assert kind(noise=[0.1, 0.2], last_noise=np.array([0.5, 1.0])).last_noise == (0.5, 1.0)
    with pytest.raises(ConfigError, match="'noise' must be a number, or one for each member"):
        kind(noise="loud")
    with pytest.raises(ConfigError, match="'share' must be a number; got"):
        kind(share=(0.1, 0.2))


def test_a_list_of_layers_is_a_list_or_an_array():
    for widths in ([64, 32], np.array([64, 32]), (np.int64(64), 32)):
        assert config_from(PPO, {"net_arch": widths, "critic_net_arch": widths}).net_arch == (
            64,
            32,
        )


@pytest.mark.parametrize("bad", [64, "64", (64.0,), (0,), (True,), ((64,),), {"a": 64}, 0.5])
@pytest.mark.parametrize("name", ["net_arch", "critic_net_arch"])
def test_other_layers_are_refused_with_what_would_do(name, bad):
    with pytest.raises(ConfigError, match=rf"ppo setting '{name}' must be a list.*\(64,\) is one"):
        PPO(**{name: bad})


def test_a_network_needs_a_layer():
    with pytest.raises(ConfigError, match="'net_arch' must have a layer"):
        PPO(net_arch=())


@pytest.mark.parametrize("bad", [1, "ab", (1, 2)])
def test_an_order_is_a_list_of_names(bad):
    with pytest.raises(ConfigError, match="ar setting 'order' must be a list of names"):
        AR(order=bad)
    assert AR(order=["b", "a"]).order == ("b", "a")


def test_bins_by_head_are_a_dict_of_counts():
    assert DQN(bins={"aim": np.int64(5)}).bins == {"aim": 5}
    with pytest.raises(ConfigError, match="'bins' must be a count"):
        DQN(bins={"aim": "many"})
    agent = hw.Agent("dqn", "HybridShoot", bins={"aim_x": 5, "aim_y": 3}, num_envs=1, net_arch=(8,))
    assert agent.loop.algorithm.layout.spec.cardinalities == (3, 5, 3)


@pytest.mark.parametrize(
    ("algo", "factorization"), [("dqn", "shared"), ("sac", "vdn"), ("ppo", "vdn"), ("ppo", "qplex")]
)
def test_a_branch_without_width_is_refused_where_there_must_be_one(algo, factorization):
    with pytest.raises(ConfigError, match=r"branch_width.* must be a count; got 0; .* from 1"):
        hw.Agent(algo, "HybridShoot", factorization=factorization, branch_width=0, view="discrete")
    hw.Agent("ppo", "HybridShoot", branch_width=0, net_arch=(8,))  # there it leaves a layer out


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"learning_rate": 0.0}, r"above 0\."),
        ({"learning_rate": 10**400}, r"finite numbers\."),
        ({"clip_range": 0.0}, r"above 0, at most 10\."),
        ({"gamma": (0.9, 1.5)}, r"from 0 to 1\."),
        (
            {"learning_rate": "fast"},
            r"must be a number or a schedule, or one for each member; got fast",
        ),
        ({"vf_coef": (0.1, 0.2)}, r"must be a number; got"),
    ],
)
def test_a_number_out_of_range_is_told_the_range_in_words(settings, allowed):
    with pytest.raises(ConfigError, match=allowed):
        PPO(**settings)


@pytest.mark.parametrize("good", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_a_count_is_a_whole_number_of_python_or_numpy(good):
    assert checked_count("things", good) == checked_seed(good) == 3
    assert type(checked_count("things", good)) is type(checked_seed(good)) is int


@pytest.mark.parametrize("bad", [-1, 2.0, np.float32(2), True, np.True_, "3", None, [3]])
def test_other_counts_and_seeds_are_refused(bad):
    with pytest.raises(EnvError, match=r"slots must be a count; got .*; allowed: whole .* from 0"):
        checked_count("slots", bad, 0, error=EnvError)
    with pytest.raises(ConfigError, match="a seed must be a whole number; got"):
        checked_seed(bad)
    if bad is not None:
        with pytest.raises(ConfigError, match="things must be a count"):
            optional_count("things", bad)


def test_a_count_that_need_not_be_given():
    assert optional_count("things", None) is None
    assert optional_count("things", np.int64(3)) == 3
    with pytest.raises(ConfigError, match=r"things must be a count; got 0; .* from 1"):
        optional_count("things", 0)


def test_whole_numbers_are_those_of_python_and_numpy():
    assert all(map(is_whole, [0, -1, np.int8(3), np.uint64(2**64 - 1)]))
    assert not any(map(is_whole, [True, np.True_, 1.0, np.float32(1), "1", None, [1]]))


def test_a_count_that_is_needed_may_not_be_none():
    agent = hw.Agent("ppo", "HybridShoot", num_envs=1, net_arch=(8,), n_steps=8)
    with pytest.raises(ConfigError, match="episodes must be a count; got None"):
        agent.evaluate(None)
    with pytest.raises(ConfigError, match="num_envs must be a count; got None"):
        agent.config.replace(num_envs=None)


def test_the_bounds_of_counts_and_seeds():
    assert checked_count("things", 5, 5, 5) == 5
    for bad in (4, 6000):
        with pytest.raises(ConfigError, match=r"whole numbers from 5 to 5,000"):
            checked_count("things", bad, 5, 5000)
    assert checked_seed(2**64 - 1) == checked_seed(np.uint64(2**64 - 1)) == 2**64 - 1
    with pytest.raises(ConfigError, match=r"from 0 to 2\^64 - 1"):
        checked_seed(2**64)


def test_an_agent_takes_numbers_of_numpy_wherever_it_takes_numbers():
    agent = hw.Agent(
        "ppo",
        "HybridShoot",
        seeds=np.array([3, 4]),
        num_envs=np.int64(2),
        normalize_obs=np.bool_(True),
        net_arch=np.array([8]),
        n_steps=np.int64(4),
        learning_rate=np.array([1e-3, 1e-4], dtype=np.float32),
    )
    agent.learn(np.int64(8), progress=False, log_every=np.int32(8))
    agent.evaluate(np.int64(2), seed=np.int64(1))
    assert json.dumps(agent.config.to_json())
    assert hw.StopOnReturn(np.float32(2), episodes=np.int64(5)) == hw.StopOnReturn(2.0, episodes=5)
