"""Draws a diagram of each factorization for docs/factorizations.md: `make pictures`.

Two heads, left as a policy (PPO) and right as a value (DQN); three heads for `ar`.
"""

from __future__ import annotations

import itertools

from diagram import Box, Panel, write

SIZE = (760, 190)
RIGHT = 390


def chain(*names: str) -> list[tuple[str, str]]:
    """Arrows from each box to the next."""
    return list(itertools.pairwise(names))


def diagrams() -> dict[str, tuple[Panel, Panel]]:
    """The two drawings of each factorization."""
    return {
        "independent": (independent("π", "a"), independent("A", "Q")),
        "shared": (shared_policy(), shared_value()),
        "vdn": (shared_policy(), branches("+")),
        "qplex": (shared_policy(), branches("mixer f")),
        "joint": (joint_policy(), joint_value()),
        "ar": (ar_policy(), ar_value()),
    }


def independent(output: str, result: str) -> Panel:
    """A network for each head, which share nothing."""
    boxes, arrows = [Box("s", "state", 24, 100)], []
    policy = result == "a"
    for head, y in (("₁", 62), ("₂", 138)):
        net = Box(f"network {head}", "net", 110, y)
        out = Box(
            f"{output}{head}(a{head}; s)" if policy else f"V{head} + A{head}", "value", 218, y
        )
        if policy:
            out = out._replace(kind="chance")
        end = Box(f"{result}{head}", "action" if policy else "value", 318, y)
        boxes += [net, out, end]
        arrows += chain("s", net.name, out.name, end.name)
    title = "Policy: each head alone" if policy else "Value: each head regresses its own target"
    return Panel(title, 10 if policy else RIGHT, 4, boxes, arrows)


def shared_policy() -> Panel:
    """One encoder with an output for each head."""
    boxes = [Box("s", "state", 24, 100), Box("encoder", "net", 108, 100)]
    arrows = chain("s", "encoder")
    for head, y in (("₁", 62), ("₂", 138)):
        boxes += [Box(f"π{head}(a{head}; s)", "chance", 222, y), Box(f"a{head}", "action", 318, y)]
        arrows += chain("encoder", boxes[-2].name, boxes[-1].name)
    return Panel("Policy: one encoder, an output for each head", 10, 4, boxes, arrows)


def shared_value() -> Panel:
    """V and the advantages of each head, added for each head by itself."""
    boxes = [
        Box("s", "state", 24, 100), Box("encoder", "net", 100, 100), Box("A₁", "value", 190, 52),
        Box("V", "value", 190, 100), Box("A₂", "value", 190, 148),
        Box("+", "op", 245, 68), Box("+#2", "op", 245, 132),
        Box("Q₁", "value", 312, 68), Box("Q₂", "value", 312, 132),
    ]  # fmt: skip
    arrows = [*chain("s", "encoder"), *(("encoder", name) for name in ("A₁", "V", "A₂")),
              *chain("A₁", "+", "Q₁"), *chain("A₂", "+#2", "Q₂"),
              ("V", "+"), ("V", "+#2")]  # fmt: skip
    return Panel("Value: each head on the same target", RIGHT, 4, boxes, arrows)


def branches(middle: str) -> Panel:
    """The advantages of all heads in one value."""
    boxes = [
        Box("s", "state", 24, 100), Box("encoder", "net", 94, 100), Box("A₁", "value", 172, 52),
        Box("V", "value", 172, 148), Box("A₂", "value", 172, 100), Box("+", "op", 292, 100),
        Box("Q", "value", 338, 100),
    ]  # fmt: skip
    arrows = [*chain("s", "encoder"), *(("encoder", name) for name in ("A₁", "V", "A₂")),
              ("V", "+"), ("+", "Q")]  # fmt: skip
    if middle == "+":
        arrows += [("A₁", "+"), ("A₂", "+")]
        return Panel("Value: V and all advantages added up", RIGHT, 4, boxes, arrows)
    boxes += [Box(middle, "weight", 235, 76), Box("|W(s)|", "weight", 304, 46)]
    arrows += [("A₁", middle), ("A₂", middle), ("|W(s)|", middle), (middle, "+")]
    return Panel("Value: advantages in a monotonic mixer", RIGHT, 4, boxes, arrows)


def joint_policy() -> Panel:
    """One categorical over all combinations."""
    boxes = [Box("s", "state", 24, 100), Box("encoder", "net", 100, 100)]
    arrows = chain("s", "encoder")
    for y, name in ((48, "(1, 1)"), (83, "(1, 2)"), (118, "(2, 1)"), (153, "(2, 2)")):
        boxes.append(Box(name, "chance", 205, y))
        arrows.append(("encoder", name))
    boxes.append(Box("(a₁, a₂)", "action", 315, 100))
    arrows += [(name, "(a₁, a₂)") for name in ("(1, 1)", "(1, 2)", "(2, 1)", "(2, 2)")]
    return Panel("Policy: one option for each combination", 10, 4, boxes, arrows)


def joint_value() -> Panel:
    """One advantage for each combination."""
    boxes = [
        Box("s", "state", 24, 100), Box("encoder", "net", 96, 100),
        Box("A(a₁, a₂)", "value", 200, 66), Box("V", "value", 200, 140),
        Box("+", "op", 262, 100), Box("Q(a₁, a₂)", "value", 318, 100),
    ]  # fmt: skip
    arrows = [*chain("s", "encoder", "A(a₁, a₂)", "+", "Q(a₁, a₂)"), ("encoder", "V"), ("V", "+")]
    return Panel("Value: one for each combination", RIGHT, 4, boxes, arrows)


def ar_policy() -> Panel:
    """A head sees the actions of those before it."""
    boxes, arrows = [Box("s", "state", 24, 45)], []
    for head, x in (("₁", 100), ("₂", 200), ("₃", 300)):
        boxes += [Box(f"π{head}", "chance", x, 92), Box(f"a{head}", "action", x, 150)]
        arrows += [("s", f"π{head}"), (f"π{head}", f"a{head}")]
    arrows += [("a₁", "π₂"), ("a₁", "π₃"), ("a₂", "π₃")]
    return Panel("Policy: each head sees the actions before it", 10, 4, boxes, arrows)


def ar_value() -> Panel:
    """Advantages of a head given the actions of those before it."""
    boxes, arrows = [Box("s", "state", 24, 45), Box("V", "value", 24, 150)], [("s", "V")]
    for name, x in (("A₁(a₁)", 90), ("A₂(a₁; a₂)", 180), ("A₃(a₁, a₂; a₃)", 290)):
        boxes.append(Box(name, "value", x, 92))
        arrows += [("s", name), (name, "+")]
    boxes += [Box("+", "op", 180, 150), Box("Q", "value", 250, 150)]
    arrows += [("V", "+"), ("+", "Q")]
    return Panel("Value: advantages given the actions before", RIGHT, 4, boxes, arrows)


def main() -> None:
    """Writes the pictures."""
    for name, panels in diagrams().items():
        write(f"factorization-{name}", f"{name}, as a policy and as a value", SIZE, panels)


if __name__ == "__main__":
    main()
