#include "probes/host/blas_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "probes/core/probe.h"

namespace assay::host {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

struct Kernels {
  std::string_view core;
  Vectors vectors;
};
// Names of x86-64 kernels as OpenBLAS 0.3.21 has them, and SapphireRapids of later releases. A library built for one
// processor prints them in capitals.
constexpr Kernels kKernels[] = {
    {"Katmai", Vectors::sse},        {"Coppermine", Vectors::sse},
    {"Northwood", Vectors::sse},     {"Prescott", Vectors::sse},
    {"Banias", Vectors::sse},        {"Atom", Vectors::sse},
    {"Core2", Vectors::sse},         {"Penryn", Vectors::sse},
    {"Dunnington", Vectors::sse},    {"Nehalem", Vectors::sse},
    {"Athlon", Vectors::sse},        {"Opteron", Vectors::sse},
    {"Opteron_SSE3", Vectors::sse},  {"Barcelona", Vectors::sse},
    {"Nano", Vectors::sse},          {"Bobcat", Vectors::sse},
    {"Sandybridge", Vectors::avx},   {"Bulldozer", Vectors::avx},
    {"Piledriver", Vectors::avx},    {"Steamroller", Vectors::avx},
    {"Excavator", Vectors::avx},     {"Haswell", Vectors::avx2_fma},
    {"Zen", Vectors::avx2_fma},      {"SkylakeX", Vectors::avx512},
    {"Cooperlake", Vectors::avx512}, {"SapphireRapids", Vectors::avx512},
};

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

std::string_view words(Vectors vectors) {
  switch (vectors) {
    case Vectors::sse:
      return "SSE";
    case Vectors::avx:
      return "AVX";
    case Vectors::avx2_fma:
      return "AVX2 with FMA";
    case Vectors::avx512:
      return "AVX-512";
  }
  return "";
}

}  // namespace

std::optional<Vectors> processor_vectors() {
#if defined(__x86_64__)
  // SkylakeX needs these five: OpenBLAS itself checks for them before it takes those kernels.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return Vectors::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Vectors::avx2_fma;
  return __builtin_cpu_supports("avx") ? Vectors::avx : Vectors::sse;
#else
  return std::nullopt;
#endif
}

std::optional<Vectors> kernel_vectors(std::string_view core) {
  for (const auto& known : kKernels) {
    if (std::ranges::equal(known.core, core, {}, lower, lower)) return known.vectors;
  }
  return std::nullopt;
}

std::string_view wider_kernels(std::string_view core, std::optional<Vectors> processor) {
  const auto has = kernel_vectors(core);
  if (!has || !processor || *has >= *processor) return {};
  switch (*processor) {
    case Vectors::sse:
      return {};
    case Vectors::avx:
      return "Sandybridge";
    case Vectors::avx2_fma:
      return "Haswell";
    case Vectors::avx512:
      return "SkylakeX";
  }
  return {};
}

void restart_with_wide_kernels(std::string_view core, char** argv) {
  const std::string wanted(wider_kernels(core, processor_vectors()));
  if (wanted.empty()) return;
  const char* asked = std::getenv(kVariable);
  if (asked != nullptr && wanted == asked) return;  // the library has no such kernels: a second start would not end
  setenv(kVariable, wanted.c_str(), 1);
  execv("/proc/self/exe", argv);  // returns only on failure: require_wide_kernels then skips the probe
}

void require_wide_kernels(std::string_view core) {
  const auto processor = processor_vectors();
  const auto wanted = wider_kernels(core, processor);
  if (wanted.empty()) return;
  throw Skip(fmt::format(
      "OpenBLAS uses its kernels for {}, which are written for {}; this processor has {}, so the rate would be that of "
      "the library. They were asked for ({}={}) and are not in it; build the probe with an OpenBLAS that has them",
      core, words(*kernel_vectors(core)), words(*processor), kVariable, wanted));
}

}  // namespace assay::host
