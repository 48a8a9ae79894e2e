"""The compiled environments' randomness and kernels, below the level of any environment."""

import contextlib
import hashlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import stats

from headwise import EnvError, _core
from headwise.envs.native.engine import Engine


def normals(pairs):
    """Normal numbers of so many Philox words, as the environments draw them."""
    numbers = []
    for counter in range(pairs // 2):
        a, b, c, d = _core.philox([counter, 0, 1, 0], 12345)
        numbers += [_core.normal_pair(a, c), _core.normal_pair(b, d)]
    return np.array(numbers)


def test_normal_numbers_are_normal():
    pairs = normals(100_000)
    for numbers in (*pairs.T, pairs.ravel()):
        n = len(numbers)
        assert abs(numbers.mean()) < 5 / np.sqrt(n)
        assert abs(numbers.var() - 1) < 5 * np.sqrt(2 / n)
        assert abs(stats.skew(numbers)) < 5 * np.sqrt(6 / n)
        assert abs(stats.kurtosis(numbers)) < 5 * np.sqrt(24 / n)
        assert stats.kstest(numbers, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 5 / np.sqrt(len(pairs))
    # The tails too: as many beyond three deviations as there should be.
    beyond = (np.abs(pairs) > 3).sum()
    expected = pairs.size * 2 * stats.norm.sf(3)
    assert abs(beyond - expected) < 5 * np.sqrt(expected)


def test_normal_numbers_are_accurate():
    """Box and Muller in double precision, from the same words."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, (5000, 2))
    words[:4] = [[0, 0], [2**32 - 1, 2**32 - 1], [0, 2**31], [2**31, 2**30]]
    u = (words[:, 0].astype(np.float32).astype(float) + 0.5) * 2.0**-32
    angle = 2 * np.pi * (words[:, 1] >> 8) * 2.0**-24
    radius = np.sqrt(-2 * np.log(np.minimum(u, 1)))
    ours = np.array([_core.normal_pair(int(a), int(b)) for a, b in words])
    np.testing.assert_allclose(ours[:, 0], radius * np.cos(angle), atol=3e-6)
    np.testing.assert_allclose(ours[:, 1], radius * np.sin(angle), atol=3e-6)


def digest():
    """A hash of random games in all environments: what an instruction set must not change.

    (Operations of learners: tests/ops.)
    """
    rng = np.random.default_rng(0)
    sha = hashlib.sha256()
    pile = {"particles": rng.normal(size=(6, 2)) * 4, "boulders": rng.normal(size=(3, 2)) * 4,
            "landmarks": rng.normal(size=(2, 2)) * 20}  # fmt: skip
    for name, settings in [
        ("ContextualDecoupler", {}), ("Platform", {}), ("Platform", {"noise": 0.0}),
        ("HybridShoot", {}), ("HybridShoot", {"mode": "independent", "num_targets": 7}),
        ("CoopPush", {}), ("CoopPush", {"layout": "independent"}), ("CoopPush", pile),
    ]:  # fmt: skip
        env = Engine(name, 37, settings)
        env.seed(np.arange(37), np.arange(37))
        env.reset()
        for _ in range(60):
            heads = env.spec.sample(rng, 37)
            env.choices[...] = heads[:, : env.spec.num_choices]
            env.ranges[...] = heads[:, env.spec.num_choices :]
            env.step()
            for array in (env.obs, env.next_obs, env.reward, env.terminated):
                sha.update(array.tobytes())
    out = np.zeros((3, 77), dtype=np.float32)
    _core.fill_uniforms(out, np.arange(3, dtype=np.uint64), 1, 2)
    sha.update(out.tobytes())
    return sha.hexdigest()


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_gives_the_same_bytes(isa):
    """Those that the machine lacks fall back on the next best, so this holds everywhere."""
    code = "import test_randomness; print(test_randomness.digest())"
    path = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "HEADWISE_ISA": isa, "PYTHONPATH": path},
    )
    assert done.stdout.strip() == digest()


def test_a_second_thread_is_refused_while_a_step_runs():
    """A step lets other threads run; what they ask of the same environment meanwhile is refused."""
    env = Engine("Platform", 4000, num_threads=1)
    env.reset()
    stop, refused, wrong = threading.Event(), [], []

    def meddle():
        while not stop.is_set():
            try:
                env.snapshot()
            except EnvError as error:
                refused.append(str(error))
            except BaseException as error:
                wrong.append(error)

    thread = threading.Thread(target=meddle)
    thread.start()
    steps = 0
    while len(refused) < 3 and steps < 2000:
        with contextlib.suppress(EnvError):  # the other one may have been first
            env.step()
        steps += 1
    stop.set()
    thread.join()
    assert not wrong
    assert len(refused) >= 3
    assert all("in use by another thread" in message for message in refused)


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("HybridShoot", (0, {}, None, 0, 1), "num_envs is out of range; got 0"),
        ("HybridShoot", (2**24 + 1, {}, None, 0, 1), "num_envs is out of range"),
        ("HybridShoot", (1, {}, -1, 0, 1), "max_episode_steps is out of range; got -1"),
        ("HybridShoot", (1, {}, None, 3, 1), "autoreset is out of range"),
        ("HybridShoot", (1, {}, None, 0, 0), "num_threads is out of range"),
        ("HybridShoot", (1, {}, None, 0, 10**6), "num_threads is out of range"),
        ("HybridShoot", (1, {3: 4}, None, 0, 1), "a name must be text; got 3"),
    ],
)
def test_impossible_environments(name, arguments, complaint):
    with pytest.raises(EnvError, match=complaint):
        _core.VecEnv(name, *arguments)


def test_a_snapshot_belongs_to_its_settings():
    """The same sizes with other rules would go on from a state that means something else."""

    def engine(**settings):
        made = Engine("ContextualDecoupler", 3, settings)
        made.reset()
        return made

    snapshot = engine(num_options=50).snapshot()
    with pytest.raises(EnvError, match="other settings"):
        engine(num_options=5).restore(snapshot)
    with pytest.raises(EnvError, match="other settings"):
        engine(num_options=50, idle_penalty=0.1 + 1e-8).restore(snapshot)
    engine(num_options=50).restore(snapshot)
    damaged = bytearray(snapshot)
    damaged[-40] ^= 1
    with pytest.raises(EnvError, match="damaged"):
        engine(num_options=50).restore(bytes(damaged))


def test_a_restored_environment_tells_what_has_ended():
    env = Engine("HybridShoot", 4, {"num_targets": 1}, max_episode_steps=2, autoreset=2)
    env.reset()
    for slot in range(4):
        env.set_state(slot, {"targets": [[0.5, 0.5]]})
    env.ranges[...] = 0.5
    env.ranges[2:] = 0.9
    env.step()
    np.testing.assert_array_equal(env.terminated, [True, True, False, False])
    snapshot = env.snapshot()
    env.reset(env.terminated.copy())
    env.step()
    env.restore(snapshot)
    np.testing.assert_array_equal(env.terminated, [True, True, False, False])
    np.testing.assert_array_equal(env.truncated, [False] * 4)
    np.testing.assert_array_equal(env.episode_length, [1] * 4)
    env.reset(np.array([True, True, False, False]))
    env.step()
    np.testing.assert_array_equal(env.truncated, [False, False, True, True])
