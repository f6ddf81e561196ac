// products: the one file of this room that includes cuBLASLt's header. Matrices are row by row here and column by
// column there, so that a product is asked for with its factors exchanged.
#include "workloads/train_gpu/products.h"

#include <array>
#include <cstring>
#include <map>
#include <stdexcept>

#include <cublasLt.h>
#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/text.h"

namespace assay::train_gpu {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // NVIDIA's advice from Hopper on (cublasSetWorkspace)

/// Alignment of every matrix, in B: a head's numbers begin within those of a token. check_device_engine() sees to it.
constexpr std::uint32_t kAlignment = 16;

Library open_library() { return Library::open(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR), "cuBLASLt"); }

}  // namespace

struct Products::State {
  /// The functions used of the library.
  struct Functions {
    Library library;
    decltype(&::cublasLtGetProperty) property = library.function("cublasLtGetProperty");
    decltype(&::cublasLtGetStatusString) words = library.function("cublasLtGetStatusString");
    decltype(&::cublasLtCreate) create = library.function("cublasLtCreate");
    decltype(&::cublasLtDestroy) destroy = library.function("cublasLtDestroy");
    decltype(&::cublasLtMatmulDescInit_internal) description_init = library.function("cublasLtMatmulDescInit_internal");
    decltype(&::cublasLtMatmulDescSetAttribute) description_set = library.function("cublasLtMatmulDescSetAttribute");
    decltype(&::cublasLtMatrixLayoutInit_internal) layout_init = library.function("cublasLtMatrixLayoutInit_internal");
    decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set = library.function("cublasLtMatrixLayoutSetAttribute");
    decltype(&::cublasLtMatmulPreferenceInit_internal) preference_init =
        library.function("cublasLtMatmulPreferenceInit_internal");
    decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set =
        library.function("cublasLtMatmulPreferenceSetAttribute");
    decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = library.function("cublasLtMatmulAlgoGetHeuristic");
    decltype(&::cublasLtMatmulAlgoCheck) check = library.function("cublasLtMatmulAlgoCheck");
    decltype(&::cublasLtMatmul) matmul = library.function("cublasLtMatmul");

    void demand(cublasStatus_t status, std::string_view what) const {
      if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(fmt::format("{}: {}", what, words(status)));
    }
  };

  /// One shape, as the library describes it, and its algorithm.
  struct Settled {
    cublasLtMatmulDescOpaque_t description = {};
    cublasLtMatrixLayoutOpaque_t a = {}, b = {}, c = {};
    cublasLtMatmulAlgo_t algorithm = {};
  };

