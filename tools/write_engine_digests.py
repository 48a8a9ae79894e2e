"""Writes tests/goldens/engine_digests.json: a digest of what each cell of the goldens learns.

    python tools/write_engine_digests.py

For each cell the file has the digest of all members after all updates, and the operations that
torch computed on the way because they are not compiled; where there are any, torch's rounding is in
the digest, which then holds on machines of the kind that the file names alone. Write it anew when
an operation was compiled or computes in another order on purpose, and say so in the changelog.
"""

import json
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1] / "tests" / "contracts"))

from engine_play import DIGESTS, cells, digest, machine, not_compiled, population


def main() -> None:
    """Writes the file."""
    torch.set_num_threads(1)
    lines = [f' "machine": {json.dumps(machine())}']
    for name, cell in cells().items():
        said = {"digest": digest([population(name).state]), "by_torch": not_compiled(cell)}
        lines.append(f" {json.dumps(name)}: {json.dumps(said)}")
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{DIGESTS.name}: {len(lines) - 1} cells, {DIGESTS.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
