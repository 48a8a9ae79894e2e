"""Who unpacks `predict` as Stable-Baselines3's is unpacked: `action, _ = agent.predict(obs)`.

There `predict` returns an action and a state, here the action alone. Python would take an action of
two parts, or a batch of two, apart in silence, and an environment would be handed half of it. What
`predict` returns cannot tell: it is plain arrays, which may be unpacked. The line that calls can.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType

from headwise.errors import ConfigError


def refuse_a_state() -> None:
    """Raises if the caller's line takes two things from `predict`, of which one is a state.

    It is one by its name: it begins with `_`, or has "state" in it. Where an action has two parts,
    `move, aim = agent.predict(obs)` is therefore as good as ever. What is not seen: a state by
    another name, `predict(obs)[0]`, and a call that a function of the user's hands on.
    """
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("headwise.") and frame.f_back is not None:
        frame = frame.f_back
    name = _second_name(frame.f_code, frame.f_lasti)
    if name is not None and (name.startswith("_") or "state" in name.lower()):
        raise ConfigError(
            "predict returns the action alone, and no state beside it",
            got=f"two names for it, of which the second is {name!r}",
            fix="Write action = agent.predict(obs).",
        )


@lru_cache(maxsize=256)
def _second_name(code: CodeType, at: int) -> str | None:
    """The second of two names that take apart what the call at an instruction returns, if any."""
    after = [one for one in dis.get_instructions(code) if one.offset > at][:3]
    if not after or after[0].opname != "UNPACK_SEQUENCE" or after[0].arg != 2:
        return None
    names: list[object] = []
    for one in after[1:]:  # Python 3.13 has one instruction for both
        names += one.argval if isinstance(one.argval, tuple) else [one.argval]
        if not one.opname.startswith("STORE_"):
            return None
    return names[1] if len(names) > 1 and isinstance(names[1], str) else None
