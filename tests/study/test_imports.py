"""What is registered in a study's file, or beside it, is there in worker processes too."""

import dataclasses
import subprocess
import sys

import gymnasium as gym
import pytest
from tiny_study import tiny_study

from headwise import ConfigError
from headwise.study import Store, Study
from headwise.study.conductor import executors
from headwise.study.executors.base import ExecutorSettings
from headwise.study.imports import imports_of, load_imports

HEADS = """
# With annotations as texts, for which dataclasses look up the module.
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from headwise.factorizations import Factorization, factorizations
from headwise.factorizations.values import BranchingValue

@factorizations.register({name!r})
@dataclass(frozen=True, kw_only=True)
class Own(Factorization):
    name: ClassVar[str] = {name!r}

    def value(self, blueprint):
        import lies_beside  # only now, when the worker's file has run
        return BranchingValue(blueprint)
"""
STUDY = """
import beside  # registers "beside"
from headwise.study import Study

def make():
    assert __name__ != "__main__"
    return Study.grid(
        "own", environments=["Platform"], views=["discrete"], algorithms=["dqn"],
        factorizations=["own", "beside"], total_timesteps=32, seeds=1, num_envs=2,
        settings={"net_arch": (8,), "learning_starts": 8, "batch_size": 8, "buffer_size": 64},
    )
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "own.py").write_text(HEADS.format(name="own") + STUDY)
    (tmp_path / "beside.py").write_text(HEADS.format(name="beside"))
    (tmp_path / "lies_beside.py").write_text("")
    return tmp_path


def run(script, folder, *words):
    (folder / "script.py").write_text(script)
    command = [sys.executable, folder / "script.py", *words]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_is_run_by_workers_of_this_machine(files):
    run(
        """
import sys
from headwise.study import Options, conduct, load_study

if __name__ == "__main__":
    sys.path.remove(sys.path[0])  # where the script is, and so what lies beside the study
    load_study(sys.argv[1] + "/own.py")
    study = load_study(sys.argv[1] + "/own.py")  # twice does no harm
    print(conduct(study, sys.argv[1] + "/out", Options(workers=1)))
""",
        files,
        str(files),
    )
    store = Store(files / "out")
    assert [store.is_finished(run.id) for run in store.plan()] == [True, True]


OBJECT = """
import sys
from dataclasses import dataclass
from typing import ClassVar

import beside
from headwise.factorizations import Factorization, factorizations
from headwise.factorizations.values import BranchingValue
from headwise.study import Cell, Environment, Options, Study, conduct

@factorizations.register("main")
@dataclass(frozen=True, kw_only=True)
class Main(Factorization):
    name: ClassVar[str] = "main"

    def value(self, blueprint):
        return BranchingValue(blueprint)

if __name__ == "__main__":
    from headwise.study.imports import imports_of
    study = Study.grid(
        "own", environments=["Platform"], views=["discrete"], algorithms=["dqn"],
        factorizations=["main", "beside"], total_timesteps=32, seeds=1, num_envs=2,
        settings={"net_arch": (8,), "learning_starts": 8, "batch_size": 8, "buffer_size": 64},
    )
    print(*imports_of(study, study.runs()))
    print(conduct(study, sys.argv[1], Options(workers=1)).finished)
"""


def test_a_study_of_a_script_takes_along_the_modules_it_uses(files):
    said = run(OBJECT, files, str(files / "out")).split()
    assert said == [str(files / "script.py"), "beside", "2"]


def test_nothing_is_loaded_for_what_is_headwises_own(tmp_path):
    study = tiny_study()
    object.__setattr__(study, "file", tmp_path / "gone.py")
    assert imports_of(study, study.runs()) == ()
    grid = {"algorithms": ["ppo"], "factorizations": ["shared"], "total_timesteps": 8, "seeds": 1}
    names = ["CartPole-v1", "Lander", "probe/agree"]
    assert imports_of(study, Study.grid("g", environments=names, **grid).runs()) == ()


def test_an_id_that_is_new_takes_the_file_along_whatever_it_is_made_of(tmp_path, monkeypatch):
    grid = {"algorithms": ["ppo"], "factorizations": ["shared"], "total_timesteps": 8, "seeds": 1}
    monkeypatch.setitem(gym.registry, "Longer-v0", gym.spec("CartPole-v1"))
    study = Study.grid("g", environments=["Longer-v0"], **grid)
    assert imports_of(study, study.runs()) == ()  # it is for whoever made the study in Python
    study = dataclasses.replace(study, file=tmp_path / "mine.py")
    assert imports_of(study, study.runs()) == (str(tmp_path / "mine.py"),)


@pytest.mark.parametrize("name", ["local", "ray"])
def test_what_only_a_notebook_knows_is_refused_by_those_who_cannot_see_it(name):
    with pytest.raises(ConfigError, match=r"notebook.*`inline`"):
        executors.get(name)(ExecutorSettings(imports=("__main__",)))


def test_what_a_worker_cannot_load_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"not on the machine of this worker; got .*gone.py"):
        load_imports((str(tmp_path / "gone.py"),))
    with pytest.raises(ConfigError, match=r"cannot import a module .*no_such_module.*Install"):
        load_imports(("no_such_module",))
