"""Draws the topologies of docs/paper.md: `make pictures`."""

from __future__ import annotations

from diagram import Box, Panel, write

PANELS = {
    "1. Stochastic actor": (
        (0, 0),
        [
            ("X", "state", 30, 85), ("encoder", "net", 105, 85),
            ("continuous heads", "net", 215, 50), ("discrete heads", "net", 215, 120),
            ("Gaussian, tanh", "chance", 365, 50), ("categorical (PPO)", "chance", 372, 105),
            ("Gumbel (SAC)", "chance", 372, 140),
            ("a_c", "action", 475, 50), ("a_d", "action", 475, 122),
        ],
        [
            ("X", "encoder"), ("encoder", "continuous heads"), ("encoder", "discrete heads"),
            ("continuous heads", "Gaussian, tanh"), ("Gaussian, tanh", "a_c"),
            ("discrete heads", "categorical (PPO)"), ("discrete heads", "Gumbel (SAC)"),
            ("categorical (PPO)", "a_d"), ("Gumbel (SAC)", "a_d"),
        ],
    ),
    "2. QS, the branching dueling critic": (
        (510, 0),
        [
            ("X", "state", 30, 85), ("encoder", "net", 105, 85), ("value head", "net", 205, 50),
            ("advantage heads", "net", 210, 120), ("V(X)", "value", 322, 50),
            ("A_h(X)", "value", 322, 120), ("x W_h", "weight", 398, 120), ("+", "op", 398, 50),
            ("Q(X)", "value", 452, 50),
        ],
        [
            ("X", "encoder"), ("encoder", "value head"), ("encoder", "advantage heads"),
            ("value head", "V(X)"), ("advantage heads", "A_h(X)"), ("A_h(X)", "x W_h"),
            ("x W_h", "+"), ("V(X)", "+"), ("+", "Q(X)"),
        ],
    ),
    "A. SAC-Concat": (
        (0, 190),
        [
            ("s", "state", 30, 45), ("a_c", "action", 30, 85), ("a_d", "action", 30, 125),
            ("||", "op", 95, 85), ("critic", "net", 165, 85), ("Q(s, a)", "value", 250, 85),
        ],
        [("s", "||"), ("a_c", "||"), ("a_d", "||"), ("||", "critic"), ("critic", "Q(s, a)")],
    ),
    "B. SAC-BDQ": (
        (310, 190),
        [
            ("s", "state", 30, 45), ("a_c", "action", 30, 85), ("||", "op", 90, 65),
            ("QS", "net", 145, 65), ("+", "op", 215, 65), ("a_d", "action", 145, 125),
            ("Q(s, a_c, a_d)", "value", 295, 65),
        ],
        [("s", "||"), ("a_c", "||"), ("||", "QS"), ("QS", "+"), ("a_d", "+"),
         ("+", "Q(s, a_c, a_d)")],
    ),
    "C. auto-regressive actor": (
        (655, 190),
        [
            ("s", "state", 25, 50), ("head 1", "net", 90, 50), ("a_1", "action", 155, 50),
            ("||", "op", 155, 110), ("head 2", "net", 217, 110), ("a_2 ...", "action", 296, 110),
        ],
        [("s", "head 1"), ("head 1", "a_1"), ("a_1", "||"), ("s", "||"), ("||", "head 2"),
         ("head 2", "a_2 ...")],
    ),
}  # fmt: skip


NOTE = (
    "W_h: 1 for shared and VDN; the importance weight w_h(X) for VDN-PPO; "
    "the mixer's gradient for PPO-MIX and QPLEX. || concatenates, + adds."
)


def main() -> None:
    """Writes the pictures."""
    drawn = [
        Panel(title, 10 + x, 8 + y, [Box(*box) for box in boxes], arrows)
        for title, ((x, y), boxes, arrows) in PANELS.items()
    ]
    label = "Stochastic actor, QS critic and three wirings"
    write("topologies", label, (1000, 385), drawn, NOTE)


if __name__ == "__main__":
    main()
