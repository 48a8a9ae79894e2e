"""A loop is built from what is known of its environment, which is made when it is first stepped."""

import pytest
from small_agents import SETTINGS, states_equal

from headwise import EnvError
from headwise.envs.make import make_vec
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.lazy_env import LazyEnv

CONFIG = RunConfig.of(
    "dqn", "HybridShoot", net_arch=(8,), num_envs=4, total_timesteps=96, **SETTINGS["dqn"]
)


def fresh():
    return make_vec("HybridShoot", (0, 1), 4)


def lazy(made, **more):
    known = fresh()

    def make():
        made.append(fresh())
        return made[-1]

    return LazyEnv(2, 4, known.spec, known.obs_spec, make, **more)


def test_nobody_makes_an_environment_that_nobody_steps():
    made = []
    loop = make_loop(lazy(made), CONFIG, (0, 1))
    assert not loop.in_episodes
    assert "env" not in loop.state_dict()
    assert made == []
    loop.run(96)
    assert len(made) == 1
    assert loop.env is made[0]
    known = make_loop(fresh(), CONFIG, (0, 1))
    known.run(96)
    assert states_equal(loop, known)


def test_what_is_closed_leaves_its_state_and_cannot_be_stepped():
    made = []
    loop = make_loop(lazy(made), CONFIG, (0, 1))
    loop.run(48)
    before = loop.state_dict()
    for _ in range(2):  # twice does no harm
        loop.lazy_env.close(keep=True)
        after = loop.state_dict()
        assert after["env"]["snapshot"].equal(before["env"]["snapshot"])
    with pytest.raises(EnvError, match="was closed"):
        loop.run(96)
    again = make_loop(fresh(), CONFIG, (0, 1))
    again.load_state_dict(after)
    again.run(96)
    whole = make_loop(fresh(), CONFIG, (0, 1))
    whole.run(96)
    assert states_equal(again, whole)


@pytest.mark.parametrize("is_lent", [True, False])
def test_what_is_lent_is_closed_by_its_owner(is_lent, monkeypatch):
    made, closed = [], []
    env = lazy(made, is_lent=is_lent)
    monkeypatch.setattr(type(env.opened()), "close", lambda self: closed.append(self))
    env.close(keep=False)
    assert closed == ([] if is_lent else made)
    assert not env.can_snapshot
