"""One mode has one meaning and several spellings, the same for everyone who takes one."""

import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from headwise.envs.autoreset import autoreset_mode
from headwise.envs.foreign import foreign_env
from headwise.envs.lander import LanderVectorEnv
from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.native.vector_env import NativeVectorEnv
from headwise.errors import ConfigError

SPELLINGS = [AutoresetMode.SAME_STEP, "SameStep", "same_step", "SAME_STEP"]


@pytest.mark.parametrize("given", SPELLINGS)
def test_every_spelling_is_understood_everywhere(given):
    assert autoreset_mode(given) is AutoresetMode.SAME_STEP
    for made in (NativeVectorEnv("HybridShoot", 2, autoreset_mode=given),
                 LanderVectorEnv(2, autoreset_mode=given)):  # fmt: skip
        assert made.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        made.close()
    theirs = SyncVectorEnv([lambda: NativeEnv("HybridShoot")], autoreset_mode="SameStep")
    foreign_env(theirs, [1], autoreset=given).close()


@pytest.mark.parametrize("given", ["same_stop", "", None, 0, AutoresetMode])
def test_others_are_refused(given):
    with pytest.raises(ConfigError, match="llowed: disabled, next_step, same_step"):
        autoreset_mode(given)
