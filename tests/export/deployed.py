"""Populations to deploy, the oracle of what they do, and a runtime for their files."""

from collections import OrderedDict

import numpy as np
import onnxruntime
import torch
from gymnasium import spaces

from headwise import ActionCodec, ObsCodec, ObsSpec
from headwise.algorithms import algorithms
from headwise.algorithms.base import Task
from headwise.export import deploy
from headwise.factorizations import factorizations
from headwise.population import Keys
from headwise.spaces.bins import Binning
from headwise.training.normalize import Normalizer

MEMBERS, MEMBER, OBS = 3, 1, 5
SPACES = {
    "discrete": spaces.Dict(OrderedDict(tool=spaces.Discrete(3, start=1), on=spaces.Discrete(2))),
    "hybrid": spaces.Dict(
        OrderedDict(arm=spaces.Box(-2, 3, (2,)), gripper=spaces.Discrete(3), on=spaces.Discrete(2))
    ),
    "continuous": spaces.Box(np.float32([-1, 0]), np.float32([1, 40])),
}


class Deployed:
    """A population with random parameters and normalizers, and one member of it, deployed."""

    def __init__(self, algorithm, factorization, kind, *, member=MEMBER, **settings):
        self.codec = ActionCodec(SPACES[kind])
        self.observations = ObsCodec(spaces.Box(-np.inf, np.inf, (OBS,)))
        settings = {"net_arch": (16, 16), **settings}
        if algorithm == "dqn" and kind != "discrete":
            settings["bins"] = 5
        self.config = algorithms.get(algorithm)(**settings)
        self.factorization = factorizations.get(factorization)()
        self.spec = self.codec.spec
        self.binning = Binning(self.spec, self.config.bins)
        keys = Keys(range(MEMBERS))
        self.learner = self.config.build(
            Task(self.binning.spec, ObsSpec.flat(OBS), 1, 1, self.factorization, keys)
        )
        self.generator = torch.Generator().manual_seed(7)
        state = self.learner.state_dict()
        for name, x in state.items():
            if name.endswith("values"):  # far from where they begin, so that actions are varied
                state[name] = x + 0.3 * torch.randn(x.shape, generator=self.generator)
        self.learner.load_state_dict(state)
        self.normalizer = Normalizer(MEMBERS, 1, OBS, torch.ones(MEMBERS))
        seen = torch.randn(MEMBERS, 50, OBS, generator=self.generator)
        every = torch.ones(MEMBERS, 50, dtype=torch.bool)
        self.normalizer.take(3.0 * seen + torch.arange(OBS), every)
        self.normalizer.advance(1, None)
        self.member = member
        self.policy = self.deploy(member)

    def deploy(self, member):
        return deploy(
            self.learner, self.config, self.factorization, self.spec, self.observations, self.codec,
            normalizer=self.normalizer, member=member,
        )  # fmt: skip

    def inputs(self, rows, *, deterministic=True, masks=False):
        """Random inputs of the deployed policy, by name."""
        random = self.generator
        obs = 3.0 * torch.randn(rows, OBS, generator=random) + torch.arange(OBS)
        found = {"observation": obs.numpy()}
        if not deterministic:
            shape = (rows, self.learner.num_uniforms)
            found["uniform"] = torch.rand(shape, generator=random).numpy()
        if masks:
            mask = torch.rand(rows, self.spec.num_heads, self.spec.max_options, generator=random)
            mask = (mask < 0.6).numpy()
            mask[..., 1] |= ~mask[..., :2].any(-1)  # every head has an option left
            found["action_mask"] = mask
        return found

    def oracle(self, observation, uniform=None, action_mask=None):
        """The same actions by the population's own code, and numpy for the rest."""

        def for_all(x):
            return None if x is None else torch.as_tensor(x).expand(MEMBERS, *x.shape)

        legal = for_all(action_mask)
        if legal is not None:
            legal = self.binning.legal(legal)
        obs = self.normalizer.obs(for_all(observation))
        unit = self.binning.to_env(self.learner.policy(obs, for_all(uniform), legal))[self.member]
        low, high, unit = self.spec.low, self.spec.high, unit.double().numpy()
        spanned = np.clip(low + 0.5 * (unit + 1.0) * (high - low), low, high)
        action = self.codec.to_env_batch(np.where(self.spec.is_choice, unit, spanned))
        return action if isinstance(action, dict) else {"action": action}

    def disagreements(self, expected, got):
        """Rows where an option differs, or a number by more than 1e-5 of half its range."""
        rows = np.zeros(len(next(iter(got.values()))), dtype=bool)
        for leaf in self.codec.leaves:
            ours, theirs = expected[leaf.path], got[leaf.path]
            assert ours.shape == theirs.shape
            assert ours.dtype == theirs.dtype
            tolerance = 0.0 if leaf.integral else 1e-5 * (leaf.high - leaf.low) / 2.0
            wrong = np.abs(ours - theirs) > tolerance
            rows |= wrong.reshape(len(rows), -1).any(-1)
        return rows

    def on_the_edge(self, inputs, got):
        """Whether the oracle, too, says what was got when its inputs move in the sixth digit."""
        inputs = {name: np.repeat(x[None], 256, axis=0) for name, x in inputs.items()}
        random = np.random.default_rng(0)
        inputs["observation"] += random.normal(0, 1e-5, inputs["observation"].shape).astype("f4")
        if "uniform" in inputs:
            moved = inputs["uniform"] + random.normal(0, 1e-6, inputs["uniform"].shape)
            inputs["uniform"] = moved.clip(0.0, 1.0 - 2.0**-24).astype("f4")
        moved = self.oracle(**inputs)
        options = [leaf.path for leaf in self.codec.leaves if leaf.integral]
        return any(all(moved[n][row] == got[n] for n in options) for row in range(256))


def run_onnx(path, inputs):
    """The outputs of a model by name."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
