"""Soft values: what SAC learns with, for each factorization."""
