"""The examples run, are short, and do what they say."""

import runpy
import sys
from pathlib import Path

import pytest

import headwise as hw

EXAMPLES = Path(__file__).parents[2] / "examples"
OURS = ("dict_action", "resume", "pettingzoo_push")


def run(name, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


@pytest.mark.parametrize("name", OURS)
def test_at_most_forty_lines(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 40


def quick(monkeypatch, steps):
    """The same examples with fewer steps and smaller networks."""
    learn, init = hw.Agent.learn, hw.Agent.__init__

    def begin(self, algo, env, **settings):
        init(self, algo, env, **{**settings, "net_arch": (16,), "n_steps": 16, "num_envs": 4})

    def shorter(self, number=None, **options):
        return learn(self, number and min(number, steps), **options)

    monkeypatch.setattr(hw.Agent, "__init__", begin)
    monkeypatch.setattr(hw.Agent, "learn", shorter)


def test_dict_action(monkeypatch, capsys):
    quick(monkeypatch, 128)
    run("dict_action", monkeypatch)
    text = capsys.readouterr().out
    assert "(3 seeds: too few to say" in text
    assert "'gripper':" in text


def test_resume(monkeypatch, capsys, tmp_path):
    quick(monkeypatch, 10_000)
    run("resume", monkeypatch, tmp_path / "x.zip", 128)
    first = capsys.readouterr().out
    run("resume", monkeypatch, tmp_path / "x.zip", 128)
    second = capsys.readouterr().out
    assert second == "going on after 128 steps\n" + first


def test_pettingzoo(monkeypatch, capsys):
    quick(monkeypatch, 100)
    run("pettingzoo_push", monkeypatch, 100)
    text = capsys.readouterr().out
    assert "particle_0/action: Choice(9)" in text
    assert "return of the team" in text
