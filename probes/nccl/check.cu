// check: the kernels of check_kernels.cuh, launched by the CUDA runtime.
#include "probes/cuda/launch.cuh"
#include "probes/nccl/check_launches.cuh"
