// fake_cudnn: cuDNN's backend API on the host: a plan runs the operations of its graph one after the other, on memory
// of this process. FAKE_CUDNN_VERSION is its version; FAKE_CUDNN one of no_plan, fails (when it runs), wrong (one
// number).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "workloads/train/engine/step_values.h"
#include "workloads/train_gpu/cudnn.h"

namespace {

using namespace assay::train_gpu::cudnn;
using assay::train::Bf16;

constexpr std::int64_t kWorkspace = 512;
constexpr int kNotSupported = 3000, kNotFinalized = 2004, kFailed = 5000;
std::string last_words;

bool asked_for(const char* fault) {
  const char* const asked = std::getenv("FAKE_CUDNN");
  return asked != nullptr && std::string(asked) == fault;
}

struct Object {
  Kind kind;
  std::map<Attribute, std::vector<std::byte>> attributes = {};
  bool finalized = false;

  template <class Value>
  [[nodiscard]] std::vector<Value> all(Attribute name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<Value> values(found->second.size() / sizeof(Value));
    if (!values.empty()) std::memcpy(values.data(), found->second.data(), values.size() * sizeof(Value));
    return values;
  }
  template <class Value>
  [[nodiscard]] Value one(Attribute name, Value otherwise = {}) const {
    const auto values = all<Value>(name);
    return values.empty() ? otherwise : values.front();
  }
  [[nodiscard]] const Object* object(Attribute name) const { return one<Object*>(name); }
};

std::size_t size_of(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::character:
      return 1;
    case Type::handle:
    case Type::pointer:
    case Type::descriptor:
    case Type::int64:
      return 8;
    default:
      return 4;
  }
}

using Place = std::array<std::int64_t, 4>;

/// The tensors of one run.
class Run {
 public:
  explicit Run(const Object& pointers) {
    const auto ids = pointers.all<std::int64_t>(Attribute::pointers_ids);
    const auto data = pointers.all<std::byte*>(Attribute::pointers_data);
    for (std::size_t i = 0; i < ids.size(); ++i) memory_[ids[i]] = data.at(i);
  }

  void operation(const Object& op) {
    if (op.kind == Kind::product_operation) return product(op);
    if (op.kind == Kind::pointwise_operation) return pointwise(op);
    if (op.kind == Kind::reduction_operation) return reduction(op);
    view(op);
  }

 private:
  static Place sizes(const Object& tensor) {
    Place sizes = {};
    std::ranges::copy(tensor.all<std::int64_t>(Attribute::tensor_sizes), sizes.begin());
    return sizes;
  }
  template <class Work>
  static void for_places(const Place& sizes, const Work& work) {
    Place at = {};
    for (at[0] = 0; at[0] < sizes[0]; ++at[0])
      for (at[1] = 0; at[1] < sizes[1]; ++at[1])
        for (at[2] = 0; at[2] < sizes[2]; ++at[2])
          for (at[3] = 0; at[3] < sizes[3]; ++at[3]) work(at);
  }
  /// Where a tensor has the number at `at` of another of `of` sizes: it is repeated where it is smaller.
  static std::size_t offset(const Object& tensor, const Place& at, const Place& of) {
    const auto own = sizes(tensor);
    const auto strides = tensor.all<std::int64_t>(Attribute::tensor_strides);
    std::int64_t place = 0;
    for (std::size_t i = 0; i < 4; ++i) place += at[i] / (of[i] / own[i]) * strides.at(i);
    return static_cast<std::size_t>(place);
  }
  std::byte* memory(const Object& tensor) { return memory_.at(tensor.one<std::int64_t>(Attribute::tensor_id)); }
  std::vector<float>& between(const Object& tensor) {
    auto& values = between_[tensor.one<std::int64_t>(Attribute::tensor_id)];
    if (values.empty()) {
      const auto size = sizes(tensor);
      values.resize(static_cast<std::size_t>(size[0] * size[1] * size[2] * size[3]));
    }
    return values;
  }
  float read(const Object& tensor, const Place& at, const Place& of) {
    const std::size_t place = offset(tensor, at, of);
    if (tensor.one<char>(Attribute::tensor_virtual) != 0) return between(tensor).at(place);
    if (tensor.one<Element>(Attribute::tensor_element) == Element::fp32)
      return reinterpret_cast<const float*>(memory(tensor))[place];
    return assay::train::widened(reinterpret_cast<const Bf16*>(memory(tensor))[place]);
  }
  void write(const Object& tensor, const Place& at, float value) {
    const std::size_t place = offset(tensor, at, sizes(tensor));
    const bool narrow = tensor.one<Element>(Attribute::tensor_element) == Element::bf16;
    const Bf16 rounded = assay::train::narrowed<Bf16>(value);
    if (tensor.one<char>(Attribute::tensor_virtual) != 0)
      between(tensor).at(place) = narrow ? assay::train::widened(rounded) : value;
    else if (narrow)
      reinterpret_cast<Bf16*>(memory(tensor))[place] = rounded;
    else
      reinterpret_cast<float*>(memory(tensor))[place] = value;
  }