  State(Library library, train::FactorType factors)
      : call{.library = std::move(library)}, type(factors), workspace({kWorkspace}) {
    call.demand(call.create(&library_handle), "cublasLtCreate");
    std::array<int, 3> parts = {};
    constexpr std::array kParts = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
    for (std::size_t i = 0; i < parts.size(); ++i)
      call.demand(call.property(kParts[i], &parts[i]), "cublasLtGetProperty");
    version = fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
  }
  ~State() { (void)call.destroy(library_handle); }  // the process is about to end
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void lay_out(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType numbers, std::int64_t rows, std::int64_t columns,
               std::int64_t leading, std::int64_t batch, std::int64_t stride) const {
    call.demand(call.layout_init(&layout, sizeof layout, numbers, static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), leading),
                "describing a matrix");
    const auto count = static_cast<std::int32_t>(batch);
    call.demand(call.layout_set(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "a batch");
    call.demand(call.layout_set(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                "a batch");
  }

  /// The library's A is our b: rows of ours are its columns.
  void describe(const ProductShape& s, Settled& to) const {
    const bool tf32 = type == train::FactorType::tf32, fp8 = s.fp8 != Fp8::none;
    const auto numbers = [&](bool of_gradients) {
      if (fp8) return of_gradients ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
      return tf32 ? CUDA_R_32F : CUDA_R_16BF;
    };
    call.demand(call.description_init(&to.description, sizeof to.description,
                                      tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
                "describing a product");
    const cublasOperation_t first = s.b_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = s.a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    call.demand(call.description_set(&to.description, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
                "transposing");
    call.demand(call.description_set(&to.description, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
                "transposing");
    const FactorShape a = a_of(s), b = b_of(s);
    lay_out(to.a, numbers(s.fp8 == Fp8::weight), b.columns, b.rows, b.leading, b.batch, b.stride);
    lay_out(to.b, numbers(s.fp8 == Fp8::input), a.columns, a.rows, a.leading, a.batch, a.stride);
    lay_out(to.c, s.narrow ? CUDA_R_16BF : CUDA_R_32F, s.n, s.m, s.ldc, s.batch, s.c_stride);
    if (!fp8) return;
    const std::int8_t fast = s.fp8 == Fp8::forward ? 1 : 0;  // as Transformer Engine's recipes have it
    call.demand(call.description_set(&to.description, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast),
                "fast accumulation");
    const auto* const any = workspace.as<const float>();  // there is no factor yet
    point_at(to, any, any);
  }

  /// The scales of FP8 factors, of our b and a.
  void point_at(Settled& to, const float* a, const float* b) const {
    call.demand(call.description_set(&to.description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                     static_cast<const void*>(&a), sizeof a),
                "a scale");
    call.demand(call.description_set(&to.description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                     static_cast<const void*>(&b), sizeof b),
                "a scale");
  }

  /// The first of the heuristic that adds up in one pass: partial sums of a split k depend on other choices.
  void choose(const ProductShape& s, Settled& to) {
    cublasLtMatmulPreferenceOpaque_t preference = {};
    call.demand(call.preference_init(&preference, sizeof preference), "a preference");
    call.demand(
        call.preference_set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace),
        "a preference");
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // and none: no atomic or stored
                                                                           // sums
    call.demand(call.preference_set(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes),
                "a preference");
    for (const auto side : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      call.demand(call.preference_set(&preference, side, &kAlignment, sizeof kAlignment), "a preference");
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const auto status =
        call.heuristic(library_handle, &to.description, &to.a, &to.b, &to.c, &to.c, &preference, 1, &best, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0)
      throw std::runtime_error(fmt::format("cuBLASLt has no algorithm for {}: {}", shape_words(s), call.words(status)));
    to.algorithm = best.algo;
  }

  Functions call;
  train::FactorType type;
  cublasLtHandle_t library_handle = nullptr;
  std::string version;
  cuda::DeviceBuffer workspace;
  std::map<ProductShape, Settled> settled;
};

Products::Products(train::FactorType type) : state_(std::make_unique<State>(open_library(), type)) {}
Products::~Products() = default;
const std::string& Products::version() const { return state_->version; }
const std::string& Products::path() const { return state_->call.library.path(); }
train::FactorType Products::type() const { return state_->type; }

void Products::demand_library() { (void)open_library(); }

void Products::settle(const ProductShape& shape) {
  const auto [found, added] = state_->settled.try_emplace(shape);
  if (!added) return;
  state_->describe(shape, found->second);
  state_->choose(shape, found->second);
}

AlgorithmTable Products::choices() const {
  AlgorithmTable table;
  for (const auto& [shape, one] : state_->settled) {
    std::string bytes(sizeof one.algorithm, '\0');
    std::memcpy(bytes.data(), &one.algorithm, bytes.size());
    table[shape_words(shape)] = to_hexadecimal(bytes);
  }
  return table;
}

void Products::adopt(const AlgorithmTable& table) {
  for (auto& [shape, one] : state_->settled) {
    const auto found = table.find(shape_words(shape));
    if (found == table.end()) throw std::runtime_error("no algorithm was agreed on for " + shape_words(shape));
    const auto bytes = from_hexadecimal(found->second);
    if (!bytes || bytes->size() != sizeof one.algorithm) throw std::runtime_error("an agreed algorithm is damaged");
    std::memcpy(&one.algorithm, bytes->data(), bytes->size());
    cublasLtMatmulHeuristicResult_t result = {};
    state_->call.demand(state_->call.check(state_->library_handle, &one.description, &one.a, &one.b, &one.c, &one.c,
                                           &one.algorithm, &result),
                        "the agreed algorithm of " + found->first);
  }
}

void Products::enqueue(const ProductShape& shape, const Factor& a, const Factor& b, void* c,
                       const cuda::Stream& stream) {
  const auto found = state_->settled.find(shape);
  if (found == state_->settled.end()) throw std::logic_error("a product was not settled: " + shape_words(shape));
  State::Settled& one = found->second;
  if (shape.fp8 != Fp8::none) state_->point_at(one, b.scale, a.scale);
  const float once = 1;
  const cublasStatus_t status = state_->call.matmul(state_->library_handle, &one.description, &once, b.numbers, &one.a,
                                                    a.numbers, &one.b, &shape.kept, c, &one.c, c, &one.c,
                                                    &one.algorithm, state_->workspace.data(), kWorkspace, stream.get());
  if (status != CUBLAS_STATUS_SUCCESS) state_->call.demand(status, "cublasLtMatmul of " + shape_words(shape));
}

}  // namespace assay::train_gpu
