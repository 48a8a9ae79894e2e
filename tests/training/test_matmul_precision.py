"""Words for how products are rounded, and what is said where a device lacks them."""

import pytest
import torch

from headwise import ConfigError
from headwise.ops import core
from headwise.ops.threads import member_threads
from headwise.training.matmul_precision import (
    matmul_precision_as,
    matmul_precision_now,
    not_as_asked,
    set_matmul_precision,
)
from headwise.training.threads import training_threads


@pytest.mark.parametrize(
    ("name", "word"), [("float32", "highest"), ("tf32", "high"), ("bf16", "medium")]
)
def test_words_are_torchs_own_for_a_while(name, word):
    before = torch.get_float32_matmul_precision()
    with matmul_precision_as(name):
        assert torch.get_float32_matmul_precision() == word
        assert matmul_precision_now() == name
        with matmul_precision_as(None):
            assert matmul_precision_now() == name
        # Torch's own products on the CPU are never rounded.
        assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
    assert torch.get_float32_matmul_precision() == before


def test_torch_is_as_before_after_an_error():
    before = matmul_precision_now()
    with pytest.raises(RuntimeError, match="inside"), matmul_precision_as("bf16"):
        raise RuntimeError("inside")
    assert matmul_precision_now() == before


def test_other_words_are_refused():
    with pytest.raises(ConfigError, match=r"got 'fp8'.*float32, tf32, bf16"):
        set_matmul_precision("fp8")


def test_what_a_processor_lacks_is_said(monkeypatch):
    monkeypatch.setattr(core, "has_bf16", lambda: False)
    assert not_as_asked(None, "cpu") == ""
    assert not_as_asked("float32", "cpu") == ""
    assert not_as_asked("bf16", "cpu") == (
        "matmul precision bf16: this cpu has no AVX512-BF16, which it needs; float32 is used"
    )
    assert not_as_asked("tf32", "cpu").endswith("this is cpu; float32 is used")
    monkeypatch.setattr(core, "has_bf16", lambda: True)
    assert not_as_asked("bf16", "cpu") == ""


def test_what_a_gpu_lacks_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert not_as_asked("tf32", "cuda") == ""
    assert not_as_asked("bf16", "cuda").endswith("tf32 is used")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    for name in ("tf32", "bf16"):
        assert not_as_asked(name, "cuda").endswith("float32 is used")


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_population_has_at_most_a_thread_for_each_member(precision):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        for members, threads in ((1, 1), (2, 2), (5, 3)):
            with matmul_precision_as(precision), training_threads(members, torch.device("cpu")):
                assert (member_threads(), torch.get_num_threads()) == (threads, 1)
            assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
