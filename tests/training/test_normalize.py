import numpy as np
import pytest
import torch
from gymnasium import spaces

from headwise import ConfigError
from headwise.algorithms.base import ReplayBatch
from headwise.spaces import ObsCodec, ObsPrior, ObsSpec
from headwise.training.normalize import Normalizer, chosen

P, E, SIZE = 3, 4, 5


def normalizer(members=P, **settings):
    gamma = torch.tensor([0.9, 0.5, 0.99])[:members]
    return Normalizer(members, E, SIZE, gamma, **settings)


def see(ours, *batches):
    """Takes observations in, which then count."""
    for obs in batches:
        ours.take(obs, torch.ones(obs.shape[:2], dtype=torch.bool))
        ours.advance(1, None)


def stream(steps=30, members=P, seed=0):
    rng = np.random.default_rng(seed)
    obs = rng.normal(4.0, 3.0, (steps, members, E, SIZE)).astype(np.float32)
    reward = rng.normal(1.0, 20.0, (steps, members, E)).astype(np.float32)
    done = rng.random((steps, members, E)) < 0.2
    return (torch.as_tensor(x) for x in (obs, reward, done))


class VecNormalize:
    """What Stable-Baselines3 does to the rewards of one member, in numpy, as an oracle."""

    def __init__(self, gamma):
        self.gamma, self.returns = gamma, np.zeros(E)
        self.mean, self.var, self.count = 0.0, 1.0, 0.0  # theirs starts at 1e-4 rows of variance 1

    def reward(self, reward, done):
        self.returns = self.returns * self.gamma + reward
        mean, var, n = self.returns.mean(), self.returns.var(), E
        delta, total = mean - self.mean, self.count + n
        squares = self.var * self.count + var * n + delta**2 * self.count * n / total
        self.mean, self.var, self.count = self.mean + delta * n / total, squares / total, total
        self.returns[done] = 0.0
        return np.clip(reward / np.sqrt(self.var + 1e-8), -10, 10)


def test_rewards_are_scaled_as_vecnormalize_does_member_by_member():
    ours = normalizer()
    oracles = [VecNormalize(float(np.float32(g))) for g in (0.9, 0.5, 0.99)]
    _, reward, done = stream()
    for r, d in zip(reward, done, strict=True):
        scaled = ours.reward(r, d, update=True)
        for member, oracle in enumerate(oracles):
            expected = oracle.reward(r[member].numpy().astype(np.float64), d[member].numpy())
            np.testing.assert_allclose(scaled[member], expected, rtol=1e-5)


def test_a_reward_by_hand():
    ours = Normalizer(1, 2, 1, torch.tensor([0.5]))
    none = torch.zeros(1, 2, dtype=torch.bool)
    ours.reward(torch.tensor([[2.0, 4.0]]), none, update=True)  # returns 2, 4
    scaled = ours.reward(torch.tensor([[1.0, 2.0]]), none, update=True)  # returns 2, 4 again
    # Returns 2, 4, 2, 4 have mean 3 and deviation 1: rewards stay as they are.
    np.testing.assert_allclose(scaled, [[1.0, 2.0]], rtol=1e-6)


def test_observations_come_out_with_mean_0_and_deviation_1():
    ours = normalizer()
    obs, _, _ = stream(400)
    see(ours, *obs)
    out = ours.obs(obs.transpose(0, 1))
    assert out.shape == (P, 400, E, SIZE)
    assert out.dtype == torch.float32
    np.testing.assert_allclose(out.mean((1, 2)), 0.0, atol=1e-3)
    np.testing.assert_allclose(out.std((1, 2)), 1.0, atol=1e-3)
    by_hand = (obs[0].double() - ours.obs_mean[:, None]) / ours.obs_std[:, None]
    np.testing.assert_allclose(ours.obs(obs[0]), by_hand, rtol=1e-6)


