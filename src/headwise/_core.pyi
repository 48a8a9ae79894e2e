"""
The compiled heart of Headwise: environments and counter-based randomness.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def philox(counter: Sequence[int], key: int) -> list[int]:
    """
    Four random words: Philox4x32-10 of four counter words and a 64-bit key.
    """

def normal_pair(radius_word: int, angle_word: int) -> tuple[float, float]:
    """Two random words as two standard normal numbers."""

def fill_uniforms(out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], stream: int, step: int) -> None:
    """
    Fills each row with numbers in [0, 1): a function of (seed, stream, step, index).
    """

def tanh(x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The hyperbolic tangent of each number, to 2e-7."""

def mix(advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], mixed: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The monotonic mixture of each row's advantages, and its hidden units."""

def mix_backward(advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], grad: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], to_advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], to_first: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], to_second: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The gradients of mixtures by advantages and by both weights."""

def mix_slope(advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], slope: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The slopes of mixtures by each advantage; overwrites the hidden units."""

def options_loss(logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], taken: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], log_prob: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], share: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], old_log_probs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)] | None, coefficients: Annotated[NDArray[numpy.float32], dict(shape=(3, None), order='C', device='cpu', writable=False)], log_probs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')], by_head: Annotated[NDArray[numpy.float32], dict(shape=(2, None, None, None), order='C', device='cpu')], by_member: Annotated[NDArray[numpy.float32], dict(shape=(4, None), order='C', device='cpu')], to_logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None:
    """
    PPO's loss of a policy over options, and its gradient by the logits. The coefficients are the clip, and the weights of entropy and divergence; found are log-probabilities and ratios by head, and loss, surrogate, entropy and divergence by member.
    """

def replay_draw(store: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], next: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], uniform: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 2), order='C', device='cpu', writable=False)], gamma: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], terminated: int, drawn: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], discount: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Transitions drawn from each member's rings, and the discount of what follows.
    """

def adam_step(value: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], grad: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], mean: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], square: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], learning_rate: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], alive: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], norm: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], count: int, beta1: float, beta2: float, epsilon: float, max_norm: float, target: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None, rate: float) -> None:
    """
    One clipped Adam step of every member; dead members are left as they are. Gradients become zero, and a target moves a part of the way to the new values, `rate`.
    """

def has_bf16() -> bool:
    """Whether this machine has products in bfloat16 (AVX512-BF16)."""

def bf16_forward(count: int, x: Sequence[int], trunk: Sequence[Sequence[int]], leaves: Sequence[Sequence[int]], threads: int) -> None:
    """
    So many networks at once, with products of numbers rounded to bfloat16. See headwise.population.bf16_network, which describes them.
    """

def bf16_backward(count: int, x: Sequence[int], trunk: Sequence[Sequence[int]], leaves: Sequence[Sequence[int]], to_x: int, threads: int) -> None:
    """
    The way back through bf16_forward: overwrites the gradient of x, and adds to those of parameters.
    """

def draw_heads(outputs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], uniform: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ranges: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, half: float, unit: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], entropy: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], log_probs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], spread: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Actions drawn from the outputs of an actor: entropies of options or minus log-densities, padded log-probabilities, and how far numbers are from their means.
    """

def draw_heads_back(outputs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], unit: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], entropy: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], log_probs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], spread: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], by_unit: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, by_entropy: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, by_log_probs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ranges: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], half: float, to_outputs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The gradient of a draw by the outputs."""

def embed_actions(obs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], action: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], owner: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float32], dict(shape=(3, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Observations beside embedded actions."""

def relax_options(log_probs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], noise: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], softness: float, obs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], action: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ranges: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float32], dict(shape=(3, None), order='C', device='cpu', writable=False)], soft: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Observations beside embedded actions with options that are the largest of a Gumbel-softmax.
    """

def relax_options_back(grad: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None, None), order='C', device='cpu', writable=False)], soft: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], softness: float, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ranges: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float32], dict(shape=(3, None), order='C', device='cpu', writable=False)], to_log_probs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], to_action: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None) -> None:
    """
    The gradients of two critics by log-probabilities and by the numbers of actions.
    """

def soft_branches(advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None, None), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], temperature: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], total: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], entropy: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], which: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Soft values of twin critics by the lesser, which that is, and the first one's entropies.
    """

def soft_branches_back(grad: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], which: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], temperature: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], to_value: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None), order='C', device='cpu')], to_advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None, None), order='C', device='cpu')]) -> None:
    """The gradients of soft values by values and advantages."""

def lesser_worth(values: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None), order='C', device='cpu', writable=False)], entropy: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, temperature: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], which: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    The lesser of twin values plus temperatures times entropies, and which twin that is.
    """

def lesser_worth_back(grad: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], temperature: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], which: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], to_values: Annotated[NDArray[numpy.float32], dict(shape=(None, 2, None), order='C', device='cpu')], to_entropy: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')] | None) -> None:
    """
    The gradients of the lesser of twin values, and of what entropies are worth.
    """

def centre_options(value: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], taken: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], best: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Advantages of options taken relative to their head's best, and which option that is: of each head, or of all together if one number is asked for, plus a value if there is one.
    """

def centre_options_back(grad: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], taken: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], best: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], to_advantage: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The gradient of centred advantages by all of them."""

def environments() -> dict[str, list[tuple[str, object, str, str]]]:
    """
    The environments and the settings of each: (name, default, allowed, help).
    """

class VecEnv:
    """Many slots of one environment, stepped together."""

    def __init__(self, name: str, num_envs: int, settings: dict[str, object], time_limit: int | None, autoreset: int, num_threads: int) -> None: ...

    def attach(self, choices: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], ranges: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], obs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], next_obs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], reward: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], terminated: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], truncated: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], episode_return: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], episode_length: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """The caller's arrays, written in place at every step."""

    def seed(self, seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], lanes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], mask: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        A seed and a lane for each slot, or for those of the mask: the address of its randomness.
        """

    def reset(self, mask: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """Starts an episode in every slot, or in those of the mask."""

    def step(self) -> None:
        """One step of every slot, with the actions in the arrays."""

    def step_units(self, heads: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]) -> None:
        """
        One step with actions as learners give them: options, and ranges from -1 to 1.
        """

    def snapshot(self) -> bytes:
        """The whole state of every slot, as bytes."""

    def restore(self, bytes: bytes) -> None:
        """Goes back to a snapshot."""

    def state(self, slot: int) -> dict[str, tuple[list[float], int, int]]:
        """The state of a slot: for each part its numbers, rows and columns."""

    def set_state(self, slot: int, values: dict[str, NDArray[numpy.float64]]) -> None:
        """Sets parts of the state of a slot, each a flat float64 array."""

    @property
    def num_envs(self) -> int: ...

    @property
    def time_limit(self) -> int: ...

    @property
    def obs_size(self) -> int: ...

    @property
    def obs_low(self) -> list[float]: ...

    @property
    def obs_high(self) -> list[float]: ...

    @property
    def heads(self) -> list[tuple[str, int, float, float, int]]:
        """
        The heads, choices first: (name, options or 0, low, high, different values or 0).
        """
