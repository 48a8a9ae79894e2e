"""The golden transitions of the environments' specification, through every face they have.

They were made by running the authors' packages (or, for the decoupler, by the rules by hand).
"""

import numpy as np
import pytest

from headwise import EnvError
from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.native.parallel_env import parallel_env
from headwise.envs.native.vector_env import NativeVectorEnv


class Single:
    """`gymnasium.Env`. The other faces are played through the same calls."""

    def __init__(self, name, **settings):
        self.env = NativeEnv(name, **settings)
        self.action_spec = self.env.action_spec

    def reset(self, **options):
        return self.env.reset(seed=0, options=options)[0]

    def step(self, heads):
        return self.env.step(self.action(heads))[:4]

    def state(self):
        return self.env.get_state()

    def set_state(self, **state):
        self.env.set_state(state)

    def action(self, heads):
        options = self.action_spec.num_choices
        choices = np.array(heads[:options], dtype=np.int64)
        ranges = np.array(heads[options:], dtype=np.float32)
        choices = choices[0] if options == 1 else choices
        return choices if not len(ranges) else ranges if not options else (choices, ranges)


class Vector(Single):
    """`gymnasium.vector.VectorEnv`: three slots that do the same, of which one is looked at."""

    mode = "disabled"

    def __init__(self, name, **settings):
        self.env = NativeVectorEnv(name, 3, autoreset_mode=self.mode, **settings)
        self.action_spec = self.env.action_spec

    def reset(self, **options):
        return self.env.reset(seed=[0, 0, 0], options=options)[0][1]

    def step(self, heads):
        action = self.action(heads)
        parts = action if isinstance(action, tuple) else (action,)
        many = tuple(np.stack([part] * 3) for part in parts)
        *results, infos = self.env.step(many if isinstance(action, tuple) else many[0])
        for part in results:
            assert (part == part[1]).all()  # no slot is special
        if "final_obs" in infos:
            results[0] = infos["final_obs"]
        return [part[1] for part in results]

    def state(self):
        return self.env.get_state(1)


class VectorNextStep(Vector):
    mode = "next_step"


class VectorSameStep(Vector):
    mode = "same_step"


class Parallel(Single):
    """`pettingzoo.ParallelEnv`: the action is dealt out to the agents, who share the reward."""

    def __init__(self, name, **settings):
        self.env = parallel_env(name, **settings)
        specs = [self.env.action_spec(agent) for agent in self.env.possible_agents]
        self.sizes = [(spec.num_choices, spec.num_ranges) for spec in specs]

    def step(self, heads):
        choices = list(heads[: sum(size for size, _ in self.sizes)])
        ranges = list(heads[len(choices) :])
        actions = {}
        for agent, (options, numbers) in zip(self.env.possible_agents, self.sizes, strict=True):
            mine = np.array([choices.pop(0) for _ in range(options)], dtype=np.int64)
            ours = np.array([ranges.pop(0) for _ in range(numbers)], dtype=np.float32)
            mine = mine[0] if options == 1 else mine
            actions[agent] = mine if not numbers else ours if not options else (mine, ours)
        _, *rest, _ = self.env.step(actions)
        for part in rest:
            assert len(set(part.values())) == 1
        return [self.env.state(), *(next(iter(part.values())) for part in rest)]

    def reset(self, **options):
        self.env.reset(seed=0, options=options)
        return self.env.state()


VECTORS = [Vector, VectorNextStep, VectorSameStep]
FACES = [Single, *VECTORS]
every_face = pytest.mark.parametrize("face", FACES)
every_face_and_team = pytest.mark.parametrize("face", [*FACES, Parallel])


# --- 1. ContextualDecoupler ---


