"""Agents under constraints: nothing illegal in training, evaluate and predict; or a refusal."""

import numpy as np
import pytest
from constrained import RULES, TREE, Desk

import headwise as hw
from headwise import ConfigError, EnvError

CHAINS = [(algo, kind) for algo in ("ppo", "dqn", "sac") for kind in ("ar", "joint")]
TREES = [("ppo", "shared"), ("ppo", "independent"), ("ppo", "vdn"), ("dqn", "vdn")]
SMALL = {
    "ppo": {"n_steps": 64, "batch_size": 64, "n_epochs": 2, "kl_coef": 0.1},
    "dqn": {
        "learning_starts": 64,
        "batch_size": 32,
        "exploration_final_eps": 0.3,
        "buffer_size": 500,
    },
    "sac": {"learning_starts": 64, "batch_size": 32, "buffer_size": 500},
}


def agent(algo, kind, env=Desk, rules=RULES, **settings):
    settings = {"net_arch": (16,)} | SMALL[algo] | settings
    return hw.Agent(
        algo, env, factorization=kind, constraints=rules, seeds=2, num_envs=4, **settings
    )


@pytest.mark.parametrize("tells", ["info", "obs", "method"])
@pytest.mark.parametrize(
    ("algo", "kind", "rules"),
    [(*cell, RULES) for cell in CHAINS] + [(*cell, TREE) for cell in TREES],
)
def test_nothing_illegal_is_ever_done(algo, kind, rules, tells):
    """The environment refuses what it did not offer."""
    if tells != "info" and kind not in ("ar", "shared"):
        return
    trained = agent(algo, kind, lambda: Desk(tells, rules), rules)
    Desk.steps = Desk.illegal = 0
    trained.learn(600, progress=False)
    trained.evaluate(episodes=4)
    trained.evaluate(episodes=4, deterministic=False)
    assert Desk.steps > 1000
    assert Desk.illegal == 0
    env = Desk(tells, rules)
    obs, info = env.reset(seed=0)
    for time in range(50):
        mask = info.get("action_mask") if tells == "info" else None
        mask = env.mask() if tells == "method" else mask
        obs, _, _, _, info = env.step(trained.predict(obs, time % 2 == 0, action_mask=mask))


def test_parents_and_constraints_go_together():
    kind = hw.AR(parents={"target": ("verb",)})
    agent("ppo", kind).learn(300, progress=False)
    agent("dqn", kind).learn(300, progress=False)


def test_plain_networks_obey_too():
    for kind in ("vdn", "joint"):
        env = lambda: Desk(rules=TREE)  # noqa: E731
        agent("dqn", kind, env, TREE, dueling=False).learn(300, progress=False)
        agent("dqn", kind, env, TREE, double_q=True).learn(300, progress=False)


def test_a_member_alone_learns_as_in_a_population():
    """With tables as without."""
    for algo, kind in (("ppo", "ar"), ("ppo", "shared"), ("dqn", "vdn"), ("sac", "ar")):
        rules = TREE if kind in ("shared", "vdn") else RULES
        found = []
        for seeds in ([1], [0, 1]):
            one = hw.Agent(
                algo, lambda r=rules: Desk(rules=r), factorization=kind, constraints=rules,
                seeds=seeds, num_envs=4, net_arch=(16,), **SMALL[algo],
            )  # fmt: skip
            one.learn(400, progress=False)
            state = one.loop.algorithm.state_dict()
            found.append({name: x[-1].clone() for name, x in state.items()})
        for name, x in found[0].items():
            assert (x == found[1][name]).all(), (algo, kind, name)


def test_an_agent_comes_back_with_its_constraints(tmp_path):
    trained = agent("ppo", "ar").learn(300, progress=False)
    trained.save(tmp_path / "desk.zip")
    again = hw.Agent.load(tmp_path / "desk.zip", env=Desk)
    assert again.face.spec.links == trained.face.spec.links
    Desk.illegal = 0
    again.learn(300, progress=False)
    assert Desk.illegal == 0
    env = Desk()
    obs, info = env.reset(seed=3)
    for one in (again, hw.Agent.load(tmp_path / "desk.zip")):
        action = one.predict(obs, action_mask=info["action_mask"])
        assert env.is_legal(action)


