"""From an agent to a file that runs without Headwise."""

from __future__ import annotations

import os

from headwise.agent.face import Face
from headwise.agent.plan import Plan
from headwise.errors import ConfigError
from headwise.training.loop import Loop


def export_member(
    loop: Loop,
    plan: Plan,
    face: Face,
    member: int,
    path: str | os.PathLike[str],
    *,
    deterministic: bool,
    masks: bool,
) -> None:
    """Writes one member's policy: as ONNX, or through `torch.export` if the file ends in .pt2."""
    from headwise.export import deploy, export_onnx, export_torch

    if not isinstance(path, str | os.PathLike):
        raise ConfigError("an export needs the path of a file", got=repr(path), allowed="a path")
    policy = deploy(
        loop.algorithm,
        plan.config,
        plan.factorization,
        face.spec,
        face.codec.observations,
        face.codec.actions,
        view=face.codec.view,
        normaliser=loop.normaliser,
        member=member,
    )
    write = export_torch if os.fspath(path).endswith(".pt2") else export_onnx
    write(policy, path, deterministic=deterministic, masks=masks)
