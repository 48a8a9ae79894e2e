"""Building studies: the product, what is taken out, what is changed, and what is refused."""

import pytest
from tiny_study import tiny_cell, tiny_study

from headwise import ConfigError
from headwise.study import Environment, Study
from headwise.training.config import Normalization

GRID = {
    "environments": (Environment("HybridShoot", "shoot"), "Platform"),
    "views": ("discrete", "hybrid"),
    "algorithms": ("ppo", "dqn"),
    "factorizations": ("vdn", "joint", "ar"),
    "total_timesteps": 1000,
    "seeds": 3,
}


def grid(**changes):
    return Study.grid("g", **{**GRID, **changes})


def test_a_grid_is_the_product_and_runs_are_cells_times_seeds():
    study = grid()
    assert len(study.cells) == 2 * 2 * 2 * 3
    runs = study.without(factorization="joint", view="hybrid").runs()
    assert len(runs) == (24 - 4) * 3
    assert len({run.id for run in runs}) == len(runs)
    assert [run.seed for run in runs[:4]] == [0, 1, 2, 0]
    assert runs[0].labels == {"environment": "shoot"}


def test_conditions_must_all_hold_and_take_one_value_or_several():
    study = grid().without(environment="shoot", factorization=("joint", "ar"))
    left = {(cell.environment.label, cell.factorization) for cell in study.cells}
    assert left == {
        ("shoot", "vdn"),
        ("Platform", "vdn"),
        ("Platform", "joint"),
        ("Platform", "ar"),
    }


def test_changes_hold_where_they_should_and_later_ones_win():
    study = (
        grid()
        .change(settings={"learning_rate": 0.1})
        .change(
            environment="Platform", algorithm="ppo", settings={"learning_rate": 0.2, "n_epochs": 7}
        )
        .change(factorization="vdn", factorization_settings={"critic_bins": 3}, total_timesteps=5)
        .change(view="hybrid", env_settings={"discrete_heads": 1}, num_envs=2, labels={"x": "y"})
    )
    for cell in study.cells:
        platform_ppo = cell.environment.label == "Platform" and cell.algorithm == "ppo"
        assert cell.settings == (
            {"learning_rate": 0.2, "n_epochs": 7} if platform_ppo else {"learning_rate": 0.1}
        )
        assert cell.total_timesteps == (5 if cell.factorization == "vdn" else 1000)
        hybrid = cell.view == "hybrid"
        assert cell.environment.settings == ({"discrete_heads": 1} if hybrid else {})
        assert (cell.num_envs, cell.labels) == ((2, {"x": "y"}) if hybrid else (16, {}))


def test_a_study_is_never_changed_in_place():
    study = grid()
    before = study.cells
    study.change(settings={"learning_rate": 0.1}).without(view="hybrid").adding(tiny_cell())
    assert study.cells == before


def test_labels_are_conditions_too():
    study = tiny_study().change(algorithm="ppo", labels={"preset": "a"})
    assert len(study.without(preset="a").cells) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: grid(environments=("HybridShot",)), "Did you mean 'HybridShoot'"),
        (lambda: grid(algorithms=("pppo",)).runs(), "Did you mean 'ppo'"),
        (lambda: grid(factorizations=("vnd",)).runs(), "Did you mean 'vdn'"),
        (lambda: grid().change(settings={"gama": 0.9}).runs(), "Did you mean 'gamma'"),
        (lambda: grid().change(settings={"gamma": 9.0}).runs(), "gamma"),
        (
            lambda: grid().change(settings={"learning_rate": (0.1, 0.2)}).runs(),
            "several values for one run",
        ),
        (lambda: grid().without(algorithm="sac"), "no cell"),
        (lambda: grid().change(algo="ppo"), "Did you mean 'algorithm'"),
        (lambda: grid(total_timesteps=0).runs(), "total_timesteps"),
        (lambda: grid(normalize_obs=1).runs(), "normalize_obs is a switch"),
        (lambda: grid(normalize_ob=True), "Did you mean 'normalize_obs'"),
        (lambda: grid(seeds=()).runs(), "no seeds"),
        (lambda: grid(seeds=(-1,)).runs(), "seed"),
        (lambda: grid(seeds=(1, 1)).runs(), "same run twice"),
        (lambda: Study("s").runs(), "no cells"),
        (lambda: Study("a/b"), "name"),
        (lambda: grid().change(env_settings={"x": object()}).runs(), "plain data"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_switches_are_set_for_all_or_for_some():
    study = grid(normalize_reward=True).change(algorithm="ppo", normalize_obs=True)
    for cell in study.without(factorization="joint", view="hybrid").cells:
        run = cell.run(0)
        told = Normalization(normalize_obs=cell.algorithm == "ppo", normalize_reward=True)
        assert run.config.normalization == told


def test_labels_may_be_numbers():
    study = tiny_study().change(algorithm="ppo", labels={"width": 8})
    assert study.cells[1].title == "shoot/hybrid/ppo/shared/8"
    assert study.cells[1].run(0).name == "shoot/hybrid/ppo/shared/8/seed0"
    for wanted in (8, "8", (8, 9)):
        assert [cell.algorithm for cell in study.without(width=wanted).cells] == ["dqn"]
    with pytest.raises(ConfigError, match=r"ppo/shared/8: total_timesteps must be a count"):
        study.change(total_timesteps=0, width=8).runs()


def test_labels_alone_do_not_make_another_run():
    study = tiny_study(cells=(tiny_cell(), tiny_cell())).runs
    with pytest.raises(ConfigError, match="same run twice"):
        study()
