"""One file for each compiled environment: a file that lies here is an environment of that name.

`coop_push.py` is `headwise/CoopPush-v0`, `cart_pole_v1.py` is `headwise/CartPole-v1`. Each ends
with its `ENV`, a `headwise.envs.native.info.NativeInfo`: how it is drawn, who acts in it, and what
random and scripted play score. The rules are in the C++ header of that name in `cpp/envs`.
"""
