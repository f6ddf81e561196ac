// fake_hipblaslt: hipBLASLt over the made-up HIP runtime: sums in double on the host, rounded once. It proposes
// solutions 7 and 8, of which 8 wants a workspace. The word fault= of ASSAY_FAKE_AMDHIP has what differs:
//
// none_for_type: it has no solution
// refuses, all_refuse: solution 7 does not run, none runs
// wrong: the last element of each result is a quarter too large
// not_a_number: the last element is none
// varies: the last element differs from the product before
// line: the first line of each result is the second one
// unwritten: the last column is not written
// cut: every 16th product of a sum is left out
// stuck_bit: the lowest bit of every stored operand reads as 0
// unscaled: the scales are not applied
// ocp: FNUZ operands are read as OCP
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "probes/amd/hipblaslt_api.h"
#include "probes/cuda/quantise.h"
#include "tests/fakes/settings.h"

using namespace assay::amd::hipblaslt;  // NOLINT(google-build-using-namespace): a fake of all of it
using assay::amd::hip_api::Stream;
using assay::cuda::MiniFloat;

extern "C" void fake_hip_enqueue(Stream stream, void (*work)(void*), void* data);

namespace {

struct Matrix {
  Type type;
  std::size_t rows, columns;
};
struct Product {
  Compute compute;
  Type factor;
  std::int32_t transposed_a = kNormal, transposed_b = kNormal;
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
};
struct Call {
  Product product;
  Matrix a, b, d;
  const void *from_a, *from_b;
  void* to;
};

bool is_faulty(const char* kind) {
  static const std::string kFault = [] {
    std::istringstream words(assay::fakes::told("ASSAY_FAKE_AMDHIP", reinterpret_cast<const void*>(&is_faulty)));
    std::string fault;
    for (std::string word; words >> word;)
      if (word.starts_with("fault=")) fault = word.substr(word.find('=') + 1);
    return fault;
  }();
  return kFault == kind;
}

template <class Stored>
Stored stored(const void* from, std::size_t index) {
  Stored value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + index * sizeof(Stored), sizeof value);
  if constexpr (std::is_integral_v<Stored>)
    if (static const bool kStuck = is_faulty("stuck_bit"); kStuck) value = static_cast<Stored>(value & ~Stored{1});
  return value;
}

double element(const void* from, Type type, std::size_t index) {
  using namespace assay::cuda;  // NOLINT(google-build-using-namespace): of the formats
  const auto mini = [&](MiniFloat format, std::uint32_t code) { return static_cast<double>(decode(format, code)); };
  static const bool ocp = is_faulty("ocp");
  switch (type) {
    case Type::fp64:
      return stored<double>(from, index);
    case Type::fp32:
      return stored<float>(from, index);
    case Type::fp16:
      return mini(kFp16, stored<std::uint16_t>(from, index));
    case Type::bf16:
      return mini(kBf16, stored<std::uint16_t>(from, index));
    case Type::int8:
      return stored<std::int8_t>(from, index);
    case Type::int32:
      return stored<std::int32_t>(from, index);
    case Type::e4m3:
      return mini(kE4m3, stored<std::uint8_t>(from, index));
    case Type::e5m2:
      return mini(kE5m2, stored<std::uint8_t>(from, index));
    case Type::e4m3_fnuz:
      return mini(ocp ? kE4m3 : kE4m3Fnuz, stored<std::uint8_t>(from, index));
    case Type::e5m2_fnuz:
      return mini(ocp ? kE5m2 : kE5m2Fnuz, stored<std::uint8_t>(from, index));
  }
  return 0;
}

template <class Stored>
void put(void* to, std::size_t index, Stored value) {
  std::memcpy(static_cast<std::byte*>(to) + index * sizeof value, &value, sizeof value);
}

void store(void* to, Type type, std::size_t index, long double value) {
  using namespace assay::cuda;  // NOLINT(google-build-using-namespace): of the formats
  const auto single = static_cast<float>(value);
  const auto code = [&](MiniFloat format, std::uint16_t none) {
    return std::isfinite(single) ? static_cast<std::uint16_t>(encode(format, single)) : none;
  };
  switch (type) {
    case Type::fp64:
      return put(to, index, static_cast<double>(value));
    case Type::fp32:
      return put(to, index, single);
    case Type::int32:
      return put(to, index, static_cast<std::int32_t>(value));
    case Type::fp16:
      return put(to, index, code(kFp16, 0x7e00));
    default:
      return put(to, index, code(kBf16, 0x7fc0));
  }
}

