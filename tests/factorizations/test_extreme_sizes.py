"""No head, one option, ten thousand options, one head: refused clearly, or right."""

import pytest
import torch
from built import ONE_OF, PARAMETERS

from headwise import ActionSpec, Choice, ConfigError, ObsSpec, Range, SpaceError
from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayBatch, Task
from headwise.factorizations import factorizations
from headwise.population import Keys, Stream
from headwise.training.transition import Transition

SIX = ("independent", "shared", "vdn", "qplex", "joint", "ar")
SPECS = {
    "one option": ActionSpec.of(a=Choice(1), b=Choice(3)),
    "only one option": ActionSpec.of(a=Choice(1)),
    "one head": ActionSpec.of(a=Choice(4)),
    "many": ActionSpec.of(a=Choice(10_000)),
    "many and one": ActionSpec.of(a=Choice(5_000), b=Choice(2)),
    "many heads": ActionSpec.of([Choice(2)] * 13),
    "alternatives": ONE_OF,
}


def learner_for(algorithm, factorization, spec, seeds=(0, 1)):
    small = {"ppo": {"n_steps": 2, "batch_size": 4, "n_epochs": 1}}.get(
        algorithm, {"batch_size": 8}
    )
    config = algorithms.get(algorithm)(net_arch=(8,), **small)
    task = Task(
        spec=spec,
        obs_spec=ObsSpec.flat(3),
        num_slots=4,
        total_steps=100,
        factorization=factorizations.get(factorization)(),
        keys=Keys(seeds),
    )
    return config.build(task), task.keys


def some_batch(learner, keys, spec):
    """Two steps of four slots, as the learner wants them."""
    from headwise.training.rollout import Rollout

    rollout = Rollout(2)
    for step in range(2):
        obs = keys.uniform(Stream.ACT, 50 + step, (4, 3))
        acted = learner.act(obs)
        flags = torch.zeros(keys.num_members, 4, dtype=torch.bool)
        reward = keys.uniform(Stream.ACT, 70 + step, (4,))
        rollout.add(Transition(obs, acted, reward, obs, flags, flags, ~flags))
    batch = rollout.take()
    if learner.config.name == "ppo":
        return batch
    flat = [x.flatten(1, 2) for x in (batch.obs, batch.action, batch.reward, batch.next_obs)]
    discount = torch.full_like(flat[2], 0.9)
    return ReplayBatch(*flat, discount, None, None)


@pytest.mark.parametrize("size", SPECS)
@pytest.mark.parametrize("factorization", SIX)
@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "sac"])
def test_every_size_acts_and_learns(algorithm, factorization, size):
    spec = SPECS[size]
    if (algorithm, factorization, size) == ("sac", "shared", "many"):
        spec = ActionSpec.of(a=Choice(2_000))  # every option is a query, and a column of each
    learner, keys = learner_for(algorithm, factorization, spec)
    batch = some_batch(learner, keys, spec)
    spec.check(batch.action.numpy())
    metrics = learner.update(batch)()
    assert all(torch.isfinite(x).all() for x in metrics.values())
    assert learner.alive.all()
    spec.check(learner.policy(batch.obs.flatten(1, -2)).numpy())


@pytest.mark.parametrize("factorization", [name for name in SIX if name != "joint"])
@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_alternatives_with_options_and_numbers_learn(algorithm, factorization):
    learner, keys = learner_for(algorithm, factorization, PARAMETERS)
    metrics = learner.update(some_batch(learner, keys, PARAMETERS))()
    assert all(torch.isfinite(x).all() for x in metrics.values())
    assert learner.alive.all()


def test_no_heads_are_refused():
    with pytest.raises(SpaceError, match="head"):
        ActionSpec.of()


def test_a_choice_of_nothing_is_refused():
    with pytest.raises(SpaceError, match="needs its number of options; got 0"):
        Choice(0)
    with pytest.raises(SpaceError, match="two finite bounds"):
        Range(1.0, 1.0)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "sac"])
def test_parameters_of_another_shape_are_refused(algorithm):
    ours, _ = learner_for(algorithm, "vdn", SPECS["one head"])
    other, _ = learner_for(algorithm, "vdn", SPECS["many heads"])
    with pytest.raises(ConfigError, match="parameters do not fit the network; got"):
        ours.load_state_dict(other.state_dict())
    more, _ = learner_for(algorithm, "vdn", SPECS["one head"], seeds=(0, 1, 2))
    with pytest.raises(ConfigError, match=r"members, numbers\); allowed: \(2"):
        ours.load_state_dict(more.state_dict())