  void product(const Object& op) {
    const Object &a = *op.object(Attribute::product_a), &b = *op.object(Attribute::product_b),
                 &c = *op.object(Attribute::product_c);
    const Place to = sizes(c);
    const std::int64_t inner = sizes(a)[3];
    const Place left = {to[0], to[1], to[2], inner}, right = {to[0], to[1], inner, to[3]};
    for_places(to, [&](const Place& at) {
      float sum = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        sum += read(a, {at[0], at[1], at[2], k}, left) * read(b, {at[0], at[1], k, at[3]}, right);
      write(c, at, sum);
    });
  }
  void pointwise(const Object& op) {
    const Object& how = *op.object(Attribute::pointwise_description);
    const Object &x = *op.object(Attribute::pointwise_x), &y = *op.object(Attribute::pointwise_y);
    const Object *const b = op.object(Attribute::pointwise_b), *const t = op.object(Attribute::pointwise_t);
    const auto mode = how.one<Pointwise>(Attribute::pointwise_mode);
    const auto axis = static_cast<std::size_t>(how.one<std::int64_t>(Attribute::pointwise_axis));
    const Place to = sizes(y);
    for_places(to, [&](const Place& at) {
      if (mode == Pointwise::index) return write(y, at, static_cast<float>(at.at(axis)));
      const float one = read(x, at, to), other = b == nullptr ? 0 : read(*b, at, to);
      if (mode == Pointwise::select) return write(y, at, read(*t, at, to) != 0 ? one : other);
      write(y, at, calculated(mode, one, other));
    });
  }
  static float calculated(Pointwise mode, float x, float b) {
    switch (mode) {
      case Pointwise::add:
        return x + b;
      case Pointwise::multiply:
        return x * b;
      case Pointwise::divide:
        return x / b;
      case Pointwise::subtract:
        return x - b;
      case Pointwise::exp:
        return std::exp(x);
      case Pointwise::log:
        return std::log(x);
      case Pointwise::at_least:
        return x >= b ? 1.0F : 0.0F;
      default:
        return x;
    }
  }
  void reduction(const Object& op) {
    const Object &x = *op.object(Attribute::reduction_x), &y = *op.object(Attribute::reduction_y);
    const bool most =
        op.object(Attribute::reduction_description)->one<Reduction>(Attribute::reduction_operator) == Reduction::max;
    const Place from = sizes(x), to = sizes(y);
    std::map<Place, float> sums;
    for_places(from, [&](const Place& at) {
      const Place place = {at[0] / (from[0] / to[0]), at[1] / (from[1] / to[1]), at[2] / (from[2] / to[2]),
                           at[3] / (from[3] / to[3])};
      const float one = read(x, at, from);
      const auto [found, added] = sums.emplace(place, one);
      if (!added) found->second = most ? std::max(found->second, one) : found->second + one;
    });
    for (const auto& [place, sum] : sums) write(y, place, sum);
  }
  void view(const Object& op) {
    const Object &x = *op.object(Attribute::view_x), &y = *op.object(Attribute::view_y);
    const Place to = sizes(y);
    for_places(to, [&](const Place& at) { write(y, at, read(x, {at[0], at[1], at[3], at[2]}, sizes(x))); });
  }

