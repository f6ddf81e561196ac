// hipblaslt: probes/cuda/gemm_library.h by hipBLASLt. The library is never linked, only its functions are looked up.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/amd/hip.h"
#include "probes/amd/hipblaslt_api.h"
#include "probes/amd/rocm_library.h"
#include "probes/core/probe.h"
#include "probes/cuda/gemm_library.h"

namespace assay::cuda {

namespace blas = amd::hipblaslt;

struct GemmFunctions {
  blas::Functions f;
};

namespace {

/// Workspace of an algorithm at most: 76 MiB, which hipBLASLt's authors advise (PyTorch,
/// aten/src/ATen/cuda/tunable/GemmHipblaslt.h).
constexpr Bytes kWorkspace = {std::uint64_t{76} << 20};

std::string words_of(blas::Status status) {
  const auto place = static_cast<std::size_t>(status);
  return fmt::format("{} (hipBLASLt {})",
                     place < std::size(blas::kStatusWords) ? blas::kStatusWords[place] : "no words", status);
}
void demand(blas::Status status, std::string_view what) {
  if (status != blas::kSuccess)
    throw std::runtime_error(fmt::format("{}: {}: {}", GemmLibrary::kTitle, what, words_of(status)));
}

blas::Type type_of(Format format) {
  switch (format) {
    case Format::fp64:
      return blas::Type::fp64;
    case Format::fp32:
    case Format::tf32:
      return blas::Type::fp32;
    case Format::fp16:
      return blas::Type::fp16;
    case Format::bf16:
      return blas::Type::bf16;
    case Format::e4m3:
      return blas::Type::e4m3;
    case Format::e5m2:
      return blas::Type::e5m2;
    case Format::e4m3_fnuz:
      return blas::Type::e4m3_fnuz;
    case Format::e5m2_fnuz:
      return blas::Type::e5m2_fnuz;
    case Format::int8:
      return blas::Type::int8;
    case Format::int32:
      return blas::Type::int32;
    case Format::e2m1:
      break;
  }
  throw std::logic_error("a format that amd_gemm does not have");
}

blas::Compute compute_of(Format operand) {
  switch (operand) {
    case Format::fp64:
      return blas::Compute::fp64;
    case Format::tf32:
      return blas::Compute::fast_tf32;
    case Format::int8:
      return blas::Compute::int32;
    default:
      return blas::Compute::fp32;
  }
}

/// The type of alpha and beta.
blas::Type factor_of(Format operand) {
  return operand == Format::fp64 ? blas::Type::fp64 : operand == Format::int8 ? blas::Type::int32 : blas::Type::fp32;
}

blas::Algorithm algorithm_in(const Algorithm& kept) {
  blas::Algorithm algorithm;
  std::memcpy(static_cast<void*>(&algorithm), kept.opaque.data(), sizeof algorithm);
  return algorithm;
}

}  // namespace

const char* const GemmLibrary::kTitle = "hipBLASLt";

GemmLibrary::GemmLibrary(std::string_view folders) {
  // 0 runs XF32 as FP32 and 2 as BF16 (hipBLASLt's documentation, "Environment variables"), and a file of a user's
  // choices would be taken for the library's own.
  for (const char* variable : {"HIPBLASLT_OVERRIDE_COMPUTE_TYPE_XF32", "HIPBLASLT_TUNING_OVERRIDE_FILE"}) {
    if (unsetenv(variable) != 0) throw std::runtime_error(fmt::format("removing {} failed", variable));
  }
  const Library library = amd::open_of_rocm({.title = kTitle,
                                             .names = {std::begin(blas::kLibraries), std::end(blas::kLibraries)},
                                             .older = {},
                                             .first = amd::hip_api::kFirstRocm,
                                             .folders = folders});
  functions_ = std::make_unique<GemmFunctions>(GemmFunctions{{.library = library}});
  path_ = library.path();
  const blas::Functions& f = functions_->f;
  blas::Handle handle = nullptr;
  demand(f.create(&handle), "opening a handle");
  int number = 0;
  const blas::Status status = f.version(handle, &number);
  (void)f.destroy(handle);  // nothing was done with it
  demand(status, "reading the version");
  version_ = fmt::format("{}.{}.{}", number / blas::kMajorUnit, number % blas::kMajorUnit / blas::kMinorUnit,
                         number % blas::kMinorUnit);
}

GemmLibrary::~GemmLibrary() = default;

/// Handle and descriptors; those made are destroyed.
struct Matmul::State {
  explicit State(const blas::Functions& functions) : lt(functions) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    // A destructor reports nothing.
    if (preference != nullptr) (void)lt.preference_destroy(preference);
    for (blas::Layout layout : {a, b, d}) {
      if (layout != nullptr) (void)lt.layout_destroy(layout);
    }
    if (description != nullptr) (void)lt.description_destroy(description);
    if (handle != nullptr) (void)lt.destroy(handle);
  }

