"""The files: what they say of themselves, that they stand alone, and what is refused."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from deployed import MEMBER, OBS, Deployed, run_onnx
from gymnasium import spaces

import headwise
from headwise import ActionCodec, ConfigError, SpaceError
from headwise.errors import ExportError
from headwise.export import deploy, export_onnx, export_torch


@pytest.fixture(scope="module")
def cell():
    return Deployed("ppo", "shared", "hybrid")


@pytest.fixture(scope="module")
def model(cell, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "policy.onnx"
    assert export_onnx(cell.policy, path, deterministic=False, masks=True) == path
    return path


def test_inputs_and_outputs_are_named_after_the_spaces(model):
    graph = onnx.load(model).graph

    def shapes(values):
        return {
            v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in values
        }

    # Four heads, each drawn by a uniform number; the one with most options has three.
    assert shapes(graph.input) == {
        "observation": ["batch", OBS],
        "uniform": ["batch", 4],
        "action_mask": ["batch", 4, 3],
    }
    assert shapes(graph.output) == {"arm": ["batch", 2], "gripper": ["batch"], "on": ["batch"]}
    onnx.checker.check_model(onnx.load(model), full_check=True)


def test_a_file_says_what_it_is(model):
    words = {prop.key: prop.value for prop in onnx.load(model).metadata_props}
    assert words["headwise.version"] == headwise.__version__
    assert words["headwise.algorithm"] == "ppo"
    assert words["headwise.factorization"] == "shared"
    assert words["headwise.uniforms"] == "4"
    assert words["headwise.masks"] == "true"
    actions = {leaf["name"]: leaf for leaf in json.loads(words["headwise.action"])}
    assert actions["arm"]["low"] == [-2.0, -2.0]
    assert actions["gripper"]["dtype"] == "int64"
    (observation,) = json.loads(words["headwise.observation"])
    assert observation == {"name": "observation", "shape": [OBS], "dtype": "float32"}
    assert json.loads(words["headwise.heads"])["names"] == ["arm[0]", "arm[1]", "gripper", "on"]


def test_a_file_holds_nothing_of_whoever_made_it(cell, model, tmp_path):
    program = export_torch(cell.policy, tmp_path / "policy.pt2")
    for path in (model, program):
        content = path.read_bytes()
        assert b".py" not in content
        assert str(Path(headwise.__file__).parent).encode() not in content
    assert len(model.read_bytes()) < 60_000


@pytest.mark.parametrize("rows", [1, 3])
def test_batches_may_have_any_size(cell, model, rows):
    inputs = cell.inputs(rows, deterministic=False, masks=True)
    assert not cell.disagreements(cell.oracle(**inputs), run_onnx(model, inputs)).any()


def test_it_runs_where_there_is_no_torch_and_no_headwise(model):
    code = f"""
import sys
sys.modules["torch"] = sys.modules["headwise"] = None
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession({os.fspath(model)!r})
action = session.run(["arm", "gripper"], {{
    "observation": np.zeros((2, {OBS}), np.float32),
    "uniform": np.full((2, 4), 0.5, np.float32),
    "action_mask": np.ones((2, 4, 3), bool),
}})
print([part.shape for part in action])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[(2, 2), (2,)]", done.stderr


@pytest.mark.parametrize(
    ("algorithm", "factorization", "space"),
    [("sac", "ar", "hybrid"), ("dqn", "qplex", "discrete"), ("ppo", "joint", "discrete")],
)
def test_the_program_of_torch_export_does_the_same(algorithm, factorization, space, tmp_path):
    cell = Deployed(algorithm, factorization, space)
    options = {"deterministic": algorithm == "dqn", "masks": algorithm != "ppo"}
    export_torch(cell.policy, tmp_path / "policy.pt2", **options)
    words = {"headwise.json": ""}
    program = torch.export.load(tmp_path / "policy.pt2", extra_files=words).module()
    about = json.loads(words["headwise.json"])
    assert (about["algorithm"], about["member"]) == (algorithm, MEMBER)
    inputs = cell.inputs(10_000, **options)
    tensors = {"uniform": None, "action_mask": None}
    tensors |= {name: torch.from_numpy(x) for name, x in inputs.items()}
    tensors["observation"] = {"observation": tensors["observation"]}
    got = {name: x.numpy() for name, x in program(**tensors).items()}
    assert not cell.disagreements(cell.oracle(**inputs), got).any()


def test_members_and_their_settings_are_told_apart():
    cell = Deployed("ppo", "shared", "continuous", learning_rate=(0.1, 0.2, 0.3))
    obs = {"observation": torch.ones(1, OBS)}
    actions = [cell.deploy(member)(obs)["action"] for member in range(3)]
    assert not torch.equal(actions[0], actions[1])
    assert not torch.equal(actions[1], actions[2])
    assert cell.deploy(2).learner.config.learning_rate == 0.3
    assert torch.equal(cell.policy(obs)["action"], actions[MEMBER])


