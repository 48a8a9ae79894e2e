"""The choice of a device, by measurements that a test makes up."""

import os

import pytest
import torch

from headwise.training.device import faster_device, let_streams_run_apart


@pytest.fixture
def with_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


def test_without_cuda_it_is_the_cpu_and_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert faster_device(lambda device: pytest.fail("measured")) == ("cpu", "")


@pytest.mark.parametrize(
    ("cpu", "cuda", "device", "why"),
    [
        (6.0, 2.0, "cuda", "device cuda: 3.0 times as fast as cpu, as measured now"),
        (1.0, 2.5, "cpu", "device cpu: 2.5 times as fast as cuda, as measured now"),
        (1.0, 1.0, "cpu", "device cpu: 1.0 times as fast as cuda, as measured now"),
    ],
)
def test_the_faster_one_is_taken_and_it_says_why(with_gpu, cpu, cuda, device, why):
    assert faster_device({"cpu": cpu, "cuda": cuda}.__getitem__) == (device, why)


def test_a_gpu_that_fails_is_not_taken_and_it_says_so(with_gpu):
    def measure(device):
        if device == "cuda":
            raise RuntimeError("out of memory")
        return 1.0

    device, why = faster_device(measure)
    assert device == "cpu"
    assert "the GPU failed when it was tried (out of memory)" in why


def test_streams_get_queues_of_their_own_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    let_streams_run_apart()
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "32"
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4")
    let_streams_run_apart()
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "4"
