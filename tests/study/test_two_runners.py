"""Two plain processes on one folder, as the tasks of a Slurm array are: the work of one, shared."""

import subprocess
import sys

from tiny_study import contents, leftovers

from headwise.study import Options, Store, conduct, load_study

STUDY = """
from headwise.study import Environment, Evaluate, Study

study = Study.grid(
    "array", environments=[Environment("HybridShoot", "shoot")], algorithms=["ppo"],
    factorizations=["shared", "vdn", "ar", "independent"], total_timesteps=4096, seeds=3,
    num_envs=4,
    settings={"net_arch": (8, 8), "branch_width": 8, "n_steps": 8, "batch_size": 16},
    evaluate=Evaluate(every=0.5, episodes=2, last=5),
)
"""


def test_an_array_of_jobs_shares_a_folder(tmp_path):
    file, folder = tmp_path / "many_jobs.py", tmp_path / "shared"
    file.write_text(STUDY)
    command = [
        sys.executable, "-m", "headwise.cli", "study", "run", str(file), "--out", str(folder),
        "--executor", "inline", "--max-members", "1",
    ]  # fmt: skip
    tasks = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [task.communicate()[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], told
    study = load_study(file)
    conduct(study, tmp_path / "alone", Options(executor="inline"))
    assert contents(folder) == contents(tmp_path / "alone")
    assert leftovers(folder) == []
    assert Store(folder).plan() == list(study.runs())
    assert not list((folder / ".live").glob("*"))
