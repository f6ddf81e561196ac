// cudnn: every object is created, given its attributes and finalized; a plan is the first engine that the heuristics
// name and that finalizes.
#include "workloads/train_gpu/cudnn.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"

namespace assay::train_gpu::cudnn {
namespace {

// Attention of 9.10.0 and 9.10.1 has known faults, and older ones take another number for masked scores
// (github.com/NVIDIA/cudnn-frontend 1.23.0, scaled_dot_product_flash_attention.h, attn_score_modifiers.h; 2026-05-08).
constexpr std::size_t kOldest = 91002;
constexpr std::int64_t kAlignment = 16;  // B, of every tensor, as the products' matrices
constexpr std::int64_t kMostEngines = 64;

template <class Value>
Value read(const Functions& call, void* from, Attribute name, Type type) {
  Value value = {};
  std::int64_t count = 0;
  call.demand(call.get(from, name, type, 1, &count, &value), "reading an attribute");
  return value;
}

/// "9.19.0" of CUDNN_VERSION, as cudnn_version_v9.h makes it.
std::string text_of(std::size_t code) { return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100); }

/// Whether `engine` has no note that sums have no order.
bool is_ordered(const Functions& call, void* engine) {
  std::array<int, kNotes> notes = {};
  std::int64_t count = 0;
  call.demand(call.get(engine, Attribute::engine_note, Type::numerical_note, kNotes, &count, notes.data()),
              "reading an engine's notes");
  const auto end = notes.begin() + std::clamp<std::int64_t>(count, 0, kNotes);
  return std::find(notes.begin(), end, kNotDeterministic) == end;
}

}  // namespace

Functions Functions::open() {
  const Library library = Library::open("libcudnn.so.9", "cuDNN");
  const decltype(version_code) read = library.function("cudnnGetVersion");
  const std::size_t code = read();
  if (code < kOldest) throw Skip(fmt::format("cuDNN {} at {} is older than 9.10.2", text_of(code), library.path()));
  return {.library = library};
}

std::string Functions::version() const { return text_of(version_code()); }

std::string Functions::words(int status) const {
  std::array<char, 1024> last = {};
  last_words(last.data(), last.size() - 1);
  return fmt::format("{}{}{}", status_words(status), last[0] == '\0' ? "" : ": ", last.data());
}

void Functions::demand(int status, std::string_view what) const {
  if (status != 0) throw std::runtime_error(fmt::format("cuDNN {}: {}: {}", version(), what, words(status)));
}

Descriptor::Descriptor(const Functions& call, Kind kind) : call_(&call), own_(nullptr, call.destroy) {
  void* made = nullptr;
  call.demand(call.create(kind, &made), fmt::format("creating a descriptor of kind {}", static_cast<int>(kind)));
  own_.reset(made);
}

void Descriptor::set(Attribute name, Type type, std::int64_t count, const void* values) const {
  call_->demand(call_->set(get(), name, type, count, values),
                fmt::format("setting attribute {}", static_cast<int>(name)));
}

void Descriptor::finalize() const { call_->demand(call_->finalize(get()), "finalizing a descriptor"); }

const Descriptor& OperationGraph::made(Kind kind) {
  return *all_.emplace_back(std::make_unique<Descriptor>(call_, kind));
}

OperationGraph::Tensor OperationGraph::tensor(std::int64_t id, Element element, const Shape& shape, bool is_virtual,
                                              bool by_value) {
  const Descriptor& one = made(Kind::tensor);
  one.set(Attribute::tensor_element, Type::element, element);
  one.set(Attribute::tensor_sizes, Type::int64, std::ssize(shape.sizes), shape.sizes.data());
  one.set(Attribute::tensor_strides, Type::int64, std::ssize(shape.strides), shape.strides.data());
  one.set(Attribute::tensor_id, Type::int64, id);
  one.set(Attribute::tensor_alignment, Type::int64, kAlignment);
  if (is_virtual) one.set(Attribute::tensor_virtual, Type::boolean, is_virtual);
  if (by_value) one.set(Attribute::tensor_by_value, Type::boolean, by_value);
  one.finalize();
  return &one;
}

OperationGraph::Tensor OperationGraph::number(std::int64_t id) {
  return tensor(id, Element::fp32, {.sizes = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}}, false, true);
}

void OperationGraph::product(Tensor a, Tensor b, Tensor to) {
  const Descriptor &how = made(Kind::product), &one = made(Kind::product_operation);
  how.set(Attribute::product_precision, Type::element, Element::fp32);
  how.finalize();
  one.set(Attribute::product_a, *a);
  one.set(Attribute::product_b, *b);
  one.set(Attribute::product_c, *to);
  one.set(Attribute::product_description, how);
  one.finalize();
  operations_.push_back(one.get());
}

void OperationGraph::each(Pointwise mode, Tensor x, Tensor to, const Inputs& more) {
  const Descriptor &how = made(Kind::pointwise), &one = made(Kind::pointwise_operation);
  how.set(Attribute::pointwise_mode, Type::pointwise, mode);
  how.set(Attribute::pointwise_precision, Type::element, more.precision);
  if (more.axis >= 0) how.set(Attribute::pointwise_axis, Type::int64, more.axis);
  how.finalize();
  one.set(Attribute::pointwise_description, how);
  one.set(Attribute::pointwise_x, *x);
  one.set(Attribute::pointwise_y, *to);
  if (more.b != nullptr) one.set(Attribute::pointwise_b, *more.b);
  if (more.t != nullptr) one.set(Attribute::pointwise_t, *more.t);
  one.finalize();
  operations_.push_back(one.get());
}

