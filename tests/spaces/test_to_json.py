import json

import numpy as np
import pytest
from gymnasium import spaces

from headwise import ActionSpec, Choice, Range, SpaceError
from headwise.spaces import ActionCodec, Condition
from headwise.spaces.to_json import (
    space_from_json,
    space_to_json,
    spec_from_json,
    spec_to_json,
)

SPACES = [
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [2, 3]]),
    spaces.Discrete(3, dtype=np.int8),
    spaces.MultiDiscrete([3, 4], dtype=np.int32),
    spaces.MultiBinary(3),
    spaces.MultiBinary((2, 3)),
    spaces.Box(-1, 1, (2,)),
    spaces.Box(np.array([0.0, -np.inf]), np.array([np.inf, 5.0]), dtype=np.float64),
    spaces.Box(0, 255, (2, 2), np.uint8),
    spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Tuple((spaces.Box(0, 1, ()),)))]),
    spaces.Dict([(1, spaces.Discrete(2)), (0, spaces.Discrete(3)), ("0", spaces.Discrete(4))]),
    spaces.OneOf((spaces.Discrete(2), spaces.Box(-2, 2, (1,)))),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_survive(space):
    form = json.loads(json.dumps(space_to_json(space)))
    again = space_from_json(form)
    assert again == space
    assert again.dtype == space.dtype  # which `==` does not look at everywhere
    if isinstance(space, spaces.Dict):
        assert list(again) == list(space)  # in the same order: heads are numbered by it


def test_the_spaces_of_a_team_survive():
    team = {"b": spaces.Discrete(2), "a": spaces.Box(0, 1, (2,))}
    again = space_from_json(json.loads(json.dumps(space_to_json(team))))
    assert type(again) is dict
    assert list(again.items()) == list(team.items())
    assert ActionCodec.of_agents(again).spec == ActionCodec.of_agents(team).spec


def test_specs_survive():
    spec = ActionSpec(
        ("kind", "bin", "x"),
        (Choice(3), Choice(5, ordered=True), Range(-2.5, 1.0)),
        (None, Condition(0, 1, 2), Condition(0, -np.inf, 1.0)),
    )
    assert spec_from_json(json.loads(json.dumps(spec_to_json(spec)))) == spec


@pytest.mark.parametrize(
    "bad",
    [
        None,
        3,
        "box",
        [],
        {},
        {"box": [2]},
        {"box": ["a"], "dtype": "float32", "low": [0], "high": [1]},
        {"box": [2**40], "dtype": "float32", "low": [0], "high": [1]},
        {"discrete": 0, "start": 0},
        {"tuple": 3},
        {"dict": [1]},
        {"box": [2], "dtype": "os.system", "low": [0], "high": [1]},
        {"box": [-1], "dtype": "float32", "low": [0], "high": [1]},
        {"multi_discrete": "x", "start": 0},
        {"discrete": 3, "start": 0, "dtype": "float32"},
        {"multi_binary": -3},
        {"multi_binary": 2**40},
        {"dict": [[[1], {"discrete": 3, "start": 0}]]},
    ],
    ids=str,
)
def test_nonsense_is_refused(bad):
    with pytest.raises(SpaceError):
        space_from_json(bad)


@pytest.mark.parametrize("bad", [None, {}, {"names": ["a"], "heads": [{}], "conditions": [None]}])
def test_nonsense_is_no_spec(bad):
    with pytest.raises(SpaceError):
        spec_from_json(bad)


def test_a_space_without_a_form_is_refused():
    with pytest.raises(SpaceError, match="JSON"):
        space_to_json(spaces.Text(3))


@pytest.mark.parametrize("key", [(0, 1), 1.5, None, True])
def test_a_key_without_a_form_is_refused(key):
    with pytest.raises(SpaceError, match="words and whole numbers"):
        space_to_json(spaces.Dict([(key, spaces.Discrete(2))]))


def test_descriptions_of_earlier_versions_are_understood():
    assert space_from_json({"discrete": 3, "start": 1}) == spaces.Discrete(3, start=1)
    old = {"multi_discrete": [2, 3], "start": [0, 0]}
    assert space_from_json(old) == spaces.MultiDiscrete([2, 3])
    assert space_from_json({"multi_binary": [2, 3]}) == spaces.MultiBinary((2, 3))
