"""Export: one member's policy as a file that runs without Headwise."""

from headwise.export.deploy import deploy
from headwise.export.files import export_onnx, export_torch
from headwise.export.policy import DeployedPolicy

__all__ = ["DeployedPolicy", "deploy", "export_onnx", "export_torch"]
