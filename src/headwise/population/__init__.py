"""Populations: P members trained as one tensor program.

This is the only room that names dimension 0, the member. Everywhere else dimensions are counted
from the right, so the text of an algorithm is that of one member.
"""

from headwise.population.clock import Clock
from headwise.population.fixed_tensors import Kept
from headwise.population.keys import Draws, Keys, ShapesOnly, Stream
from headwise.population.layers import Activation, Initializer, LayerNorm, Linear
from headwise.population.lift import lift
from headwise.population.members import join_members, select_members
from headwise.population.optim import Adam
from headwise.population.packing import Packed, Trainable, held_constant, straight_gradients
from headwise.population.reduce import (
    along,
    finite_members,
    member_mean,
    member_sum,
    per_member,
    row_shares,
)
from headwise.population.rows import (
    batches_in_order,
    even_rows,
    latest_rows,
    row_by_row,
    shuffled,
    slice_rows,
    take_rows,
)
from headwise.population.steady import elu, power, softplus

__all__ = [
    "Activation",
    "Adam",
    "Clock",
    "Draws",
    "Initializer",
    "Kept",
    "Keys",
    "LayerNorm",
    "Linear",
    "Packed",
    "ShapesOnly",
    "Stream",
    "Trainable",
    "along",
    "batches_in_order",
    "elu",
    "even_rows",
    "finite_members",
    "held_constant",
    "join_members",
    "latest_rows",
    "lift",
    "member_mean",
    "member_sum",
    "per_member",
    "power",
    "row_by_row",
    "row_shares",
    "select_members",
    "shuffled",
    "slice_rows",
    "softplus",
    "straight_gradients",
    "take_rows",
]
