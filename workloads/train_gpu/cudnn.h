// cudnn: the part of cuDNN's backend API that fused attention needs, opened at run time: graphs of operations, and
// plans that run them. The declarations are ours, so that no build needs cuDNN's headers: values are those of
// cudnn_graph_v9.h of cuDNN 9.19.0, which a unit test compares.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/library.h"

struct CUstream_st;  // the target of cudaStream_t

namespace assay::train_gpu::cudnn {

/// cudnnDataType_t.
enum class Element : int { fp32 = 0, int32 = 4, bf16 = 9, boolean = 11 };
/// cudnnPointwiseMode_t.
enum class Pointwise : int {
  add = 0,
  multiply = 1,
  divide = 6,
  subtract = 9,
  exp = 13,
  log = 15,
  identity = 21,
  at_least = 303,
  index = 501,
  select = 601
};
/// cudnnReduceTensorOp_t.
enum class Reduction : int { add = 0, max = 3 };
/// cudnnBackendDescriptorType_t.
enum class Kind : int {
  pointwise = 0,
  engine = 2,
  engine_choice = 3,
  heuristics = 4,
  plan = 5,
  pointwise_operation = 13,
  graph = 15,
  pointers = 16,
  tensor = 17,
  product = 18,
  product_operation = 19,
  reduction = 21,
  reduction_operation = 22,
  view_operation = 31,
  device = 38
};
/// cudnnBackendAttributeType_t.
enum class Type : int {
  handle = 0,
  element = 1,
  boolean = 2,
  int64 = 3,
  pointer = 6,
  heuristic = 8,
  numerical_note = 11,
  pointwise = 14,
  descriptor = 15,
  reduction = 18,
  character = 24
};
/// cudnnBackendAttributeName_t.
enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_axis = 9,
  heuristic_mode = 200,
  heuristic_graph = 201,
  heuristic_results = 202,
  heuristic_device = 204,
  choice_engine = 300,
  plan_handle = 400,
  plan_choice = 401,
  plan_workspace = 402,
  plan_device = 407,
  pointwise_description = 750,
  pointwise_x = 751,
  pointwise_b = 752,
  pointwise_y = 753,
  pointwise_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_element = 901,
  tensor_sizes = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_virtual = 907,
  tensor_by_value = 908,
  pointers_ids = 1000,
  pointers_data = 1001,
  pointers_workspace = 1003,
  engine_index = 1301,
  engine_note = 1303,
  product_precision = 1500,
  product_a = 1520,
  product_b = 1521,
  product_c = 1522,
  product_description = 1523,
  reduction_operator = 1600,
  reduction_precision = 1601,
  reduction_x = 1610,
  reduction_y = 1611,
  reduction_description = 1612,
  view_x = 2200,
  view_y = 2201,
  device_words = 2702
};
/// cudnnBackendHeurMode_t, in the order in which they are asked.
struct Heuristic {
  int mode;
  const char* name;
};
inline constexpr std::array<Heuristic, 2> kHeuristics = {{{3, "A"}, {2, "FALLBACK"}}};
/// cudnnBackendNumericalNote_t: sums whose order is not the same in every run; and CUDNN_NUMERICAL_NOTE_TYPE_COUNT.
inline constexpr int kNotDeterministic = 4, kNotes = 10;

/// The library has no plan for a graph; the words are those of each engine.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The functions used of the library.
struct Functions {
  /// Throws Skip when the library or one of the functions is missing, or when it is older than 9.10.2.
  static Functions open();

  Library library;
  std::size_t (*version_code)() = library.function("cudnnGetVersion");
  const char* (*status_words)(int) = library.function("cudnnGetErrorString");
  void (*last_words)(char*, std::size_t) = library.function("cudnnGetLastErrorString");
  int (*create_handle)(void**) = library.function("cudnnCreate");
  int (*destroy_handle)(void*) = library.function("cudnnDestroy");
  int (*set_stream)(void*, CUstream_st*) = library.function("cudnnSetStream");
  int (*create)(Kind, void**) = library.function("cudnnBackendCreateDescriptor");
  int (*destroy)(void*) = library.function("cudnnBackendDestroyDescriptor");
  int (*finalize)(void*) = library.function("cudnnBackendFinalize");
  int (*set)(void*, Attribute, Type, std::int64_t, const void*) = library.function("cudnnBackendSetAttribute");
  int (*get)(void*, Attribute, Type, std::int64_t, std::int64_t*, void*) = library.function("cudnnBackendGetAttribute");
  int (*execute)(void*, void*, void*) = library.function("cudnnBackendExecute");

