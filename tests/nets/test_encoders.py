"""Encoders: what they are told, what they refuse, and that their numbers are those of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import headwise as hw
from headwise import ConfigError
from headwise.algorithms.base import Task
from headwise.algorithms.dqn import DQN
from headwise.algorithms.ppo import PPO
from headwise.factorizations.independent import Independent
from headwise.factorizations.shared import Shared
from headwise.nets.encoders import CNN, Entities, Module, NetworkConfig, SimBa, make_encoder
from headwise.nets.encoders.build import Joined
from headwise.nets.encoders.observed import read, shifted, structured
from headwise.ops import Buffer
from headwise.ops.threads import members_over
from headwise.population import Keys, Store
from headwise.spaces import ActionSpec, Choice, ObsCodec, ObsSpec
from headwise.training.config import RunConfig

IMAGE = spaces.Box(0, 255, (12, 10, 2), np.uint8)
NESTED = spaces.Dict(
    camera=IMAGE,
    rest=spaces.Tuple([spaces.Box(-2.0, 2.0, (3,)), spaces.Discrete(4)]),
)


def spec_of(space):
    return ObsCodec(space).spec


def rows_of(space, members=2, rows=5):
    codec = ObsCodec(space)
    space.seed(0)
    flat = [[codec.flatten(space.sample()) for _ in range(rows)] for _ in range(members)]
    return torch.from_numpy(np.array(flat))


def built(network, space, members=2, rows=5):
    """An encoder with parameters, its store, and observations (P, 1, B, W)."""
    keys = Keys(range(members))
    encoder = make_encoder(network, spec_of(space), keys, 0)
    store = Store(keys, encoder.parts)
    x = rows_of(space, members, rows).unsqueeze(1)
    obs = Buffer(members, rows, x.shape[-1])
    obs.tensor.copy_(x)
    return encoder, store, obs


# --- what modules see -----------------------------------------------------------------------------


def test_leaves_are_scaled_and_nested_as_the_space_is():
    space, codec = NESTED, ObsCodec(NESTED)
    space.seed(1)
    obs = space.sample()
    seen = structured(
        read(torch.from_numpy(codec.flatten(obs))[None], codec.spec, normalized=False), codec.spec
    )
    assert seen["camera"].shape == (1, 12, 10, 2)
    np.testing.assert_allclose(seen["camera"][0], obs["camera"] / 255.0, rtol=1e-6)
    numbers, gear = seen["rest"]
    np.testing.assert_array_equal(numbers[0], obs["rest"][0])
    assert gear[0].argmax() == obs["rest"][1]
    assert gear.sum() == 1.0


@pytest.mark.parametrize("normalized", [False, True])
def test_images_of_floats_are_scaled_once(normalized):
    space = spaces.Box(0.0, 255.0, (6, 6, 1), np.float32)
    x = torch.full((1, 1, 36), 51.0)
    seen = read(x, spec_of(space), normalized=normalized)["observation"]
    assert torch.allclose(seen, torch.tensor(51.0 if normalized else 0.2))
    unit = spaces.Box(0.0, 1.0, (6, 6, 1), np.float32)
    assert read(x, spec_of(unit), normalized=False)["observation"].max() == 51.0


@pytest.mark.parametrize("shape", [(6, 5, 1), (1, 6, 5)])
def test_images_are_shifted_as_padding_and_cropping_would(shape):
    spec, most = spec_of(spaces.Box(0, 255, shape, np.uint8)), 2
    x = torch.rand(2, 8, *shape, generator=torch.Generator().manual_seed(0))
    uniform = torch.rand(2, 8, 2, generator=torch.Generator().manual_seed(1))
    moved = shifted({"observation": x}, spec, uniform, most)["observation"]
    picture, result = x.view(2, 8, 6, 5), moved.view(2, 8, 6, 5)
    padded = nn.functional.pad(picture, (most,) * 4, mode="replicate")
    seen = set()
    for p in range(2):
        for b in range(8):
            down, right = (int(u * (2 * most + 1)) for u in uniform[p, b])
            crop = padded[p, b, down : down + 6, right : right + 5]
            assert torch.equal(result[p, b], crop)
            seen |= {down, right}
    assert seen == {0, 1, 2, 3, 4}


# --- numbers of torch -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        NetworkConfig(encoder=CNN(layers=((3, 3, 2),), width=4)),
        NetworkConfig(encoder="impala"),
        NetworkConfig(encoder=SimBa(8, 1)),
    ],
    ids=["cnn", "impala", "simba"],
)
def test_features_and_gradients_are_those_of_a_plain_module_in_float64(network):
    encoder, store, obs = built(network, NESTED)
    x = encoder.forward(obs, "x", learns=True)
    direction = torch.randn(x.tensor.shape, generator=torch.Generator().manual_seed(0))
    x.gradient.copy_(direction)
    encoder.backward(x)
    spec = spec_of(NESTED)
    for member, module in enumerate(encoder.net._modules):
        twin = Joined(network, spec)
        twin.load_state_dict(module.state_dict())
        twin.double()
        leaves = {n: t.double() for n, t in read(obs.tensor[:, 0], spec, normalized=False).items()}
        y = twin({name: t[member] for name, t in leaves.items()})
        torch.testing.assert_close(x.tensor[member, 0].double(), y, rtol=1e-5, atol=1e-5)
        (y * direction[member, 0].double()).sum().backward()
        at = 0
        for w in twin.parameters():
            ours = store.parameters.gradient[member, 0, 0, at : at + w.numel()].view_as(w)
            torch.testing.assert_close(ours.double(), w.grad, rtol=1e-4, atol=1e-4)
            at += w.numel()
        assert at == store.num_parameters


def test_a_gradient_of_one_member_reaches_no_other():
    encoder, store, obs = built(NetworkConfig(encoder="cnn"), IMAGE, members=3)
    x = encoder.forward(obs, "x", learns=True)
    x.gradient.zero_()
    x.gradient[1] = 1.0
    encoder.backward(x)
    reached = (store.parameters.gradient != 0.0).flatten(1).any(1)
    assert reached.tolist() == [False, True, False]


def test_members_on_threads_have_the_numbers_of_members_one_by_one():
    found = []
    for threads in (1, 2):
        encoder, store, obs = built(NetworkConfig(encoder="cnn"), NESTED, members=3)
        with members_over(threads):
            x = encoder.forward(obs, "x", learns=True)
            x.gradient.fill_(0.5)
            encoder.backward(x)
        assert (encoder.net._pool is not None) == (threads > 1)
        found.append((x.tensor.clone(), store.parameters.gradient.clone()))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_members_begin_each_by_its_seed_and_targets_as_they_do():
    make = lambda number, seeds: built_store(number, seeds).rows()  # noqa: E731
    both, alone = make(0, [3, 5]), make(0, [5])
    assert torch.equal(both[1], alone[0])
    assert not torch.equal(both[0], both[1])
    assert not torch.equal(make(1, [5]), alone)
    before = torch.get_rng_state()
    make(0, [7])
    assert torch.equal(torch.get_rng_state(), before)


def built_store(number, seeds):
    keys = Keys(seeds)
    network = NetworkConfig(encoder="cnn")
    return Store(keys, make_encoder(network, spec_of(IMAGE), keys, number).parts)


def test_entities_are_the_same_in_any_order_and_blind_to_the_absent():
    net = Entities(8, 2, 2).build("units", (5, 3)).double()
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(4, 5, 3, generator=chance, dtype=torch.float64)
    there = torch.tensor([[1, 1, 0, 1, 0]] * 3 + [[0] * 5], dtype=torch.float64)
    order = torch.tensor([3, 0, 4, 2, 1])
    torch.testing.assert_close(net(x, there), net(x[:, order], there[:, order]))
    other = torch.where(there.unsqueeze(-1) > 0.5, x, 100.0 * x + 7.0)
    torch.testing.assert_close(net(other, there), net(x, there))
    assert (net(x, there)[3] == 0.0).all()
    assert not torch.allclose(net(x, there), net(x, torch.ones_like(there)))


@pytest.mark.parametrize(
    ("shape", "first"), [((3, 40, 50), True), ((40, 50, 3), False), ((4, 6, 7), True)]
)
def test_images_may_have_their_channels_first_or_last(shape, first):
    net = CNN().build("camera", shape)
    assert net.first is first
    assert net(torch.rand(2, *shape)).shape[0] == 2


@pytest.mark.parametrize(
    ("side", "width"), [(84, 512), (36, 512), (35, 256), (16, 256), (15, 128), (5, 128)]
)
def test_a_cnn_has_kernels_for_the_size(side, width):
    assert CNN().build("camera", (side, side, 1))(torch.rand(1, side, side, 1)).shape == (1, width)


# --- what is chosen -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "learns"),
    [
        (IMAGE, True),
        (NESTED, True),
        (spaces.Box(-1.0, 1.0, (4,)), False),
        (spaces.Box(0, 255, (12, 12), np.uint8), False),
        (spaces.Box(0, 255, (3, 3, 3), np.uint8), False),
        (spaces.Box(-np.inf, np.inf, (12, 12, 3)), False),
    ],
)
def test_images_of_bytes_are_read_by_a_cnn_unless_somebody_says_otherwise(space, learns):
    assert NetworkConfig().chosen(spec_of(space)).learns is learns
    assert not NetworkConfig(encoder="vector").chosen(spec_of(space)).learns


@pytest.mark.parametrize(
    "encoder", [None, "vector", "cnn", "nature", "impala", "simba", CNN(layers=((8, 3, 1),))]
)
def test_settings_come_back_from_plain_data(encoder):
    config = RunConfig.of("ppo", "CartPole-v1", encoder=encoder)
    assert RunConfig.from_json(config.to_json()) == config


def test_runs_without_an_encoder_keep_their_ids_and_others_have_their_own():
    plain = RunConfig.of("ppo", "CartPole-v1", total_timesteps=1)
    assert "encoder" not in plain.determining()
    assert "entities" not in plain.determining()
    ids = {plain.run_id(0)} | {
        RunConfig.of("ppo", "CartPole-v1", total_timesteps=1, encoder=name).run_id(0)
        for name in ("vector", "cnn", "nature", "simba")
    }
    assert len(ids) == 5


def test_a_line_says_what_reads_observations():
    assert "as they are" in str(NetworkConfig())
    assert "CNN(kind='auto'" in str(NetworkConfig().chosen(spec_of(IMAGE)))
    assert "units by attention" in str(NetworkConfig(entities={"units": "there"}))


def test_simba_turns_normalization_on():
    config = RunConfig.of("ppo", "CartPole-v1", encoder="simba")
    assert config.fitting(ObsSpec.flat(3)).normalization.normalize_obs is True


# --- what is refused ------------------------------------------------------------------------------


def learner_for(space, algorithm=DQN, **network):
    config = NetworkConfig(**network)
    task = Task(ActionSpec.of([Choice(2)]), spec_of(space), 2, 100, Shared(), Keys([0]), config)
    return algorithm.small(net_arch=(8,)).build(task)


@pytest.mark.parametrize(
    ("space", "network", "message"),
    [
        (spaces.Box(0, 255, (12, 12), np.uint8), {"encoder": "cnn"}, "has none.*rank 3.*axis"),
        (spaces.Box(-9.0, 9.0, (9, 9, 1)), {"encoder": "cnn"}, "'observation' has numbers outside"),
        (IMAGE, {"encoder": "nature"}, "'observation' is too small.*12 x 10.*hw.CNN"),
        (NESTED, {"encoder": CNN(layers=((4, 11, 1),))}, "'camera' is too small"),
        (NESTED, {"encoder": "entities"}, "does not know which leaf.*entities="),
        (NESTED, {"entities": {"units": "mask"}}, "'units', which is no leaf"),
        (NESTED, {"entities": {"camera": "rest[0]"}}, "do not fit their mask"),
    ],
)
def test_observations_that_an_encoder_cannot_read_are_refused(space, network, message):
    with pytest.raises(ConfigError, match=message):
        learner_for(space, **network)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "cn"}, "unknown encoder.*Did you mean 'cnn'"),
        ({"encoder": 3}, "encoder is none.*MyModule"),
        ({"encoder": nn.Linear(3, 3)}, "not a module; got Linear.*encoder=Linear"),
        ({"entities": ["units"]}, "names leaves"),
        ({"entities": {"units": 3}}, "names leaves"),
    ],
)
def test_settings_that_name_no_encoder_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        NetworkConfig(**settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CNN(layers=((32, 8),)), "channels, kernel and stride"),
        (lambda: CNN(layers=()), "needs a layer"),
        (lambda: CNN("big"), "unknown value.*nature"),
        (lambda: Entities(6, 4), "evenly"),
        (lambda: SimBa(0), "must be a count"),
    ],
)
def test_settings_of_encoders_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


class _Net(nn.Module):
    """A linear layer of a vector of three; what others get wrong is in their `forward`."""

    def __init__(self, space):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        return self.layer(x)


class _Normed(_Net):
    def __init__(self, space):
        super().__init__(space)
        self.layer = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


class _Counting(_Net):
    def __init__(self, space):
        super().__init__(space)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


class _Chancy(_Net):
    def __init__(self, space):
        super().__init__(space)
        self.register_buffer("noise", torch.rand(3))


class _Lazy(_Net):
    def __init__(self, space):
        super().__init__(space)
        self.layer = nn.LazyLinear(4)


class _Frozen(_Net):
    def __init__(self, space):
        super().__init__(space)
        self.layer.requires_grad_(False)


def returning(function):
    return type("_Wrong", (_Net,), {"forward": lambda self, x: function(self.layer(x))})


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (_Normed, "BatchNorm1d.*GroupNorm or nn.LayerNorm"),
        (_Counting, "changes a buffer.*'?calls"),
        (_Chancy, "buffer that begins by chance.*noise"),
        (_Lazy, "lazy layer"),
        (_Frozen, "does not learn.*register_buffer"),
        (returning(lambda y: y.unsqueeze(1)), r"another shape; got \(5, 1, 4\).*flatten"),
        (returning(lambda y: y[:, 0]), r"another shape; got \(5,\)"),
        (returning(lambda y: y[:, :0]), r"another shape; got \(5, 0\)"),
        (returning(lambda y: y.double()), "other numbers; got torch.float64"),
        (returning(lambda y: y / 0.0), "not finite"),
        (returning(lambda y: y - y.mean(0)), "changes with the size of the batch"),
        (returning(lambda y: nn.functional.dropout(y)), "other features for the same"),
        (returning(lambda y: y.to("meta")), "moves observations to another device; got meta"),
        (returning(lambda y: [y]), "returns no tensor; got list"),
        (returning(lambda y: y @ y), "fails on a batch.*RuntimeError"),
        (lambda space: _Net(space).double(), "parameter elsewhere; got torch.float64"),
        (lambda space: 3, "returns an nn.Module; got int"),
    ],
)
def test_modules_that_cannot_be_trained_as_they_are_are_refused(module, message):
    with pytest.raises(ConfigError, match=message):
        learner_for(spaces.Box(-1.0, 1.0, (3,)), PPO, encoder=module)


def test_a_module_is_made_for_the_space_and_may_have_constants():
    class Fine(_Net):
        def __init__(self, space):
            super().__init__(space)
            assert space.shape == (3,)
            self.register_buffer("shift", torch.arange(3.0))

        def forward(self, x):
            return self.layer(x + self.shift)

    assert learner_for(spaces.Box(-1.0, 1.0, (3,)), encoder=Fine).features == 4


def test_an_encoder_for_heads_that_share_nothing_must_be_meant():
    config = NetworkConfig(encoder="cnn")
    spec = ActionSpec.of([Choice(2), Choice(3)])
    for kind, good in ((Independent(), False), (Independent(shared_encoder=True), True)):
        task = Task(spec, spec_of(IMAGE), 2, 100, kind, Keys([0]), config)
        if good:
            DQN.small(net_arch=(8,)).build(task)
            continue
        with pytest.raises(ConfigError, match=r"share nothing.*shared_encoder=True"):
            DQN.small(net_arch=(8,)).build(task)


def test_a_shift_without_images_is_refused():
    vector = spaces.Box(-1.0, 1.0, (3,))
    for space, network in ((vector, NetworkConfig()), (IMAGE, NetworkConfig(encoder="vector"))):
        spec = ActionSpec.of([Choice(2)])
        task = Task(spec, spec_of(space), 2, 100, Shared(), Keys([0]), network)
        with pytest.raises(ConfigError, match="random_shift moves images"):
            DQN.small(net_arch=(8,), random_shift=4).build(task)


def test_one_encoder_cannot_learn_from_the_past_and_from_the_rollout():
    with pytest.raises(ConfigError, match="one encoder cannot do both"):
        PPO(share_encoder=True, offline_rows=100)


def test_a_module_of_ones_own_must_be_handed_over_again(tmp_path):
    agent = hw.Agent("dqn", "CartPole-v1", encoder=_Pole, net_arch=(8,), num_envs=2)
    agent.save(tmp_path / "it.zip")
    with pytest.raises(hw.HeadwiseError, match=r"holds only its name.*Agent.load\(path, encoder="):
        hw.Agent.load(tmp_path / "it.zip")
    again = hw.Agent.load(tmp_path / "it.zip", encoder=_Pole)
    assert isinstance(again.config.network.encoder, Module)
    obs = np.zeros(4, np.float32)
    assert again.predict(obs, True) == agent.predict(obs, True)
    with pytest.raises(hw.HeadwiseError, match="does not fit"):
        hw.Agent.load(tmp_path / "it.zip", encoder=_Wider)
    plain = hw.Agent("dqn", "CartPole-v1", net_arch=(8,), num_envs=2)
    plain.save(tmp_path / "plain.zip")
    with pytest.raises(ConfigError, match="encoder is fixed"):
        hw.Agent.load(tmp_path / "plain.zip", encoder=_Pole)


class _Pole(nn.Module):
    def __init__(self, space, width=6):
        super().__init__()
        self.layer = nn.Linear(space.shape[0], width)

    def forward(self, x):
        return torch.relu(self.layer(x))


class _Wider(_Pole):
    def __init__(self, space):
        super().__init__(space, 7)


def test_a_study_takes_registered_encoders_only():
    cell = {"environment": "CartPole-v1", "algorithm": hw.PPO(), "factorization": hw.Shared()}
    named = hw.Cell.of(**cell, total_timesteps=100, encoder="simba").config()
    assert isinstance(named.network.encoder, SimBa)
    with pytest.raises(ConfigError, match="plain data"):
        hw.Cell.of(**cell, total_timesteps=100, encoder=_Pole).config()
