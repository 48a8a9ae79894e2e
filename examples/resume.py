"""A run that survives being killed: start it again, and it goes on where it was, to the bit."""

import sys
from pathlib import Path

import headwise as hw

path = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/resume.zip")
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 200_000

if path.exists():
    agent = hw.Agent.load(path)  # parameters, optimizer, memory, environments, randomness
    print(f"going on after {agent.steps:,} steps")
    agent.learn(checkpoint=path)  # what is left of the run
else:
    agent = hw.Agent("ppo", "headwise/HybridShoot-v0", factorization="ar", seeds=3)
    agent.learn(steps, checkpoint=path)  # saved every minute and at the end; Ctrl-C saves too
print(agent.evaluate(episodes=50))
