// decode_cuda: exact first, then steps and readings in turns behind a gate, a CUDA graph for each set; every step's
// logits are compared, and every weight and key afterwards.
// Products of large batches by cuBLASLt, as serving engines have them; a few sequences are faster by
// our own kernels.
#include "workloads/inference/decode_cuda.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "probes/collective/limits.h"
#include "probes/core/probe.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/device_words.h"
#include "probes/cuda/graph.h"
#include "probes/cuda/lanes.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/patience.h"
#include "probes/nvml/gpu_watch.h"
#include "workloads/inference/decode_launch.h"
#include "workloads/inference/decode_pointers.h"
#include "workloads/inference/decode_reference.h"
#include "workloads/inference/decode_room.h"
#include "workloads/inference/page_table.h"
#include "workloads/train_gpu/products.h"

namespace assay::inference {
namespace {

/// Sequences of one batch up to which our own kernels multiply.
inline constexpr std::int64_t kOwnBatch = 8;

/// The library's products on the current device.
class LibraryProducts {
 public:
  /// Opens the library where a batch of up to `most` sequences needs it. Where it is missing, our own kernels have all
  /// batches, and words() says why.
  explicit LibraryProducts(std::int64_t most);
  ~LibraryProducts();
  LibraryProducts(const LibraryProducts&) = delete;
  LibraryProducts& operator=(const LibraryProducts&) = delete;

  /// Enqueues a product of more than kOwnBatch sequences, and returns true; others, and all without the library, it
  /// leaves. Throws std::runtime_error when the library refuses.
  bool enqueue(const StepProduct& product, const cuda::Stream& stream);
  /// Who multiplies, for the record.
  [[nodiscard]] const std::string& words() const { return words_; }

 private:
  std::unique_ptr<train_gpu::Products> products_;
  std::string words_;
};

LibraryProducts::LibraryProducts(std::int64_t most) : words_("own kernels") {
  if (most <= kOwnBatch) return;
  try {
    products_ = std::make_unique<train_gpu::Products>(train::FactorType::bf16);
    words_ = fmt::format("own kernels up to {} sequences, above cuBLASLt {}", kOwnBatch, products_->version());
  } catch (const Skip& missing) {
    words_ = fmt::format("own kernels; {}", missing.what());
  }
}
LibraryProducts::~LibraryProducts() = default;

bool LibraryProducts::enqueue(const StepProduct& p, const cuda::Stream& stream) {
  if (!products_ || p.batch <= kOwnBatch) return false;
  const train_gpu::ProductShape shape{.m = p.batch,
                                      .n = p.rows,
                                      .k = p.columns,
                                      .lda = p.columns,
                                      .ldb = p.columns,
                                      .ldc = p.rows,
                                      .b_turned = true,
                                      .kept = p.add ? 1.0F : 0.0F};
  products_->settle(shape);
  products_->enqueue(shape, {.numbers = p.x}, {.numbers = p.w}, p.y, stream);
  return true;
}

constexpr int kNotANumber = 0xff;  // every byte of a float, or BF16, that is none: work that is skipped cannot pass

/// In the reader's stream: streams that wait for no other do not wait for a plain copy either.
template <class Number>
void copy_in(Number* to, const std::vector<Number>& from, const cuda::Stream& stream) {
  cuda::copy_up(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from.data()),
                Bytes{from.size() * sizeof(Number)}, stream);
  cuda::wait(stream);
}

/// Weights, caches and the rest on the current GPU, for all shapes of a plan.
struct GpuRoom {
  explicit GpuRoom(const DecodePlan& plan) : work(Bytes{lay_out(sizes_of(plan.most(), plan.numbers), nullptr).size}) {
    for (std::size_t i = 0; i < plan.sets; ++i) {
      weights.emplace_back(Bytes{plan.most().weight_bytes()});
      caches.emplace_back(Bytes{plan.most().cache_bytes()});
    }
  }
  std::vector<cuda::DeviceBuffer> weights, caches;
  cuda::DeviceBuffer work;
};

/// The steps of one shape on one GPU, the current one.
class GpuDecoding {
 public:
  GpuDecoding(const DecodePlan& plan, const DecodeShape& shape, const GpuRoom& room, cuda::StreamSet& lanes,
              LibraryProducts& products, std::uint64_t seed)
      : plan_(plan),
        shape_(shape),
        sizes_(sizes_of(shape, plan.numbers)),
        work_(lay_out(sizes_, room.work.data())),
        lanes_(lanes),
        products_(products),
        seed_(seed),
        stream_(cuda::make_stream()),
        count_(1),
        weight_sums_(cuda::kSumWords),
        cache_sums_(cuda::kSumWords) {
    const std::size_t count = std::min(room.weights.size(), sets_past(shape.bytes(), plan.cache.count));
    figures_.shape = shape;
    figures_.past_cache = count * shape.bytes() >= 2 * plan.cache.count;
    for (std::size_t i = 0; i < count; ++i) {
      sets_.push_back(work_.at);
      sets_.back().weights = room.weights[i].as<Bf16>();
      sets_.back().cache = room.caches[i].as<Bf16>();
    }
    copy_in(work_.at.table, page_table<std::int32_t>(train::sized(sizes_.pages()), seed), stream_);
  }

