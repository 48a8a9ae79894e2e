"""Which heads matter to a branching critic, and what it says where options are masked."""

import pytest
import torch
from cases import DISCRETE, HYBRID, make, observations


def judged(name, spec, legal):
    """A critic, its centred advantages under a policy that keeps to what is legal, and bins."""
    policy, critic = make(name, "policy", spec), make(name, "critic", spec)
    obs = observations()
    with torch.no_grad():
        raw = policy.mode(obs, legal)
        _, advantage = critic.centred(obs, critic.masses(policy.heads(obs, legal)))
    return critic, advantage, obs, critic.bins(policy.to_unit(raw))


def test_the_range_of_a_head_is_that_of_its_legal_options():
    """Of the three options of `b` one, two or none is legal; `a` and `c` may do anything."""
    legal = torch.ones(3, 5, 3, 3, dtype=torch.bool)
    legal[:, 0, 1, 1:] = legal[:, 1, 1, 1] = False
    critic, advantage, obs, bins = judged("vdn", DISCRETE, legal)
    legal[:, 2, 1] = False
    found = critic.importance(advantage, obs, bins, "range", legal)
    of_b = advantage[..., 1, :]
    assert (found[:, [0, 2], 1] == 0).all()
    torch.testing.assert_close(found[:, 1, 1], (of_b[:, 1, 0] - of_b[:, 1, 2]).abs())
    torch.testing.assert_close(found[:, 3:, 1], of_b[:, 3:].amax(-1) - of_b[:, 3:].amin(-1))
    others = critic.importance(advantage, obs, bins, "range")
    assert torch.equal(found[..., [0, 2]], others[..., [0, 2]])
    assert (others[..., 1] > 0).all()


@pytest.mark.parametrize("kind", ["range", "range_slope", "state"])
@pytest.mark.parametrize("name", ["vdn", "qplex"])
def test_a_head_without_a_choice_does_not_matter(name, kind):
    """Numbers stand between the options in this spec, and have bins that all may be chosen."""
    legal = torch.ones(3, 5, 2, 3, dtype=torch.bool)  # `a` of three options, `b` of two
    legal[..., 1, 1:] = False
    critic, advantage, obs, bins = judged(name, HYBRID, legal)
    found = critic.importance(advantage, obs, bins, kind, legal)
    assert (found[..., 3] == 0).all()
    assert torch.equal(found[..., :3], critic.importance(advantage, obs, bins, kind)[..., :3])