void OperationGraph::reduce(Reduction mode, Tensor x, Tensor to) {
  const Descriptor &how = made(Kind::reduction), &one = made(Kind::reduction_operation);
  how.set(Attribute::reduction_precision, Type::element, Element::fp32);
  how.set(Attribute::reduction_operator, Type::reduction, mode);
  how.finalize();
  one.set(Attribute::reduction_description, how);
  one.set(Attribute::reduction_x, *x);
  one.set(Attribute::reduction_y, *to);
  one.finalize();
  operations_.push_back(one.get());
}

void OperationGraph::view(Tensor x, Tensor to) {
  const Descriptor& one = made(Kind::view_operation);
  one.set(Attribute::view_x, *x);
  one.set(Attribute::view_y, *to);
  one.finalize();
  operations_.push_back(one.get());
}

std::vector<std::unique_ptr<Descriptor>> OperationGraph::choices(const Target& target, const Descriptor& graph,
                                                                 const Heuristic& how,
                                                                 std::vector<std::string>& refused) const {
  const Descriptor heuristics(call_, Kind::heuristics);
  heuristics.set(Attribute::heuristic_graph, graph);
  heuristics.set(Attribute::heuristic_mode, Type::heuristic, how.mode);
  if (target.described != nullptr) heuristics.set(Attribute::heuristic_device, *target.described);
  std::vector<std::unique_ptr<Descriptor>> found;
  std::vector<void*> raw;
  std::int64_t count = 0;
  int status = call_.finalize(heuristics.get());
  if (status == 0)
    status = call_.get(heuristics.get(), Attribute::heuristic_results, Type::descriptor, 0, &count, nullptr);
  for (std::int64_t i = 0; status == 0 && i < std::min(count, kMostEngines); ++i)
    raw.push_back(found.emplace_back(std::make_unique<Descriptor>(call_, Kind::engine_choice))->get());
  if (!raw.empty())
    status = call_.get(heuristics.get(), Attribute::heuristic_results, Type::descriptor, std::ssize(raw), &count,
                       static_cast<void*>(raw.data()));
  if (status != 0) refused.push_back(fmt::format("heuristics {}: {}", how.name, call_.words(status)));
  const std::int64_t known = status == 0 ? std::min(count, std::ssize(found)) : 0;
  if (status == 0 && known == 0) refused.push_back(fmt::format("heuristics {} name no engine", how.name));
  found.resize(static_cast<std::size_t>(known));
  return found;
}

Plan OperationGraph::plan(const Target& target) {
  auto graph = std::make_unique<Descriptor>(call_, Kind::graph);
  graph->set(Attribute::graph_operations, Type::descriptor, std::ssize(operations_),
             static_cast<void*>(operations_.data()));
  if (target.handle != nullptr) graph->set(Attribute::graph_handle, Type::handle, target.handle);
  graph->finalize();
  std::vector<std::string> refused;
  for (const Heuristic& how : kHeuristics) {
    for (auto& choice : choices(target, *graph, how, refused)) {
      auto engine = std::make_unique<Descriptor>(call_, Kind::engine);
      void* into = engine->get();
      std::int64_t count = 0;
      call_.demand(
          call_.get(choice->get(), Attribute::choice_engine, Type::descriptor, 1, &count, static_cast<void*>(&into)),
          "reading an engine");
      Plan made{.parts = {},
                .run = Descriptor(call_, Kind::plan),
                .engine = read<std::int64_t>(call_, into, Attribute::engine_index, Type::int64),
                .ordered = is_ordered(call_, into)};
      if (target.handle != nullptr) made.run.set(Attribute::plan_handle, Type::handle, target.handle);
      if (target.described != nullptr) made.run.set(Attribute::plan_device, *target.described);
      made.run.set(Attribute::plan_choice, *choice);
      if (const int built = call_.finalize(made.run.get()); built != 0) {
        refused.push_back(fmt::format("engine {}: {}", made.engine, call_.words(built)));
        continue;
      }
      made.workspace = read<std::int64_t>(call_, made.run.get(), Attribute::plan_workspace, Type::int64);
      made.parts = std::move(all_);
      for (auto* part : {&graph, &choice, &engine}) made.parts.push_back(std::move(*part));
      return made;
    }
  }
  throw Unsupported(fmt::format("cuDNN {} has no plan: {}", call_.version(), fmt::join(refused, "; ")));
}

void run(const Functions& call, void* handle, const Plan& plan, const std::vector<Pointer>& pointers, void* workspace) {
  std::vector<std::int64_t> ids;
  std::vector<const void*> data;
  for (const Pointer& one : pointers) {
    ids.push_back(one.id);
    data.push_back(one.data);
  }
  const Descriptor all(call, Kind::pointers);
  all.set(Attribute::pointers_workspace, Type::pointer, workspace);
  all.set(Attribute::pointers_data, Type::pointer, std::ssize(data), static_cast<const void*>(data.data()));
  all.set(Attribute::pointers_ids, Type::int64, std::ssize(ids), ids.data());
  all.finalize();
  call.demand(call.execute(handle, plan.run.get(), all.get()), "running a plan");
}

}  // namespace assay::train_gpu::cudnn
