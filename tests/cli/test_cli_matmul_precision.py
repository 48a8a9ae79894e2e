"""`--matmul-precision`, wherever `--device` is: what it does, and what is said where it cannot."""

import pytest
import torch

import headwise as hw
from headwise.cli import bench, main
from headwise.ops import core

WORDS = """--view discrete --algo dqn --factorization vdn --seeds 2 --total-timesteps 96
    --net-arch 32 32 --learning-starts 32 --batch-size 16 --num-envs 8 --device cpu --no-progress"""
TRAIN = ["train", *WORDS.split()]


def learned(folder, *words):
    assert main([*TRAIN, "--out", str(folder), *words]) == 0
    return hw.Agent.load(folder / "checkpoint.zip").loop.algorithm.state_dict()["values"]


def test_train_rounds_what_it_is_told_to_round(tmp_path, capsys):
    full = learned(tmp_path / "full")
    assert torch.equal(learned(tmp_path / "same", "--matmul-precision", "float32"), full)
    assert "warning" not in capsys.readouterr().err
    rounded = learned(tmp_path / "bf16", "--matmul-precision", "bf16")
    has = core.has_bf16()
    assert torch.equal(rounded, full) is not has
    assert ("float32 is used" in capsys.readouterr().err) is not has
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_a_machine_lacks_is_said(tmp_path, capsys, monkeypatch):
    learned(tmp_path / "x", "--matmul-precision", "tf32")
    said = capsys.readouterr().err
    assert "matmul precision tf32: only GPUs have it, and this is cpu; float32 is used" in said
    monkeypatch.setattr(core, "has_bf16", lambda: False)
    missing = "warning: matmul precision bf16: this cpu has no AVX512-BF16"
    assert main(["eval", str(tmp_path / "x"), "--episodes", "1", "--matmul-precision", "bf16"]) == 0
    assert missing in capsys.readouterr().err
    monkeypatch.setattr(bench, "training_rate", lambda *_: 1.0)
    assert main(["bench", "--seconds", "0.001", "--slots", "8", "--matmul-precision", "bf16"]) == 0
    assert missing in " ".join(capsys.readouterr().out.split())


def test_the_faster_device_is_found_before_it_is_asked_for_its_products(
    tmp_path, capsys, monkeypatch
):
    learned(tmp_path / "x")
    monkeypatch.setattr(bench, "training_rate", lambda *given: float(given[-1] == "cpu"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    evaluate = ["eval", str(tmp_path / "x"), "--episodes", "1"]
    measure = ["bench", "--seconds", "0.001", "--slots", "8", "--seeds", "1"]
    for command in (evaluate, measure):
        for precision in ([], ["--matmul-precision", "tf32"]):
            assert main([*command, "--device", "auto", *precision]) == 0
            said = capsys.readouterr()
            missing = "only GPUs have it, and this is cpu" in " ".join(
                (said.out + said.err).split()
            )
            assert missing == bool(precision)
        with pytest.raises(SystemExit, match="0"):
            main([*command, "--help"])
        assert "cpu, cuda, or auto" in " ".join(capsys.readouterr().out.replace("│", "").split())
        assert main([*command, "--device", "warp"]) == 2
        assert "allowed: auto, cpu, and cuda" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["train"], ["eval", "x"], ["bench"], ["study", "run", "x"]])
def test_other_words_are_refused(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--matmul-precision", "fp8"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert all(word in said for word in ("fp8", "--matmul-precision", "float32", "tf32", "bf16"))