  template <class T>
  void set(int attribute, const T& value) const {
    demand(lt.description_set(description, attribute, static_cast<const void*>(&value), sizeof value),
           fmt::format("setting attribute {}", attribute));
  }
  /// The library reads the scales' places when a product is enqueued, so they may change from one to the next.
  void point_at(const OperandSet& operands) const {
    if (!scaled) return;
    set(blas::kScaleA, operands.a_scale);
    set(blas::kScaleB, operands.b_scale);
  }

  const blas::Functions& lt;
  blas::Handle handle = nullptr;
  blas::Description description = nullptr;
  blas::Layout a = nullptr, b = nullptr, d = nullptr;
  blas::Preference preference = nullptr;
  DeviceBuffer workspace;
  bool scaled = false;
  // Alpha 1 and beta 0, in the type that goes with the operands.
  std::array<std::byte, sizeof(double)> one = {}, zero = {};
};

Matmul::Matmul(const GemmLibrary& library, const GemmType& type, const GemmShape& shape, bool /*fast_accumulation*/)
    : state_(std::make_unique<State>(library.functions().f)) {
  State& state = *state_;
  const auto& lt = state.lt;
  state.scaled = type.scaling == Scaling::tensor;
  demand(lt.create(&state.handle), "opening a handle");
  demand(lt.description_create(&state.description, compute_of(type.a), factor_of(type.a)), "describing a product");
  state.set(blas::kTransA, blas::kTransposed);
  state.set(blas::kTransB, blas::kNormal);
  const auto [m, n, k] = shape;
  const auto leading = [](std::size_t size) { return static_cast<std::int64_t>(size); };
  demand(lt.layout_create(&state.a, type_of(type.a), k, m, leading(k)), "describing A");
  demand(lt.layout_create(&state.b, type_of(type.b), k, n, leading(k)), "describing B");
  demand(lt.layout_create(&state.d, type_of(type.d), m, n, leading(m)), "describing D");
  demand(lt.preference_create(&state.preference), "making preferences");
  const std::uint64_t workspace = kWorkspace.count;
  demand(lt.preference_set(state.preference, blas::kMostWorkspace, &workspace, sizeof workspace),
         "preferring a workspace");
  state.workspace = DeviceBuffer(kWorkspace);
  const auto put_one = [&state](auto number) { std::memcpy(state.one.data(), &number, sizeof number); };
  if (type.a == Format::fp64)
    put_one(1.0);
  else if (type.a == Format::int8)
    put_one(std::int32_t{1});
  else
    put_one(1.0F);
}

Matmul::~Matmul() = default;

std::vector<Algorithm> Matmul::algorithms(const OperandSet& set, std::size_t most) {
  const State& state = *state_;
  state.point_at(set);
  std::vector<blas::Proposal> proposals(most);
  int returned = 0;
  const blas::Status status = state.lt.heuristic(state.handle, state.description, state.a, state.b, state.d, state.d,
                                                 state.preference, static_cast<int>(most), proposals.data(), &returned);
  if (status == blas::kNotSupported || status == blas::kArchMismatch || status == blas::kInvalidValue) return {};
  demand(status, "asking for algorithms");
  proposals.resize(std::min(most, static_cast<std::size_t>(std::max(returned, 0))));
  std::vector<Algorithm> usable;
  for (const blas::Proposal& proposal : proposals) {
    if (proposal.state != blas::kSuccess || proposal.workspace > kWorkspace.count) continue;
    Algorithm algorithm{.opaque = {}, .workspace = {proposal.workspace}};
    static_assert(sizeof algorithm.opaque >= sizeof proposal.algorithm);
    std::memcpy(algorithm.opaque.data(), &proposal.algorithm, sizeof proposal.algorithm);
    usable.push_back(algorithm);
  }
  return usable;
}

void Matmul::enqueue(const Algorithm& algorithm, const OperandSet& set, const Stream& stream) {
  const State& state = *state_;
  state.point_at(set);
  const blas::Algorithm algo = algorithm_in(algorithm);
  const blas::Status status = state.lt.matmul(state.handle, state.description, state.one.data(), set.a, state.a, set.b,
                                              state.b, state.zero.data(), set.d, state.d, set.d, state.d, &algo,
                                              state.workspace.data(), state.workspace.size().count, stream.get());
  if (status != blas::kSuccess) {
    throw AlgorithmRefused(
        fmt::format("{}: enqueueing a product ({}): {}", GemmLibrary::kTitle, text(algorithm), words_of(status)));
  }
}

/// Partial sums of solutions that split k stay in the compute type, as far as the library's sources show.
std::size_t Matmul::stored_parts(const Algorithm& /*algorithm*/) const { return 1; }

std::string Matmul::text(const Algorithm& algorithm) const {
  std::int32_t number = 0;
  std::memcpy(&number, algorithm.opaque.data(), sizeof number);
  return fmt::format("solution {}, workspace {} B", number, algorithm.workspace.count);
}

}  // namespace assay::cuda
