// cublaslt: the one file that includes cuBLASLt's header. The library is never linked, only its functions are looked
// up.
#include "probes/cuda/gemm_library.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <cublasLt.h>
#include <fmt/format.h>

#include "probes/core/library.h"

namespace assay::cuda {

struct GemmFunctions {
  Library library;
  decltype(&::cublasLtGetProperty) get_property = library.function("cublasLtGetProperty");
  decltype(&::cublasLtGetStatusString) status_string = library.function("cublasLtGetStatusString");
  decltype(&::cublasLtCreate) create = library.function("cublasLtCreate");
  decltype(&::cublasLtDestroy) destroy = library.function("cublasLtDestroy");
  decltype(&::cublasLtMatmulDescCreate) description_create = library.function("cublasLtMatmulDescCreate");
  decltype(&::cublasLtMatmulDescDestroy) description_destroy = library.function("cublasLtMatmulDescDestroy");
  decltype(&::cublasLtMatmulDescSetAttribute) description_set = library.function("cublasLtMatmulDescSetAttribute");
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = library.function("cublasLtMatrixLayoutCreate");
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = library.function("cublasLtMatrixLayoutDestroy");
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = library.function("cublasLtMatmulPreferenceCreate");
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = library.function("cublasLtMatmulPreferenceDestroy");
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set =
      library.function("cublasLtMatmulPreferenceSetAttribute");
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = library.function("cublasLtMatmulAlgoGetHeuristic");
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) configuration =
      library.function("cublasLtMatmulAlgoConfigGetAttribute");
  decltype(&::cublasLtMatmulAlgoCapGetAttribute) capability = library.function("cublasLtMatmulAlgoCapGetAttribute");
  decltype(&::cublasLtMatmulAlgoCheck) check = library.function("cublasLtMatmulAlgoCheck");
  decltype(&::cublasLtMatmul) matmul = library.function("cublasLtMatmul");
};

namespace {

/// Memory that algorithms may use besides the operands: 32 MiB, NVIDIA's advice for Hopper and later (cuBLAS manual,
/// cublasSetWorkspace).
constexpr Bytes kGemmWorkspace = {std::uint64_t{32} << 20};

constexpr std::array kEmulationVariables = {"CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATE_SINGLE_PRECISION"};

/// Whether the library may emulate. The products here have compute types of their own and no emulation descriptor, so
/// that only the environment could ask for it (cuBLAS manual, "Floating Point Emulation"), and the constructor forbids
/// it.
bool emulation_allowed() {
  return std::ranges::any_of(kEmulationVariables, [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && std::string_view(value) != "0";
  });
}

std::string library_name() { return fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR); }

cudaDataType cuda_type(Format format) {
  switch (format) {
    case Format::fp64:
      return CUDA_R_64F;
    case Format::fp32:
    case Format::tf32:
      return CUDA_R_32F;
    case Format::fp16:
      return CUDA_R_16F;
    case Format::bf16:
      return CUDA_R_16BF;
    case Format::e4m3:
      return CUDA_R_8F_E4M3;
    case Format::e5m2:
      return CUDA_R_8F_E5M2;
    case Format::e2m1:
      return CUDA_R_4F_E2M1;
    case Format::int8:
      return CUDA_R_8I;
    case Format::int32:
      return CUDA_R_32I;
    case Format::e4m3_fnuz:
    case Format::e5m2_fnuz:
      break;
  }
  throw std::logic_error("a format without a CUDA type");
}

