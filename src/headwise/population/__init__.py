"""Populations: P members trained as one tensor program.

This is the only room that names dimension 0, the member. Everywhere else dimensions are counted
from the right, so the text of an algorithm is that of one member.
"""

from headwise.population.clock import Clock
from headwise.population.keys import Draws, Keys, ShapesOnly, Stream
from headwise.population.members import select_members
from headwise.population.reduce import along, finite_members, per_member
from headwise.population.rows import latest_rows, rows_per_chunk, take_rows
from headwise.population.store import Adam, Free, Store, seeds_of, settings

__all__ = [
    "Adam", "Clock", "Draws", "Free", "Keys", "ShapesOnly", "Store", "Stream", "along",
    "finite_members", "latest_rows", "per_member", "rows_per_chunk", "seeds_of",
    "select_members", "settings", "take_rows",
]  # fmt: skip
