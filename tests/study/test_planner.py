"""Packing: who trains with whom; and which runs are asked for."""

import json
from dataclasses import dataclass, replace

import pytest
from tiny_study import tiny_cell, tiny_study

from headwise import ConfigError
from headwise.added import added
from headwise.algorithms import algorithms
from headwise.algorithms.base import PerMember
from headwise.algorithms.dqn import DQN
from headwise.study.planner import Pack, by_turns, choose, pack_runs
from headwise.study.run import Run


def sizes(packs):
    return [len(pack.runs) for pack in packs]


def test_seeds_train_together_and_cells_do_not():
    runs = tiny_study(seeds=3).runs()
    packs = pack_runs(runs)
    assert sizes(packs) == [3, 3]
    assert [run for pack in packs for run in pack.runs] == list(runs)


def test_per_member_settings_train_together_with_their_own_values():
    study = tiny_study(
        seeds=2,
        cells=[tiny_cell(learning_rate=0.1), tiny_cell(learning_rate=0.2), tiny_cell(tau=0.5)],
    )
    first, second = pack_runs(study.runs())
    assert sizes([first, second]) == [4, 2]  # tau is shared by a population, learning_rate is not
    assert first.config().algorithm.learning_rate == (0.1, 0.1, 0.2, 0.2)
    assert first.config().algorithm.gamma == 0.99
    assert second.config().algorithm.learning_rate == 5e-4


def test_schedules_are_settings_of_runs_and_of_their_ids():
    """A function is a table by then; who follows another schedule has metrics of their own."""
    rates = ("linear_1e-2", lambda remaining: 1e-2 * remaining**2, 1e-3)
    study = tiny_study(seeds=2, cells=[tiny_cell(learning_rate=rate) for rate in rates])
    runs = [Run.from_json(json.loads(json.dumps(run.to_json()))) for run in study.runs()]
    assert len({run.id for run in runs}) == 6
    assert [run.id for run in runs] == [run.id for run in study.runs()]
    same = tiny_study(seeds=2, cells=[tiny_cell(learning_rate="lin_0.01")]).runs()
    assert [run.id for run in runs[:2]] == [run.id for run in same]
    packs = pack_runs(runs)
    assert sizes(packs) == [2, 2, 2]
    algorithm = packs[1].config().algorithm
    assert algorithm.learning_rate(0.5) == pytest.approx(2.5e-3)
    assert packs[0].config().algorithm.learning_rate == "linear_0.01"
    assert packs[2].config().algorithm.learning_rate == 1e-3


def test_a_setting_that_is_missing_cannot_vary():
    cells = [tiny_cell("sac", "shared"), tiny_cell("sac", "shared", target_entropy_end=0.1)]
    assert sizes(pack_runs(tiny_study(cells=cells, seeds=1).runs())) == [1, 1]


def test_a_member_that_lacks_an_added_setting_has_it_as_before(monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Noisy(DQN):
        noise: PerMember = added(0.0)

    monkeypatch.setitem(algorithms._entries, "dqn", Noisy)
    cells = [tiny_cell(), tiny_cell(noise=0.5)]
    for both in (cells, cells[::-1]):
        (pack,) = pack_runs(tiny_study(cells=both, seeds=1).runs())
        assert pack.config().algorithm.noise == ((0.0, 0.5) if both is cells else (0.5, 0.0))
    for dueling in (True, False):
        (pack,) = pack_runs(tiny_study(cells=[tiny_cell(dueling=dueling)], seeds=1).runs())
        assert pack.config().algorithm.dueling is dueling


def test_packs_are_even_and_no_larger_than_allowed():
    runs = tiny_study(seeds=20, cells=[tiny_cell()]).runs()
    assert sizes(pack_runs(runs, max_members=16)) == [10, 10]
    assert sizes(pack_runs(runs, max_members=1)) == [1] * 20
    with pytest.raises(ConfigError, match="max_members"):
        pack_runs(runs, max_members=0)


def test_no_worker_idles_while_another_has_all():
    runs = tiny_study(seeds=8, cells=[tiny_cell()]).runs()
    assert sizes(pack_runs(runs, 16, workers=2)) == [4, 4]
    assert sizes(pack_runs(runs, 16, workers=100)) == [1] * 8


def test_kinds_take_turns_and_the_longest_of_a_kind_is_first():
    cells = [tiny_cell("dqn", "vdn"), tiny_cell("dqn", "shared"), tiny_cell("sac", "shared")]
    short, long, other = pack_runs(tiny_study(cells=cells, seeds=1).runs())
    long = Pack(tuple(replace(run, total_timesteps=2 * run.total_timesteps) for run in long.runs))
    assert short.kind == long.kind == (other.kind[0], "dqn")
    assert by_turns([short, long, other]) == [long, other, short]


def test_packs_of_one_kind_and_length_stay_in_order():
    packs = pack_runs(tiny_study(seeds=1).runs())
    assert by_turns(packs) == packs


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_shards_are_a_partition(number):
    runs = tiny_study(seeds=5).runs()
    parts = [choose(runs, shard=f"{i}/{number}") for i in range(1, number + 1)]
    assert sorted(run.id for part in parts for run in part) == sorted(run.id for run in runs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 5


def test_shards_keep_cells_whole_where_there_are_enough():
    runs = tiny_study(seeds=5).runs()
    assert {run.algorithm for run in choose(runs, shard="1/2")} == {"dqn"}


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/2/3", "-1/2"])
def test_a_shard_that_is_none_is_refused(shard):
    with pytest.raises(ConfigError, match="shard"):
        choose(tiny_study().runs(), shard=shard)


def test_only_takes_patterns_and_ids():
    runs = tiny_study(seeds=3).runs()
    assert [run.algorithm for run in choose(runs, only="ppo")] == ["ppo"] * 3
    assert choose(runs, only="shoot*seed1") == [run for run in runs if run.seed == 1]
    assert choose(runs, only=runs[4].id[:8]) == [runs[4]]
    with pytest.raises(ConfigError, match=r"shoot/hybrid/dqn/vdn/seed0"):
        choose(runs, only="nothing")


def test_only_takes_several_patterns_each_of_which_must_fit_some_run():
    runs = tiny_study(seeds=3).runs()
    one, other = runs[0], runs[4]
    assert choose(runs, only=f"{other.id},{one.name}") == [one, other]
    with pytest.raises(ConfigError, match="got 'nothing'"):
        choose(runs, only="ppo,nothing")


def test_a_comma_too_many_chooses_nothing_more():
    runs = tiny_study(seeds=3).runs()
    assert choose(runs, only="ppo,") == choose(runs, only=" ppo , ") == choose(runs, only="ppo")
    for only in ("", ",", " , "):
        with pytest.raises(ConfigError, match="no pattern"):
            choose(runs, only=only)


def test_a_pack_can_be_taken_apart():
    pack = Pack(tiny_study(seeds=2).runs())
    assert [part.runs for part in pack.alone()] == [(run,) for run in pack.runs]
