"""Claims of the paper about its sweep of 220 cells, on the paper's scale.

Scores are final returns, scaled on each task by the lowest and the highest point of any curve. What
is compared is compared where both sides have it: two factorizations on the tasks and views that
both have, two families or action types on the tasks and with the factorizations that both have.
Joint actions exist for discrete ones alone, so they count in no comparison of action types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf

from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import Evidence, Measurement, of_finding
from headwise.report.equal_steps import at_equal_steps, left_out
from headwise.report.names import ALGORITHMS, FACTORIZATIONS, VIEWS
from headwise.report.sweep import Finding, Sweep, Where
from headwise.report.totals import Total
from headwise.studies.paper.published import TASKS

ALIKE = 0.05
"""The smallest effect of interest on the paper's scale: a smaller difference does not matter.
Claims about a level, a spread or a ratio have none."""
_GROUP = "Sweep: {}"


def is_the_papers(sweep: Sweep) -> bool:
    """Whether a sweep has runs on every environment of the paper's: others are not asked."""
    return all(sweep.every(**task) for task in TASKS)


def sweep_claims(sweep: Sweep) -> Iterator[Claim]:
    """All of them for one sweep."""
    yield from _ppo_claims(sweep)
    yield from _sac_claims(sweep)
    yield from _dqn_claims(sweep)
    yield from _overall_claims(sweep)


def _ppo_claims(sweep: Sweep) -> Iterator[Claim]:
    about = _About(sweep, "PPO")
    for f, name in (("vdn", "VDN-PPO"), ("qplex", "PPO-MIX")):
        rest = [g for g in FACTORIZATIONS if g not in ("vdn", "qplex")]
        yield about.claim(
            f"ppo-{f}-best", f"{name} beats all other factorizations of PPO.", "best",
            "lead over the best other factorization", 0, inf,
            _lead(_cells("ppo", f), [_cells("ppo", g) for g in rest]),
        )  # fmt: skip
        yield about.claim(
            f"ppo-{f}-discrete", f"{name} beats shared PPO on discrete actions.", "substantially",
            f"{name} minus shared PPO, discrete", 0, inf,
            _gap(_cells("ppo", f, "discrete"), _cells("ppo", "shared", "discrete")),
        )  # fmt: skip
        yield about.claim(
            f"ppo-{f}-ippo", f"{name} beats IPPO on discrete actions.", "strongly",
            f"{name} minus independent PPO, discrete", 0, inf,
            _gap(_cells("ppo", f, "discrete"), _cells("ppo", "independent", "discrete")),
        )  # fmt: skip
    yield about.claim(
        "ppo-continuous-less", "The gain of a factored critic is smaller for continuous actions.",
        "less significant", "gain on discrete minus gain on continuous", 0, inf,
        lambda s: _critic_gain(s, "discrete") - _critic_gain(s, "continuous"),
    )  # fmt: skip
    yield about.claim(
        "ppo-continuous-stable", "Continuous PPO is stable with respect to factorization.",
        "stable", "best minus worst factorization, continuous", 0, 0.15,
        lambda s: s.spread(_branches("ppo", "continuous")),
        alike=0.0,
    )  # fmt: skip
    yield about.claim(
        "ppo-qplex-marginal", "Over all action types PPO-MIX is best, VDN-PPO close behind.",
        "marginally", "PPO-MIX minus VDN-PPO", 0, 0.1,
        _gap(_cells("ppo", "qplex"), _cells("ppo", "vdn")),
    )  # fmt: skip
    mix = [(_cells("ppo", "qplex", v), _cells("ppo", "vdn", v)) for v in ("continuous", "discrete")]
    yield about.claim(
        "ppo-mix-continuous", "PPO-MIX is slightly ahead of VDN-PPO on continuous actions.",
        "slightly", "PPO-MIX minus VDN-PPO, continuous", 0, inf, _gap(*mix[0]),
    )  # fmt: skip
    yield about.claim(
        "ppo-mix-discrete", "PPO-MIX matches VDN-PPO on discrete actions.", "matching",
        f"PPO-MIX minus VDN-PPO, discrete; alike means less than {ALIKE:g} apart", -ALIKE, ALIKE,
        _gap(*mix[1]),
    )  # fmt: skip
    yield about.claim(
        "ppo-hybrid-less", "Factorization matters less in hybrid PPO than in discrete PPO.",
        "reduced", "best minus worst factorization but joint, hybrid over discrete", 0, 1,
        lambda s: s.spreads(*(s.gaps(_branches("ppo", v)) for v in ("hybrid", "discrete"))),
        alike=0.0,
    )  # fmt: skip
    yield about.claim(
        "ppo-ar-noise", "PPO: auto-regression adds more noise than signal to continuous actions.",
        "worse", "AR-PPO minus shared PPO, continuous", -inf, 0,
        _gap(_cells("ppo", "ar", "continuous"), _cells("ppo", "shared", "continuous")),
    )  # fmt: skip


