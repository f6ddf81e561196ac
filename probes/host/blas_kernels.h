// blas_kernels: makes OpenBLAS use kernels as wide as the processor's vectors. A library older than the processor does
// not know its model and falls back to kernels of narrower vectors (OpenBLAS 0.3.21 takes those of the Prescott of 2004
// on a Xeon of 2023); the rate would then be that of the library and not that of the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::host {

/// Vectors that a processor has, or that a set of kernels is written for; narrowest first.
enum class Vectors : std::uint8_t { sse, avx, avx2_fma, avx512 };

/// The widest vectors of this processor that OpenBLAS has kernels for; nothing if it is not an x86-64.
std::optional<Vectors> processor_vectors();

/// The vectors of the kernels that OpenBLAS names `core` (openblas_get_corename); nothing for a name not known here.
std::optional<Vectors> kernel_vectors(std::string_view core);

/// The name to ask OpenBLAS for (OPENBLAS_CORETYPE) where the kernels of `core` are narrower than `processor`; empty if
/// they are as wide, or where either is not known.
std::string_view wider_kernels(std::string_view core, std::optional<Vectors> processor);

/// Starts this program again with OPENBLAS_CORETYPE set, where `core`, which OpenBLAS has chosen, is narrower than the
/// processor: the library reads the variable only while it is loaded. Returns where nothing is to change, and where it
/// was set already and did not help. `argv` is that of main. Call it before anything is opened or printed.
void restart_with_wide_kernels(std::string_view core, char** argv);

/// Throws Skip when the kernels of `core` are narrower than this processor's vectors all the same.
void require_wide_kernels(std::string_view core);

}  // namespace assay::host
