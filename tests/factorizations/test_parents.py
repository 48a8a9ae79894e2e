"""Graphs over heads: what each sees, in how many steps an action is drawn, and what is refused."""

import pytest
import torch
from built import (
    DISCRETE,
    HYBRID,
    MEMBERS,
    SPECS,
    Part,
    all_actions,
    observations,
    some_actions,
    uniforms,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise import ActionSpec, Choice, ConfigError, Range, View
from headwise.factorizations.ar import AR
from headwise.heads.graph import Graph, runs_of
from headwise.ops import Network

FOUR = ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2), d=Choice(2))


@st.composite
def graphs(draw, names=FOUR.names):
    """Parents of every head, in any order of heads that has no cycle."""
    order = draw(st.permutations(names))
    return {
        name: tuple(draw(st.sets(st.sampled_from(order[:place])))) if place else ()
        for place, name in enumerate(order)
    }


def depth_by_hand(parents):
    def depth(name):
        return 1 + max((depth(p) for p in parents[name]), default=0)

    return max(map(depth, parents))


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_any_graph_is_a_distribution_that_is_drawn_level_by_level(parents):
    part = Part(AR(parents=parents), "policy", FOUR, scale=2.0)
    actions, x = all_actions(FOUR), observations(rows=1)
    rows = len(actions)
    wide = Part(AR(parents=parents), "policy", FOUR, scale=2.0, rows=rows)
    found = wide.evaluate(x.expand(-1, rows, -1), actions.expand(MEMBERS, -1, -1)).log_prob
    torch.testing.assert_close(found.sum(-1).exp().sum(-1), torch.ones(MEMBERS))
    assert len(part.it.graph.levels) == depth_by_hand(parents)
    for name in FOUR.names:  # what a head says depends on its parents' options and nothing else
        head = FOUR.names.index(name)
        own = [head, *(FOUR.names.index(p) for p in parents[name])]
        of_those = {}
        for row, action in enumerate(actions[:, own].tolist()):
            of_those.setdefault(tuple(action), []).append(found[:, row, head])
        for same in of_those.values():
            assert all(torch.equal(one, same[0]) for one in same)
    raw, _, drawn = part.sample(x, uniforms(4, 1))
    torch.testing.assert_close(part.evaluate(x, raw).log_prob, drawn)


@settings(max_examples=15, deadline=None)
@given(graphs())
def test_the_greedy_action_of_a_graph_has_the_largest_value(parents):
    actions = all_actions(FOUR)
    part = Part(AR(parents=parents), "value", FOUR, rows=len(actions), scale=2.0)
    x = observations(rows=1).expand(-1, len(actions), -1)
    q = part.predict(x, actions.expand(MEMBERS, -1, -1))[..., 0]
    torch.testing.assert_close(q.amax(-1), part.greedy_value(x)[:, 0, 0])
    assert (part.greedy(x)[:, 0] == actions[q.argmax(-1)]).all()


def test_a_level_is_one_call_of_the_networks(monkeypatch):
    """Depth, and not the number of heads, is how often networks are asked."""
    spec = ActionSpec.of(**{f"h{i}": Choice(3) for i in range(8)})
    calls = []
    forward = Network.forward
    monkeypatch.setattr(
        Network, "forward", lambda net, *a, **k: calls.append(1) or forward(net, *a, **k)
    )
    for kind, depth in ((AR(parents={f"h{i}": ("h0",) for i in range(1, 8)}), 2), (AR(), 8)):
        part = Part(kind, "policy", spec)
        calls.clear()
        part.sample(observations(), uniforms(8))
        assert len(calls) == depth


def test_the_chain_is_the_graph_in_which_everything_before_is_seen():
    order = ("c", "a", "b")
    parents = {"c": (), "a": ("c",), "b": ("c", "a")}
    one, other = (Part(kind, "policy", DISCRETE) for kind in (AR(order=order), AR(parents=parents)))
    x, action = observations(), some_actions(one.layout)
    assert torch.equal(one.evaluate(x, action).log_prob, other.evaluate(x, action).log_prob)


def test_no_parents_is_a_network_for_each_head():
    part = Part(AR(parents={}), "policy", HYBRID, state_std=True)
    x, action = observations(), some_actions(part.layout)
    moved = part.layout.num_heads - 1
    other = action.clone()
    other[..., moved] = 0.5
    same = part.evaluate(x, action).log_prob == part.evaluate(x, other).log_prob
    assert same[..., :moved].all()
    assert part.it.graph.levels == (tuple(range(4)),)


def test_graphs_by_hand():
    graph = Graph(((), (0,), (0,), (1, 2), (0,)))
    assert graph.levels == ((0,), (1, 2, 4), (3,))
    assert graph.only(1, 3).parents == ((), (), (0, 1))
    assert runs_of(graph.levels[1]) == [(1, 2), (4, 1)]
    # columns in the order 0, 1, 2, 4, 3: of two, three, one, one and two
    first = [0, 2, 5, 7, 6]
    assert graph.columns(3, first, 9) == [(2, 4)]
    assert graph.columns(4, first, 9) == [(0, 2)]
    assert graph.columns(0, first, 9) == []


@pytest.mark.parametrize(
    ("spec", "parents", "message"),
    [
        (FOUR, {"a": ("b",), "b": ("c",), "c": ("a",)}, r"circle.*got a -> b -> c -> a"),
        (FOUR, {"a": ("a",)}, r"circle.*got a -> a"),
        (FOUR, {"a": ("bb",)}, "unknown head; got 'bb'.*Did you mean 'b'"),
        (FOUR, {"e": ("a",)}, "unknown head; got 'e'"),
        (SPECS["one_of"], {"kind": ("run",)}, r"circle.*parameter comes after"),
    ],
)
def test_graphs_that_make_no_sense(spec, parents, message):
    with pytest.raises(ConfigError, match=message):
        AR(parents=parents).check(spec)


def test_an_order_and_parents_are_one_too_many():
    with pytest.raises(ConfigError, match="order is a chain, and parents are another graph"):
        AR(order=("a", "b"), parents={"a": ("b",)})
    with pytest.raises(ConfigError, match="names of the heads that each head sees"):
        AR(parents={"a": 1})


def test_a_parent_may_be_named_without_a_tuple():
    assert AR(parents={"a": "b"}).parents == {"a": ("b",)}


def test_levels_of_a_zoomed_head_come_one_after_another():
    native = ActionSpec.of(a=Choice(2), x=Range(0, 1), y=Range(0, 1))
    spec = View(native, "zoom", zoom_levels=2, zoom_bins=2).spec
    graph = Part(AR(parents={"x": ("a",)}), "policy", spec).it.graph
    assert graph.parents == ((), (0,), (0, 1), (), (3,))
    assert [sorted(level) for level in graph.levels] == [[0, 3], [1, 4], [2]]
    chain = Part(AR(order=("y", "a", "x")), "policy", spec).it.graph
    assert [list(level) for level in chain.levels] == [[3], [4], [0], [1], [2]]