def test_nothing_is_larger_than_the_clip():
    ours = normalizer(clip=2.0)
    obs, reward, done = stream()
    for o, r, d in zip(obs, reward, done, strict=True):
        see(ours, o)
        ours.reward(r, d, update=True)
    assert ours.obs(1e9 * obs[0]).abs().max() == 2.0
    assert ours.reward(1e9 * reward[0], done[0], update=False).abs().max() == 2.0
    with pytest.raises(ConfigError, match="clip"):
        normalizer(clip=0.0)


def test_evaluation_changes_nothing():
    ours = normalizer()
    obs, reward, done = stream(2)
    see(ours, obs[0])
    ours.reward(reward[0], done[0], update=True)
    before = ours.state_dict()
    ours.obs(obs[1])
    ours.reward(reward[1], done[1], update=False)
    after = ours.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_step_that_only_reset_does_not_count():
    ours, without = normalizer(), normalizer()
    _, reward, done = stream(6)
    none = torch.zeros(P, E, dtype=torch.bool)
    for r, d in zip(reward, done, strict=True):
        ours.reward(r, d, update=True)
        without.reward(r, d, update=True)
        ours.reward(torch.zeros(P, E), none, update=True, valid=none)
    for name, x in ours.state_dict().items():
        assert torch.equal(x, without.state_dict()[name]), name


def test_what_is_drawn_from_replay_is_normalized_by_now():
    ours = normalizer()
    obs, reward, done = stream()
    for o, r, d in zip(obs, reward, done, strict=True):
        see(ours, o)
        ours.reward(r, d, update=True)
    batch = ReplayBatch(
        obs=obs[0], action=obs[0], reward=reward[0], next_obs=obs[1], discount=reward[0],
        legal=None, next_legal=None,
    )  # fmt: skip
    out = ours.batch(batch)
    assert torch.equal(out.obs, ours.obs(obs[0]))
    assert torch.equal(out.next_obs, ours.obs(obs[1]))
    expected = (reward[0] / ours.return_std).clamp(-10, 10)
    np.testing.assert_allclose(out.reward, expected, rtol=1e-6)
    assert out.action is batch.action


def test_what_is_not_asked_for_is_left_alone():
    ours = normalizer(normalize_obs=False, normalize_reward=False)
    obs, reward, done = stream(1)
    see(ours, obs[0])
    assert torch.equal(ours.obs(obs[0]), obs[0])
    assert torch.equal(ours.reward(reward[0], done[0], update=True), reward[0])
    assert ours.state_dict() == {}
    assert float(ours.obs_mean) == 0.0
    assert float(ours.obs_std) == float(ours.return_std) == 1.0
    with pytest.raises(ConfigError, match="other things normalized"):
        ours.load_state_dict(normalizer().state_dict())


def test_a_saved_state_goes_on_to_the_bit():
    ours, later = normalizer(), normalizer()
    obs, reward, done = stream()
    for t in range(15):
        see(ours, obs[t])
        ours.reward(reward[t], done[t], update=True)
    ours.take(obs[0], torch.ones(P, E, dtype=torch.bool))  # which has not counted yet
    state = ours.state_dict()
    assert {x.shape[0] for x in state.values()} == {P}
    later.load_state_dict(state)
    for t in range(15, 30):
        see(ours, obs[t])
        see(later, obs[t])
        for x, y in (
            (ours.obs(obs[t]), later.obs(obs[t])),
            (ours.reward(reward[t], done[t], True), later.reward(reward[t], done[t], True)),
        ):
            assert torch.equal(x, y)


def test_a_member_alone_is_the_member_in_a_population_to_the_bit():
    many = normalizer()
    alone = Normalizer(1, E, SIZE, torch.tensor([0.99]))
    obs, reward, done = stream()
    for o, r, d in zip(obs, reward, done, strict=True):
        see(many, o)
        see(alone, o[2:])
        assert torch.equal(many.obs(o)[2:], alone.obs(o[2:]))
        assert torch.equal(many.reward(r, d, True)[2:], alone.reward(r[2:], d[2:], True))


