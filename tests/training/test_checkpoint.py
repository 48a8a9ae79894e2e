import errno
import json
import os
import struct
import subprocess
import time
import zipfile

import numpy as np
import pytest
import torch

from headwise import CheckpointError
from headwise.training import checkpoint as module
from headwise.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint

SOME = Checkpoint(
    {"word": "héllo"},
    {
        "learner": {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor([True, False])},
        "counters": {"ticks": torch.tensor(7)},
        "empty": {},
        "memory": {"none": torch.zeros(2, 0, 3)},
    },
)


def equal(one, other):
    assert one.keys() == other.keys()
    for part in one:
        assert one[part].keys() == other[part].keys()
        for name, x in one[part].items():
            y = other[part][name]
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            assert torch.equal(x, y)
    return True


def entries(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def forge(path, change, compression=zipfile.ZIP_STORED):
    """The file once more, with its entries as `change` leaves them."""
    parts = entries(path)
    change(parts)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "deep" / "x.zip"
    write_checkpoint(file, SOME)
    return file


def test_there_and_back(path):
    info, tensors = read_checkpoint(path)
    assert info["word"] == "héllo"
    assert equal(tensors, SOME.tensors)


def test_it_is_json_and_safetensors_in_a_plain_zip(path):
    parts = entries(path)
    assert json.loads(parts["checkpoint.json"])["format"] == "headwise checkpoint"
    assert all(name.endswith((".json", ".safetensors")) for name in parts)
    # The safetensors layout: the size of a JSON header, the header, the numbers.
    blob = parts["learner.safetensors"]
    (size,) = struct.unpack("<Q", blob[:8])
    assert json.loads(blob[8 : 8 + size])["a"]["shape"] == [2, 3]
    assert b"\x80\x04" not in blob[:2]  # not a pickle
    with zipfile.ZipFile(path) as archive:
        assert all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())


def test_large_tensors_have_entries_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 100)
    tensors = {"memory": {"obs": torch.rand(5, 10), "act": torch.rand(5)}}
    write_checkpoint(tmp_path / "x.zip", Checkpoint({}, tensors))
    assert {"memory.safetensors", "memory/obs.safetensors"} <= entries(tmp_path / "x.zip").keys()
    assert equal(read_checkpoint(tmp_path / "x.zip").tensors, tensors)


# --- writing fails --------------------------------------------------------------------------------


