"""Operations as Triton kernels, where a GPU showed that it pays. Imported only where CUDA is."""
