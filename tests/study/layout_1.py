"""Studies and checkpoints as versions before layout 2 wrote them."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from headwise.training.checkpoint import Checkpoint, checkpoint_bytes, read_checkpoint
from headwise.upgrade import RENAMED, RUN

GOLDEN = Path(__file__).parents[1] / "goldens" / "study_v1.json.gz"
PRINTS = {"headwise": "0.1.0", "engine": 2, "device": "cpu"}


def golden():
    """(configuration, scalars, tables) of each run of a tiny study, by its id of layout 1."""
    found = {}
    for id_, files in json.loads(gzip.decompress(GOLDEN.read_bytes())).items():
        config, scalars, tables = eval(files["run"], {"nan": float("nan"), "inf": float("inf")})
        found[id_] = json.loads(config), dict(scalars), tables
    return found


def write_study(folder, leave_out=()):
    """A study's folder of layout 1; some runs are planned and not there."""
    runs = golden()
    plan = [{"id": id_, **config} for id_, (config, _, _) in runs.items()]
    study = {"name": "tiny", "version": 1, "about": "", "thresholds": [0.0], "plan": plan}
    (folder / "runs").mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps(study))
    for id_, (config, scalars, tables) in runs.items():
        if id_ in leave_out:
            continue
        home = folder / "runs" / id_
        home.mkdir()
        files = {"config": config, "result": scalars, "fingerprint": PRINTS}
        for name, data in files.items():
            (home / f"{name}.json").write_text(json.dumps(data))
        for name, columns in tables.items():
            parquet.write_table(pa.table(columns), home / f"{name}.parquet")
    return runs


def as_in_layout_1(path):
    """Writes a checkpoint of today with the names and values of layout 1."""
    info, tensors = read_checkpoint(path)
    info = {name: x for name, x in info.items() if name not in ("format", "version", "entries")}
    plan = dict(info["plan"])
    algorithm, settings = plan["algorithm"], dict(plan["settings"])
    if algorithm == "ppo":
        settings["n_steps"] *= plan["num_envs"]
        settings["normalize_advantage"] = {False: "off", "batch": "minibatch"}.get(
            settings["normalize_advantage"], "rollout"
        )
    if algorithm == "sac":
        settings["ent_coef"] = float(settings["ent_coef"].removeprefix("auto_"))
    names = {new: old for old, new in (RENAMED[""] | RENAMED[algorithm]).items()}
    outer = {new: old for old, new in RUN.items()}
    plan = {outer.get(name, name): value for name, value in plan.items()}
    plan["settings"] = {names.get(name, name): value for name, value in settings.items()}
    tensors = {name.replace("normalizer", "normaliser"): part for name, part in tensors.items()}
    path.write_bytes(checkpoint_bytes(Checkpoint({**info, "plan": plan}, tensors)))
