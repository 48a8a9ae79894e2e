"""Which cells there are, and the sentence for every pair that makes no sense."""

import pytest
import torch
from built import CONTINUOUS, DISCRETE, HYBRID, SPECS

from headwise import ConfigError, ObsSpec
from headwise.algorithms import algorithms
from headwise.algorithms.base import Task
from headwise.factorizations import factorizations
from headwise.factorizations.ar import AR
from headwise.factorizations.base import Factorization, check_offers
from headwise.factorizations.qplex import QPLEX
from headwise.population import Keys
from headwise.spaces.bins import Binning

SIX = ("independent", "shared", "vdn", "qplex", "joint", "ar")
ALGORITHMS = ("ppo", "dqn", "sac")
VIEWS = {"discrete": DISCRETE, "hybrid": HYBRID, "continuous": CONTINUOUS}


def build(algorithm, factorization, spec, **settings):
    small = {"ppo": {"n_steps": 4, "batch_size": 4}}.get(algorithm, {"batch_size": 8})
    config = algorithms.get(algorithm)(net_arch=(8,), **small, **settings)
    if isinstance(factorization, str):
        factorization = factorizations.get(factorization)()
    return config.build(
        Task(
            spec=Binning(spec, config.bins).spec,
            obs_spec=ObsSpec.flat(4),
            num_slots=2,
            total_steps=100,
            factorization=factorization,
            keys=Keys((0, 1)),
        )
    )


