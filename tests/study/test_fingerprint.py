"""Where a result was made: the commit is that of Headwise, or none."""

import shutil
import subprocess
import sys
from pathlib import Path

import headwise
from headwise.study import fingerprint

PACKAGE = Path(headwise.__file__).parent
SAY = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("fingerprint", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module._commit())
"""


def commit_said_by(file):
    words = [sys.executable, "-c", SAY, file]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_of_somebody_elses_repository_is_not_taken_for_ours(tmp_path):
    """As in an environment that lies in a project, ignored there or just not added."""
    git = ["git", "-C", tmp_path, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "theirs"], check=True)
    installed = tmp_path / ".venv/lib/headwise/study/fingerprint.py"
    installed.parent.mkdir(parents=True)
    shutil.copy(fingerprint.__file__, installed)
    assert commit_said_by(installed) == "None"
    subprocess.run([*git, "add", "--force", "."], check=True)  # it is theirs now
    subprocess.run([*git, "commit", "--quiet", "-m", "with it"], check=True)
    assert len(commit_said_by(installed)) == 40
