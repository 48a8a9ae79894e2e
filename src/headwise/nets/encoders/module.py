"""A module of the user's own as encoder, and what must be true of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map

from headwise.errors import ConfigError
from headwise.nets.encoders.base import EncoderConfig, Reads, encoders
from headwise.population.torch_net import seeded

_ROWS = 5
_HERE = torch.device("cpu")


@encoders.register("module")
@dataclass(frozen=True)
class Module(EncoderConfig):
    """Your own torch module, which is passed as `encoder=MyModule`."""

    name: ClassVar[str] = "module"
    reads: ClassVar[Reads] = "everything"

    label: str = ""
    """What it is called."""
    make: Callable[[Any], nn.Module] | None = None
    """From the observation space to a module; None where a file knows only its name."""

    @classmethod
    def of(cls, make: Callable[[Any], nn.Module]) -> Module:
        """Of a class or a function."""
        name = getattr(make, "__qualname__", type(make).__qualname__)
        return cls(f"{getattr(make, '__module__', '')}:{name}", make)

    def module(self, space: Any) -> nn.Module:
        """A new module for a space."""
        if self.make is None:
            raise ConfigError(
                "the encoder is a module of your own, and a file holds only its name",
                got=self.label,
                fix="Hand it over again: Agent.load(path, encoder=MyModule).",
            )
        made = self.make(space)
        if not isinstance(made, nn.Module):
            raise ConfigError(
                "an encoder is made by a class or function that returns an nn.Module",
                got=f"{type(made).__name__} from {self.label}",
                fix="Return the module: it is called with batches of observations.",
            )
        return made


def check_module(label: str, make: Callable[[], nn.Module], example: Callable[[int], Any]) -> int:
    """Refuses a module that cannot be trained as it is, and returns its width.

    Args:
        label: What it is called.
        make: Makes one.
        example: So many observations as it is to be called with.
    """

    def refused(what: str, got: object, fix: str, allowed: str | None = None) -> ConfigError:
        return ConfigError(f"the encoder {label} {what}", got=got, allowed=allowed, fix=fix)

    module, other = seeded(make, 0), seeded(make, 1)
    for name, part in module.named_modules():
        if isinstance(part, _BatchNorm):
            raise refused(
                "normalizes over a batch, so that one observation changes another's features",
                f"{type(part).__name__} at {name!r}",
                "Use nn.GroupNorm or nn.LayerNorm.",
            )
    for name, w in module.named_parameters():
        if is_lazy(w):
            fix = "Give layers their sizes: the class is called with the observation space."
            raise refused("has a lazy layer, whose size is not known yet", name, fix)
        if w.device != _HERE or w.dtype != torch.float32:
            fix = "Make it on the CPU in float32; it is moved to the learner's device for you."
            raise refused("has a parameter elsewhere", f"{w.dtype} on {w.device} at {name!r}", fix)
        if not w.requires_grad:
            fix = "Make it a buffer: self.register_buffer(name, tensor)."
            raise refused("has a parameter that does not learn", name, fix)
    kept = {name: x.clone() for name, x in module.named_buffers()}
    for name, x in other.named_buffers():
        if not torch.equal(x, kept[name]):
            fix = "Make it an nn.Parameter, or the same every time."
            raise refused("has a buffer that begins by chance, and is not saved", name, fix)
    with torch.random.fork_rng(devices=[]):
        return _checked_width(module, example(_ROWS), kept, refused)


def _checked_width(
    module: nn.Module,
    given: Any,
    kept: dict[str, Tensor],
    refused: Callable[..., ConfigError],
) -> int:
    """The width of what a module returns, which must be what an encoder may return."""
    y = _called(module, given, refused)
    _check_features(y, refused)
    for name, x in module.named_buffers():
        if not torch.equal(x, kept[name]):
            fix = "Compute it anew each time; for running statistics use normalize_obs=True."
            raise refused("changes a buffer while it is called", name, fix)
    if not torch.equal(_called(module, given, refused), y):
        raise refused(
            "gives other features for the same observations",
            "a difference between two calls",
            "Leave chance out, such as nn.Dropout.",
        )
    each = [
        _called(module, tree_map(lambda x, i=i: x[i : i + 1], given), refused) for i in range(_ROWS)
    ]
    if any(one.shape != y[:1].shape for one in each) or not torch.allclose(
        torch.cat(each), y, rtol=1e-3, atol=1e-4
    ):
        raise refused(
            "changes with the size of the batch",
            f"{tuple(each[0].shape)} for one observation, {tuple(y.shape)} for {_ROWS}, or other "
            "numbers",
            "Count dimensions from the right, and let rows of a batch not see each other.",
        )
    return y.shape[-1]


def _called(module: nn.Module, given: Any, refused: Callable[..., ConfigError]) -> Tensor:
    try:
        with torch.no_grad():
            y: Tensor = module(given)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        shapes = tree_map(lambda x: tuple(x.shape), given)
        raise refused(
            "fails on a batch of observations", got, f"It is called with tensors of {shapes}."
        ) from error
    return y


def _check_features(y: Any, refused: Callable[..., ConfigError]) -> None:
    if not isinstance(y, Tensor):
        raise refused("returns no tensor", type(y).__name__, "Return features (B, F).")
    if y.device != _HERE:
        fix = "Leave tensors where the observations are: they are moved for you."
        raise refused("moves observations to another device", str(y.device), fix)
    if y.dim() != 2 or y.shape[-2] != _ROWS or not y.shape[-1]:
        fix = "Flatten all but the batch: x.flatten(1)."
        raise refused("returns another shape", tuple(y.shape), fix, f"({_ROWS}, F), one row each")
    if y.dtype != torch.float32:
        raise refused("returns other numbers", y.dtype, "Return float32.")
    if not bool(torch.isfinite(y).all()):
        fix = "Look for a division by zero, a logarithm or a root in it."
        raise refused("returns numbers that are not finite", "NaN or infinity", fix)