REFUSED = {
    **{
        (
            algorithm,
            "joint",
            view,
        ): "needs discrete heads, and some are continuous.*Give a number of bins"
        for algorithm in ("ppo", "sac")
        for view in ("hybrid", "continuous")
    },
    **{
        (
            "sac",
            name,
            "continuous",
        ): f"{name}' branches over discrete.*Use factorization='shared'"
        for name in ("vdn", "qplex")
    },
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("factorization", SIX)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_cell_is_built_or_refused_with_a_sentence(algorithm, factorization, view):
    message = REFUSED.get((algorithm, factorization, view))
    if message is None:
        build(algorithm, factorization, VIEWS[view])
        return
    with pytest.raises(ConfigError, match=message):
        build(algorithm, factorization, VIEWS[view])


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_what_joint_is_refused_for_works_with_bins(algorithm):
    learner = build(algorithm, "joint", HYBRID, bins=4)
    assert learner.layout.spec.joint_size == 4 * 3 * 4 * 2
    assert learner.policy(torch.zeros(2, 3, 4)).shape == (2, 3, 4)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("spec", ["one_of", "parameters"])
@pytest.mark.parametrize("factorization", [n for n in SIX if n != "joint"])
def test_parameterized_actions_are_never_refused(algorithm, factorization, spec):
    build(algorithm, factorization, SPECS[spec])


def test_dqn_without_bins_says_what_to_do():
    with pytest.raises(ConfigError, match=r"some are continuous.*bins=11"):
        build("dqn", "vdn", CONTINUOUS, bins=None)


@pytest.mark.parametrize("factorization", ["qplex", "ar"])
def test_soft_values_are_refused_where_there_are_none(factorization):
    with pytest.raises(ConfigError, match=r"has no soft values.*one of independent, .*shared, vdn"):
        build("dqn", factorization, DISCRETE, temperature=0.1)
    build("dqn", "vdn", DISCRETE, temperature=0.1)


@pytest.mark.parametrize("factorization", ["qplex", "ar"])
def test_plain_values_are_refused_where_there_are_none(factorization):
    with pytest.raises(ConfigError, match=r"value and advantages.*dueling=False.*shared, vdn"):
        build("dqn", factorization, DISCRETE, dueling=False)


def test_the_factorization_says_what_dqn_may_ask_of_it(monkeypatch):
    kind = factorizations.get("vdn")
    monkeypatch.setattr(kind, "soft_targets", False)
    monkeypatch.setattr(kind, "plain_value", Factorization.plain_value)
    for setting in ({"temperature": 0.1}, {"dueling": False}):
        with pytest.raises(
            ConfigError, match=r"'vdn'.*one of independent, joint, shared\b(?!, vdn)"
        ):
            build("dqn", "vdn", DISCRETE, **setting)
        build("dqn", "shared", DISCRETE, **setting)


@pytest.mark.parametrize("what", ["policy", "critic", "value", "twins"])
def test_a_factorization_that_lacks_something_is_refused_by_name(what):
    class Half(Factorization):
        name = "half"

    message = f"algo needs a {what}, and the factorization 'half' has none; allowed: .*vdn"
    with pytest.raises(ConfigError, match=message):
        check_offers(Half(), what, "algo")


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_qplex_has_its_own_mixer_for_dqn_alone(algorithm):
    """The mixer of the others is asked before the action is known."""
    own = QPLEX(mixer="qplex", mixer_width=8)
    with pytest.raises(ConfigError, match=r"got mixer='qplex'; allowed: mixer='paper', or .*DQN"):
        build(algorithm, own, DISCRETE)
    build("dqn", own, DISCRETE)


@pytest.mark.parametrize(
    "settings", [{"center": "mean"}, {"mixer_bend": "relu"}, {"mixer_weights": "softplus"}]
)
def test_what_the_papers_mixer_alone_has(settings):
    """Weights that see the action pick the best one only where no advantage is above zero."""
    (said,) = settings
    with pytest.raises(ConfigError, match=f"QPLEX's own mixer.*got mixer='qplex', {said}="):
        QPLEX(mixer="qplex", **settings)


@pytest.mark.parametrize("center", ["mean", "none"])
@pytest.mark.parametrize("name", ["shared", "vdn", "qplex"])
def test_another_centering_is_for_dueling_dqn(name, center):
    kind = factorizations.get(name)(center=center)
    build("dqn", kind, DISCRETE)
    refused = [("ppo", DISCRETE, {}), ("sac", HYBRID, {}), ("dqn", DISCRETE, {"dueling": False})]
    for algorithm, spec, settings in refused[: 2 if name == "qplex" else 3]:
        with pytest.raises(ConfigError, match=rf"centers.*got center='{center}'.*Leave center out"):
            build(algorithm, kind, spec, **settings)
    with pytest.raises(ConfigError, match=r"soft values.*center='(mean|none)'.*allowed: temp"):
        build("dqn", kind, DISCRETE, temperature=0.1)
    with pytest.raises(ConfigError, match=r"heads may not be in use.*allowed: center='max'"):
        build("dqn", kind, SPECS["one_of"])


@pytest.mark.parametrize("algorithm", ["dqn", "sac"])
def test_a_relu_of_what_is_never_above_zero_is_refused(algorithm):
    relu = QPLEX(mixer_bend="relu")
    with pytest.raises(ConfigError, match=r"a ReLU is flat.*got mixer_bend='relu'.*allowed: mixer"):
        build(algorithm, relu, DISCRETE)
    build("ppo", relu, DISCRETE)
    build("dqn", QPLEX(mixer_bend="relu", center="mean"), DISCRETE)


@pytest.mark.parametrize(
    "order", [("b", "y", "a", "x"), ("x", "a", "y", "b"), ("a", "b", "x", "y")]
)
def test_sac_refuses_an_order_that_chooses_options_before_numbers(order):
    with pytest.raises(
        ConfigError, match=r"continuous heads before discrete ones.*Leave the order"
    ):
        build("sac", AR(order=order), HYBRID)
    build("ppo", AR(order=order), HYBRID)
    learner = build("sac", AR(order=("y", "x", "b", "a")), HYBRID)
    assert learner.actor.graph.order == [1, 0]
    assert learner.critic.graph.order == [1, 0]


@pytest.mark.parametrize(
    ("spec", "order", "message"),
    [
        (DISCRETE, ("a", "b"), "must name every head once; got .*allowed: a, b, c"),
        (DISCRETE, ("a", "b", "b"), "must name every head once"),
        (HYBRID, ("x", "a", "y", "bb"), "unknown head; got 'bb'.*Did you mean 'b'"),
        (SPECS["one_of"], ("run", "kind", "jump", "spin"), "'run' before 'kind'"),
    ],
)
def test_orders_that_make_no_sense(spec, order, message):
    with pytest.raises(ConfigError, match=message):
        AR(order=order).check(spec)


def test_a_mean_penalty_of_what_has_no_mean_as_a_parameter_is_refused():
    """It would punish shapes above 4, that is, any Beta that is sure of something."""
    with pytest.raises(ConfigError, match=r"'mean_penalty' holds.*range_kind='beta'.*Leave mean"):
        algorithms.get("ppo")(mean_penalty=0.1, range_kind="beta")
    build("ppo", "shared", HYBRID, mean_penalty=0.1)
    build("ppo", "shared", HYBRID, range_kind="beta")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("vdn", {"critic_bins": 0}, "'critic_bins' must be a count; got 0"),
        ("qplex", {"mixer_width": 0}, "'mixer_width' must be a count"),
        ("qplex", {"mixer_width": 2.5}, "'mixer_width' must be a count; got 2.5"),
        (
            "qplex",
            {"mixer": "qmix"},
            "unknown value of qplex setting 'mixer'; got 'qmix'.*Allowed: paper",
        ),
        ("joint", {"max_joint": 0}, "'max_joint' must be a count"),
        ("joint", {"max_joint": 10**9}, "from 1 to 16,777,216"),
    ],
)
def test_settings_of_factorizations_that_make_no_sense(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        factorizations.get(name)(**settings)


def test_a_misspelt_factorization_gets_a_suggestion():
    with pytest.raises(
        ConfigError, match=r"unknown factorization; got 'qplx'.*Did you mean 'qplex'"
    ):
        factorizations.get("qplx")
