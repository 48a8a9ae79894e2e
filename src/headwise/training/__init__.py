"""Training: memory, the one loop, and what surrounds it."""