void multiply(const Call& call) {
  static int products = 0;
  ++products;
  const std::size_t k = call.a.rows, m = call.d.rows, n = call.d.columns;
  std::vector<double> a(k * m), b(k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = element(call.from_a, call.a.type, i);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = element(call.from_b, call.b.type, i);
  long double scale = 1;
  if (call.product.a_scale != nullptr && !is_faulty("unscaled")) scale = *call.product.a_scale * *call.product.b_scale;
  const bool cut = is_faulty("cut"), line = is_faulty("line");
  const std::size_t columns = is_faulty("unwritten") ? n - 1 : n;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t row = 0; row < m; ++row) {
      const double* const left = a.data() + (line && row == 0 ? 1 : row) * k;
      double sum = 0;  // exact for the formats of few bits, which are nearly all
      for (std::size_t t = 0; t < k; ++t) sum += cut && t % 16 == 15 ? 0 : left[t] * b[column * k + t];
      long double result = scale * sum;
      if (row == m - 1 && column == n - 1) {
        if (is_faulty("wrong")) result *= 1.25L;
        if (is_faulty("not_a_number")) result = std::numeric_limits<long double>::quiet_NaN();
        if (is_faulty("varies")) result += products % 1024;
      }
      store(call.to, call.d.type, column * m + row, result);
    }
  }
}

}  // namespace

extern "C" {

Status hipblasLtGetVersion(Handle handle, int* version) {
  *version = 100'401;
  return handle == nullptr ? 1 : kSuccess;
}
Status hipblasLtCreate(Handle* handle) {
  *handle = new int(0);
  return kSuccess;
}
Status hipblasLtDestroy(Handle handle) {
  delete static_cast<int*>(handle);
  return kSuccess;
}
Status hipblasLtMatmulDescCreate(Description* to, Compute compute, Type factor) {
  *to = new Product{.compute = compute, .factor = factor};
  return kSuccess;
}
Status hipblasLtMatmulDescDestroy(Description product) {
  delete static_cast<Product*>(product);
  return kSuccess;
}
Status hipblasLtMatmulDescSetAttribute(Description description, int attribute, const void* value, std::size_t size) {
  auto& product = *static_cast<Product*>(description);
  const auto take = [&](auto& to) {
    if (size != sizeof to) return kInvalidValue;
    std::memcpy(static_cast<void*>(&to), value, size);
    return kSuccess;
  };
  return attribute == kTransA   ? take(product.transposed_a)
         : attribute == kTransB ? take(product.transposed_b)
         : attribute == kScaleA ? take(product.a_scale)
         : attribute == kScaleB ? take(product.b_scale)
                                : kInvalidValue;
}
Status hipblasLtMatrixLayoutCreate(Layout* to, Type type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
  if (ld != static_cast<std::int64_t>(rows)) return kInvalidValue;
  *to = new Matrix{.type = type, .rows = rows, .columns = columns};
  return kSuccess;
}
Status hipblasLtMatrixLayoutDestroy(Layout layout) {
  delete static_cast<Matrix*>(layout);
  return kSuccess;
}
Status hipblasLtMatmulPreferenceCreate(Preference* to) {
  *to = new std::uint64_t(0);
  return kSuccess;
}
Status hipblasLtMatmulPreferenceDestroy(Preference preference) {
  delete static_cast<std::uint64_t*>(preference);
  return kSuccess;
}
Status hipblasLtMatmulPreferenceSetAttribute(Preference preference, int attribute, const void* value,
                                             std::size_t size) {
  if (attribute != kMostWorkspace || size != sizeof(std::uint64_t)) return kInvalidValue;
  std::memcpy(preference, value, size);
  return kSuccess;
}
Status hipblasLtMatmulAlgoGetHeuristic(Handle, Description description, Layout, Layout, Layout, Layout,
                                       Preference preference, int most, Proposal* to, int* returned) {
  const auto& product = *static_cast<const Product*>(description);
  *returned = 0;
  if (is_faulty("none_for_type")) return kNotSupported;
  if (product.transposed_a != kTransposed || product.transposed_b != kNormal) return kInvalidValue;
  for (const std::int32_t number : {7, 8}) {
    if (*returned == most) break;
    Proposal& proposal = to[(*returned)++];
    proposal = {};
    std::memcpy(proposal.algorithm.data, &number, sizeof number);
    proposal.workspace = number == 8 ? *static_cast<const std::uint64_t*>(preference) : 0;
  }
  return kSuccess;
}
Status hipblasLtMatmul(Handle, Description description, const void* alpha, const void* a, Layout a_layout,
                       const void* b, Layout b_layout, const void* beta, const void*, Layout, void* d, Layout d_layout,
                       const Algorithm* algorithm, void*, std::size_t, Stream stream) {
  const auto& product = *static_cast<const Product*>(description);
  if (element(alpha, product.factor, 0) != 1 || element(beta, product.factor, 0) != 0) return kInvalidValue;
  if (is_faulty("all_refuse") || (is_faulty("refuses") && algorithm->data[0] == 7)) return kNotSupported;
  const Call call{.product = product,
                  .a = *static_cast<const Matrix*>(a_layout),
                  .b = *static_cast<const Matrix*>(b_layout),
                  .d = *static_cast<const Matrix*>(d_layout),
                  .from_a = a,
                  .from_b = b,
                  .to = d};
  fake_hip_enqueue(  // kept for graphs, which do it again
      stream, [](void* data) { multiply(*static_cast<const Call*>(data)); }, new Call(call));
  return kSuccess;
}

}  // extern "C"
