"""`headwise train --eval-every`."""

import csv
import json

from small_run import train

import headwise as hw
from headwise.cli import main


def evaluated(folder):
    rows = csv.DictReader((folder / "metrics.csv").read_text().splitlines())
    return [(int(r["step"]), r["seed"]) for r in rows if r["name"] == "eval/mean_return"]


def test_it_is_logged_and_the_best_agent_is_kept(tmp_path, capsys):
    folder = tmp_path / "run"
    assert train(folder, "--eval-every", "32", "--eval-episodes", "2") == 0
    assert evaluated(folder) == [(step, seed) for step in (32, 64) for seed in ("0", "1")]
    best = hw.Agent.load(folder / "checkpoint-best.zip")
    assert best.steps in (32, 64)
    capsys.readouterr()
    assert main(["eval", str(folder / "checkpoint-best.zip"), "--episodes", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["returns"]) == 2
    # A run that is resumed may be measured as well, or no more.
    more = ["--eval-every", "32", "--eval-episodes", "1", "--no-progress"]
    assert main(["train", "--resume", str(folder), "--total-timesteps", "96", *more]) == 0
    assert evaluated(folder)[-1] == (96, "1")


def test_it_stops_on_an_evaluation(tmp_path, capsys):
    words = ["--total-timesteps", "400", "--stop-at", "-1000", "--stop-on", "eval"]
    assert train(tmp_path / "a", *words, "--eval-every", "32", "--eval-episodes", "1") == 0
    assert hw.Agent.load(tmp_path / "a" / "checkpoint.zip").steps == 32
    assert train(tmp_path / "b", *words) == 2
    assert "eval_every=10_000" in capsys.readouterr().err
