"""A short run of the fuzzer without sanitizers; `make sanitize` is the long one with them."""

import fuzz_core
import pytest


@pytest.mark.parametrize("seed", [0, 1])
def test_random_calls_are_answered_or_refused(seed):
    fuzzer = fuzz_core.Fuzzer(seed)
    fuzzer.run(20_000)
    outcomes = fuzzer.outcomes
    assert sum(outcomes.values()) == 20_000
    # It does reach both kinds of end, for every kind of call that can be wrong.
    for call in ("make", "attach", "seed_slots", "reset", "step", "step_units", "restore",
                 "set_state"):  # fmt: skip
        assert outcomes[f"{call}: fine"] > 50, call
        assert outcomes[f"{call}: EnvError"] + outcomes[f"{call}: TypeError"] > 5, call
    for call in ("buffers", "policies", "head_values", "values", "policy_losses", "rollouts",
                 "mixtures", "row_moves", "adam", "networks"):  # fmt: skip
        assert outcomes[f"{call}: fine"] > 50, call
        assert outcomes[f"{call}: ValueError"] + outcomes[f"{call}: TypeError"] > 5, call


def test_the_same_seed_makes_the_same_calls():
    first, second = fuzz_core.Fuzzer(3), fuzz_core.Fuzzer(3)
    first.run(500)
    second.run(500)
    assert first.outcomes == second.outcomes