  /// `begun` is called before the first timed step, `ended` after the last.
  DecodeFigures run(const std::function<void()>& begun, const std::function<void()>& ended) {
    check_exact();
    prepare();
    begun();
    take_rounds(
        plan_, figures_, [this] { return paced("a step", steps_pace_, [this] { return step(); }); },
        [this] { return paced("a reading", readings_pace_, [this] { return reading(); }); });
    ended();
    const auto due = deadline_.set("the check of weights and keys", untimed());
    for (const DecodePointers& set : sets_)
      figures_.mismatches +=
          counted([&](std::uint64_t* wrong) { enqueue_drawn_check(sizes_, set, seed_, wrong, stream_); });
    return std::move(figures_);
  }

  /// An exact step against sums of the host, for a model that is small: the number of wrong logits.
  std::uint64_t wrong_of_host() {
    check_exact();
    DecodeSets sets(shape_, shape_.cache_bytes(), 1, host::Pages::base);
    const DecodeSet set = sets.set(shape_, 0);
    fill_sets(shape_, DecodeNumbers::ring, seed_, set, {}, 0, 1);
    const auto expected = ring_logits(shape_, set, decode_input(shape_, DecodeNumbers::ring, seed_, 0));
    std::vector<float> found(expected.size());
    cuda::copy_to_host(std::as_writable_bytes(std::span(found)), reinterpret_cast<std::byte*>(work_.at.logits));
    for (std::size_t i = 0; i < expected.size(); ++i) figures_.mismatches += found[i] == expected[i] ? 0U : 1U;
    return figures_.mismatches;
  }

 private:
  /// The longest wait for work on all copies that was not timed: numbers are drawn and compared by some operations
  /// each.
  [[nodiscard]] Seconds untimed() const {
    constexpr double kOfNumber = 100;  // FLOP
    const double bytes = static_cast<double>(sets_.size() * shape_.bytes());
    return collective::untimed_limit(kOfNumber * bytes * static_cast<double>(shape_.batch), bytes);
  }
  /// The device's time of `work`, which must be done in time.
  template <class Work>
  double paced(const char* what, collective::Pace& pace, const Work& work) {
    const auto due = deadline_.set(fmt::format("{}, batch {}, context {}", what, shape_.batch, shape_.context),
                                   pace.limit(untimed()));
    const double time = work();
    pace.took({time});
    return time;
  }

  /// What `enqueue` adds to a word.
  template <class Enqueue>
  std::uint64_t counted(const Enqueue& enqueue) {
    count_.clear(stream_);
    enqueue(count_.data());
    cuda::wait(stream_);
    return count_.total();
  }