  /// "9.19.0".
  [[nodiscard]] std::string version() const;
  /// Of a status that is no success: its name and the library's last words.
  [[nodiscard]] std::string words(int status) const;
  /// Throws std::runtime_error with `what` was done and words(status) unless it succeeded.
  void demand(int status, std::string_view what) const;
};

/// One object of the library.
class Descriptor {
 public:
  Descriptor(const Functions& call, Kind kind);
  [[nodiscard]] void* get() const { return own_.get(); }
  /// Each throws std::runtime_error with the library's words.
  template <class Value>
  void set(Attribute name, Type type, const Value& value) const {
    set(name, type, 1, static_cast<const void*>(&value));
  }
  void set(Attribute name, Type type, std::int64_t count, const void* values) const;
  void set(Attribute name, const Descriptor& value) const { set(name, Type::descriptor, value.get()); }
  void finalize() const;

 private:
  const Functions* call_;
  std::unique_ptr<void, int (*)(void*)> own_;
};

/// The device that a plan is for: the current one of `handle`, or one that words describe.
struct Target {
  void* handle = nullptr;
  const Descriptor* described = nullptr;
};

/// How a graph is run.
struct Plan {
  std::vector<std::unique_ptr<Descriptor>> parts;  ///< of the plan: no document says that they may end before it
  Descriptor run;
  std::int64_t workspace = 0;  ///< B
  std::int64_t engine = 0;     ///< the library's number of it
  bool ordered = true;         ///< the library has no note that sums have no order
};

/// Sizes and strides of a tensor, in numbers.
struct Shape {
  std::array<std::int64_t, 4> sizes, strides;
};

/// A graph of operations on tensors of four dimensions, calculated in fp32.
class OperationGraph {
 public:
  using Tensor = const Descriptor*;
  explicit OperationGraph(const Functions& call) : call_(call) {}

  /// A tensor in memory that a run names by `id`; one that is never kept; an fp32 number that a run names by `id`.
  Tensor kept(std::int64_t id, Element element, const Shape& shape) { return tensor(id, element, shape, false, false); }
  Tensor between(Element element, const Shape& shape) { return tensor(next_++, element, shape, true, false); }
  Tensor number(std::int64_t id);

  /// to = a b, of the last two dimensions.
  void product(Tensor a, Tensor b, Tensor to);
  /// Further inputs of each(), the type it is calculated in, and the dimension that an index counts.
  struct Inputs {
    Tensor b = nullptr, t = nullptr;
    Element precision = Element::fp32;
    std::int64_t axis = -1;
  };
  void each(Pointwise mode, Tensor x, Tensor to, const Inputs& more);
  void each(Pointwise mode, Tensor x, Tensor b, Tensor to) { each(mode, x, to, Inputs{.b = b}); }
  void each(Pointwise mode, Tensor x, Tensor to) { each(mode, x, to, Inputs{}); }
  /// `to` has size 1, or fewer heads, where x is summed.
  void reduce(Reduction mode, Tensor x, Tensor to);
  /// The same numbers by other strides.
  void view(Tensor x, Tensor to);

  /// The first plan of the library's heuristics that it can build; the graph is empty afterwards. Throws Unsupported.
  Plan plan(const Target& target);

 private:
  Tensor tensor(std::int64_t id, Element element, const Shape& shape, bool is_virtual, bool by_value);
  const Descriptor& made(Kind kind);
  /// Engines that the heuristics `how` name; without any, `refused` gets the reason.
  std::vector<std::unique_ptr<Descriptor>> choices(const Target& target, const Descriptor& graph, const Heuristic& how,
                                                   std::vector<std::string>& refused) const;
  static constexpr std::int64_t kFirstBetween = 1000;  // above all ids of kept tensors

  const Functions& call_;
  std::int64_t next_ = kFirstBetween;
  std::vector<std::unique_ptr<Descriptor>> all_;
  std::vector<void*> operations_;
};

/// The data of an id of a graph in one run: memory of the device, or a number of the host.
struct Pointer {
  std::int64_t id = 0;
  const void* data = nullptr;
};
/// Enqueues `plan` in the stream of `handle`. Throws std::runtime_error with the library's words.
void run(const Functions& call, void* handle, const Plan& plan, const std::vector<Pointer>& pointers, void* workspace);

}  // namespace assay::train_gpu::cudnn