@every_face_and_team
@pytest.mark.parametrize(
    ("state", "action", "reward"),
    [
        ((0, 2, 3), (2, 0), 1.0),
        ((0, 2, 3), (2, 4), 0.9),
        ((0, 2, 3), (3, 0), -1.0),
        ((1, 2, 3), (1, 3), 0.9),
        ((1, 0, 0), (4, 4), -1.1),
        ((1, 4, 0), (0, 0), 1.0),
    ],
)
def test_decoupler_rewards(face, state, action, reward):
    env = face("ContextualDecoupler")
    obs = env.reset(context=state[0], targets=state[1:])
    np.testing.assert_array_equal(obs, state)
    assert env.step(action)[1] == pytest.approx(reward, abs=1e-6)


@every_face_and_team
def test_decoupler_is_truncated_at_100(face):
    env = face("ContextualDecoupler")
    env.reset()
    flags = [tuple(map(bool, env.step((0, 0))[2:])) for _ in range(100)]
    assert flags == [(False, False)] * 99 + [(False, True)]


# --- 2. Platform, without its noise ---

RUN, HOP, LEAP = 0, 1, 2


def move(kind, strength):
    heads = [kind, 0, 0, 0]
    heads[1 + kind] = strength
    return heads


@every_face
def test_platform_start(face):
    np.testing.assert_allclose(
        face("Platform", noise=0.0).reset(),
        [0.0189573, 0, 0.2222222, 0, 0.9090909, 1, 0.9574468, 0, 0],
        atol=1e-7,
    )


PLATFORM = {
    "P-1": ([(RUN, 30)], [0.0829242, 0.693, 0.1946860, 0], 20, 0.065202899, False),
    "P-2": (
        [(RUN, 30), (RUN, 30), (RUN, 15)],
        [0.1592275, 0.693, 0.1613527, 0],
        3,
        0.010144928,
        True,
    ),
    "P-3": ([(HOP, 720)], [0.1276943, 0, 0.0149758, 0], 144, 0.110838170, False),
    "P-4": ([(LEAP, 100)], [0.0693166, 0, 0.0729469, 0], 104, 0.051332378, False),
    "P-6": ([(LEAP, 430)], [0.1000158, 0.1289667, 0.1019324, 0], 84, 0.082624781, True),
}


@every_face
@pytest.mark.parametrize("golden", PLATFORM)
def test_platform(face, golden):
    moves, obs_4, frames, last_reward, ends = PLATFORM[golden]
    env = face("Platform", noise=0.0)
    env.reset()
    total = 0.0
    for kind, strength in moves:
        obs, reward, terminated, truncated = env.step(move(kind, strength))
        total += reward
        assert not truncated
    np.testing.assert_allclose(obs[:4], obs_4, atol=1e-7)
    assert reward == pytest.approx(last_reward, abs=1e-8)
    assert terminated == ends
    if not (ends and face is VectorSameStep):  # there, the next episode has begun
        assert env.state()["frames"] == frames
    if golden == "P-1":
        assert env.state()["x"] == pytest.approx(67.485, abs=1e-9)
        assert env.state()["enemy_x"][0] == pytest.approx(201.5, abs=1e-9)
    if golden == "P-2":
        assert total == pytest.approx(0.142980676, abs=1e-7)
    if golden == "P-3":
        assert env.state()["x"] == pytest.approx(114.717506, abs=1e-6)


# --- 4. HybridShoot ---

A, B, C = (0.542723, 0.554971), (0.064188, 0.903928), (0.731347, 0.560033)


@every_face_and_team
def test_shoot_dependent(face):
    env = face("HybridShoot")
    env.reset(targets=[A, B, C])
    for heads, expected, alive in (
        ((1, *A), -0.3, [1, 1, 1]),
        ((0, A[0] + 0.05, A[1] + 0.05), 9.9, [0, 1, 1]),
        ((0, *A), -0.6, [0, 1, 1]),
    ):
        obs, reward, terminated, truncated = env.step(heads)
        assert reward == pytest.approx(expected, abs=1e-6)
        np.testing.assert_array_equal(obs[2::3], alive)
        assert not terminated
        assert not truncated
    # The authors' fourth step selects target 7 of 3 and costs 1.1. Ours cannot happen: an option
    # that does not exist is refused, and nothing changes.
    before = env.env.snapshot()
    with pytest.raises(EnvError, match="'select'; got 7"):
        env.step((7, *B))
    assert env.env.snapshot() == before
    env.set_state(elapsed=4)  # as if that step had passed
    obs, reward, terminated, truncated = env.step((2, *C))
    assert reward == pytest.approx(9.9, abs=1e-6)
    np.testing.assert_array_equal(obs[2::3], [0, 1, 0])
    assert (terminated, truncated) == (False, True)


