// memory_kernels: the kernels of memory_kernels.cuh, launched by the CUDA runtime.
#include "probes/cuda/launch.cuh"
#include "probes/cuda/memory_launches.cuh"
