"""What SAC's critics regress on, against the same over all joint actions."""

import pytest
import torch
from learners import all_actions, as_buffer, make_learner, move, replay_batch

from headwise import ActionSpec, Choice

SPEC = ActionSpec.of(a=Choice(2), b=Choice(3))
ROWS, ALPHA = 7, 0.3


@pytest.mark.parametrize("factorization", ["vdn", "joint"])
def test_each_twin_is_valued_under_its_own_softmax_and_the_smaller_counts(factorization):
    """Not under one policy of both, which would have been a little less."""
    learner = make_learner(
        "sac", factorization, SPEC, batch_size=ROWS, ent_coef=ALPHA, entropy_bonus="whole"
    )
    move(learner.store, seed=1)
    move(learner.target_store, seed=2)
    batch = replay_batch(SPEC, 2, ROWS)
    rows = [learner.layout.to_learner(x.expand(2, ROWS, -1)) for x in all_actions(SPEC)]
    obs = as_buffer(batch.next_obs)
    target = learner.critic_target
    q = [target.predict(obs, as_buffer(x), None).tensor[..., 0].clone() for x in rows]
    twins = torch.stack(q, dim=-1)  # (P, 2, B, J)
    own = ALPHA * (twins / ALPHA).logsumexp(-1)
    policy = (twins[:, :1] / ALPHA).log_softmax(-1)  # of the first twin alone
    under_one = (policy.exp() * (twins - ALPHA * policy)).sum(-1)
    assert (own.amin(1) > under_one.amin(1) + 1e-3).any()
    learner.update(batch)
    expected = batch.reward + batch.discount * own.amin(1)
    torch.testing.assert_close(learner.target.tensor[:, 0, :, 0], expected)
