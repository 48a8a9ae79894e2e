"""Whether masks leave something to do: every head that is asked for needs a legal option."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwise.envs.masks import Legal
from headwise.errors import EnvError
from headwise.spaces import ActionSpec
from headwise.spaces.links import MAX_COMBINATIONS, Link


def check_legal(legal: Legal, spec: ActionSpec, all_legal: Legal, over: Legal) -> None:
    """Raises an EnvError for a head of a slot that has nothing legal; masks are (P, E, H, K).

    Some heads need nothing legal and are given everything: those of a slot whose episode is `over`
    (P, E), and those that are not in use because the option they belong to is illegal itself. The
    same holds for the rows of tables.
    """
    heads = legal[..., : spec.num_heads, :]
    empty_PEH = ~heads.any(-1)
    unused_PEH = np.broadcast_to(over[..., None], empty_PEH.shape).copy()
    if empty_PEH.any():
        for head, condition in enumerate(spec.conditions):
            if condition is not None and spec.cardinalities[condition.head]:
                options = np.arange(legal.shape[-1])
                asked_for = (condition.low <= options) & (options < condition.high)
                possible_PE = (legal[..., condition.head, :] & asked_for).any(-1)
                unused_PEH[..., head] |= unused_PEH[..., condition.head] | ~possible_PE
        heads |= (empty_PEH & unused_PEH)[..., None] & all_legal[: spec.num_heads]
        wrong = np.argwhere(empty_PEH & ~unused_PEH)
        if len(wrong):
            member, slot, head = map(int, wrong[0])
            raise EnvError(
                f"the mask leaves nothing legal for head {spec.names[head]!r} "
                f"in slot {slot} of member {member}",
                got="all options masked",
                allowed="at least one legal option for every head",
                fix="Leave one option legal, or end the episode there.",
            )
    for child in sorted({link.child for link in spec.links}):
        _check_rows(legal, spec, child, over)


def _check_rows(legal: Legal, spec: ActionSpec, child: int, over: Legal) -> None:
    """Raises for a combination of legal options of others after which a head has nothing legal."""
    own = [link for link in spec.links if link.child == child]
    condition, sizes = spec.conditions[child], spec.cardinalities
    before = {p for link in own for p in link.parents}
    if condition is not None and sizes[condition.head]:
        before.add(condition.head)
    others = sorted(before)
    shape = [sizes[h] for h in others]
    count = int(np.prod(shape))
    if count > MAX_COMBINATIONS:
        return
    places = np.unravel_index(np.arange(count), shape) if others else []
    chosen = {h: np.asarray(place) for h, place in zip(others, places, strict=True)}
    allowed = np.broadcast_to(
        legal[..., None, child, : sizes[child]], (*legal.shape[:2], count, sizes[child])
    )
    for link in own:
        allowed = allowed & _rows(legal, spec, link, chosen, count)
    asked = np.broadcast_to(~over[..., None], allowed.shape[:-1])
    for head in others:
        asked = asked & legal[..., head, :][..., chosen[head]]
    for link in spec.links:
        if link.child in before and set(link.parents) <= before:
            rows = _rows(legal, spec, link, chosen, count)
            asked = asked & np.take_along_axis(
                np.broadcast_to(rows, (*legal.shape[:2], *rows.shape[-2:])),
                chosen[link.child][:, None] + np.zeros((*legal.shape[:2], 1, 1), dtype=np.intp),
                -1,
            )[..., 0]  # fmt: skip
    if condition is not None and condition.head in before:
        value = chosen[condition.head]
        asked = asked & (condition.low <= value) & (value < condition.high)
    wrong = np.argwhere(asked & ~allowed.any(-1))
    if len(wrong):
        member, slot, row = map(int, wrong[0])
        told = ", ".join(f"{spec.names[h]}={int(chosen[h][row])}" for h in others)
        raise EnvError(
            f"nothing is legal for head {spec.names[child]!r} in slot {slot} of member {member}"
            + (f" once {told}" if told else ""),
            got="a row of its table, and its mask, without a legal option",
            allowed="a legal option after every legal choice of the heads before",
            fix="Mask that choice itself, leave an option legal, or end the episode there.",
        )


def _rows(
    legal: Legal,
    spec: ActionSpec,
    link: Link,
    chosen: dict[int, NDArray[np.intp]],
    count: int,
) -> Legal:
    """A head's options by a link, (P, E, N, options), after each of N combinations."""
    sizes = spec.cardinalities
    row = np.zeros(count, dtype=np.intp)
    for parent in link.parents:
        row = row * sizes[parent] + chosen[parent]
    if link.table is not None:
        known: Legal = np.array(link.table, dtype=np.bool_)[None, None, row]
        return known
    first = spec.num_heads
    for one in spec.given:
        if one is link:
            break
        first += one.num_rows(sizes)
    return legal[..., first + row, : sizes[link.child]]