  void take_inputs(DecodeNumbers numbers) {
    std::vector<float> all;
    for (std::uint64_t number = 0; number < kDecodeInputs; ++number) {
      const auto one = decode_input(shape_, numbers, seed_, number);
      all.insert(all.end(), one.begin(), one.end());
    }
    copy_in(work_.at.inputs, all, stream_);
  }
  [[nodiscard]] const float* input(std::uint64_t number) const {
    return work_.at.inputs + number * static_cast<std::uint64_t>(sizes_.batch * sizes_.hidden);
  }

  /// The input of a step is there, and no result of an earlier one.
  void begin(std::uint64_t number) {
    const std::size_t bytes = train::sized(sizes_.batch * sizes_.hidden) * sizeof(float);
    cuda::check(cudaMemcpyAsync(work_.at.x, input(number), bytes, cudaMemcpyDeviceToDevice, stream_.get()),
                "copying an input (cudaMemcpyAsync)");
    cuda::check(cudaMemsetAsync(reinterpret_cast<std::byte*>(work_.at.table) + work_.results, kNotANumber,
                                work_.size - work_.results, stream_.get()),
                "overwriting results (cudaMemsetAsync)");
    cuda::wait(stream_);
  }

  cuda::Graph graph_of(const DecodeSizes& sizes, const DecodePointers& set) {
    const auto multiply = [this](const StepProduct& product) { return products_.enqueue(product, stream_); };
    return cuda::capture(stream_, [&] { enqueue_step(sizes, set, multiply, stream_); });
  }

  std::uint64_t whole_check(const DecodeSizes& sizes, std::uint64_t number) {
    return counted(
        [&](std::uint64_t* wrong) { enqueue_whole_check(sizes, sets_.front(), seed_, input(number), wrong, stream_); });
  }

  /// One step in ring numbers against plain sums of whole numbers, every logit.
  void check_exact() {
    const auto due = deadline_.set("an exact step", untimed());
    DecodeSizes ring = sizes_;
    ring.numbers = DecodeNumbers::ring;
    take_inputs(DecodeNumbers::ring);
    enqueue_draw(ring, sets_.front(), seed_, stream_);
    begin(0);
    cuda::launch(graph_of(ring, sets_.front()), stream_);
    cuda::wait(stream_);
    figures_.mismatches += whole_check(ring, 0);
  }

  /// Draws all sets, records their graphs, and has the first set's result for each input, which all others must repeat.
  void prepare() {
    take_inputs(plan_.numbers);
    const auto due = deadline_.set("drawing weights and first steps", untimed());
    for (const DecodePointers& set : sets_) {
      enqueue_draw(sizes_, set, seed_, stream_);
      graphs_.push_back(graph_of(sizes_, set));
    }
    for (std::uint64_t number = 0; number < kDecodeInputs; ++number) {
      begin(number);
      cuda::launch(graphs_.front(), stream_);
      prints_.push_back(print());
      if (sizes_.ring()) figures_.mismatches += whole_check(sizes_, number);
    }
    demand_different(prints_);
  }

  std::uint64_t print() {
    return counted([&](std::uint64_t* print) { enqueue_print(sizes_, work_.at, print, stream_); });
  }

  double timed(const std::function<void(const cuda::Stream&)>& enqueue) {
    return lanes_.run_on_each([&](std::size_t, const cuda::Stream& stream) { enqueue(stream); }).front().count;
  }

  std::size_t next_set() { return turn_++ % sets_.size(); }

  double step() {
    const std::uint64_t number = steps_++ % kDecodeInputs;
    const std::size_t set = next_set();
    begin(number);
    const double time = timed([&](const cuda::Stream& stream) { cuda::launch(graphs_[set], stream); });
    if (print() != prints_[number]) ++figures_.mismatches;
    return time;
  }

  /// A plain sum over the next set; that of the weights is always the same.
  double reading() {
    const DecodePointers& set = sets_[next_set()];
    weight_sums_.clear(stream_);
    cuda::wait(stream_);
    const double time = timed([&](const cuda::Stream& stream) {
      cuda::enqueue_sum(reinterpret_cast<const std::byte*>(set.weights), {shape_.weight_bytes()}, weight_sums_.data(),
                        stream);
      cuda::enqueue_sum(reinterpret_cast<const std::byte*>(set.cache), {shape_.cache_bytes()}, cache_sums_.data(),
                        stream);
    });
    const std::uint64_t sum = weight_sums_.total();
    if (sum != expected_sum_.value_or(sum)) ++figures_.mismatches;
    expected_sum_ = sum;
    return time;
  }

