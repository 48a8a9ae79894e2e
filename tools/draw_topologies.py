"""Draws the topologies of docs/paper.md: python docs/draw_topologies.py.

On a pale card of its own, so that it can be read on light and on dark pages.
"""

from html import escape
from pathlib import Path

TARGET = Path(__file__).parent / "assets" / "topologies.svg"
FILLS = {
    "state": "#dbe7fb",
    "action": "#dcf1dd",
    "value": "#fbe6cf",
    "weight": "#eaddf5",
    "net": "#ffffff",
    "chance": "#fdf6cf",
    "op": "#ffffff",
}
Node = tuple[str, str, float, float]  # name, kind, x, y of the middle; the text is the name's

PANELS = {
    "1. Stochastic actor": (
        (0, 0),
        [
            ("X", "state", 30, 85), ("encoder", "net", 105, 85),
            ("head of numbers", "net", 215, 50), ("heads of options", "net", 215, 120),
            ("Gaussian, tanh", "chance", 365, 50), ("categorical (PPO)", "chance", 372, 105),
            ("Gumbel (SAC)", "chance", 372, 140),
            ("a_c", "action", 475, 50), ("a_d", "action", 475, 122),
        ],
        [
            ("X", "encoder"), ("encoder", "head of numbers"), ("encoder", "heads of options"),
            ("head of numbers", "Gaussian, tanh"), ("Gaussian, tanh", "a_c"),
            ("heads of options", "categorical (PPO)"), ("heads of options", "Gumbel (SAC)"),
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


def size(name: str, kind: str) -> tuple[float, float]:
    """Half of a node's width and height."""
    return (11.0, 11.0) if kind == "op" else (9.0 + 3.3 * len(name), 13.0)


def border(node: Node, towards: Node) -> tuple[float, float]:
    """Where the line from the middle of a node to another leaves it."""
    name, kind, x, y = node
    half, tall = size(name, kind)
    dx, dy = towards[2] - x, towards[3] - y
    part = min(half / abs(dx) if dx else 1e9, tall / abs(dy) if dy else 1e9)
    return x + part * dx, y + part * dy


def panel(title: str, nodes: list[Node], edges: list[tuple[str, str]]) -> str:
    """One drawing."""
    by_name = {node[0]: node for node in nodes}
    parts = [f'<text class="title" x="8" y="18">{escape(title)}</text>']
    for first, second in edges:
        a, b = by_name[first], by_name[second]
        (x1, y1), (x2, y2) = border(a, b), border(b, a)
        parts.append(f'<path class="edge" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>')
    for name, kind, x, y in nodes:
        half, tall = size(name, kind)
        parts.append(
            f'<rect x="{x - half:.1f}" y="{y - tall:.1f}" width="{2 * half:.1f}" '
            f'height="{2 * tall:.1f}" rx="{11 if kind == "op" else 4}" fill="{FILLS[kind]}"/>'
            f'<text x="{x}" y="{y + 4}" text-anchor="middle">{escape(name)}</text>'
        )
    return "".join(parts)


def main() -> None:
    """Writes the picture."""
    drawn = "\n".join(
        f'<g transform="translate({10 + x} {8 + y})">{panel(title, nodes, edges)}</g>'
        for title, ((x, y), nodes, edges) in PANELS.items()
    )
    notes = (
        "W_h: 1 for shared and VDN; the importance weight w_h(X) for VDN-PPO; "
        "the mixer's slope for PPO-MIX and QPLEX. || puts side by side, + adds."
    )
    TARGET.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 385" role="img" '
        'aria-label="Stochastic actor, QS critic and three wirings">\n'
        "<style>text{font:12px sans-serif;fill:#1c2330}.title{font-weight:bold}"
        "rect{stroke:#5b6676}.edge{stroke:#5b6676;fill:none;marker-end:url(#tip)}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8Z" fill="#5b6676"/></marker></defs>\n'
        '<rect x="1" y="1" width="998" height="383" rx="10" fill="#f7f8fa"/>\n'
        f'{drawn}\n<text x="18" y="372">{escape(notes)}</text>\n</svg>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
