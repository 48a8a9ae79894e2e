"""A desk whose tools limit each other by state, and which refuses what it did not offer."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import headwise as hw

VERBS, TARGETS, POWERS = 3, 4, 2
RULES = [
    hw.Forbid(verb=2, power=1),
    hw.Require(lambda a: a["target"] != 3 or a["power"] == 0, heads=("target", "power")),
    hw.Given(target="verb"),
]
TREE = [hw.Forbid(verb=2, power=1), hw.Given(target="verb")]


class Desk(gym.Env):
    """Which targets a verb has changes in every step; some verbs are not there at all.

    The reward is one for the verb that the state names with the first target that it has.

    Args:
        tells: Where the mask is: "info", "obs" or "method".
        rules: What else is refused.
    """

    steps = illegal = 0

    def __init__(self, tells="info", rules=RULES, strict=True):
        self.tells, self.strict = tells, strict
        self.rules = [rule for rule in rules if not isinstance(rule, hw.Given)]
        self.action_space = spaces.Dict(
            verb=spaces.Discrete(VERBS),
            target=spaces.Discrete(TARGETS),
            power=spaces.Discrete(POWERS),
        )
        seen = spaces.Box(0.0, 1.0, (VERBS + VERBS * TARGETS + VERBS,), np.float32)
        self.observation_space = seen
        if tells == "obs":
            mask = spaces.Dict(
                verb=spaces.MultiBinary(VERBS), target=spaces.MultiBinary((VERBS, TARGETS))
            )
            self.observation_space = spaces.Dict(seen=seen, action_mask=mask)
        if tells == "method":
            self.action_masks = self.mask

    def mask(self):
        return {"verb": self.verbs, "target": hw.given("verb", self.table)}

    def _show(self):
        random = self.np_random
        self.goal = int(random.integers(VERBS))
        self.verbs = random.random(VERBS) < 0.7
        self.verbs[self.goal] = True
        # the last target goes with one power only, so a verb always has another as well
        self.table = random.random((VERBS, TARGETS)) < 0.5
        self.table[np.arange(VERBS), random.integers(0, TARGETS - 1, VERBS)] = True
        self.table[~self.verbs] = False
        goal = np.eye(VERBS)[self.goal]
        seen = np.concatenate([goal, self.table.ravel(), self.verbs]).astype(np.float32)
        info = {"action_mask": self.mask()} if self.tells == "info" else {}
        if self.tells != "obs":
            return seen, info
        mask = {"verb": self.verbs.astype(np.int8), "target": self.table.astype(np.int8)}
        return {"seen": seen, "action_mask": mask}, info

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._show()

    def is_legal(self, action):
        verb, target = int(action["verb"]), int(action["target"])
        named = {name: int(x) for name, x in action.items()}
        fixed = all(rule.allows(named) for rule in self.rules)
        return bool(self.verbs[verb] and self.table[verb, target] and fixed)

    def step(self, action):
        Desk.steps += 1
        Desk.illegal += not self.is_legal(action)
        if self.strict and not self.is_legal(action):
            raise AssertionError(f"{action} of verbs {self.verbs} and {self.table}")
        verb, target = int(action["verb"]), int(action["target"])
        reward = float(verb == self.goal and target == self.table[verb].argmax())
        reward -= 1.0 - self.is_legal(action)
        self.time += 1
        return (*self._step(reward),)

    def _step(self, reward):
        seen, info = self._show()
        return seen, reward, False, self.time == 8, info
