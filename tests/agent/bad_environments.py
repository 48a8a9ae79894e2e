"""Bad inputs by way of an environment: its spaces, what it returns, its masks."""

import numpy as np
from bad_case import Bad, learns, toy, trained
from gymnasium import spaces


def env_cases():
    unbounded = spaces.Box(-np.inf, np.inf, (2,))
    actions = {
        "a Box without bounds": unbounded,
        "a Box with one bound": spaces.Box(0, np.inf, (1,)),
        "a Text": spaces.Text(5),
        "a Sequence": spaces.Sequence(spaces.Discrete(2)),
        "a Graph": spaces.Graph(spaces.Discrete(2), None),
        "an empty Dict": spaces.Dict({}),
        "an empty Tuple": spaces.Tuple(()),
        "a Dict with a Text": spaces.Dict(a=spaces.Discrete(2), b=spaces.Text(3)),
        "a Box of no elements": spaces.Box(-1, 1, (0,)),
        "no space": 3,
    }
    for what, space in actions.items():
        yield Bad("spaces", f"the action is {what}", learns(toy(action=space)))
    observations = {
        "a Text": spaces.Text(5),
        "a Sequence": spaces.Sequence(spaces.Discrete(2)),
        "an empty Dict": spaces.Dict({}),
        "a Dict with a Graph": spaces.Dict(a=spaces.Graph(spaces.Discrete(2), None)),
        "no space": "obs",
    }
    for what, space in observations.items():
        yield Bad("spaces", f"the observation is {what}", learns(toy(observation=space)))
    zeros = np.zeros(2, np.float32)
    resets = {
        "only the observation": zeros,
        "three values": (zeros, {}, 1),
        "NaN": (zeros * np.nan, {}),
        "another shape": (np.zeros(3), {}),
        "None": None,
        "words": (["a", "b"], {}),
        "infinity": (np.array([0.0, np.inf]), {}),
        "ragged lists": ([[1], [1, 2]], {}),
    }
    for what, value in resets.items():
        yield Bad(
            "environments",
            f"reset returns {what}",
            learns(toy(reset=lambda self, *, seed=None, options=None, v=value: v)),
        )
    steps = {
        "four values": (zeros, 0.0, False, {}),
        "a NaN reward": (zeros, np.nan, False, False, {}),
        "a word as reward": (zeros, "one", False, False, {}),
        "None": None,
        "an infinite reward": (zeros, np.inf, False, False, {}),
        "a NaN observation": (zeros * np.nan, 0.0, False, False, {}),
        "another shape": (np.zeros((2, 2)), 0.0, False, False, {}),
        "None as reward": (zeros, None, False, False, {}),
    }
    for what, value in steps.items():
        yield Bad(
            "environments", f"step returns {what}", learns(toy(step=lambda self, a, v=value: v))
        )
    masks = {
        "of zeros": [0, 0, 0],
        "too short": [1, 1],
        "too long": [1] * 4,
        "of twos": [2, 1, 1],
        "a word": "all",
        "a dict": {"a": 1},
        "ragged": [[1], [1, 1]],
        "of NaN": [np.nan, 1, 1],
    }
    for what, mask in masks.items():
        yield Bad(
            "masks",
            f"a mask {what} from the environment",
            learns(
                toy(
                    reset=lambda self, *, seed=None, options=None, m=mask: (
                        np.zeros(2, np.float32),
                        {"action_mask": m},
                    )
                )
            ),
        )
        yield Bad(
            "masks",
            f"a mask {what} in predict",
            lambda _, m=mask: trained(toy()).predict(np.zeros(2), action_mask=m),
        )
    yield Bad(
        "masks",
        "a mask for numbers only",
        lambda _: trained(toy(action=spaces.Box(-1, 1, (2,)))).predict(
            np.zeros(2), action_mask=[1, 1]
        ),
    )
    yield Bad(
        "masks",
        "one mask for two observations",
        lambda _: trained(toy()).predict(np.zeros((2, 2)), action_mask=[1, 1, 1]),
    )
