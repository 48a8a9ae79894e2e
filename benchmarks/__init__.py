"""How fast it is: ours and others' in one run, as ratios. `python -m benchmarks --help`."""
