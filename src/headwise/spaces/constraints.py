"""From constraints to tables: which options a head has, given those chosen before it.

Constraints that are always the same are enumerated once, over the heads that they join. A table
allows an option only if the remaining heads can still be chosen, so that choosing head after head
never ends in nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from headwise.errors import SpaceError
from headwise.spaces.links import Forbid, Given, Heads, Link, Require, Rule, Truths

Constraint: TypeAlias = Forbid | Require | Given | Link


def links_of(constraints: Sequence[Any], heads: Heads) -> tuple[Link, ...]:
    """The links that constraints come to, of which a head's parents come before it in `ordered`."""
    given: list[Link] = []
    rules: list[Rule] = []
    for one in constraints:
        if isinstance(one, Given):
            given += [_given(child, parents, one, heads) for child, parents in one.parents.items()]
        elif isinstance(one, Link):
            _check_link(one, heads)
            if one.table is None:
                given.append(one)
            else:
                rules.append(Rule(one, heads))
        elif isinstance(one, Forbid | Require):
            rules.append(Rule(one, heads))
        else:
            raise SpaceError(
                "this is no constraint", got=one, allowed="Forbid(...), Require(...), Given(...)"
            )
    twice = [a for i, a in enumerate(given) if a.child in [b.child for b in given[:i]]]
    if twice:
        raise SpaceError(
            f"the environment gives the options of head {heads.names[twice[0].child]!r} twice",
            got=list(constraints),
            allowed="one table for a head, by all heads that it depends on",
        )
    order = ordered(heads, given)
    fixed = [link for some in _joined(rules) for link in _tables(some, order, heads)]
    return (*given, *sorted(fixed, key=lambda link: order.index(link.child)))


def ordered(heads: Heads, links: Sequence[Link]) -> list[int]:
    """The heads in their own order, but each after those that it depends on."""
    before = [set(some) for some in heads.decides]
    for link in links:
        before[link.child].update(link.parents)
    order: list[int] = []
    while len(order) < len(before):
        ready = [h for h, some in enumerate(before) if h not in order and some <= set(order)]
        if not ready:
            stuck = [heads.names[h] for h in range(len(before)) if h not in order]
            raise SpaceError(
                "heads wait for each other, so that none can be chosen first",
                got=", ".join(stuck),
                allowed="tables by heads that are chosen before",
            )
        order.append(ready[0])
    return order


def _given(child: str, parents: Sequence[str], source: Given, heads: Heads) -> Link:
    numbers = [heads.number(name, source) for name in (child, *parents)]
    if len(set(numbers)) < len(numbers):
        raise SpaceError("a head cannot depend on itself", got=source)
    return Link(numbers[0], tuple(numbers[1:]))


def _check_link(link: Link, heads: Heads) -> None:
    """Refuses a link from a file that does not fit the heads."""
    count = len(heads.names)
    good = all(0 <= h < count and heads.sizes[h] for h in (link.child, *link.parents))
    if good and link.table is not None:
        rows = link.num_rows(heads.sizes)
        good = len(link.table) == rows
        good = good and all(len(row) == heads.sizes[link.child] for row in link.table)
    if not good:
        raise SpaceError("a table does not fit the heads", got=f"a link to head {link.child}")


# --- tables ---------------------------------------------------------------------------------------


def _joined(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    """Rules that have heads in common, directly or by way of others."""
    left = list(rules)
    while left:
        some = [left.pop(0)]
        scope = set(some[0].scope)
        while more := [rule for rule in left if scope & set(rule.scope)]:
            some += more
            left = [rule for rule in left if rule not in more]
            scope.update(*(rule.scope for rule in more))
        yield some


def _tables(rules: Sequence[Rule], order: Sequence[int], heads: Heads) -> list[Link]:
    """Tables for heads one after another, by which exactly the combinations allowed are reached."""
    scope = sorted({h for rule in rules for h in rule.scope}, key=order.index)
    legal = _legal(rules, scope, heads)
    if not legal.any():
        raise _contradiction(rules, heads)
    links = []
    reached = np.ones((), dtype=np.bool_)  # the combinations so far that are allowed
    for place, head in enumerate(scope):
        after = tuple(range(place + 1, len(scope)))
        allowed: Truths = np.asarray(legal.any(axis=after)) if after else legal
        if (allowed | ~reached[..., None]).all():
            reached = allowed
            continue
        parents, table = list(scope[:place]), allowed
        known = np.broadcast_to(reached[..., None], allowed.shape)
        for parent in scope[:place]:
            axis = parents.index(parent)
            least, most, some = (
                np.asarray(x)
                for x in ((table | ~known).all(axis), (table & known).any(axis), known.any(axis))
            )
            if (~some | (least == most)).all():  # it makes no difference to the head
                parents.remove(parent)
                table, known = most, some
        rows = (table | ~known).reshape(-1, heads.sizes[head])
        links.append(Link(head, tuple(parents), tuple(map(tuple, rows.tolist()))))
        reached = allowed
    return links


def _legal(rules: Sequence[Rule], scope: Sequence[int], heads: Heads) -> Truths:
    """Which combinations of the options of a scope all rules allow."""
    heads.grid(scope, " and ".join(map(repr, rules)))
    legal: Truths = np.ones([heads.sizes[h] for h in scope], dtype=np.bool_)
    for rule in rules:
        own = sorted(rule.scope, key=scope.index)
        truths = rule.truths.transpose([rule.scope.index(h) for h in own])
        legal &= truths.reshape([heads.sizes[h] if h in own else 1 for h in scope])
    return legal


def _contradiction(rules: Sequence[Rule], heads: Heads) -> SpaceError:
    """What to say of constraints that allow nothing: the fewest of them, and the proof."""
    few = list(rules)
    for rule in rules:
        rest = [one for one in few if one is not rule]
        if rest and not _legal(rest, sorted({h for r in rest for h in r.scope}), heads).any():
            few = rest
    scope = sorted({h for rule in few for h in rule.scope})
    proofs = []
    for action in heads.grid(scope, few)[:4]:
        broken = next(
            rule for rule in few if not rule.truths[tuple(int(action[h]) for h in rule.scope)]
        )
        told = ", ".join(f"{heads.names[h]}={int(action[h])}" for h in scope)
        proofs.append(f"({told}) breaks {broken!r}")
    count = len(heads.grid(scope, few))
    more = f", and so on for all {count}" if count > len(proofs) else ""
    return SpaceError(
        "the constraints leave no action",
        got=f"{'; '.join(map(repr, few))}: {', '.join(proofs)}{more}",
        allowed="constraints that some combination meets",
    )
