"""Layout 1 in the words of today: names and values change, and nothing that was learned does."""

import gzip
import json
from pathlib import Path

import pytest

from headwise import ConfigError
from headwise.algorithms import algorithms
from headwise.factorizations import factorizations
from headwise.study.run import Run
from headwise.upgrade import RENAMED, plain_id, upgrade, upgrade_plan, upgrade_settings

GOLDENS = Path(__file__).parent / "goldens"
V1 = {
    "algorithm": "ppo",
    "env": "HybridShoot",
    "env_settings": {},
    "factorization": "shared",
    "factorization_settings": {},
    "labels": {"environment": "shoot"},
    "num_envs": 16,
    "seed": 1,
    "settings": {"rollout": 4096, "lr": 0.1, "normalise": "off", "centre": "minibatch"},
    "steps": 64,
    "view": None,
}


def read(name):
    return json.loads(gzip.decompress((GOLDENS / name).read_bytes()))


def parts(text):
    """The configuration, and all else as text, of what `contents` says of a run."""
    config, end = eval(text, {"nan": "nan", "inf": "inf"})[0], text.index("', [(")  # a repr of ours
    return json.loads(config), text[end:]


def test_a_study_leaves_behind_what_it_did_in_layout_1_to_the_bit():
    before, now = read("study_v1.json.gz"), read("study.json.gz")["contents"]
    assert len(before) == len(now) == 8
    for id_, old in before.items():
        config, rest = parts(old["run"])
        upgraded = upgrade({**config, "id": id_})
        new = now[upgraded.pop("id")]
        assert parts(new["run"]) == (upgraded, rest)
        assert new["tensors"] == old["tensors"]
        info, its = (eval(one["checkpoint"]) for one in (old, new))
        then, today = upgrade_plan(info.pop("plan")), its.pop("plan")
        assert info == its
        kinds = {
            "settings": algorithms.get(today["algorithm"])(),
            "factorization_settings": factorizations.get(today["factorization"])(),
        }
        for part, defaults in kinds.items():  # some came since, and are as they always were
            old = then.pop(part)
            since = {name: x for name, x in today[part].items() if name not in old}
            assert since.items() <= vars(defaults).items()
            assert {**since, **old} == today[part]
        assert {name: today[name] for name in then} == then


def test_values_mean_what_they_meant():
    assert upgrade_settings("ppo", V1["settings"], 16) == {
        "n_steps": 256,
        "learning_rate": 0.1,
        "normalize_advantage": False,
        "center_advantage": "batch",
    }
    assert upgrade_settings("ppo", {"rollout": 2048}, 4) == {"n_steps": 512}
    assert upgrade_settings("ppo", {"rollout": 100}, 3) == {"n_steps": 33}  # so many were taken
    assert upgrade_settings("ppo", {"rollout": 4}, 16) == {"n_steps": 1}
    assert upgrade_settings("ppo", {"normalise": "minibatch"}, 1) == {
        "normalize_advantage": "batch"
    }
    assert upgrade_settings("sac", {"first_temperature": 0.2, "replay": 5}, 1) == {
        "ent_coef": "auto_0.2",
        "buffer_size": 5,
    }
    assert upgrade_settings("dqn", {"epsilon": 0.1, "epsilon_start": 1.0}, 1) == {
        "exploration_final_eps": 0.1,
        "exploration_initial_eps": 1.0,
    }


def test_what_is_of_today_stays_as_it_is():
    new = upgrade(V1)
    assert upgrade(new) == new
    assert upgrade({**V1, "id": plain_id(V1)}) == {**new, "id": plain_id(new)}


def test_of_an_algorithm_of_somebodys_own_only_what_all_have_is_renamed():
    own = {"rollout": 128, "clip": 0.3, "lr": 0.1, "hidden": [8]}
    assert upgrade_settings("reinforce", own, 16) == {
        "rollout": 128,
        "clip": 0.3,
        "learning_rate": 0.1,
        "net_arch": [8],
    }


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_every_new_name_is_a_setting_and_no_old_one_is(algorithm):
    names = vars(algorithms.get(algorithm)())
    renamed = RENAMED[""] | RENAMED[algorithm]
    assert set(renamed.values()) <= set(names)
    assert names.keys().isdisjoint(renamed)
    for kind in factorizations.names():
        assert vars(factorizations.get(kind)()).keys().isdisjoint(renamed)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "0123456789abcdef"},
        {"settings": None},
        {"settings": {"rollout": "many"}},
        {"num_envs": None},
    ],
)
def test_what_is_no_run_of_layout_1_is_refused(change):
    with pytest.raises(ConfigError, match="a run"):
        upgrade({**V1, **change})


def test_an_upgraded_run_can_be_trained():
    new = upgrade(V1)
    assert Run.from_json(new).config.algorithm.n_steps == 256
