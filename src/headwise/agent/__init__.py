"""The agent as a product: train anything, save, resume, watch, ship."""

from headwise.agent.agent import Agent

__all__ = ["Agent"]