@every_face_and_team
def test_shoot_dependent_perfect_play(face):
    env = face("HybridShoot")
    env.reset(targets=[A, B, C])
    played = [env.step((j, *target)) for j, target in enumerate((A, B, C))]
    np.testing.assert_allclose([step[1] for step in played], [9.9, 9.9, 14.9], atol=1e-5)
    assert [bool(step[2]) for step in played] == [False, False, True]
    assert not any(step[3] for step in played)


CURVE = {
    **dict(enumerate([
        (0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 3), (1, 3), (1, 2), (2, 2), (2, 3), (3, 3),
        (3, 2), (3, 1), (2, 1), (2, 0), (3, 0), (4, 0), (4, 1), (5, 1), (5, 0),
    ])),
    21: (7, 0), 42: (7, 7), 63: (0, 7), 64: (0, 8), 85: (0, 15), 100: (4, 14), 127: (7, 8),
    128: (8, 8), 149: (8, 15), 170: (15, 15), 191: (15, 8), 192: (15, 7), 213: (8, 7), 234: (8, 0),
    255: (15, 0),
}  # fmt: skip
# The authors' -0.3 and 1.7, which they clip to the ends, are refused: a number is from 0 to 1.
SCALARS = {
    0: (0, 0), 1 / 512: (1, 0), 0.1: (7, 3), 0.25: (0, 8), 1 / 3: (0, 15), 0.5: (8, 8),
    0.75: (15, 7), 0.9: (8, 2), 1: (15, 0), **{d / 256: cell for d, cell in CURVE.items()},
}  # fmt: skip
BINS = {0: (0, 0), 1: (0, 1), 2: (0, 3), 49: (7, 8), 50: (8, 9), 98: (14, 1), 99: (15, 0)}
ONE_POINT = {"mode": "independent", "num_targets": 1, "hit_radius": 1e-3}


@pytest.mark.parametrize(("view", "aims"), [("hybrid", SCALARS), ("discrete", BINS)])
@pytest.mark.parametrize("face", [Single, Parallel])
def test_shoot_along_the_curve(face, view, aims):
    env = face("HybridShoot", view=view, **ONE_POINT)
    for aim, (i, j) in aims.items():
        env.reset(targets=[[i / 15, j / 15]])
        reward, terminated = env.step((0, aim))[1:3]
        assert reward == pytest.approx(14.9, abs=1e-5), aim
        assert terminated


def test_shoot_along_the_curve_in_many_slots_at_once():
    env = NativeVectorEnv("HybridShoot", len(SCALARS), **ONE_POINT)
    cells = np.array(list(SCALARS.values()))
    env.reset(options={"targets": cells[:, None, :] / 15})
    aims = np.array(list(SCALARS), dtype=np.float32)[:, None]
    assert env.step((np.zeros(len(aims), int), aims))[2].all()


@every_face_and_team
def test_shoot_independent_perfect_play(face):
    env = face("HybridShoot", mode="independent")
    env.reset(targets=[[0, 0], [8 / 15, 8 / 15], [1, 7 / 15]])
    played = [env.step((j, aim)) for j, aim in enumerate((0.0, 0.5, 0.75))]
    np.testing.assert_allclose([step[1] for step in played], [8.9, 9.4, 14.9], atol=1e-5)
    assert [bool(step[2]) for step in played] == [False, False, True]


# --- 5. CoopPush ---