def _sac_claims(sweep: Sweep) -> Iterator[Claim]:
    about = _About(sweep, "SAC")
    yield about.claim(
        "sac-continuous-best", "Native continuous SAC outperforms every family and action type.",
        "best of all", "lead over the best other family and action type", 0, inf,
        _lead(
            {"algorithm": "sac", "view": "continuous"},
            [
                {"algorithm": a, "view": v}
                for a in ALGORITHMS for v in VIEWS if (a, v) != ("sac", "continuous")
            ],
            by=("task", "factorization"),
        ),
        equal=True,
    )  # fmt: skip
    yield about.claim(
        "sac-discrete-half", "Discrete SAC underperforms.", "≈ 0.5", "mean score, discrete",
        0.4, 0.6, lambda s: s.mean(algorithm="sac", view="discrete"), alike=0.0,
    )  # fmt: skip
    yield about.claim(
        "sac-bdq-hybrid", "On hybrid actions SAC-BDQ outperforms SAC-Concat.", "better",
        "SAC-BDQ minus SAC-Concat, hybrid", 0, inf,
        _gap(_cells("sac", "vdn", "hybrid"), _cells("sac", "shared", "hybrid")),
    )  # fmt: skip
    yield about.claim(
        "sac-ar-best", "Auto-regressive SAC is the best SAC.", "best",
        "lead over the best other factorization", 0, inf,
        _lead(
            _cells("sac", "ar"), [_cells("sac", f) for f in ("independent", "shared", "vdn")]
        ),
    )  # fmt: skip
    for mode, number, low, high in (("independent", "≈ 8", 5, 11), ("dependent", "≈ 35", 30, 37)):
        yield about.claim(
            f"sac-shoot-{mode}", f"Continuous SAC gets {number[2:]} in {mode} Shoot.", number,
            "best final return of a factorization", low, high,
            partial(_best_shoot, mode=mode), alike=0.0,
        )  # fmt: skip
    yield about.claim(
        "sac-shoot-worst", "Discrete and hybrid Shoot are SAC's worst.", "worst",
        "score on Shoot minus score elsewhere, discrete and hybrid", -inf, 0,
        lambda s: (
            s.mean(algorithm="sac", view=("discrete", "hybrid"), env="HybridShoot")
            - s.mean(
                algorithm="sac", view=("discrete", "hybrid"), env=("CoopPush", "Lander", "Platform")
            )
        ),
    )  # fmt: skip


def _dqn_claims(sweep: Sweep) -> Iterator[Claim]:
    about = _About(sweep, "DQN")
    yield about.claim(
        "dqn-qplex-continuous", "QPLEX falls behind VDN as DQN goes from discrete to binned heads.",
        "degrades", "QPLEX minus VDN, continuous minus the same on discrete", -inf, 0,
        lambda s: (
            s.gap(_cells("dqn", "qplex", "continuous"), _cells("dqn", "vdn", "continuous"))
            - s.gap(_cells("dqn", "qplex", "discrete"), _cells("dqn", "vdn", "discrete"))
        ),
    )  # fmt: skip
    yield about.claim(
        "dqn-qplex-no-gain", "Monotonic mixing does not improve over a shared encoder.",
        "does not improve", "QPLEX minus shared", -inf, 0.02,
        _gap(_cells("dqn", "qplex"), _cells("dqn", "shared")),
    )  # fmt: skip
    for f in ("ar", "independent"):
        yield about.claim(
            f"dqn-{f}-best", f"{FACTORIZATIONS[f]} actions are among the two best for DQN.", "best",
            "lead over the best of shared, VDN and QPLEX", 0, inf,
            _lead(
                _cells("dqn", f), [_cells("dqn", g) for g in ("shared", "vdn", "qplex")]
            ),
        )  # fmt: skip


