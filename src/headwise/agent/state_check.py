"""Whether the tensors of a checkpoint are those of its settings: told from shapes, before any use.

Settings in a file may promise networks of any size. What they would be is worked out by building
the learner of shapes alone, which takes no memory, and the file must hold exactly that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from headwise.agent.face import Face
from headwise.algorithms.base import Task
from headwise.errors import CheckpointError, HeadwiseError
from headwise.population import ShapesOnly
from headwise.spaces import ActionSpec, View
from headwise.training.config import RunConfig
from headwise.training.loop import Loop, State
from headwise.training.normalize import Normalizer, prior_of
from headwise.training.transition import MASKS

_ALWAYS = 1 << 26
"""Numbers of the observations of all slots that a file may promise whatever it holds: 256 MB."""
_FIX = (
    "It was changed by hand, or comes from a source you should not trust. Use another checkpoint."
)
_FLAGS = ("terminated", "truncated", "valid", *MASKS)
_FRAMES = {"number": torch.int64, "newest": torch.int64, "apart": torch.float32}
"""Of a replay that holds what was seen once (`training/frames.py`)."""
_CURSORS = {"next": torch.int64, "count": torch.int64, "steps": torch.int64, "even": torch.bool}


def check_state(config: RunConfig, seeds: Sequence[int], face: Face, state: State) -> None:
    """Refuses tensors that do not fit the settings beside them."""
    spec = _learners_spec(config, face)
    members, slots = len(seeds), config.num_envs
    _check_learner(config, seeds, face, spec, state["learner"])
    _check_slots(members, slots, face, state)
    _check_normalizer(config, members, face, state.get("normalizer", {}))
    heads, tables = spec.num_heads, spec.mask_rows - spec.num_heads
    options = (spec.num_choices + tables, spec.max_options)
    step: dict[str, tuple[int, ...]] = {
        "obs": (face.obs_spec.size,),
        "next_obs": (face.obs_spec.size,),
        "action": (heads,),
        **dict.fromkeys(("reward", "terminated", "truncated", "valid"), ()),
        **dict.fromkeys(MASKS, options),
    }
    for name, x in state["counters"].items():
        _check("counters", name, x, (), (torch.int64,))
        if x < 0:
            raise _refused("counters", name, str(int(x)), "numbers from 0")
    for name, x in state["metrics"].items():
        columns = x.shape[1:] if x.dim() == 2 and x.shape[1] in (1, heads) else ()
        _check("metrics", name, x, (members, *columns))
    rows = state["episodes"].get("table", torch.empty(0))
    _check("episodes", "table", rows, (*rows.shape[:1], 4), (torch.float64,))
    for name, x in state.get("now", {}).items():
        kind = torch.bool if name == "legal" else torch.float32
        _check("now", name, x, (members, slots, *step.get(name, ())), (kind,))
    for name, x in sorted(state.get("env", {}).items()):  # a file has them in any order
        _check("env", name, x, x.shape[:1], (torch.uint8,))
    if memory := state.get("memory"):
        _check_memory(memory, step, (members, slots), replays="next" in memory)


def check_fit(part: str, ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> None:
    """Refuses a part of a state that lacks something, or has it in another shape or type."""
    if missing := ours.keys() - theirs.keys():
        raise CheckpointError(
            f"the checkpoint lacks parts of its {part}", got=sorted(missing), fix=_FIX
        )
    for name, x in ours.items():
        _check(part, name, theirs[name], x.shape, (x.dtype,))


def check_extras(loop: Loop, state: State) -> None:
    """Refuses a rollout without what the learner keeps of an action for itself, or with more."""
    memory = state.get("memory", {})
    if not memory or "next" in memory:
        return
    theirs = {name: x for name, x in memory.items() if name.startswith("extra_")}
    ours = {
        f"extra_{name}": memory["reward"].new_empty(*memory["reward"].shape, columns)
        for name, columns in loop.algorithm.extra.items()
    }
    check_fit("memory", ours, theirs)
    if more := sorted(theirs.keys() - ours.keys()):
        raise _refused("memory", more[0], "a tensor", "no such name")


def _learners_spec(config: RunConfig, face: Face) -> ActionSpec:
    bins = config.algorithm.bins
    try:
        return face.spec if bins is None else View(face.spec, "discrete", bins=bins).spec
    except HeadwiseError as error:
        raise _unusable(error) from error


def _check_learner(
    config: RunConfig,
    seeds: Sequence[int],
    face: Face,
    spec: ActionSpec,
    learner: Mapping[str, Tensor],
) -> None:
    kinds = (type(config.algorithm), type(config.factorization))
    if not all(kind.__module__.startswith("headwise.") for kind in kinds):
        return  # a user's own may do more with its first numbers than ask for their shape
    held = sum(x.numel() for x in learner.values())
    least = len(seeds) * config.factorization.least_numbers(spec)
    if least > held:  # even tables of so many actions would be too large
        raise CheckpointError(
            "the settings in the checkpoint promise more than it holds",
            got=f"networks of {least:,} numbers at least",
            allowed=f"{held:,}",
            fix=_FIX,
        )
    task = Task(
        spec=spec,
        obs_spec=face.obs_spec,
        num_slots=config.num_envs,
        total_steps=config.total_timesteps or 1,
        factorization=config.factorization,
        keys=ShapesOnly(seeds),
        network=config.network,
        normalized=bool(config.normalization.normalize_obs),
    )
    try:
        promised = config.algorithm.build(task).state_dict()
    except (HeadwiseError, RuntimeError, OverflowError, MemoryError) as error:
        raise _unusable(error) from error
    check_fit("learner", promised, learner)


def _check_normalizer(
    config: RunConfig, members: int, face: Face, theirs: Mapping[str, Tensor]
) -> None:
    if not config.normalization.is_on:
        return
    ours = Normalizer(
        members,
        config.num_envs,
        face.obs_spec.size,
        torch.empty(members, device="meta"),
        **vars(config.normalization),
        prior=prior_of(config.normalization.normalize_obs, face.obs_spec),
        packed=face.obs_spec.packed,
    )
    wanted = ours.state_dict()
    if "so_far" in wanted and theirs.get("so_far", torch.empty(0)).shape == (members, 1):
        wanted["so_far"] = wanted["so_far"][:, :1]  # of agents that studies keep: no slot goes on
    check_fit("normalizer", wanted, theirs)


def _check_slots(members: int, slots: int, face: Face, state: State) -> None:
    """Refuses more slots than anything in the file is of, if they would take gigabytes."""
    promised = members * slots * max(face.obs_spec.size, face.spec.num_heads)
    held = sum(x.numel() for named in state.values() for x in named.values())
    if promised > max(held, _ALWAYS):
        raise CheckpointError(
            "the settings in the checkpoint promise more than it holds",
            got=f"observations of {slots:,} environments, {promised:,} numbers",
            allowed=f"{max(held, _ALWAYS):,}",
            fix=_FIX,
        )


def _check_memory(
    memory: Mapping[str, Tensor],
    step: Mapping[str, tuple[int, ...]],
    slots: tuple[int, int],
    *,
    replays: bool,
) -> None:
    """Refuses a memory whose tensors are not of the same steps of the same slots."""
    needed = [name for name in step if name not in MASKS and not (replays and name == "valid")]
    needed += [name for name in MASKS if any(mask in memory for mask in MASKS)]
    needed += _CURSORS if replays else ()
    apart = replays and "next_obs" not in memory
    if apart:
        needed = [name for name in needed if name != "next_obs"] + [*_FRAMES]
    for name in needed:
        if name not in memory:
            raise _refused("memory", name, "nothing", "a tensor")
    times = memory["reward"].shape[1:2]
    if not times:
        raise _refused("memory", "reward", _told(memory["reward"]), "a column for each step")
    for name, x in memory.items():
        extra = name.startswith("extra_") and not replays
        if name in _CURSORS:
            shape = slots if name in ("next", "count") else slots[:1]
            _check("memory", name, x, shape, (_CURSORS[name],))
        elif apart and name in _FRAMES:
            held = x.shape[1:2] if x.dim() == 4 and x.shape[1] else (1,)
            lies = {"number": (slots[0], *times, slots[1]), "newest": slots}
            shape = lies.get(name, (slots[0], *held, slots[1], *step["obs"]))
            _check("memory", name, x, shape, (_FRAMES[name],))
        elif name in step:
            kinds = [torch.bool if name in _FLAGS else torch.float32]
            _check("memory", name, x, (slots[0], *times, slots[1], *step[name]), kinds)
        elif not extra:
            raise _refused("memory", name, _told(x), "no such name")


def _check(
    part: str,
    name: str,
    x: Tensor,
    shape: tuple[int, ...] | torch.Size,
    kinds: list[torch.dtype] | tuple[torch.dtype, ...] | None = None,
) -> None:
    if tuple(x.shape) != tuple(shape) or (kinds is not None and x.dtype not in kinds):
        kind = x.dtype if kinds is None else kinds[0]
        raise _refused(part, name, _told(x), f"{kind} {tuple(shape)}")


def _told(x: Tensor) -> str:
    return f"{x.dtype} {tuple(x.shape)}"


def _refused(part: str, name: str, got: str, allowed: str) -> CheckpointError:
    return CheckpointError(
        f"the {part} in the checkpoint does not fit its settings, at {name!r}",
        got=got,
        allowed=allowed,
        fix=_FIX,
    )


def _unusable(error: Exception) -> CheckpointError:
    return CheckpointError(
        "the settings in the checkpoint cannot be used",
        got=(str(error) or repr(error)).rstrip("."),
        fix=_FIX,
    )