cublasComputeType_t compute_type(Format operand) {
  switch (operand) {
    case Format::fp64:
      return CUBLAS_COMPUTE_64F;
    case Format::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Format::int8:
      return CUBLAS_COMPUTE_32I;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

/// The type of alpha and beta.
cudaDataType factor_type(Format operand) {
  return operand == Format::fp64 ? CUDA_R_64F : operand == Format::int8 ? CUDA_R_32I : CUDA_R_32F;
}

}  // namespace

GemmLibrary::GemmLibrary(std::string_view folders) {
  // 0 would run TF32 on the slower units of FP32 (cuBLAS manual, "Tensor Core Usage"), and a healthy GPU would look
  // slow.
  if (unsetenv("NVIDIA_TF32_OVERRIDE") != 0) throw std::runtime_error("removing NVIDIA_TF32_OVERRIDE failed");
  // Emulation by narrower types may report more than the hardware's own rate (cuBLAS manual, "Floating Point
  // Emulation").
  for (const char* variable : kEmulationVariables) {
    if (setenv(variable, "0", 1) != 0) throw std::runtime_error(fmt::format("setting {} failed", variable));
  }
  Library library = Library::open(library_name(), kTitle, folders);
  const decltype(&::cublasLtGetProperty) property = library.function("cublasLtGetProperty");
  int major = 0, minor = 0, patch = 0;
  (void)property(MAJOR_VERSION, &major);  // cannot fail for these three; a version of 0 is refused below
  (void)property(MINOR_VERSION, &minor);
  (void)property(PATCH_LEVEL, &patch);
  library.require_major(major, CUBLAS_VER_MAJOR);
  version_ = fmt::format("{}.{}.{}", major, minor, patch);
  path_ = library.path();
  functions_ = std::make_unique<GemmFunctions>(std::move(library));
}

GemmLibrary::~GemmLibrary() = default;

const char* const GemmLibrary::kTitle = "cuBLASLt";

/// Handle and descriptors; those made are destroyed.
struct Matmul::State {
  explicit State(const GemmFunctions& functions) : lt(functions) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    // A destructor reports nothing.
    if (preference != nullptr) (void)lt.preference_destroy(preference);
    for (auto layout : {a, b, d}) {
      if (layout != nullptr) (void)lt.layout_destroy(layout);
    }
    if (description != nullptr) (void)lt.description_destroy(description);
    if (handle != nullptr) (void)lt.destroy(handle);
  }

  void demand(cublasStatus_t status, std::string_view what) const {
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw std::runtime_error(fmt::format("{}: {}: {}", GemmLibrary::kTitle, what, lt.status_string(status)));
    }
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    demand(lt.description_set(description, attribute, static_cast<const void*>(&value), sizeof value),
           fmt::format("setting attribute {}", int{attribute}));
  }
  /// Whether an algorithm can emulate its type; nothing from a library that does not know the question, nor emulation.
  [[nodiscard]] std::optional<int> emulates(const cublasLtMatmulAlgo_t& algo) const {
    std::int32_t able = 0;
    std::size_t written = 0;
    const auto status =
        lt.capability(&algo, CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT, &able, sizeof able, &written);
    return status == CUBLAS_STATUS_SUCCESS ? std::optional<int>(able) : std::nullopt;
  }
  /// What `algorithm` has for `attribute`, whose type is that of `value`.
  template <class T>
  T configured(const Algorithm& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute, T value) const {
    cublasLtMatmulAlgo_t algo;
    std::memcpy(&algo, algorithm.opaque.data(), sizeof algo);
    std::size_t written = 0;
    demand(lt.configuration(&algo, attribute, &value, sizeof value, &written), "reading an algorithm");
    return value;
  }
  /// The library reads the scales' places when a product is enqueued, so they may change from one to the next.
  void point_at(const OperandSet& operands) const {
    if (scaling == Scaling::none) return;
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.a_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.b_scale);
  }

  const GemmFunctions& lt;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  DeviceBuffer workspace;
  Scaling scaling = Scaling::none;
  bool emulation_possible = false;
  // Alpha 1 and beta 0, in the type that goes with the operands.
  std::array<std::byte, sizeof(double)> one = {}, zero = {};
};

Matmul::Matmul(const GemmLibrary& library, const GemmType& type, const GemmShape& shape, bool fast_accumulation)
    : state_(std::make_unique<State>(library.functions())) {
  State& state = *state_;
  const auto& lt = state.lt;
  state.scaling = type.scaling;
  state.emulation_possible = type.a == Format::fp64 || type.a == Format::fp32;
  state.demand(lt.create(&state.handle), "opening a handle");
  state.demand(lt.description_create(&state.description, compute_type(type.a), factor_type(type.a)),
               "describing a product");
  state.set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{CUBLAS_OP_T});
  state.set(CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t{CUBLAS_OP_N});
  if (type.scaling == Scaling::tensor) {
    state.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(fast_accumulation ? 1 : 0));
  } else if (type.scaling != Scaling::none) {
    const std::int32_t mode = type.scaling == Scaling::mx ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
                                                          : CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    state.set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    state.set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
  }
  const auto [m, n, k] = shape;
  const auto leading = [](std::size_t size) { return static_cast<std::int64_t>(size); };
  state.demand(lt.layout_create(&state.a, cuda_type(type.a), k, m, leading(k)), "describing A");
  state.demand(lt.layout_create(&state.b, cuda_type(type.b), k, n, leading(k)), "describing B");
  state.demand(lt.layout_create(&state.d, cuda_type(type.d), m, n, leading(m)), "describing D");
  state.demand(lt.preference_create(&state.preference), "making preferences");
  const std::size_t workspace = kGemmWorkspace.count;
  state.demand(
      lt.preference_set(state.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
      "preferring a workspace");
  state.workspace = DeviceBuffer(kGemmWorkspace);
  const double one_double = 1;
  const float one_single = 1;
  const std::int32_t one_whole = 1;
  if (type.a == Format::fp64) {
    std::memcpy(state.one.data(), &one_double, sizeof one_double);
  } else if (type.a == Format::int8) {
    std::memcpy(state.one.data(), &one_whole, sizeof one_whole);
  } else {
    std::memcpy(state.one.data(), &one_single, sizeof one_single);
  }
}

