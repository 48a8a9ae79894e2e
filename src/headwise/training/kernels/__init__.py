"""Triton kernels, which are imported only where there is a CUDA device."""
