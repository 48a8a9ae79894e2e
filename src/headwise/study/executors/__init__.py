"""Executors: where packs are trained. Each takes packs, and tells what became of them."""
