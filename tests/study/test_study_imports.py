"""Reading a study needs no torch: the report and its readers stay light."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["study", "study.store", "study.export"])
def test_torch_free(module):
    code = f"import sys; sys.modules['torch'] = None; import headwise.{module}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_room_names_what_it_offers():
    from headwise import study

    assert all(getattr(study, name) for name in study.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = study.nothing