@pytest.mark.parametrize("kind", ["ar", "shared"])
def test_constraints_in_a_compiled_environment(kind):
    """What is forbidden is never done there either, where a rollout is one compiled call."""
    rules = [hw.Forbid(select=1), hw.Forbid(select=0, aim_x=range(5))]
    one = hw.Agent(
        "ppo", "headwise/HybridShoot-v0", view="discrete", factorization=kind, constraints=rules,
        num_envs=8, env_settings={"bins": 11}, net_arch=(16,), n_steps=64, batch_size=128,
    )  # fmt: skip
    one.learn(1100, progress=False)
    done = one.loop.memory._tensors["action"].reshape(-1, 3)
    assert len(done) == 512
    assert not (done[:, 0] == 1).any()
    assert not ((done[:, 0] == 0) & (done[:, 1] < 5)).any()
    with pytest.raises(hw.ConfigError, match="unknown head; got 'aim'"):
        hw.Agent("ppo", "headwise/HybridShoot-v0", constraints=[hw.Forbid(aim=1)])
    with pytest.raises(hw.SpaceError, match="over 'aim_x', which is a real number"):
        hw.Agent("ppo", "headwise/HybridShoot-v0", constraints=[hw.Forbid(aim_x=1)])


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algo", "kind", "rules", "message"),
    [
        ("ppo", "qplex", TREE, "'qplex' does not obey constraints exactly.*allowed: ar, joint"),
        ("dqn", "qplex", TREE, "Use factorization='ar'"),
        ("dqn", "shared", TREE, "vdn .where they are a tree"),
        ("dqn", "independent", TREE, "dqn with factorization 'independent'"),
        ("sac", "vdn", TREE, "sac with factorization 'vdn'.*allowed: ar, joint"),
        ("sac", "shared", TREE, "does not obey"),
        ("ppo", "shared", RULES, "one other head at most; got .*or factorization 'ar' or 'joint'"),
    ],
)
def test_what_is_not_exact_is_refused_by_name(algo, kind, rules, message):
    with pytest.raises(ConfigError, match=message):
        agent(algo, kind, lambda: Desk(rules=rules), rules)


def test_soft_values_of_dqn_are_refused():
    with pytest.raises(ConfigError, match="soft values of 'vdn' do not obey"):
        agent("dqn", "vdn", lambda: Desk(rules=TREE), TREE, temperature=0.1)


def test_a_table_that_nobody_told_of_is_refused_with_what_to_say():
    with pytest.raises(EnvError, match=r"table by 'verb'.*Say constraints=.*Given.*target.*verb"):
        agent("ppo", "ar", rules=[]).learn(100, progress=False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones((TARGETS := 4, 3)), r"wrong shape; got \(4, 3\); allowed: \(3, 4\)"),
        (np.ones((3, 3)), r"wrong shape"),
        (np.full((3, 4), 2.0), "something else than truths"),
    ],
)
def test_tables_that_do_not_fit(table, message):
    one = agent("ppo", "ar")
    obs, info = Desk().reset(seed=0)
    mask = info["action_mask"] | {"target": hw.given("verb", table)}
    with pytest.raises(EnvError, match=message):
        one.predict(obs, action_mask=mask)
    with pytest.raises(EnvError, match="table by 'power', of which the agent was not told"):
        one.predict(obs, action_mask={"target": hw.given("power", np.ones((2, 4)))})


def test_a_row_with_nothing_legal_is_named():
    class Broken(Desk):
        def _show(self):
            shown = super()._show()
            self.verbs[:] = True
            self.table[:] = True
            self.table[1] = False
            return shown

    with pytest.raises(
        EnvError, match=r"nothing is legal for head 'target' in slot 0 of member 0 once verb=1"
    ):
        agent("ppo", "ar", Broken).learn(100, progress=False)


def test_a_fixed_rule_that_a_mask_leaves_no_way_around_is_named():
    """With power masked to 1, a verb that goes with power 0 only has nothing left."""
    one = agent("ppo", "ar")
    obs, _ = Desk().reset(seed=0)
    mask = {"power": np.array([0, 1]), "target": hw.given("verb", np.ones((3, 4)))}
    with pytest.raises(EnvError, match=r"nothing is legal for head 'power'.*once verb=0, target=3"):
        one.predict(obs, action_mask=mask)


def test_views_by_numbers_are_refused():
    with pytest.raises(hw.SpaceError, match="continuous view makes heads continuous that constr"):
        agent("ppo", "ar", view="continuous")
