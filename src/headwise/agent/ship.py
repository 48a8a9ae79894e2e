"""From an agent to a file that runs without Headwise."""

from __future__ import annotations

import os

from headwise.agent.face import Face
from headwise.checks import checked_switch
from headwise.errors import ConfigError
from headwise.training.config import RunConfig
from headwise.training.loop import Loop


def export_member(
    loop: Loop,
    config: RunConfig,
    face: Face,
    member: int,
    path: str | os.PathLike[str],
    *,
    deterministic: bool,
    masks: bool,
) -> None:
    """Writes one member's policy: as ONNX to a file .onnx, or through `torch.export` to a .pt2."""
    from headwise.export import deploy, export_onnx, export_torch

    if not isinstance(path, str | os.PathLike):
        raise ConfigError("an export needs the path of a file", got=repr(path), allowed="a path")
    deterministic = checked_switch("deterministic", deterministic)
    masks = checked_switch("masks", masks)
    kinds = {".onnx": export_onnx, ".pt2": export_torch}
    suffix = os.path.splitext(os.fspath(path))[1]
    if suffix not in kinds:
        raise ConfigError(
            "an exported file has an unknown ending",
            got=os.fspath(path),
            allowed="a name that ends in .onnx, or in .pt2 for PyTorch",
        )
    policy = deploy(
        loop.algorithm,
        config.algorithm,
        config.factorization,
        face.spec,
        face.codec.observations,
        face.codec.actions,
        view=face.codec.view,
        normalizer=loop.normalizer,
        network=config.network,
        member=member,
    )
    kinds[suffix](policy, path, deterministic=deterministic, masks=masks)