def _overall_claims(sweep: Sweep) -> Iterator[Claim]:
    about = _About(sweep, "overall")
    yield about.claim(
        "ar-best", "Auto-regressive actions perform best overall.", "highest",
        "lead over the best other factorization", 0, inf,
        _lead(
            {"factorization": "ar"},
            [{"factorization": f} for f in FACTORIZATIONS if f != "ar"],
            by=("task", "view", "algorithm"),
        ),
    )  # fmt: skip
    for a, name in ALGORITHMS.items():
        yield about.claim(
            f"vdn-competitive-{a}", f"{name}: VDN is competitive.", "in all three families",
            "VDN minus the mean of independent, shared and AR", -0.05, inf,
            _gap(_cells(a, "vdn"), _cells(a, ("independent", "shared", "ar"))),
        )  # fmt: skip
        yield about.claim(
            f"joint-lags-{a}", f"{name}: joint actions lag behind the others.", "lags",
            "joint minus the mean of the others, discrete", -inf, 0,
            _gap(
                _cells(a, "joint", "discrete"),
                _cells(a, tuple(f for f in FACTORIZATIONS if f != "joint"), "discrete"),
            ),
        )  # fmt: skip
        best = "continuous" if a == "sac" else "discrete"
        yield about.claim(
            f"best-view-{a}", f"{name} performs best with {best} actions.", "best",
            "lead over the other action types", 0, inf,
            _lead(
                {"algorithm": a, "view": best},
                [{"algorithm": a, "view": v} for v in VIEWS if v != best],
                by=("task", "factorization"),
            ),
            equal=True,
        )  # fmt: skip
        more, low, high = ("more", 1.0, inf) if a == "sac" else ("less", 0.0, 1.0)
        yield about.claim(
            f"type-or-factorization-{a}",
            f"{name}: the action type matters {more} than the factorization.",
            more, "spread of action types over that of factorizations", low, high,
            partial(_type_over_factorization, algorithm=a), alike=0.0, equal=True,
        )  # fmt: skip
    yield about.claim(
        "joint-alike", "All three families get similar joint performance.", "similar",
        "best minus worst family, joint", 0, 0.2,
        lambda s: s.spread(_cells(a, "joint", "discrete") for a in ALGORITHMS), alike=0.0,
    )  # fmt: skip


class _About:
    """Makes claims about one sweep."""

    def __init__(self, sweep: Sweep, topic: str) -> None:
        self.sweep = sweep
        self.group = _GROUP.format(topic)

    def claim(
        self,
        key: str,
        text: str,
        published: str,
        quantity: str,
        low: float,
        high: float,
        number: Callable[[Sweep], Total | Finding],
        alike: float = ALIKE,
        equal: bool = False,
    ) -> Claim:
        """One claim; `equal` cuts longer runs to the steps of the others, as the paper does."""
        if equal:
            gone = left_out(self.sweep)
            quantity += ", hybrid runs cut to equal steps"
            quantity += f" (but {gone} cells, which have no curves)" if gone else ""

        def measure(_: Evidence) -> Measurement:
            sweep = at_equal_steps(self.sweep) if equal else self.sweep
            finding = number(sweep)
            if isinstance(finding, Total):
                finding = sweep.total(finding)
            return of_finding(finding, sweep.support(finding.cells))

        settings = self.sweep.variant or self.sweep.study
        return Claim(
            key, self.group, settings, text, published, quantity, low, high, measure, alike
        )


def _cells(algorithm: str, factorization: str | tuple[str, ...], view: str = "") -> Where:
    found: dict[str, str | tuple[str, ...]] = {
        "algorithm": algorithm,
        "factorization": factorization,
    }
    return {**found, "view": view} if view else found


def _branches(algorithm: str, view: str) -> list[Where]:
    return [_cells(algorithm, f, view) for f in FACTORIZATIONS if f != "joint"]


def _gap(
    ours: Where, theirs: Where, by: Sequence[str] = ("task", "view")
) -> Callable[[Sweep], Total]:
    return lambda sweep: sweep.gap(ours, theirs, by)


def _lead(
    ours: Where, others: Sequence[Where], by: Sequence[str] = ("task", "view")
) -> Callable[[Sweep], Finding]:
    return lambda sweep: sweep.lead(ours, others, by)


def _critic_gain(sweep: Sweep, view: str) -> Total:
    return sweep.gap(_cells("ppo", ("vdn", "qplex"), view), _cells("ppo", "shared", view))


def _best_shoot(sweep: Sweep, mode: str) -> Finding:
    return sweep.best_return(algorithm="sac", view="continuous", env="HybridShoot", mode=mode)


def _type_over_factorization(sweep: Sweep, algorithm: str) -> Finding:
    kinds: tuple[str, ...] = ("independent", "shared", "ar")  # what every family has in every view
    kinds = kinds if algorithm == "sac" else (*kinds, "vdn", "qplex")
    types = sweep.gaps(
        [{"algorithm": algorithm, "factorization": kinds, "view": v} for v in VIEWS],
        by=("task", "factorization"),
    )
    return sweep.spreads(types, sweep.gaps([_cells(algorithm, f) for f in kinds]))