  const DecodePlan& plan_;
  DecodeShape shape_;
  DecodeSizes sizes_;
  DecodeWork work_;
  cuda::StreamSet& lanes_;
  LibraryProducts& products_;
  std::uint64_t seed_;
  cuda::Deadline deadline_;
  collective::Pace steps_pace_, readings_pace_;
  cuda::Stream stream_;
  cuda::DeviceWords count_, weight_sums_, cache_sums_;
  DecodeFigures figures_;
  std::vector<DecodePointers> sets_;
  std::vector<cuda::Graph> graphs_;
  std::vector<std::uint64_t> prints_;
  std::uint64_t turn_ = 0, steps_ = 0;
  std::optional<std::uint64_t> expected_sum_;
};

/// A small model on the current GPU against plain sums of the host, which draws weights and cache itself: the checks of
/// whole numbers on the GPU rest on it. The number of wrong logits.
std::uint64_t check_small(cuda::StreamSet& lanes, LibraryProducts& products) {
  constexpr std::uint64_t kSeed = 77;
  constexpr train::ModelShape kSmall{
      .layers = 2, .hidden = 128, .ffn = 160, .heads = 8, .kv_heads = 2, .head_dim = 16, .vocab = 80};
  const DecodePlan plan{.model = kSmall, .batches = {3}, .contexts = {272}, .numbers = DecodeNumbers::ring};
  const GpuRoom room(plan);
  return GpuDecoding(plan, plan.most(), room, lanes, products, kSeed).wrong_of_host();
}

/// Every shape on one GPU.
void decode_on(const cuda::Device& device, const DecodePlan& plan, Recorder& record) {
  const Subject subject = device.subject();
  cuda::StreamSet lanes({device}, 1);
  LibraryProducts products(plan.batches.back());
  record.condition("products", products.words(), subject);
  const std::uint64_t wrong = check_small(lanes, products);
  if (wrong > 0)
    record.note(fmt::format("{}: {} logits of a small model differ from the host's whole numbers", device.uuid, wrong));
  check_room(plan, cuda::free_memory(), device.uuid);
  const GpuRoom room(plan);
  nvml::GpuWatch watch(device.pci_bus_id);
  std::uint64_t seed = 0;
  const std::size_t shapes = plan.batches.size() * plan.contexts.size();
  for (const std::int64_t batch : plan.batches) {
    for (const std::int64_t context : plan.contexts) {
      const DecodeShape shape{.model = plan.model, .batch = batch, .context = context};
      GpuDecoding decoding(plan, shape, room, lanes, products, ++seed);
      auto figures = decoding.run(
          [&] {
            if (seed == 1) watch.start();  // from here on the GPU is awake
          },
          [&] {
            if (seed == shapes) watch.end_load();
          });
      figures.mismatches += wrong;
      record_decode(plan, figures, subject, record);
    }
  }
  watch.stop();
  watch.record(record, subject);
}

}  // namespace

void decode_on_gpus(const Parameters& given, const DecodePlan& plan, Recorder& record) {
  cuda::load_kernels_eagerly();
  const auto devices = cuda::chosen_devices(given);
  for (const cuda::Device& device : devices) {  // all, before anything is allocated
    cuda::use(device);
    if (device.l2.count == 0) throw std::runtime_error(device.uuid + " does not report its second-level cache");
    check_room(plan.with_cache(device.l2), cuda::free_memory(), device.uuid);
  }
  for (const cuda::Device& device : devices) {
    cuda::use(device);
    const DecodePlan mine = plan.with_cache(device.l2);
    cuda::record_device(record, device);
    record_model(mine, device.subject(), record);
    decode_on(device, mine, record);
  }
}

}  // namespace assay::inference
