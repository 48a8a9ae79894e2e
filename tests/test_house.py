"""The house in figures (tools/house.py): what is counted, and what may only become less."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "tools" / "house.py"
_spec = importlib.util.spec_from_file_location("house", FILE)
house = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(house)

PLANTED = {
    "a/one.py": "from headwise.b import two\nif x.device.type == 'cpu':\n    pass\n",
    "b/two.py": "from headwise.a.one import f\n",
    "b/__init__.py": "",
    "ops/x.py": "x.is_cuda\n",
}


def test_what_is_planted_is_counted():
    assert house.lines_by_room(PLANTED) == {"a": 3, "b": 1, "ops": 1}
    assert house.device_questions(PLANTED) == {"a/one.py": 1}
    assert house.cycles(PLANTED) == ["a <-> b"]
    assert house.cycles({k: v for k, v in PLANTED.items() if k != "a/one.py"}) == []


def test_no_question_about_devices_in_the_core():
    asks = house.device_questions(house.sources())
    assert [path for path in asks if path.startswith(house.CORE)] == []


MOST = {
    "ppo": {"shared": 11, "vdn": 12},
    "dqn": {"shared": 9, "vdn": 9},
    "sac": {"shared": 13, "vdn": 14},
}


@pytest.mark.parametrize(("algorithm", "factorization"), [(a, f) for a in MOST for f in MOST[a]])
def test_a_gradient_step_goes_through_few_files(algorithm, factorization):
    files = house.files_on_the_way(house.step_of(algorithm, factorization))
    assert f"algorithms/{algorithm}/learner.py" in files
    assert len(files) <= MOST[algorithm][factorization], files


def test_the_places_that_a_new_one_touches_exist():
    for places in house.TOUCHED.values():
        for place in places:
            path = FILE.parents[1] / place.split(":")[0].split(",")[0]
            assert "NAME" in place or "`" in place or path.is_file(), place
