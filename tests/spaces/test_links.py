"""From constraints to tables: what they allow, what they are read from, and what is refused."""

import itertools
import json

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import headwise as hw
from headwise import ActionSpec, Choice, Forbid, Given, Range, Require, SpaceError
from headwise.envs.legal import check_legal
from headwise.envs.masks import MaskReader
from headwise.heads.joint_actions import JointActions
from headwise.spaces import Condition, Link
from headwise.spaces.to_json import spec_from_json, spec_to_json

SPEC = ActionSpec.of(verb=Choice(3), target=Choice(4), power=Choice(2), x=Range(0, 1))


def allowed(spec, action):
    """Whether all tables allow an action."""
    return all(
        np.array(link.table).reshape([spec.cardinalities[h] for h in (*link.parents, link.child)])[
            tuple(int(action[h]) for h in (*link.parents, link.child))
        ]
        for link in spec.links
    )


def all_actions(spec):
    return list(itertools.product(*(range(max(n, 1)) for n in spec.cardinalities)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*(st.integers(-1, n - 1) for n in (3, 4, 2))), min_size=1, max_size=5))
def test_tables_allow_what_the_words_do_and_never_end_in_nothing(forbidden):
    """Head after head: whatever the tables allow so far has a way on."""
    rules = [
        Forbid(**{n: k for n, k in zip(SPEC.names, some, strict=False) if k >= 0})
        for some in forbidden
        if max(some) >= 0
    ]
    if not rules:
        return
    good = [a for a in all_actions(SPEC) if all(
        r.allows(dict(zip(SPEC.names, a, strict=True))) for r in rules)]  # fmt: skip
    if not good:
        with pytest.raises(SpaceError, match="the constraints leave no action"):
            SPEC.constrained(*rules)
        return
    spec = SPEC.constrained(*rules)
    assert [a for a in all_actions(SPEC) if allowed(spec, a)] == good
    reached = {()}
    for place, head in enumerate(spec.order):
        links = [link for link in spec.links if link.child == head]
        after = set()
        for prefix in reached:
            chosen = dict(zip(spec.order, prefix, strict=False))
            options = [
                k for k in range(max(spec.cardinalities[head], 1))
                if all(_row(spec, link, chosen)[k] for link in links)
            ]  # fmt: skip
            assert options, (spec.links, prefix)
            after |= {(*prefix, k) for k in options}
        reached = after
        assert place < len(spec.order)
    assert len(reached) == len(good)


def _row(spec, link, chosen):
    row = 0
    for parent in link.parents:
        row = row * spec.cardinalities[parent] + chosen[parent]
    return link.table[row]


def test_a_table_is_by_the_heads_that_matter():
    spec = SPEC.constrained(Forbid(verb=1, target=2), Require(lambda a: a["target"] >= a["power"]))
    assert [(link.child, link.parents) for link in spec.links] == [(1, (0,)), (2, (1,))]
    one = SPEC.constrained(Forbid(verb=2))
    assert one.links == (Link(0, (), ((True, True, False),)),)


def test_what_is_never_reached_limits_nobody():
    """So that a mask is not told that nothing is left behind a choice that there is not."""
    spec = SPEC.constrained(Forbid(verb=2), Forbid(verb=(1, 2), target=(0, 1, 2, 3)))
    assert spec.links == (Link(0, (), ((True, False, False),)),)
    spec = SPEC.constrained(Forbid(verb=2), Forbid(verb=(0, 2), target=(1, 2)))
    assert spec.links[1].table[2] == (True,) * 4


def test_conditions_are_asked_for_the_heads_they_read_and_no_others():
    asked = []

    def rule(a):
        asked.append(1)
        return a["power"] == 0 if a["verb"] == 2 else True

    spec = SPEC.constrained(Require(rule))
    assert [link.parents for link in spec.links] == [(0,)]
    assert len(asked) <= 1 + 3 + 6 + 6


def test_heads_that_are_not_in_use_are_not_spoken_of():
    spec = ActionSpec(
        ("kind", "a", "b"), (Choice(2), Choice(2), Choice(2)), (None, Condition(0, 0, 1), None)
    ).constrained(Forbid(a=0, b=0))
    assert allowed(spec, (1, 0, 0))  # a is at rest
    assert not allowed(spec, (0, 0, 0))


def test_the_order_puts_heads_after_those_that_limit_them():
    spec = ActionSpec.of(target=Choice(4), verb=Choice(3)).constrained(Given(target="verb"))
    assert spec.order == (1, 0)
    assert spec.mask_rows == 2 + 3
    assert spec.full_mask.shape == (5, 4)
    assert spec.full_mask[2:].all()


