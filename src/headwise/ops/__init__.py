"""Operations: the steps that learners are sequences of, each with a definition and its gradient.

An operation reads and writes buffers (`buffers.py`). Its definition in plain torch says what it
means; on the CPU a compiled body, which sees one member, computes the same (`operation.py`). What
is repeated is recorded once (`program.py`).
"""

from headwise.ops.action_input import Embedding, Queries, ask, embed, expected_value, relax
from headwise.ops.adam import adam_step
from headwise.ops.buffers import Buffer, Scratch
from headwise.ops.heads import NEVER, HeadTable, When
from headwise.ops.links import best_linked, explore_linked, legal_options, linked_advantages
from headwise.ops.mixture import mix, mix_gradient, weigh
from headwise.ops.network import Activation, Layer, Network
from headwise.ops.operation import Given, Operation, Outputs, operation, operations
from headwise.ops.policy_loss import RatioGroups, adapt_coefficient, movement, policy_loss
from headwise.ops.program import Recorded
from headwise.ops.returns import gae, row_shares, standardize
from headwise.ops.rows import advance, copy, fill, gather, shuffle, take, uniform
from headwise.ops.sample import (
    Draw,
    Evaluation,
    distribution,
    evaluate,
    explore,
    mean_penalty,
    mode,
    rsample,
    sample,
)
from headwise.ops.schedules import decaying, linear
from headwise.ops.soft_value import (
    boltzmann,
    chance_of_use,
    entropy_bonus,
    entropy_surplus,
    scaled_log_policy,
    soft_value,
    target_entropy,
    temperatures,
)
from headwise.ops.values import (
    actor_loss,
    add,
    advantages,
    clipped_value_error,
    discount_of,
    even_chances,
    greedy,
    heads_last,
    in_use,
    multiply,
    munchausen,
    option_values,
    row_mean,
    shares_in_use,
    td_target,
    total,
    value_error,
)

__all__ = [
    "NEVER", "Activation", "Buffer", "Draw", "Embedding", "Evaluation", "Given", "HeadTable",
    "Layer", "Network", "Operation", "Outputs", "Queries", "RatioGroups", "Recorded", "Scratch",
    "When", "actor_loss", "adam_step", "adapt_coefficient", "add", "advance", "advantages",
    "ask", "best_linked", "boltzmann", "chance_of_use", "clipped_value_error", "copy",
    "decaying", "discount_of", "distribution", "embed", "entropy_bonus", "entropy_surplus",
    "evaluate", "even_chances", "expected_value", "explore", "explore_linked", "fill", "gae",
    "gather", "greedy", "heads_last", "in_use", "legal_options", "linear", "linked_advantages",
    "mean_penalty", "mix", "mix_gradient", "mode", "movement", "multiply", "munchausen",
    "operation", "operations", "option_values", "policy_loss", "relax", "row_mean",
    "row_shares", "rsample", "sample", "scaled_log_policy", "shares_in_use", "shuffle",
    "soft_value", "standardize", "take", "target_entropy", "td_target", "temperatures", "total",
    "uniform", "value_error", "weigh",
]  # fmt: skip