def test_a_deployed_policy_is_a_copy(cell):
    fresh = Deployed("ppo", "shared", "hybrid")
    obs = {"observation": torch.ones(1, OBS)}
    before = fresh.policy(obs)["arm"]
    state = {n: torch.zeros_like(x) for n, x in fresh.learner.state_dict().items()}
    fresh.learner.load_state_dict(state)
    assert torch.equal(fresh.policy(obs)["arm"], before)


def test_without_spaces_every_head_is_an_output_and_the_observation_a_vector(cell):
    policy = deploy(cell.learner, cell.config, cell.factorization, cell.spec, OBS)
    got = policy({"observation": torch.zeros(2, OBS)})
    assert {name: (x.shape, x.dtype) for name, x in got.items()} == {
        "arm[0]": ((2,), torch.float32),
        "arm[1]": ((2,), torch.float32),
        "gripper": ((2,), torch.int64),
        "on": ((2,), torch.int64),
    }


# --- refusals ---------------------------------------------------------------------------------


def test_an_unknown_member_is_refused(cell):
    with pytest.raises(ConfigError, match="no such member; got 3; allowed: 0 to 2"):
        cell.deploy(3)


def test_a_member_that_diverged_is_refused():
    cell = Deployed("dqn", "shared", "discrete")
    state = cell.learner.state_dict()
    state["values"][2, 0] = torch.nan
    cell.learner.load_state_dict(state)
    cell.deploy(1)
    with pytest.raises(ConfigError, match=r"member 2 has diverged.*Export another member"):
        cell.deploy(2)


@pytest.mark.parametrize("export", [export_onnx, export_torch])
def test_what_cannot_be_is_refused(cell, export, tmp_path):
    path = tmp_path / "policy"
    best_only = Deployed("dqn", "shared", "discrete").policy
    with pytest.raises(ConfigError, match=r"policy is deterministic.*allowed: deterministic=True"):
        export(best_only, path, deterministic=False)
    with pytest.raises(ConfigError, match="no discrete heads to mask"):
        export(Deployed("sac", "shared", "continuous").policy, path, masks=True)
    with pytest.raises(ExportError, match=r"to a file; got .*, which is a folder"):
        export(cell.policy, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_missing_is_made(cell, tmp_path):
    export_torch(cell.policy, tmp_path / "some" / "where" / "policy.pt2")
    assert (tmp_path / "some" / "where" / "policy.pt2").stat().st_size > 0
    with pytest.raises(ExportError, match=r"cannot be made; got .*policy.pt2: .*another path"):
        export_torch(cell.policy, tmp_path / "some" / "where" / "policy.pt2" / "x.pt2")


def test_a_folder_that_may_not_be_written_to_is_found_before_anything_is_done(
    cell, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(ExportError, match="cannot be written to"):
        export_onnx(cell.policy, tmp_path / "policy.onnx")


def test_a_full_disk_leaves_the_file_that_was_there(cell, tmp_path, monkeypatch):
    path = tmp_path / "policy.pt2"
    path.write_bytes(b"before")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headwise.files.write_bytes", full)
    with pytest.raises(ExportError, match=r"cannot be written; got .*No space left on device"):
        export_torch(cell.policy, path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_package_is_named_with_the_way_to_get_it(cell, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ConfigError, match=r'needs the package onnx.*pip install "headwise\[onnx\]"'
    ):
        export_onnx(cell.policy, tmp_path / "policy.onnx")


def test_an_action_called_like_an_input_is_refused(cell):
    space = spaces.Dict(a=spaces.Box(0, 1, (2,)), b=spaces.Discrete(3), uniform=spaces.Discrete(2))
    with pytest.raises(SpaceError, match=r"called as an input.*got uniform.*Rename it"):
        deploy(cell.learner, cell.config, cell.factorization, cell.spec, OBS, ActionCodec(space))


def test_names_with_an_index_are_fine_in_a_file(tmp_path):
    cell = Deployed("ppo", "shared", "hybrid")
    space = spaces.Tuple([spaces.Box(-2, 3, (2,)), spaces.MultiDiscrete([3, 2])])
    policy = deploy(
        cell.learner, cell.config, cell.factorization, cell.spec, OBS, ActionCodec(space)
    )
    export_onnx(policy, tmp_path / "policy.onnx")
    got = run_onnx(tmp_path / "policy.onnx", {"observation": np.zeros((4, OBS), np.float32)})
    assert {name: x.shape for name, x in got.items()} == {"action[0]": (4, 2), "action[1]": (4, 2)}