  std::map<std::int64_t, std::byte*> memory_;
  std::map<std::int64_t, std::vector<float>> between_;
};

const Object& graph_of(const Object& plan) {
  return *plan.object(Attribute::plan_choice)->object(Attribute::heuristic_graph);
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() {
  const char* const version = std::getenv("FAKE_CUDNN_VERSION");
  return version == nullptr ? 91900 : std::stoul(version);
}
const char* cudnnGetErrorString(int status) {
  return status == kNotSupported   ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == kNotFinalized ? "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"
                                   : "CUDNN_STATUS_EXECUTION_FAILED";
}
void cudnnGetLastErrorString(char* to, std::size_t size) { std::snprintf(to, size, "%s", last_words.c_str()); }
int cudnnCreate(void** handle) {
  static int only = 0;
  *handle = &only;
  return 0;
}
int cudnnDestroy(void* /*handle*/) { return 0; }
int cudnnSetStream(void* /*handle*/, void* /*stream*/) { return 0; }

int cudnnBackendCreateDescriptor(Kind kind, void** to) {
  *to = new Object{.kind = kind};
  return 0;
}
int cudnnBackendDestroyDescriptor(void* object) {
  delete static_cast<Object*>(object);
  return 0;
}
int cudnnBackendSetAttribute(void* object, Attribute name, Type type, std::int64_t count, const void* values) {
  const auto* const bytes = static_cast<const std::byte*>(values);
  const std::size_t size = size_of(type) * static_cast<std::size_t>(count);
  static_cast<Object*>(object)->attributes[name].assign(bytes, bytes + size);
  return 0;
}
int cudnnBackendFinalize(void* object) {
  auto& own = *static_cast<Object*>(object);
  own.finalized = true;
  for (void* const op : own.all<void*>(Attribute::graph_operations)) {
    if (static_cast<Object*>(op)->finalized) continue;
    last_words = "an operation of the graph is not finalized";
    return kNotFinalized;
  }
  if (own.kind != Kind::plan || !asked_for("no_plan")) return 0;
  last_words = "no engine takes this shape";
  return kNotSupported;
}
int cudnnBackendGetAttribute(void* object, Attribute name, Type /*type*/, std::int64_t room, std::int64_t* count,
                             void* to) {
  const auto& own = *static_cast<Object*>(object);
  *count = 1;
  if (name == Attribute::engine_note) *count = 0;
  if (name == Attribute::engine_index) *static_cast<std::int64_t*>(to) = 3;
  if (name == Attribute::plan_workspace) *static_cast<std::int64_t*>(to) = kWorkspace;
  if (name == Attribute::heuristic_results && room > 0)
    (*static_cast<Object**>(to))->attributes[Attribute::heuristic_graph] =
        own.attributes.at(Attribute::heuristic_graph);
  return 0;
}
int cudnnBackendExecute(void* /*handle*/, void* plan, void* pointers) {
  if (asked_for("fails")) {
    last_words = "the kernel was not launched";
    return kFailed;
  }
  const auto& given = *static_cast<Object*>(pointers);
  std::memset(given.one<std::byte*>(Attribute::pointers_workspace), 0xFF, kWorkspace);  // it may be written
  Run run(given);
  for (void* const op : graph_of(*static_cast<Object*>(plan)).all<void*>(Attribute::graph_operations))
    run.operation(*static_cast<Object*>(op));
  if (!asked_for("wrong")) return 0;
  const auto ids = given.all<std::int64_t>(Attribute::pointers_ids);
  const auto data = given.all<std::byte*>(Attribute::pointers_data);
  constexpr std::int64_t kResult = 4;  // the attended rows
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kResult) reinterpret_cast<Bf16*>(data[i])[5] = assay::train::narrowed<Bf16>(100);
  }
  return 0;
}
}
