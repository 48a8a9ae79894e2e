"""What DQN regresses on, against the same over all joint actions, each counted by itself."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from headwise import ActionSpec, Choice
from headwise.algorithms.base import ReplayBatch, Task
from headwise.algorithms.dqn import DQN
from headwise.factorizations import factorizations
from headwise.factorizations.independent import Independent
from headwise.factorizations.shared import Shared
from headwise.factorizations.vdn import VDN
from headwise.population import Keys
from headwise.spaces import Condition

SPEC = ActionSpec.of(a=Choice(2), b=Choice(3))
ACTIONS = torch.tensor(list(itertools.product(range(2), range(3))), dtype=torch.float32)
MEMBERS, ROWS, OBS = 2, 7, 4
CELLS = [
    (name, dueling)
    for name in ("vdn", "joint", "qplex", "ar")
    for dueling in (True, False)
    if dueling or name in ("vdn", "joint")
]
TEMPERATURE, WEIGHT, FLOOR = 0.3, 0.9, -0.4


def learner_and_batch(name, spec=SPEC, **settings):
    """A learner whose target network is not its online network, and transitions."""
    kind = factorizations.get(name)() if isinstance(name, str) else name
    task = Task(
        spec=spec, obs_size=OBS, num_slots=2, total_steps=100,
        factorization=kind, keys=Keys(range(MEMBERS)),
    )  # fmt: skip
    learner = DQN(hidden=(8, 8), **settings).build(task)
    generator = torch.Generator().manual_seed(0)
    for network in (learner.online, learner.target):
        for parameter in network.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.data.add_(noise, alpha=0.5)
    obs, following = torch.randn(2, MEMBERS, ROWS, OBS, generator=generator)
    taken = torch.randint(len(ACTIONS), (MEMBERS, ROWS), generator=generator)
    reward = torch.randn(MEMBERS, ROWS, generator=generator)
    discount = torch.full_like(reward, 0.9)
    return learner, ReplayBatch(obs, ACTIONS[taken], reward, following, discount, None, None), taken


def table(network, obs):
    """The value of every joint action, (P, B, J)."""
    with torch.no_grad():
        rows = [network.joint(obs, action.expand(MEMBERS, ROWS, -1)) for action in ACTIONS]
    return torch.stack(rows, dim=-1)


@pytest.mark.parametrize(("name", "dueling"), CELLS)
def test_the_best_of_the_target_network(name, dueling):
    learner, batch, _ = learner_and_batch(name, dueling=dueling)
    reward, following = learner._target(batch)
    assert torch.equal(reward.squeeze(-1), batch.reward)
    best = table(learner.target, batch.next_obs).amax(-1)
    torch.testing.assert_close(following.squeeze(-1), best)


@pytest.mark.parametrize(("name", "dueling"), CELLS)
def test_double_q_judges_what_the_online_network_chooses(name, dueling):
    learner, batch, _ = learner_and_batch(name, dueling=dueling, double_q=True)
    best = table(learner.online, batch.next_obs).argmax(-1, keepdim=True)
    judged = table(learner.target, batch.next_obs)
    _, following = learner._target(batch)
    torch.testing.assert_close(following, judged.gather(-1, best))
    assert (following.squeeze(-1) < judged.amax(-1) - 1e-3).any()  # they do not always agree


@pytest.mark.parametrize(("name", "dueling"), [c for c in CELLS if c[0] in ("vdn", "joint")])
def test_soft_values_and_the_log_policy_of_munchausen(name, dueling):
    settings = {"munchausen": WEIGHT, "munchausen_floor": FLOOR, "temperature": TEMPERATURE}
    learner, batch, taken = learner_and_batch(name, dueling=dueling, **settings)
    reward, following = learner._target(batch)
    soft = TEMPERATURE * (table(learner.target, batch.next_obs) / TEMPERATURE).logsumexp(-1)
    torch.testing.assert_close(following.squeeze(-1), soft)
    log_policy = (table(learner.target, batch.obs) / TEMPERATURE).log_softmax(-1)
    added = TEMPERATURE * log_policy.gather(-1, taken.unsqueeze(-1)).squeeze(-1)
    assert (added < FLOOR).any()
    assert (added > FLOOR).any()
    expected = batch.reward + WEIGHT * added.clamp(FLOOR, 0.0)
    torch.testing.assert_close(reward.squeeze(-1), expected)


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("name", ["vdn", "shared", "independent", "joint"])
def test_munchausen_counts_heads_in_use_only(name, dueling):
    """The second kind has no parameter: whatever is said for it, the bonus is that of the kind."""
    spec = ActionSpec(("kind", "a"), (Choice(2), Choice(5)), (None, Condition(0, 0, 1)))
    settings = {"munchausen": WEIGHT, "munchausen_floor": -100.0, "temperature": TEMPERATURE}
    learner, batch, _ = learner_and_batch(name, spec, dueling=dueling, **settings)
    found = []
    for option in range(5):
        action = torch.tensor([1.0, float(option)]).expand(MEMBERS, ROWS, 2)
        found.append(learner._munchausen(learner.target, batch._replace(action=action)))
    assert (found[0] < 0).any()
    assert all(torch.equal(x, found[0]) for x in found)
    if name != "joint":
        log_policy, _ = learner.target.soft_heads(batch.obs, TEMPERATURE)
        of_kind = WEIGHT * TEMPERATURE * log_policy[..., 0, 1]
        torch.testing.assert_close(found[0].sum(-1), of_kind)


def test_losses_of_heads_are_added_up_or_averaged_as_the_factorization_says():
    """Two heads with errors of one: a loss of 1 if they are averaged, and 2 if added up."""

    @dataclass(frozen=True, kw_only=True)
    class Own(Shared):
        sums_head_losses: ClassVar[bool] = True

    for kind, loss in ((Shared(), 1.0), (Own(), 2.0), (Independent(), 2.0), (VDN(), 1.0)):
        learner, batch, _ = learner_and_batch(kind)
        predicted = learner.online.predict(batch.obs, batch.action)
        scale, in_use = learner._weights(batch, predicted)
        assert in_use is None
        assert scale * predicted[0].numel() == pytest.approx(loss)


def test_plain_values_are_the_outputs_of_the_network():
    learner, batch, _ = learner_and_batch("vdn", dueling=False)
    network = learner.online
    with torch.no_grad():
        outputs = network.output(network.encoder(batch.obs))  # of head a, then of head b
        columns = batch.action.long() + torch.tensor([0, 2])
        sums = outputs.gather(-1, columns).sum(-1, keepdim=True)
        torch.testing.assert_close(network.predict(batch.obs, batch.action), sums)
