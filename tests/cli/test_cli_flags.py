"""The flags of the commands: what they set, what they are called, and what their help says."""

import inspect
import subprocess
import sys
from dataclasses import dataclass

import pytest
import tyro

import headwise as hw
from headwise.cli import COMMANDS, main
from headwise.cli.flags import asked, words_by_flag
from headwise.cli.train_flags import parse, seeds_of
from headwise.cli.values import parse_pairs


def help_of(capsys, *words):
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    return capsys.readouterr().out


def test_the_help_of_train_shows_the_settings_of_what_is_trained(capsys):
    text = help_of(capsys, "train", "--algo", "sac", "--factorization", "qplex")
    for flag in ("--target-entropy", "--mixer-width", "--seeds", "--total-timesteps"):
        assert flag in text
    assert "--clip-range" not in text  # that is ppo's


@pytest.mark.parametrize("command", [*COMMANDS, "study run", "train --algo sac"])
def test_a_short_word_for_help(command, capsys):
    texts = []
    for word in ("--help", "-h"):
        with pytest.raises(SystemExit, match="0"):
            main([*command.split(), word])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != ""


def test_flags_are_the_settings_of_the_dataclasses():
    words = "--algo=dqn --factorization ar --learning-rate 0.01 --double-q --order b a --bins aim 5"
    given = parse(words.split())
    assert given.run.algo == "dqn"
    assert given.algorithm == hw.DQN(learning_rate=0.01, double_q=True, bins={"aim": 5})
    assert given.factorization == hw.AR(order=("b", "a"))
    given = parse(["--learning-rate", "0.1", "0.2", "--seeds", "4", "9"])
    assert given.algorithm == hw.PPO(learning_rate=(0.1, 0.2))
    assert given.factorization == hw.Shared()
    assert given.run.seeds == (4, 9)
    assert given.given == {"learning_rate", "seeds"}


def test_settings_of_the_environment_are_name_value():
    words = ["num_targets=4", "mode=independent", "hit_radius=0.2"]
    assert parse_pairs(words, "setting") == {
        "num_targets": 4,
        "mode": "independent",
        "hit_radius": 0.2,
    }
    with pytest.raises(hw.ConfigError, match="name=value"):
        parse_pairs(["fast"], "setting")


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        ("", [0]),
        ("--seeds 2", [0, 1]),
        ("--seeds 1 --first-seed 7", [7]),
        ("--seeds 3 --first-seed 7", [7, 8, 9]),
        ("--seeds 7 3", [7, 3]),
    ],
)
def test_seeds_are_so_many_from_the_first_or_those_given(words, seeds):
    assert seeds_of(parse(words.split()).run) == seeds


def test_what_is_not_said_is_as_in_python():
    python, flags = inspect.signature(hw.Agent.__init__).parameters, parse([])
    said = {**vars(flags.environment), **vars(flags.machine), **vars(flags.run)}
    said["seeds"] = len(seeds_of(flags.run))
    same = ["seeds", "device", "factorization", "num_envs", "view", "normalize_obs"]
    for name in (*same, "normalize_reward"):
        assert said[name] == python[name].default, name


def test_a_gpu_is_pointed_to_and_not_taken(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    words = [
        "train",
        "--env",
        "HybridShoot",
        "--total-timesteps",
        "8",
        "--num-envs",
        "2",
        "--net-arch",
        "8",
        "--no-progress",
        "--out",
    ]
    assert main([*words, str(tmp_path / "a")]) == 0
    assert "There is a GPU: --device auto measures" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "b"), "--device", "cpu"]) == 0
    assert "There is a GPU" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--seeds 7 3 --first-seed 1", "--seeds 3 --first-seed 7 for 7, 8 and 9"),
        ("--seeds 0", "seeds must be a count; got 0"),
        ("--first-seed -1", "first_seed must be a whole number; got -1"),
    ],
)
def test_other_seeds_are_refused(words, message):
    with pytest.raises(hw.ConfigError, match=message):
        seeds_of(parse(words.split()).run)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--n-envs 4", "got --n-envs. Did you mean 'num_envs', which Stable-Baselines3"),
        ("--q-lr 0.1", "Did you mean 'learning_rate', which CleanRL"),
        ("--lr 0.1", "got --lr. Write 'learning_rate', which is what lr is called now"),
        ("--algo dqn --replay 9", "Write 'buffer_size'"),
        (
            "--algo sac --first-temperature 0.2",
            "Write 'ent_coef'.*To begin at 0.2 it is 'auto_0.2'",
        ),
        ("--rollout 4096", "Write 'n_steps'.*rollout=4096 of 16 environments is n_steps=256"),
        ("--no-normalise-obs", "Write 'normalize_obs'"),
        ("--products bf16", "Write 'matmul_precision'"),
        ("--steps=100", "Write 'total_timesteps'"),
        ("--seed 3", "Did you mean 'first_seed'.*With --seeds 1 it is trained alone"),
        ("--tau 0.1", "It is a setting of --algo dqn and of --algo sac"),
        ("--mixer-width 3", "It is a setting of --factorization qplex"),
    ],
)
def test_flags_of_others_are_answered_with_ours(words, message):
    with pytest.raises(hw.ConfigError, match=message):
        parse(words.split())


def test_a_flag_that_nobody_has_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--total-timestep-s", "3"])
    said = capsys.readouterr().err
    assert "--total-timestep-s" in said
    assert "--total-timesteps" in said


