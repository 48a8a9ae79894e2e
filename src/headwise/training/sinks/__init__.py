"""Sinks: where the numbers of a run go. One file each, all with the same four calls."""

from headwise.training.sinks.base import Sink
from headwise.training.sinks.csv import CSVSink
from headwise.training.sinks.jsonl import JSONLSink
from headwise.training.sinks.mlflow import MLflowSink
from headwise.training.sinks.parquet import ParquetSink
from headwise.training.sinks.tensorboard import TensorBoardSink
from headwise.training.sinks.wandb import WandbSink

__all__ = [
    "CSVSink",
    "JSONLSink",
    "MLflowSink",
    "ParquetSink",
    "Sink",
    "TensorBoardSink",
    "WandbSink",
]