def test_specs_under_constraints_are_equal_kept_and_constrained_further():
    spec = SPEC.constrained(Forbid(verb=1, target=2), Given(power="verb"))
    again = spec_from_json(json.loads(json.dumps(spec_to_json(spec))))
    assert again == spec
    assert hash(again) == hash(spec)
    assert spec.constrained() == spec
    assert "links" not in spec_to_json(SPEC)
    more = spec.constrained(Forbid(target=3))
    assert more.constrained().links == more.links
    assert {link.child for link in more.links} == {1, 2}
    form = spec_to_json(spec)
    form["links"][0]["child"] = 7
    with pytest.raises(SpaceError, match="does not fit the heads"):
        spec_from_json(form)
    form["links"][0] = {"child": 1, "parents": [0], "table": [[True]]}
    with pytest.raises(SpaceError, match="does not fit the heads"):
        spec_from_json(form)


REFUSED = [
    ([Forbid(verb=0), Forbid(verb=1), Forbid(target=0), Forbid(verb=2)],
     r"leave no action; got Forbid\(verb=0\); Forbid\(verb=1\); Forbid\(verb=2\): \(verb=0\)"),
    ([Require(lambda a: a["verb"] > 9)], "leave no action"),
    ([Forbid(x=1)], "over 'x', which is a real number"),
    ([Require(lambda a: a["x"] > 0.5)], "over 'x', which is a real number"),
    ([Given(target="x")], "over 'x', which is a real number"),
    ([Forbid(verbs=1)], "unknown head; got 'verbs'.*Did you mean 'verb'"),
    ([Require(lambda a: a["aim"] > 0)], "unknown head; got 'aim'"),
    ([Require(lambda a: a["verb"] > 0, heads=("power",))], "got 'verb'; allowed: power"),
    ([Forbid(verb=3)], "head 'verb' lacks; got 3; allowed: options from 0 to 2"),
    ([Given(target="verb", verb="target")], "wait for each other.*got verb, target"),
    ([Given(verb="verb")], "cannot depend on itself"),
    ([Given(target="verb"), Given(target="power")], "head 'target' twice"),
    ([Require(lambda a: True)], "must read the options of a head"),
    (["no"], "this is no constraint; got no"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "message"), REFUSED)
def test_constraints_that_make_no_sense(rules, message):
    with pytest.raises((SpaceError, hw.ConfigError), match=message):
        SPEC.constrained(*rules)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Forbid(), "names options of heads"),
        (lambda: Forbid(verb="swing"), "names options of heads"),
        (lambda: Require(3), "takes a condition"),
        (lambda: Given(), "Given names heads"),
    ],
)
def test_constraints_that_are_said_wrong(make, message):
    with pytest.raises(SpaceError, match=message):
        make()


def test_too_many_combinations_are_refused():
    wide = ActionSpec.of([Choice(200)] * 3)
    with pytest.raises(SpaceError, match="too many combinations; got 8,000,000"):
        wide.constrained(Require(lambda a: sum(a.values()) < 9))


@settings(max_examples=30, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), min_size=1))
def test_a_list_of_legal_actions_is_told_by_tables(actions):
    space = spaces.Dict({n: spaces.Discrete(k) for n, k in (("c", 2), ("a", 2), ("b", 3))})
    spec = hw.ActionCodec(space).spec.constrained(Given(b="a", c=("a", "b")))
    mask = hw.legal_actions({"a": 2, "b": 3, "c": 2}, list(actions))
    legal = MaskReader(space, spec).read(mask)
    check_legal(legal[None, None], spec, spec.full_mask, np.zeros((1, 1), dtype=bool))
    joint = JointActions(spec, torch.device("cpu"))
    allowed_there = joint.heads[joint.allowed(torch.as_tensor(legal))].long().tolist()
    order = [spec.names.index(name) for name in ("a", "b", "c")]
    assert {tuple(action[h] for h in order) for action in allowed_there} == actions


def test_lists_of_actions_that_make_no_sense():
    with pytest.raises(SpaceError, match=r"no combination of these heads; got \(0, 3\)"):
        hw.legal_actions({"a": 2, "b": 3}, [(0, 3)])
    with pytest.raises(SpaceError, match="no combination of these heads"):
        hw.legal_actions({"a": 2, "b": 3}, [(0,)])
    with pytest.raises(SpaceError, match="needs one"):
        hw.legal_actions({"a": 2}, [])
