"""Loggers: where the numbers of a run go. One file each, all with the same four calls."""

from headwise.training.loggers.base import Logger
from headwise.training.loggers.csv import CSVLogger
from headwise.training.loggers.jsonl import JSONLLogger
from headwise.training.loggers.mlflow import MLflowLogger
from headwise.training.loggers.parquet import ParquetLogger
from headwise.training.loggers.tensorboard import TensorBoardLogger
from headwise.training.loggers.wandb import WandbLogger

__all__ = [
    "CSVLogger",
    "JSONLLogger",
    "Logger",
    "MLflowLogger",
    "ParquetLogger",
    "TensorBoardLogger",
    "WandbLogger",
]
