// gpu_loop: the plainest uses of a GPU, as the yardsticks of cuda_gemm and cuda_hbm_bandwidth: cuBLASLt's first
// proposal on one pair of bf16 matrices of Gaussian numbers, and copies from device memory to device memory. Prints the
// median rate of the repetitions, in FLOP/s or, with bytes read and written both counted, in B/s.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "probes/core/statistics.h"

namespace {

constexpr int kCallsPerRepetition = 20;  // some ten milliseconds on a large GPU: long against two events
constexpr int kWarmUps = 5;              // repetitions that are not counted
constexpr std::size_t kWorkspace = std::size_t{32} << 20;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasLtGetStatusString(status));
}

void* device_memory(std::size_t bytes) {
  void* memory = nullptr;  // lives as long as the process
  check(cudaMalloc(&memory, bytes));
  return memory;
}

/// Median seconds of one call.
template <class Call>
double time_of(int repetitions, const Call& call) {
  cudaEvent_t begin{}, end{};
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  std::vector<double> seconds;
  for (int repetition = -kWarmUps; repetition < repetitions; ++repetition) {
    check(cudaEventRecord(begin));
    for (int i = 0; i < kCallsPerRepetition; ++i) call();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end));
    if (repetition >= 0) seconds.push_back(milliseconds / 1e3 / kCallsPerRepetition);
  }
  return assay::median(seconds);
}

double copy_rate(std::size_t bytes, int repetitions) {
  void* const from = device_memory(bytes);
  void* const to = device_memory(bytes);
  check(cudaMemset(from, 1, bytes));
  return 2 * static_cast<double>(bytes) /
         time_of(repetitions, [&] { check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice)); });
}

void* gaussian_matrix(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<__nv_bfloat16> values(elements);
  std::ranges::generate(values, [&] { return __float2bfloat16(normal(random)); });
  void* const matrix = device_memory(elements * sizeof(__nv_bfloat16));
  check(cudaMemcpy(matrix, values.data(), elements * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice));
  return matrix;
}

/// D = A^T B for n x n matrices: the layout of operands that cuda_gemm uses.
double gemm_rate(std::size_t n, int repetitions) {
  void* const a = gaussian_matrix(n * n, 1);
  void* const b = gaussian_matrix(n * n, 2);
  void* const d = device_memory(n * n * sizeof(__nv_bfloat16));
  void* const workspace = device_memory(kWorkspace);
  cublasLtHandle_t library{};
  check(cublasLtCreate(&library));
  cublasLtMatmulDesc_t product{};
  check(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  cublasLtMatrixLayout_t layout{};
  check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, n, n, static_cast<std::int64_t>(n)));
  cublasLtMatmulPreference_t preference{};
  check(cublasLtMatmulPreferenceCreate(&preference));
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                             sizeof kWorkspace));
  cublasLtMatmulHeuristicResult_t first{};
  int found = 0;
  check(
      cublasLtMatmulAlgoGetHeuristic(library, product, layout, layout, layout, layout, preference, 1, &first, &found));
  if (found == 0) throw std::runtime_error("cuBLASLt has no algorithm for this product");
  const float one = 1, zero = 0;
  const double size = static_cast<double>(n);
  return 2 * size * size * size / time_of(repetitions, [&] {
           check(cublasLtMatmul(library, product, &one, a, layout, b, layout, &zero, d, layout, d, layout, &first.algo,
                                workspace, kWorkspace, nullptr));
         });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string what = argc == 4 ? argv[1] : "";
    const std::size_t size = argc == 4 ? std::stoull(argv[2]) : 0;
    const int repetitions = argc == 4 ? std::stoi(argv[3]) : 0;
    if ((what != "gemm" && what != "copy") || size == 0 || repetitions < 1) {
      std::cerr
          << "usage: gpu_loop gemm N REPETITIONS | gpu_loop copy BYTES REPETITIONS\nExample: gpu_loop gemm 8192 20\n";
      return 2;
    }
    std::cout.precision(10);
    std::cout << (what == "gemm" ? gemm_rate(size, repetitions) : copy_rate(size, repetitions)) << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "gpu_loop: " << error.what() << '\n';
    return 1;
  }
}
