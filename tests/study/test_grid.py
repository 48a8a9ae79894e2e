"""A study as a base configuration and a grid."""

import pytest

import headwise as hw
from headwise.study import Environment, Evaluate, Study
from headwise.study.study import EVALUATED

BASE = hw.RunConfig.of(
    "ppo", "HybridShoot", factorization="vdn", total_timesteps=4096, num_envs=4, normalize_obs=True
)


def test_every_combination_is_a_cell():
    study = Study(
        "mine",
        seeds=3,
        base=BASE,
        grid={
            "algorithm": ["ppo", "sac"],
            "factorization": ["shared", "vdn"],
            "gamma": [0.9, 0.99],
        },
    )
    found = [(c.algorithm, c.factorization, c.settings["gamma"]) for c in study.cells]
    assert found == [
        (a, f, g) for a in ("ppo", "sac") for f in ("shared", "vdn") for g in (0.9, 0.99)
    ]
    assert study.seeds == (0, 1, 2)
    assert len({run.id for run in study.runs()}) == 24
    for cell in study.cells:
        assert (cell.total_timesteps, cell.num_envs, cell.evaluate) == (4096, 4, EVALUATED)
        assert cell.config().normalization.normalize_obs is True


def test_without_a_grid_the_base_is_the_cell():
    (cell,) = Study("mine", base=BASE).cells
    assert cell.config() == BASE
    assert cell.run(0).config == BASE


def test_environments_and_views():
    places = [Environment("HybridShoot", "many", {"num_targets": 4}), "Platform"]
    grid = {"env": places, "view": ["discrete", None], "total_timesteps": [64]}
    study = Study("mine", base=BASE, grid=grid, evaluate=None)
    found = [
        (c.environment.label, c.environment.settings, c.view, c.total_timesteps)
        for c in study.cells
    ]
    many, one = ("many", {"num_targets": 4}), ("Platform", {})
    assert found == [(*place, v, 64) for place in (many, one) for v in ("discrete", None)]
    assert study.cells[0].evaluate is None


def test_ready_configurations_keep_their_settings():
    base = hw.RunConfig.of("ppo", "HybridShoot", learning_rate=0.01, total_timesteps=64)
    study = Study("mine", base=base, grid={"algorithm": ["ppo", hw.PPO(learning_rate=0.02)]})
    assert [cell.settings["learning_rate"] for cell in study.cells] == [0.01, 0.02]


def test_it_goes_on_as_every_study():
    study = Study("mine", base=BASE, grid={"factorization": ["shared", "vdn"]})
    study = study.change(factorization="vdn", settings={"gamma": 0.5}, evaluate=Evaluate(last=5))
    shared, vdn = study.cells
    assert (shared.settings["gamma"], vdn.settings["gamma"]) == (0.99, 0.5)
    assert (shared.evaluate, vdn.evaluate) == (EVALUATED, Evaluate(last=5))
    assert study.with_seeds(2).seeds == (0, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grid": {"algorithm": "ppo"}}, "list of values of 'algorithm'"),
        ({"grid": {"gamma": []}}, "list of values of 'gamma'"),
        ({"grid": {"gama": [1]}}, "gamma"),
        ({"grid": {"algorithm": ["pppo"]}}, "ppo"),
        ({"base": None, "grid": {"gamma": [0.9]}}, "needs a base"),
        ({"base": hw.RunConfig.of("ppo", "HybridShoot")}, "must say its steps"),
        ({"base": hw.RunConfig.of("ppo", total_timesteps=64)}, "the study has no environment"),
        (
            {
                "base": hw.RunConfig.of(
                    "ppo", "HybridShoot", learning_rate=0.1, total_timesteps=64
                ),
                "grid": {"algorithm": ["sac"]},
            },
            "would not reach the cells of sac",
        ),
    ],
)
def test_what_is_refused(settings, words):
    with pytest.raises(hw.ConfigError, match=words):
        Study("mine", **{"base": BASE, **settings})


def test_it_shows_itself_in_a_notebook():
    study = Study("mine", base=BASE, about="Is <it> so?")
    page = study._repr_html_()
    assert "mine: 1 cells of 5 seeds" in page
    assert "Is &lt;it&gt; so?" in page
    assert "<td>HybridShoot</td><td>as it is</td><td>ppo</td><td>vdn</td>" in page