class Full:
    """A file on a disk that is full after so many bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 10, 300, 700])
def test_a_full_disk_leaves_the_previous_checkpoint(path, monkeypatch, room):
    real = module._write_zip
    monkeypatch.setattr(module, "_write_zip", lambda file, c: real(Full(file, room), c))
    with pytest.raises(CheckpointError, match=r"disk is full.*previous checkpoint is untouched"):
        write_checkpoint(path, Checkpoint({"word": "new"}, SOME.tensors))
    monkeypatch.undo()
    assert read_checkpoint(path).info["word"] == "héllo"
    assert os.listdir(path.parent) == ["x.zip"]  # nothing half-written is left


def test_a_really_full_disk(tmp_path):
    """On a file system of 256 kB, where one can be mounted."""
    mount = ["unshare", "-rm", "sh", "-c"]
    script = (
        f"mount -t tmpfs -o size=256k tmpfs {tmp_path} && cd {tmp_path} && "
        "python -c \"import sys, torch; sys.path.insert(0, 'x')\n"
        "from headwise import CheckpointError\n"
        "from headwise.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint\n"
        "write_checkpoint('a.zip', Checkpoint({'n': 1}, {'p': {'x': torch.zeros(1000)}}))\n"
        "try: write_checkpoint('a.zip', Checkpoint({'n': 2}, {'p': {'x': torch.zeros(10**6)}}))\n"
        "except CheckpointError as e: print(e, read_checkpoint('a.zip').info['n'])\""
    )
    if subprocess.run([*mount, f"mount -t tmpfs tmpfs {tmp_path}"], capture_output=True).returncode:
        pytest.skip("no right to mount a file system here")
    script = script.replace("python -c", f"{os.sys.executable} -c")
    done = subprocess.run([*mount, script], capture_output=True, text=True)
    assert "the disk is full" in done.stdout, done.stdout + done.stderr
    assert done.stdout.strip().endswith("1")


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CheckpointError, match="cannot save"):
        write_checkpoint(tmp_path / "file" / "x.zip", SOME)
    with pytest.raises(CheckpointError, match="cannot save"):
        write_checkpoint("/proc/x.zip", SOME)
    with pytest.raises(CheckpointError, match="cannot save"):
        write_checkpoint(tmp_path, SOME)  # a folder, not a file


def test_a_process_that_died_while_writing_does_no_harm(path):
    partial = path.with_name(".x.zip.partial")
    partial.write_bytes(b"half")
    assert read_checkpoint(path).info["word"] == "héllo"
    write_checkpoint(path, SOME)
    assert not partial.exists()


# --- reading what is not a checkpoint -------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(path, kept):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else kept])
    with pytest.raises(CheckpointError, match="not a whole checkpoint"):
        read_checkpoint(path)


def test_any_changed_byte_is_noticed_or_harmless(path):
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 31):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        try:
            found = read_checkpoint(path)
        except CheckpointError:
            refused += 1
        else:  # bytes of the zip's own book-keeping (dates, versions) do not matter
            assert equal(found.tensors, SOME.tensors)
    assert refused > len(whole) / 31 * 0.5


HOSTILE = {
    "a path out of the folder": lambda p: p.update({"../../evil.safetensors": b""}),
    "an absolute path": lambda p: p.update({"/etc/passwd": b"x"}),
    "a pickle": lambda p: p.update({"data.pkl": b"\x80\x04cos\nsystem\n"}),
    "a Python file": lambda p: p.update({"__init__.py": b"raise SystemExit"}),
    "no description": lambda p: p.pop("checkpoint.json"),
    "no JSON": lambda p: p.update({"checkpoint.json": b"{"}),
    "JSON without end": lambda p: p.update({"checkpoint.json": b"[" * 200_000}),
    "a list": lambda p: p.update({"checkpoint.json": b"[]"}),
    "another format": lambda p: p.update({"checkpoint.json": b'{"format": "sb3"}'}),
    "no text": lambda p: p.update({"checkpoint.json": b"\xff\xfe\x00"}),
    "a header of 2^63 bytes": lambda p: p.update({"learner.safetensors": b"\xff" * 7 + b"\x7f"}),
    "a huge shape": lambda p: p.update({"learner.safetensors": huge()}),
    "overlapping tensors": lambda p: p.update({"learner.safetensors": overlapping()}),
    "many entries": lambda p: p.update({f"p/{i}.safetensors": b"" for i in range(10_001)}),
}


def tensor_file(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def huge():
    return tensor_file({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})


def overlapping():
    one = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return tensor_file({"x": one, "y": one}, b"\0" * 8)


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files_are_refused(path, what):
    forge(path, HOSTILE[what])
    with pytest.raises(CheckpointError, match="not a checkpoint of ours"):
        read_checkpoint(path)


def test_a_zip_bomb_is_refused_unread(path):
    forge(
        path,
        lambda p: p.update({"bomb.safetensors": b"\0" * 50_000_000}),
        compression=zipfile.ZIP_DEFLATED,
    )
    assert path.stat().st_size < 100_000
    with pytest.raises(CheckpointError, match="compressed"):
        read_checkpoint(path)


def test_a_newer_format_says_what_to_do(path):
    forge(path, lambda p: p.update({"checkpoint.json": json.dumps(
        {"format": "headwise checkpoint", "version": 99}).encode()}))  # fmt: skip
    with pytest.raises(CheckpointError, match="pip install --upgrade"):
        read_checkpoint(path)


@pytest.mark.parametrize("bad", ["nowhere.zip", "", "\0", "."])
def test_paths_that_lead_nowhere(bad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError):
        read_checkpoint(bad)


def test_a_large_memory_is_written_in_seconds(tmp_path):
    """No compression and no needless copies: a large replay must not hold up a run."""
    tensors = {"memory": {name: torch.zeros(2**22) for name in ("obs", "next_obs")}}  # 32 MB
    started = time.perf_counter()
    write_checkpoint(tmp_path / "x.zip", Checkpoint({}, tensors))
    assert time.perf_counter() - started < 20
    assert read_checkpoint(tmp_path / "x.zip").tensors["memory"]["obs"].shape == (2**22,)
    assert np.isclose((tmp_path / "x.zip").stat().st_size, 2**25, rtol=1e-3)
