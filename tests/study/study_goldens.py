"""What a tiny study leaves behind, and a page about made-up runs, as text that can be kept.

`tests/goldens/study.json.gz` holds both, written by `tools/write_study_goldens.py`: `machine`, what
the numbers depend on beside the code; `contents`, of `tiny()` by run (`contents_text`), the same
whatever executor it was; and `page`, the files of a report by name (`page_text`).
"""

import gzip
import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import scipy
import torch
from tiny_study import contents, tiny_cell, tiny_study

from headwise.report import write_report
from headwise.study import Options, conduct

TESTS = Path(__file__).parents[1]
FILE = TESTS / "goldens" / "study.json.gz"


def tiny():
    """Every algorithm and every view."""
    cells = [
        tiny_cell(),
        tiny_cell("ppo", "shared"),
        tiny_cell("sac", "ar", view="continuous"),
        tiny_cell("ppo", "qplex", view="discrete"),
    ]
    return tiny_study(seeds=2, cells=cells)


def contents_text(folder, executor):
    """`contents` of the study trained there, tensors by their digests."""
    workers = 1 if executor == "inline" else 2
    how = Options(executor=executor, workers=workers, device="cpu", keep_checkpoints=True)
    conduct(tiny(), folder, how)
    found = {}
    for run, (rest, (info, tensors)) in contents(folder).items():
        named = {
            name: f"{dtype} {list(shape)} {hashlib.sha256(data).hexdigest()}"
            for name, (dtype, shape, data) in sorted(tensors.items())
        }
        found[run] = {"run": rest, "checkpoint": _versionless(info), "tensors": named}
    return found


def page_text(folder):
    """The files of a report about made-up runs; its page without version, style and scripts."""
    sys.path.insert(0, str(TESTS / "report"))
    import synthetic

    some = {"platform": synthetic.ENVIRONMENTS["platform"]}
    stores = [
        synthetic.sweep(folder / "paper", 2, 60, some),
        synthetic.factorial(folder / "demo", seeds=3),
    ]
    page = write_report(stores, folder / "report", formats=())
    found = {
        path.relative_to(page.parent).as_posix(): path.read_text()
        for path in sorted(page.parent.rglob("*"))
        if path.suffix in (".csv", ".tex", ".txt")
    }
    text = page.read_text()
    (data,) = re.findall(r'(?s)id="data">(.*?)</script>', text)
    found["data"] = json.dumps(_rounded(json.loads(data)), sort_keys=True, indent=1)
    bare = re.sub(r"(?s)<(style|script).*?</\1>", "", text)
    found["index.html"] = _versionless(bare)
    return found


def _versionless(text):
    text = re.sub(r"'versions': {.*?}", "'versions': {}", text)
    return re.sub(r"headwise \d+\.\d+\.\w+", "headwise", text)


def _rounded(data):
    """Numbers with six digits: the last ones are the machine's."""
    if isinstance(data, float):
        return float(f"{data:.6g}")
    if isinstance(data, dict):
        return {name: _rounded(value) for name, value in data.items()}
    return [_rounded(value) for value in data] if isinstance(data, list) else data


def machine():
    versions = {"torch": torch.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
    return versions | {"cpu": torch.backends.cpu.get_cpu_capability()}


def read():
    return json.loads(gzip.decompress(FILE.read_bytes()))


def write(kept):
    text = json.dumps(kept, sort_keys=True).encode()
    FILE.write_bytes(gzip.compress(text, 9, mtime=0))