def test_the_help_of_train_is_in_groups_and_begins_with_a_command(capsys):
    text = help_of(capsys, "train")
    places = [text.index(f"{name} options") for name in
              ("environment", "run", "output", "machine", "ppo")]  # fmt: skip
    assert places == sorted(places)
    assert text.index("--env CartPole-v1") < places[0]
    assert text.index("--view") < places[1] < text.index("--first-seed") < places[2]
    wide = [line for line in text.splitlines() if len(line) > 80 and not line.startswith("Train")]
    assert wide == []


@pytest.mark.parametrize("command", ["train", "eval", "play", "export", "envs", "bench"])
def test_help_has_no_riddles(command, capsys):
    text = help_of(capsys, command)
    for riddle in ("{None}", "default: None", "[INT [INT", "What is multiplied"):
        assert riddle not in text
    flowing = " ".join(text.replace("│", " ").split())
    if command in ("train", "eval", "bench"):
        assert (
            "Precision of matrix multiplication: float32, tf32 (GPUs) or bf16 (CPUs with "
            "AVX512-BF16); PyTorch's setting if not given." in flowing
        )


@pytest.mark.parametrize("command", ["eval", "play", "export"])
def test_one_word_for_the_best_action_or_a_drawn_one(command, capsys):
    assert "--deterministic, --no-deterministic" in help_of(capsys, command)


def test_help_of_a_command(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["help", "eval"])
    assert "usage: headwise eval" in capsys.readouterr().out
    assert main(["help"]) == 0
    assert "usage: headwise COMMAND" in capsys.readouterr().out


def test_help_of_small_commands_waits_for_no_torch():
    code = (
        "import sys\n"
        "from headwise.cli import main\n"
        "for name in ('eval', 'play', 'export', 'envs', 'bench'):\n"
        "    try: main([name, '--help'])\n"
        "    except SystemExit as ended: assert ended.code == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_whole_numbers_may_be_written_with_an_exponent():
    words = "--total-timesteps 1e4 --num-envs=2E1 --seeds 1e0 2 --learning-rate 1e-3 2 --bins aim 5"
    given = parse(words.split())
    assert (given.run.total_timesteps, given.environment.num_envs, given.run.seeds) == (
        10_000,
        20,
        (1, 2),
    )
    assert given.algorithm == hw.PPO(learning_rate=(1e-3, 2.0), bins={"aim": 5})


def test_schedules_are_words():
    given = parse(["--learning-rate", "linear_3e-4", "--clip-range", "linear", "--seeds", "2"])
    assert given.algorithm == hw.PPO(learning_rate="linear_3e-4", clip_range="linear_0.2")
    both = parse(["--algo", "sac", "--learning-rate", "lin_1e-3", "5e-4", "--seeds", "2"])
    assert both.algorithm == hw.SAC(learning_rate=("linear_1e-3", 5e-4))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--total-timesteps 1.5",
            r"--total-timesteps cannot be this; got 1\.5; allowed: a whole number, .* 1e4",
        ),
        ("--total-timesteps=many", "--total-timesteps cannot be this; got many"),
        ("--seeds 1 x", "--seeds cannot be this; got x"),
        ("--gamma fast", r"--gamma cannot be this; got fast; allowed: a number\."),
        ("--gamma 0.1 fast", "--gamma cannot be this; got fast"),
        (
            "--learning-rate fast",
            "'learning_rate' must be a number or a schedule, .* got fast; allowed: 3e-4, 'linear'",
        ),
        ("--learning-rate 0.1 fast", "'learning_rate' must be a number or a schedule, .* got fast"),
        ("--learning-rate nan", "'learning_rate' is out of range; got nan"),
        ("--checkpoint-every inf", "--checkpoint-every cannot be this; got inf"),
    ],
)
def test_what_is_no_number_is_told_in_a_line(words, message):
    with pytest.raises(hw.ConfigError, match=message):
        parse(words.split())


def test_a_word_after_a_number_is_no_number():
    @dataclass(frozen=True, kw_only=True)
    class Counted:
        """Counted."""

        run: tyro.conf.Positional[str]
        episodes: int = 100

    assert asked(Counted, ["--episodes", "1e1", "here"], "x") == Counted(run="here", episodes=10)


def test_words_by_flag():
    words = "here --learning-rate 1 2 --no-progress --out=x --seeds -1"
    assert words_by_flag(words.split()) == {
        "": ["here"],
        "learning_rate": ["--learning-rate", "1", "2"],
        "progress": ["--no-progress"],
        "out": ["--out=x"],
        "seeds": ["--seeds", "-1"],
    }


@dataclass(frozen=True, kw_only=True)
class Basket:
    """What is in the basket."""

    apples: tuple[int, ...] = (1,)
    """How many apples there are in each of the rows,
    and not how many rows there are."""
    lid: bool = True
    """Whether it is closed."""


def test_help_flows_over_the_lines_of_the_source(capsys):
    assert asked(Basket, ["--apples", "2", "3", "--no-lid"], "x") == Basket(
        apples=(2, 3), lid=False
    )
    with pytest.raises(SystemExit, match="0"):
        asked(Basket, ["--help"], "x")
    lines = [" ".join(line.strip("│ ").split()) for line in capsys.readouterr().out.splitlines()]
    assert "What is in the basket." in lines
    (start,) = (line for line in lines if "How many apples" in line)
    assert start.endswith("and not")  # as far as the line goes, not as far as the source's does


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("", False),
        ("--normalize-obs", True),
        ("--no-normalize-obs", False),
        ("--normalize-obs True", True),
        ("--normalize-obs False", False),
        ("--normalize-obs=False", False),
        ("--normalize-obs auto --total-timesteps 10", "auto"),
        ("--normalize-obs --total-timesteps 10", True),
    ],
)
def test_a_switch_that_takes_a_word_as_well(words, value):
    found = parse(words.split()).environment.normalize_obs
    assert (type(found), found) == (type(value), value)