Matmul::~Matmul() = default;

std::vector<Algorithm> Matmul::algorithms(const OperandSet& set, std::size_t most) {
  const State& state = *state_;
  state.point_at(set);
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(most);
  int returned = 0;
  const cublasStatus_t status =
      state.lt.heuristic(state.handle, state.description, state.a, state.b, state.d, state.d, state.preference,
                         static_cast<int>(most), proposals.data(), &returned);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  state.demand(status, "asking for algorithms");
  std::vector<Algorithm> usable;
  for (int i = 0; i < returned; ++i) {
    const auto& proposal = proposals[static_cast<std::size_t>(i)];
    if (proposal.state != CUBLAS_STATUS_SUCCESS || proposal.workspaceSize > kGemmWorkspace.count) continue;
    cublasLtMatmulHeuristicResult_t checked = {};
    if (state.lt.check(state.handle, state.description, state.a, state.b, state.d, state.d, &proposal.algo, &checked) !=
        CUBLAS_STATUS_SUCCESS) {
      continue;
    }
    if (state.emulation_possible && !keeps_algorithm(state.emulates(proposal.algo), emulation_allowed())) continue;
    Algorithm algorithm{.opaque = {}, .workspace = {proposal.workspaceSize}};
    static_assert(sizeof algorithm.opaque == sizeof proposal.algo);
    std::memcpy(algorithm.opaque.data(), &proposal.algo, sizeof proposal.algo);
    usable.push_back(algorithm);
  }
  return usable;
}

void Matmul::enqueue(const Algorithm& algorithm, const OperandSet& set, const Stream& stream) {
  const State& state = *state_;
  state.point_at(set);
  cublasLtMatmulAlgo_t algo;
  std::memcpy(&algo, algorithm.opaque.data(), sizeof algo);
  const cublasStatus_t status = state.lt.matmul(
      state.handle, state.description, state.one.data(), set.a, state.a, set.b, state.b, state.zero.data(), set.d,
      state.d, set.d, state.d, &algo, state.workspace.data(), state.workspace.size().count, stream.get());
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw AlgorithmRefused(fmt::format("{}: enqueueing a product ({}): {}", GemmLibrary::kTitle, text(algorithm),
                                       state.lt.status_string(status)));
  }
}

std::size_t Matmul::stored_parts(const Algorithm& algorithm) const {
  const auto parts = state_->configured(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, std::int32_t{});
  const auto reduction = state_->configured(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, std::uint32_t{});
  const bool stored =
      reduction == CUBLASLT_REDUCTION_SCHEME_INPLACE || reduction == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  return stored && parts > 1 ? static_cast<std::size_t>(parts) : 1;
}

std::string Matmul::text(const Algorithm& algorithm) const {
  const auto number = [&](auto attribute, auto value) {
    return std::int64_t{state_->configured(algorithm, attribute, value)};
  };
  return fmt::format(
      "id {}, tile {}, stages {}, split_k {}, reduction {}, inner_shape {}, cluster {}, workspace {} B",
      number(CUBLASLT_ALGO_CONFIG_ID, std::int32_t{}), number(CUBLASLT_ALGO_CONFIG_TILE_ID, std::uint32_t{}),
      number(CUBLASLT_ALGO_CONFIG_STAGES_ID, std::uint32_t{}), number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, std::int32_t{}),
      number(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, std::uint32_t{}),
      number(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, std::uint16_t{}),
      number(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, std::uint16_t{}), algorithm.workspace.count);
}

}  // namespace assay::cuda