STILL = (0, 0)
DIAGONAL = 0.5**0.5


def push(face, **settings):
    return face("CoopPush", **{"view": "continuous", "shuffle": False, **settings})


@every_face_and_team
def test_push_start(face):
    corners = [0.2, 0.2, 0, 0, -0.2, 0.2, 0, 0, -0.2, -0.2, 0, 0, 0.2, -0.2, 0, 0]
    boulder, landmarks, visits = [0, 0], [0.6, 0, -0.6, 0], [0, 0]
    np.testing.assert_allclose(
        push(face).reset(), [*corners, *boulder, *landmarks, *visits], atol=1e-7
    )


@every_face_and_team
def test_push_free_motion_c1(face):
    env = push(face)
    env.reset()
    _, reward, *flags = env.step([1, 0, 1, 1, 0.3, -0.4, *STILL])
    state = env.state()
    np.testing.assert_allclose(
        state["particles"], [[7, 5], [-3.5857864, 6.4142136], [-4.4, -5.8], [5, -5]], atol=2e-6
    )
    np.testing.assert_allclose(
        state["velocities"], [[1, 0], [DIAGONAL, DIAGONAL], [0.3, -0.4], [0, 0]], atol=1e-6
    )
    np.testing.assert_array_equal(state["boulders"], [[0, 0]])
    assert (reward, *map(bool, flags)) == (0.0, False, False)


@every_face_and_team
@pytest.mark.parametrize(
    ("weight", "particle", "boulder", "expected"),
    [(5, 4.1112698, -0.1313708, 0.094322999), (4, 4.0784271, -0.1642136, 0.117720411)],
    ids=["C-2", "C-2w4"],
)
def test_push_a_boulder(face, weight, particle, boulder, expected):
    env = push(face, boulder_weight=float(weight))
    env.reset()
    _, reward, *flags = env.step([-1, -1, *STILL, *STILL, *STILL])
    np.testing.assert_allclose(env.state()["particles"][0], [particle] * 2, atol=3e-6)
    np.testing.assert_allclose(env.state()["boulders"], [[boulder] * 2], atol=3e-6)
    assert reward == pytest.approx(expected, abs=1e-5)
    assert not any(flags)


@every_face_and_team
@pytest.mark.parametrize("view", ["continuous", "discrete"])
def test_push_from_all_sides_c3(face, view):
    env = push(face, view=view)
    env.reset()
    inwards = [-1, -1, 1, -1, 1, 1, -1, 1] if view == "continuous" else [8, 2, 4, 6]
    _, reward, *flags = env.step(inwards)
    edge = 4.2426407
    np.testing.assert_allclose(
        env.state()["particles"], [[edge, edge], [-edge, edge], [-edge, -edge], [edge, -edge]],
        atol=3e-6,
    )  # fmt: skip
    np.testing.assert_allclose(env.state()["boulders"], [[0, 0]], atol=1e-6)
    assert reward == pytest.approx(0, abs=1e-5)
    assert not any(flags)


@every_face_and_team
def test_push_one_physics_step_c5(face):
    layout = {"particles": [(-5.9, 0)], "boulders": [(0, 0)], "landmarks": [(15, 0), (-15, 0)]}
    env = push(face, layout=layout, num_physics_steps=1)
    env.reset()
    _, reward, *flags = env.step([1, 0])
    np.testing.assert_allclose(env.state()["particles"], [[-5.94, 0]], atol=2e-6)
    np.testing.assert_allclose(env.state()["boulders"], [[0.06, 0]], atol=1e-6)
    assert reward == pytest.approx(0.06, abs=2e-6)
    assert not any(flags)


@every_face_and_team
def test_push_time_limit_c7(face):
    env = push(face, max_episode_steps=2)
    start = env.reset()
    for flags in ((False, False), (False, True)):
        obs, reward, *ends = env.step([0] * 8)
        np.testing.assert_array_equal(obs, start)
        assert (reward, *map(bool, ends)) == (0.0, *flags)
