"""A robot whose action is buttons and dials: what Headwise sees of it, and the way back."""

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

import headwise as hw

space = Dict(gripper=Discrete(3), arm=Box(-1, 1, (2,)), torque=Box(0, 40, ()))
codec = hw.ActionCodec(space)
print("native:    ", codec.spec)
for kind in ("discrete", "hybrid", "continuous"):
    view = hw.View(codec.spec, kind, bins=5)
    print(f"{kind + ':':11s}", view.spec)
    heads = view.spec.sample(np.random.default_rng(0))
    print(" " * 11, heads.round(2), "->", codec.to_env(view.to_native(heads)))
