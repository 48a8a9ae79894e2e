"""Run ids: a hash of what determines a run, the same today and tomorrow."""

import hashlib
import json
from dataclasses import replace

import pytest
from tiny_study import tiny_cell

from headwise import ConfigError
from headwise.added import canonical_json
from headwise.study.run import Run

RUN = Run(
    env="HybridShoot",
    env_settings={"mode": "dependent"},
    view="hybrid",
    algorithm="dqn",
    factorization="vdn",
    settings={"learning_rate": 0.001, "net_arch": [8, 8]},
    factorization_settings={},
    seed=3,
    total_timesteps=64,
    num_envs=4,
    labels={"environment": "shoot"},
)


def test_the_id_is_the_start_of_the_sha256_of_canonical_json():
    text = (
        '{"algorithm":"dqn","env":"HybridShoot","env_settings":{"mode":"dependent"},'
        '"factorization":"vdn","factorization_settings":{},"num_envs":4,"seed":3,'
        '"settings":{"learning_rate":0.001,"net_arch":[8,8]},"total_timesteps":64,"view":"hybrid"}'
    )
    assert RUN.id == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert RUN.id == "ff2180c17b2cd948"  # a change of this orphans every store there is


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"total_timesteps": 65},
        {"num_envs": 5},
        {"view": None},
        {"env": "Platform"},
        {"env_settings": {}},
        {"algorithm": "sac"},
        {"factorization": "ar"},
        {"settings": {"learning_rate": 0.002, "net_arch": [8, 8]}},
        {"factorization_settings": {"critic_bins": 7}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_determines_a_run_changes_its_id(change):
    assert replace(RUN, **change).id != RUN.id


def test_labels_do_not_change_an_id():
    assert replace(RUN, labels={"environment": "other", "preset": "sound"}).id == RUN.id


def test_there_and_back():
    data = json.loads(json.dumps({"id": RUN.id, **RUN.to_json()}))
    assert Run.from_json(data) == RUN
    with pytest.raises(ConfigError, match="not the hash"):
        Run.from_json({**data, "seed": 9})
    with pytest.raises(ConfigError, match="not complete"):
        Run.from_json({"id": "x"})


def test_defaults_are_written_out_so_that_a_new_default_is_a_new_run():
    run = tiny_cell().run(0)
    assert run.settings["gamma"] == 0.99
    assert run.settings["bins"] == 11
    assert run.factorization_settings == {"critic_bins": 5}


def test_a_setting_that_was_added_leaves_runs_what_they_were():
    before, said, other = tiny_cell(), tiny_cell(dueling=True), tiny_cell(dueling=False)
    assert "dueling" not in before.run(0).settings
    assert said.run(0).id == before.run(0).id
    assert other.run(0).settings["dueling"] is False
    assert other.run(0).id != before.run(0).id


@pytest.mark.parametrize("name", ["normalize_obs", "normalize_reward"])
def test_switches_that_were_added_leave_runs_what_they_were(name):
    off, on = (Run.of(RUN.config.replace(**{name: said}), 3, RUN.labels) for said in (False, True))
    assert off == Run.of(RUN.config, 3, RUN.labels)
    assert name not in off.to_json()
    assert on.to_json() == {**off.to_json(), name: True}
    assert len({off.id, on.id, RUN.id}) == 3
    assert replace(RUN, more={name: True}).to_json() == {**RUN.to_json(), name: True}
    for run in (RUN, off, on):
        assert Run.from_json(json.loads(json.dumps({"id": run.id, **run.to_json()}))) == run


def test_one_and_one_point_zero_are_the_same_run():
    assert tiny_cell(gamma=1).run(0).id == tiny_cell(gamma=1.0).run(0).id


def test_names_for_people():
    assert RUN.name == "shoot/hybrid/dqn/vdn/seed3"
    assert replace(RUN, labels={"preset": "sound"}).cell == "HybridShoot/hybrid/dqn/vdn/sound"


def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": float("nan")})
