"""Deployed policies as files: ONNX, and PyTorch's own exported programs."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import io
import json
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from headwise.errors import ConfigError, ExportError
from headwise.export.observations import input_type
from headwise.export.plain import PlainOperations
from headwise.export.policy import MASK, UNIFORM, DeployedPolicy
from headwise.files import replace_file
from headwise.spaces.to_json import spec_to_json

_MORE_THAN_ONE = 2
"""Rows of the example batch: of one row, tracing would believe that there is always one."""


def export_onnx(
    policy: DeployedPolicy,
    path: str | os.PathLike[str],
    *,
    deterministic: bool = True,
    masks: bool = False,
) -> Path:
    """Writes a policy as one ONNX file, for batches of any size.

    Its inputs are the observation's arrays by name, `uniform` if it draws, and `action_mask` if it
    takes masks; its outputs are the action's arrays by name. The model's metadata describe them.

    Args:
        policy: What `deploy` has made.
        path: Where the file goes; what is there is replaced.
        deterministic: Whether it takes the best action; if not, actions are drawn from the policy,
            by uniform numbers that are an input.
        masks: Whether an action mask is an input.
    """
    target = _checked_path(path)
    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise ConfigError(
                f"exporting to ONNX needs the package {package}, which is not installed",
                fix='Install it: pip install "headwise[onnx]".',
            )
    import onnx

    with PlainOperations():
        program = _traced(policy, deterministic=deterministic, masks=masks)
    inputs = _input_names(policy, deterministic=deterministic, masks=masks)
    with _quiet():
        exported = torch.onnx.export(
            program,
            input_names=inputs,
            output_names=list(policy.actions.leaves),
            dynamo=True,
            verbose=False,
        )
    assert exported is not None
    model = exported.model_proto
    _clean(model.graph)
    about = describe(policy, deterministic=deterministic, masks=masks)
    words = {key: x if isinstance(x, str) else json.dumps(x) for key, x in about.items()}
    onnx.helper.set_model_props(model, {f"headwise.{key}": x for key, x in words.items()})
    _write(target, model.SerializeToString())
    return target


def export_torch(
    policy: DeployedPolicy,
    path: str | os.PathLike[str],
    *,
    deterministic: bool = True,
    masks: bool = False,
) -> Path:
    """Writes a policy as a program of `torch.export`, for `torch.export.load` and `AOTInductor`.

    `torch.export.load(path).module()` takes `observation`, a dict of arrays by name, and `uniform`
    and `action_mask` where asked for; the extra file `headwise.json` describes them.

    Args:
        policy: What `deploy` has made.
        path: Where the file goes; what is there is replaced.
        deterministic: Whether it takes the best action; if not, actions are drawn from the policy,
            by uniform numbers that are an input.
        masks: Whether an action mask is an input.
    """
    target = _checked_path(path)
    program = _traced(policy, deterministic=deterministic, masks=masks)
    about = json.dumps(describe(policy, deterministic=deterministic, masks=masks))
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={"headwise.json": about})
    _write(target, file.getvalue())
    return target


def describe(policy: DeployedPolicy, *, deterministic: bool, masks: bool) -> dict[str, Any]:
    """What a file says of itself: who made it, and what goes in and comes out."""
    inputs = [
        {
            "name": name,
            "shape": list(leaf.shape),
            "dtype": str(input_type(leaf)).removeprefix("torch."),
        }
        | ({} if leaf.counts is None else {"options": leaf.counts, "start": leaf.starts})
        for name, leaf in policy.observations.leaves.items()
    ]
    outputs = [
        {
            "name": path,
            "shape": list(leaf.shape),
            "dtype": str(leaf.dtype),
            "low": leaf.low.tolist(),
            "high": leaf.high.tolist(),
        }
        for path, leaf in policy.actions.leaves.items()
    ]
    return {
        "version": importlib.metadata.version("headwise"),
        **policy.about,
        "observation": inputs,
        "action": outputs,
        "heads": spec_to_json(policy.spec),
        "uniforms": 0 if deterministic else policy.learner.num_uniforms,
        "masks": masks,
    }


def _traced(policy: DeployedPolicy, *, deterministic: bool, masks: bool) -> ExportedProgram:
    arguments = policy.example(_MORE_THAN_ONE, deterministic=deterministic, masks=masks)
    batch = Dim("batch")

    def dynamic(x: Any) -> Any:
        if isinstance(x, dict):
            return {name: dynamic(part) for name, part in x.items()}
        return None if x is None else {0: batch}

    policy(**arguments)  # what is made once and kept must be of numbers, not of the graph
    with torch.no_grad(), _quiet():
        program = torch.export.export(
            policy, (), kwargs=arguments, dynamic_shapes=dynamic(arguments), strict=False
        )
    for name, x in program.constants.items():
        if isinstance(x, Tensor):
            # A learner's parameters are views of one tensor, which would be saved with each.
            program.constants[name] = x.detach().clone()
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of the exporting machine, and most of the file
    return program


def _clean(graph: Any) -> None:
    """Leaves out what is for debugging the exporter, and calls the batch's axis by its name."""
    for part in (graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        del part.metadata_props[:]
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"


def _input_names(policy: DeployedPolicy, *, deterministic: bool, masks: bool) -> list[str]:
    return [*policy.observations.leaves, *[UNIFORM] * (not deterministic), *[MASK] * masks]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says about itself: packages it misses, names it will change."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """The path, or an error before minutes are spent on what could not be written."""
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise ExportError("a policy is exported to a file", got=f"{target}, which is a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(
            "the folder to export to cannot be made",
            got=f"{folder}: {error.strerror or error}",
            fix="Choose another path.",
        ) from error
    if not os.access(folder, os.W_OK):
        raise ExportError("the folder to export to cannot be written to", got=str(folder))
    return target


def _write(target: Path, content: bytes) -> None:
    """Writes a file in one step, so that what was there stays if it fails."""
    try:
        replace_file(target, content)
    except OSError as error:
        raise ExportError(
            "the exported policy cannot be written",
            got=f"{target}: {error.strerror or error}",
            fix="What was there before is unchanged.",
        ) from error
