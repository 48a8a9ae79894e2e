"""What a notebook shows of an agent, an evaluation, a report and a study: one short line."""

import numpy as np

import headwise as hw


def test_what_a_notebook_shows_is_one_line():
    reports = []
    agent = hw.Agent("ppo", "HybridShoot", seeds=2, num_envs=1)
    agent.learn(512, progress=False, callbacks=[reports.append])
    evaluation = hw.Evaluation((0, 1), np.array([[1.0, 3.0], [4.0, 4.0]]), np.ones((2, 2)))
    assert (
        repr(evaluation) == "Evaluation(IQM 3.0 (2 seeds: too few to say how others would score))"
    )
    report = reports[-1]
    shown = [f"{x:.4g}" for x in report.returns]
    assert repr(report).endswith(f"seeds=(0, 1), returns=[{shown[0]}, {shown[1]}])")
    assert repr(report).startswith(f"Report(step={report.step} of 512, ")
    study = hw.Study.grid(
        "mine", environments=["HybridShoot"], algorithms=["ppo"], factorizations=["vdn", "ar"],
        total_timesteps=64, seeds=3,
    )  # fmt: skip
    assert repr(study) == "Study('mine', 2 cells, 3 seeds, 6 runs)"
    assert all(len(repr(x)) < 200 and "\n" not in repr(x) for x in (agent, report, study))
