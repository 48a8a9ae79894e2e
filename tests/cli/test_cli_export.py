"""`headwise export`: the file does what the agent does, whichever member and form is asked for."""

import numpy as np
import pytest
import torch
from small_run import train

import headwise as hw
from headwise.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "a run"
    assert train(folder) == 0
    return folder


def played(path, **inputs):
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


OBS = np.linspace(-1, 1, 9, dtype=np.float32)


def test_export_writes_the_best_policy_into_the_folder(run, capsys):
    capsys.readouterr()
    assert main(["export", str(run)]) == 0
    agent = hw.Agent.load(run / "checkpoint.zip")
    best = agent.best_member
    said = capsys.readouterr().out
    assert f"the policy of seed {agent.seeds[best]} is in {run / 'policy.onnx'}" in said
    action = played(run / "policy.onnx", observation=OBS[None])
    assert_same(action, agent.predict(OBS, deterministic=True))


def assert_same(exported, action):
    assert list(exported) == ["action[0]", "action[1]"]
    for found, wanted in zip(exported.values(), action, strict=True):
        np.testing.assert_allclose(found[0], wanted, atol=1e-5)


def test_export_of_a_member_with_masks(run, tmp_path):
    words = ["--member", "1", "--masks", "yes", "--out", str(tmp_path / "x.onnx")]
    assert main(["export", str(run), *words]) == 0
    mask = np.ones((1, 3, 3), dtype=bool)
    mask[:, 0, :2] = False
    action = played(tmp_path / "x.onnx", observation=OBS[None], action_mask=mask)
    assert action["action[0]"] == [2]
    agent = hw.Agent.load(run / "checkpoint.zip")
    unmasked = played(tmp_path / "x.onnx", observation=OBS[None], action_mask=np.ones_like(mask))
    assert_same(unmasked, agent.predict(OBS, deterministic=True, member=1))


def test_export_that_draws(run, tmp_path):
    out = tmp_path / "x.pt2"
    assert main(["export", str(run), "--no-deterministic", "--out", str(out)]) == 0
    program = torch.export.load(out).module()
    obs = {"observation": torch.from_numpy(OBS).repeat(2, 1)}
    low, high = (torch.full((2, 3), x) for x in (0.01, 0.99))
    one, other = (program(observation=obs, uniform=x, action_mask=None) for x in (low, high))
    assert (one["action[0]"] < other["action[0]"]).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "x.zip"], "allowed: a name that ends in .onnx"),
        (["--member", "2"], "there is no such member; got 2"),
        (["--out", "/proc/x.onnx"], "cannot"),
    ],
)
def test_mistakes(run, words, message, capsys):
    assert main(["export", str(run), *words]) == 2
    assert message in capsys.readouterr().err