def test_the_scale_stands_still_till_it_is_time():
    ours = normalizer()
    obs, _, _ = stream(300)
    every = torch.ones(P, E, dtype=torch.bool)
    places = ours.obs_mean.data_ptr(), ours.obs_std.data_ptr()
    moved = []
    for t, o in enumerate(obs, start=1):
        before = ours.obs(obs[0])
        ours.take(o, every)
        assert torch.equal(ours.obs(obs[0]), before)
        ours.advance(t, None)
        if not torch.equal(ours.obs(obs[0]), before):
            moved.append(t)
    assert moved == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert places == (ours.obs_mean.data_ptr(), ours.obs_std.data_ptr())  # as graphs want it
    mean, std = obs[:256].double().mean((0, 2)), obs[:256].double().std((0, 2), correction=0)
    np.testing.assert_allclose(ours.obs_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(ours.obs_std, std, rtol=1e-7)


def test_with_rollouts_it_is_time_at_their_end():
    ours = normalizer()
    obs, _, _ = stream(1)
    every = torch.ones(P, E, dtype=torch.bool)
    ours.take(obs[0], every)
    for ticks, full in ((3, False), (256, False), (512, False)):
        ours.advance(ticks, full)
        assert (ours.obs_mean == 0.0).all()
    ours.advance(513, True)
    assert (ours.obs_mean != 0.0).all()


def test_what_was_not_acted_on_does_not_count():
    ours, without = normalizer(), normalizer()
    obs, _, _ = stream(4)
    for o in obs:
        see(ours, o)
        see(without, o)
        ours.take(1e3 * o, torch.zeros(P, E, dtype=torch.bool))
        ours.advance(1, None)
    assert torch.equal(ours.obs(obs[0]), without.obs(obs[0]))


def test_a_large_offset_costs_no_precision():
    ours = normalizer()
    obs = 1e6 + next(stream(50))
    see(ours, *obs)
    expected = obs.double().std((0, 2), correction=0)
    np.testing.assert_allclose(ours.obs_std, expected, rtol=1e-6)


# --- what bounds say -----------------------------------------------------------------------------


def with_prior(prior, members=P, **settings):
    gamma = torch.tensor([0.9, 0.5, 0.99])[:members]
    return Normalizer(members, E, len(prior.mean), gamma, prior=prior, **settings)


def test_bounds_are_worth_a_thousand_rows():
    ours = with_prior(ObsPrior.of([0.0], [360.0]))
    assert (ours.obs_mean == 180.0).all()
    np.testing.assert_allclose(ours.obs_std, 90.0)
    see(ours, torch.full((P, 1000, 1), 80.0))
    # Half of the rows at 80, half around 180 with variance 8100: mean 130, variance 4050 + 2500.
    np.testing.assert_allclose(ours.obs_mean, 130.0)
    np.testing.assert_allclose(ours.obs_std, 6550**0.5)


def test_without_bounds_only_a_small_deviation_is_doubted():
    ours = with_prior(ObsPrior.unknown(2))
    assert (ours.obs_mean == 0.0).all()
    np.testing.assert_allclose(ours.obs_std, 1.0)
    see(ours, torch.tensor([[1e4 - 1.0, 7.0], [1e4 + 1.0, 7.0]]).repeat(P, 5, 1))
    np.testing.assert_allclose(ours.obs_mean[0], [1e4, 7.0])  # the prior has no place
    np.testing.assert_allclose(ours.obs_std[0], [1.0, 0.5**0.5], rtol=1e-6)


def test_bytes_and_categories_are_never_learned():
    prior = ObsPrior.joined([ObsPrior.fixed(2), ObsPrior.fixed(1, 255.0), ObsPrior.of([-8], [8])])
    ours = with_prior(prior)
    rows = torch.tensor([[0.0, 1.0, 51.0, 4.0]]).expand(P, E, 4)
    np.testing.assert_allclose(ours.obs(rows)[0, 0], [0.0, 1.0, 0.2, 1.0], rtol=1e-6)
    for _ in range(3):
        see(ours, rows)
    np.testing.assert_allclose(ours.obs(rows)[0, 0, :3], [0.0, 1.0, 0.2], rtol=1e-6)
    assert (ours.obs_mean[:, 3] > 0.0).all()
    assert {x.shape[-1] for n, x in ours.state_dict().items() if n.startswith("obs_")} == {1}


def test_images_have_nothing_to_keep():
    ours = with_prior(ObsPrior.fixed(3, 255.0), normalize_reward=False)
    see(ours, torch.zeros(P, E, 3))
    assert ours.state_dict() == {}
    ours.load_state_dict({})
    assert torch.equal(ours.obs(torch.full((P, E, 3), 255.0)), torch.ones(P, E, 3))


def test_a_prior_in_a_saved_state_goes_on_to_the_bit():
    prior = ObsPrior.joined([ObsPrior.fixed(1), ObsPrior.unknown(1), ObsPrior.of([0], [9])])
    ours, later = with_prior(prior), with_prior(prior)
    obs = next(stream(20))[..., :3]
    see(ours, *obs[:10])
    later.load_state_dict(ours.state_dict())
    see(ours, *obs[10:])
    see(later, *obs[10:])
    assert torch.equal(ours.obs(obs[0]), later.obs(obs[0]))
    alone = Normalizer(1, E, 3, torch.tensor([0.99]), prior=prior)
    see(alone, *obs[:, 2:])
    assert torch.equal(ours.obs(obs[0])[2:], alone.obs(obs[0, 2:]))


def test_auto_is_off_where_there_is_nothing_to_do():
    something = ObsSpec(1, {"x": slice(0, 1)}, prior=ObsPrior.unknown(1))
    nothing = ObsSpec(1, {"x": slice(0, 1)}, prior=ObsPrior.fixed(1))
    assert [chosen("auto", spec) for spec in (something, nothing, ObsSpec.flat(1))] == [
        "auto", False, False
    ]  # fmt: skip
    assert chosen(True, nothing) is True
    assert chosen(False, something) is False


@pytest.mark.parametrize("prior", [None, "bounds"])
def test_words_that_are_packed_stay_as_they_are_to_the_bit(prior):
    space = spaces.Dict(
        a=spaces.Box(-50, 50, (2,)),
        b=spaces.Box(0, 255, (3, 3, 3), np.uint8),
        c=spaces.Box(0, 9, ()),
    )
    codec = ObsCodec(space)
    space.seed(0)
    samples = [space.sample() for _ in range(60)]
    for one in samples:
        one["b"][0] = 255  # no number to float32
    rows = torch.from_numpy(np.stack([codec.flatten(one) for one in samples])).expand(2, 60, 10)
    numbers = torch.cat([rows[..., part] for part in codec.spec.numbers], -1)
    known = None if prior is None else codec.spec.prior
    ours = Normalizer(2, E, 10, torch.ones(2), prior=known, packed=codec.spec.packed)
    if known is not None:
        own = np.r_[0:2, 9:10]
        known = ObsPrior(*(x[own] for x in vars(known).values()))
    theirs = Normalizer(2, E, 3, torch.ones(2), prior=known)
    valid = torch.ones(2, 60, dtype=torch.bool)
    for tick in (1, 2):
        ours.take(rows, valid)
        theirs.take(numbers, valid)
        ours.advance(tick, None)
        theirs.advance(tick, None)
    found = ours.obs(rows)
    assert torch.equal(found[..., 2:9].view(torch.uint8), rows[..., 2:9].view(torch.uint8))
    beside = torch.cat([found[..., part] for part in codec.spec.numbers], -1)
    assert torch.equal(beside, theirs.obs(numbers))
    assert torch.equal(ours.obs(rows[1:], member=1)[0, :, :2], found[1, :, :2])
