// fake_cudnn: cuDNN's backend API on the host: a plan runs the operations of its graph one after the other, on memory
// of this process. FAKE_CUDNN_VERSION is its version; FAKE_CUDNN one of no_plan, fails (when it runs), wrong-ID (a
// number of that tensor), drifts-ID (another one in every run).
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
    constexpr std::size_t size = sizeof(Value);  // NOLINT(bugprone-sizeof-expression): it may be of an address
    std::vector<Value> values(found->second.size() / size);
    if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), found->second.data(), values.size() * size);
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

/// One tensor of a run.
struct Tensor {
  Place sizes = {}, strides = {};
  Element element = Element::fp32;
  std::vector<float> between = {};  ///< of one that is never kept
  std::byte* memory = nullptr;      ///< of another

  /// The place of the number at `at` of another of `of` sizes: a smaller one is repeated.
  [[nodiscard]] std::size_t offset(const Place& at, const Place& of) const {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) place += at[i] / (of[i] / sizes[i]) * strides[i];
    return static_cast<std::size_t>(place);
  }
  [[nodiscard]] float read(const Place& at, const Place& of) const {
    const std::size_t place = offset(at, of);
    if (memory == nullptr) return between.at(place);
    if (element == Element::fp32) return reinterpret_cast<const float*>(memory)[place];
    return assay::train::widened(reinterpret_cast<const Bf16*>(memory)[place]);
  }
  void write(const Place& at, float value) {
    const std::size_t place = offset(at, sizes);
    const Bf16 rounded = assay::train::narrowed<Bf16>(value);
    if (memory == nullptr)
      between.at(place) = element == Element::bf16 ? assay::train::widened(rounded) : value;
    else if (element == Element::bf16)
      reinterpret_cast<Bf16*>(memory)[place] = rounded;
    else
      reinterpret_cast<float*>(memory)[place] = value;
  }
};

template <class Work>
void for_places(const Place& sizes, const Work& work) {
  Place at = {};
  for (at[0] = 0; at[0] < sizes[0]; ++at[0]) {
    for (at[1] = 0; at[1] < sizes[1]; ++at[1]) {
      for (at[2] = 0; at[2] < sizes[2]; ++at[2]) {
        for (at[3] = 0; at[3] < sizes[3]; ++at[3]) work(at);
      }
    }
  }
}

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
  Tensor& tensor(const Object& op, Attribute name) {
    const Object& described = *op.object(name);
    const auto id = described.one<std::int64_t>(Attribute::tensor_id);
    const auto [found, added] = tensors_.try_emplace(id);
    Tensor& one = found->second;
    if (!added) return one;
    std::ranges::copy(described.all<std::int64_t>(Attribute::tensor_sizes), one.sizes.begin());
    std::ranges::copy(described.all<std::int64_t>(Attribute::tensor_strides), one.strides.begin());
    one.element = described.one<Element>(Attribute::tensor_element);
    if (described.one<char>(Attribute::tensor_virtual) == 0) {
      one.memory = memory_.at(id);
      return one;
    }
    std::int64_t extent = 1;
    for (std::size_t i = 0; i < one.sizes.size(); ++i) extent += (one.sizes[i] - 1) * one.strides[i];
    one.between.resize(static_cast<std::size_t>(extent));
    return one;
  }

  void product(const Object& op) {
    const Tensor &a = tensor(op, Attribute::product_a), &b = tensor(op, Attribute::product_b);
    Tensor& c = tensor(op, Attribute::product_c);
    const std::int64_t inner = a.sizes[3];
    const Place left = {c.sizes[0], c.sizes[1], c.sizes[2], inner}, right = {c.sizes[0], c.sizes[1], inner, c.sizes[3]};
    for_places(c.sizes, [&](const Place& at) {
      float sum = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        sum += a.read({at[0], at[1], at[2], k}, left) * b.read({at[0], at[1], k, at[3]}, right);
      c.write(at, sum);
    });
  }
  void pointwise(const Object& op) {
    const Object& how = *op.object(Attribute::pointwise_description);
    const Tensor& x = tensor(op, Attribute::pointwise_x);
    Tensor& y = tensor(op, Attribute::pointwise_y);
    const auto other = [&](Attribute name) { return op.object(name) == nullptr ? nullptr : &tensor(op, name); };
    const Tensor *const b = other(Attribute::pointwise_b), *const t = other(Attribute::pointwise_t);
    const auto mode = how.one<Pointwise>(Attribute::pointwise_mode);
    const auto axis = static_cast<std::size_t>(how.one<std::int64_t>(Attribute::pointwise_axis));
    for_places(y.sizes, [&](const Place& at) {
      if (mode == Pointwise::index) return y.write(at, static_cast<float>(at.at(axis)));
      const float one = x.read(at, y.sizes), second = b == nullptr ? 0 : b->read(at, y.sizes);
      if (mode == Pointwise::select) return y.write(at, t->read(at, y.sizes) != 0 ? one : second);
      y.write(at, calculated(mode, one, second));
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
    const Tensor& x = tensor(op, Attribute::reduction_x);
    Tensor& y = tensor(op, Attribute::reduction_y);
    const bool most =
        op.object(Attribute::reduction_description)->one<Reduction>(Attribute::reduction_operator) == Reduction::max;
    std::map<Place, float> sums;
    for_places(x.sizes, [&](const Place& at) {
      Place place = {};
      for (std::size_t i = 0; i < at.size(); ++i) place[i] = at[i] / (x.sizes[i] / y.sizes[i]);
      const float one = x.read(at, x.sizes);
      const auto [found, added] = sums.emplace(place, one);
      if (!added) found->second = most ? std::max(found->second, one) : found->second + one;
    });
    for (const auto& [place, sum] : sums) y.write(place, sum);
  }
  void view(const Object& op) {
    const Tensor& x = tensor(op, Attribute::view_x);
    Tensor& y = tensor(op, Attribute::view_y);
    for_places(y.sizes, [&](const Place& at) { y.write(at, x.read({at[0], at[1], at[3], at[2]}, x.sizes)); });
  }

  std::map<std::int64_t, std::byte*> memory_;
  std::map<std::int64_t, Tensor> tensors_;
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
void cudnnGetLastErrorString(char* to, std::size_t size) { (void)std::snprintf(to, size, "%s", last_words.c_str()); }
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
  const auto ids = given.all<std::int64_t>(Attribute::pointers_ids);
  const auto data = given.all<std::byte*>(Attribute::pointers_data);
  static int runs = 0;
  ++runs;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    constexpr std::size_t kPlace = 5;
    auto* const numbers = reinterpret_cast<Bf16*>(data[i]);
    if (asked_for(("wrong-" + std::to_string(ids[i])).c_str())) numbers[kPlace] = assay::train::narrowed<Bf16>(100);
    if (asked_for(("drifts-" + std::to_string(ids[i])).c_str()))
      numbers[kPlace].bits ^= static_cast<std::uint16_t>(runs / 2 % 2);
  }
  return 0;
}
}
