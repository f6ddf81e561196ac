// decode_step: one token of a model from this node's or a GPU's memory, against the time that reading the same bytes
// takes.
#include <algorithm>
#include <array>

#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/cuda/choice.h"
#include "probes/cuda/device_record.h"
#include "probes/nvml/gpu_watch.h"
#include "workloads/inference/decode_cuda.h"
#include "workloads/inference/decode_room.h"
#include "workloads/inference/decode_run.h"

namespace assay::inference {
namespace {

constexpr Bytes kUnknownCache = {std::uint64_t{128} << 20};
constexpr double kInstrument = 1e-3;  // barriers of about 20 us in steps of 20 ms or more; events of 0.5 us on a GPU

constexpr Parameter kOwnParameters[] = {
    choice("engine", "host", "host cuda",
           "maker of the token: host, this node's processors; cuda, one NVIDIA GPU after the other"),
    parameter("model", "", "small-dense", "name of a built-in dense model, or path of an assay.model/1 on the node"),
    parameter("layers_run", "1", "0", "layers of the model that are run; 0: all"),
    parameter("batches", "", "1,8", "sequences that make a token together, separated by commas; first..last doubles",
              "1,4"),
    parameter("contexts", "", "1024,4096",
              "tokens of each sequence in the cache, separated by commas; each with each batch", "64,256"),
    parameter("steps", "1", "200", "steps of each that are timed; whole fives", "20"),
    parameter("threads", "1", "0", "threads, each pinned to a core of its own; 0 for one on every physical core"),
    choice("data", "gaussian", "gaussian ring",
           "gaussian: normal numbers; ring: whole numbers modulo 7, which yield no rate"),
    choice("huge_pages", "on", "on off", "whether transparent huge pages are asked for"),
};
constexpr auto kParameters = join(kOwnParameters, std::array{cuda::kDeviceParameter});
constexpr Metric kMetrics[] = {
    lower("latency", "s",
          "time of one step, which makes one token of each sequence, of the wall or on a GPU of the device; every step "
          "is a sample",
          Recorded::always, kInstrument),
    lower("latency_p99", "s", "99th percentile of latency, recorded where there are 100 steps", Recorded::if_occurred,
          kInstrument),
    lower("tail", "1", "latency_p99 over the median, where that is", Recorded::if_occurred),
    lower(
        "floor_time", "s",
        "the same threads, or a plain kernel on the GPU, read the same bytes once, without waits in between; recorded "
        "where they have left every cache and nothing was wrong",
        Recorded::if_occurred, kInstrument),
    higher("floor_bandwidth", "B/s", "those bytes over floor_time, recorded where that is", Recorded::if_occurred,
           kInstrument),
    lower("over_floor", "1",
          "of a round of five: median latency over median floor_time; recorded where that is and data is not ring",
          Recorded::if_occurred),
    higher("tokens_rate", "1/s", "sequences over latency, recorded where over_floor is", Recorded::if_occurred,
           kInstrument),
    fault("mismatches",
          "logits of an exact step that differ from whole numbers, and timed steps whose logits differ in any "
          "bit from those of one thread, on a GPU from those of the first step; there also readings with another sum, "
          "and weights and keys that are not those drawn after all steps"),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "engine", .meaning = "Maker of the token: host or cuda."},
    if_asked("products", "Who multiplies, and why not the library; with engine cuda."),
    if_asked("isa", "Instruction set of the products, with engine host."),
    {.name = "parameters_run", .meaning = "Parameters of the model with the layers that were run."},
    {.name = "weight_bytes", .meaning = "Of the weights that a step reads, in B."},
    {.name = "cache_bytes_per_token", .meaning = "Keys and values of one token, in B."},
    {.name = "last_level_cache",
     .meaning = "Sum of all last-level caches in B; where the kernel does not say, what was assumed. Of a GPU its "
                "second-level cache."},
    {.name = "sets", .meaning = "Copies of weights and cache that are used in turn at most."},
    {.name = "data_mode", .meaning = "Numbers of weights, cache and inputs: gaussian or ring."},
    if_asked("threads", "Threads that worked, with engine host."),
    if_asked("pinned", "Whether every thread was bound to one CPU, read back from the kernel, with engine host."),
    if_asked("cpu_list", "The CPUs of the threads, with engine host."),
    if_asked("off_cpu_share",
             "Largest share, over threads and shapes, of plain readings in which a thread did not run: CPU quota, "
             "hypervisor or other processes; with engine host."),
    if_asked("huge_page_share", "Share of the weights which huge pages backed, with engine host."),
};
constexpr auto kConditions = join(kOwnConditions, asked(cuda::kDeviceConditions), asked(nvml::kGpuWatchConditions));
constexpr ProbeSpec kSpec{
    .name = "decode_step",
    .revision = 3,
    .measures =
        "The time in which a node's processors, or a GPU, make one token of a model for each sequence of a batch, and "
        "the time in which they read the same bytes from memory.",
    .method =
        "Weights, keys and values are BF16, products fp32. A step reads every weight that multiplies a token, and the "
        "whole cache of every sequence, once: RMS norm, queries, keys and values, which enter the cache, attention in "
        "tasks of 256 tokens, SwiGLU, the head; no positions, no experts. One pinned thread on every physical core has "
        "its rows and tasks, and waits for the others between operations. Copies with the same content are used in "
        "turn so that they pass twice all last-level caches. In a round five steps and five plain readings of the next "
        "copy alternate; over_floor is the ratio of their medians: what arithmetic and waiting add to memory. Before, "
        "one step in whole numbers modulo 7 is compared with plain sums in integers, every logit. Inputs change from "
        "step to step, outputs are overwritten before each, and each step's logits must be in every bit those that one "
        "thread had for that input, so that no work can be left out. Engine cuda has products of BF16 inputs on the "
        "tensor cores with fp32 sums, those of more than 8 sequences by cuBLASLt where it is there, at most 64 "
        "sequences, attention in tasks of 128 tokens, and a cache of pages of 16 tokens in the order of a page table; "
        "a step is one CUDA graph, times are of the device, from a gate that opens when all is enqueued, and a plain "
        "kernel reads. Numbers are drawn on the GPU; the exact step's logits are compared there with sums of whole "
        "numbers over weights drawn anew, and a small model's with those of the host. Each step's logits must be in "
        "every bit those of the first step with that input; after all steps every weight and key must be the one that "
        "was drawn. Clocks, power, errors and other users of the GPU are read during the steps.",
    .source =
        "Pope et al. 2022, Efficiently Scaling Transformer Inference, for the bound by memory; the model's card for "
        "bytes.",
    .needs = "Linux; for engine cuda the NVIDIA driver for CUDA 13",
    .typical = {60},
    .deadline = {1800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

void decode_on_host(const Parameters& given, const DecodePlan& plan, Recorder& record) {
  check_memory(plan, total_memory());
  host::PinnedThreads crew(host::cpus_for(given.count("threads")));
  DecodeSets sets(plan.most(), plan.most().cache_bytes(), plan.sets,
                  given.text("huge_pages") == "on" ? host::Pages::huge : host::Pages::base);
  std::uint64_t seed = 0;
  double off_cpu = 0;
  for (const std::int64_t batch : plan.batches) {
    for (const std::int64_t context : plan.contexts) {
      const DecodeShape shape{.model = plan.model, .batch = batch, .context = context};
      const auto figures = measure_decode(plan, shape, sets, crew, ++seed);
      record_decode(plan, figures, {}, record);
      off_cpu = std::max(off_cpu, figures.off_cpu);
    }
  }
  record_model(plan, {}, record);
  record.condition("isa", std::string(decode_code().isa));
  record.condition("threads", static_cast<std::int64_t>(crew.size()));
  record.condition("pinned", crew.pinned());
  record.condition("cpu_list", host::cpu_list(crew.cpus()));
  record.condition("off_cpu_share", std::max(0.0, off_cpu));
  record.condition("huge_page_share", sets.huge_share());
}

void measure(const Parameters& given, Recorder& record) {
  const auto plan = decode_plan(given);
  record.condition("engine", given.text("engine"));
  if (given.text("engine") == "cuda") {
    check_kernels_take(plan);
    return decode_on_gpus(given, plan, record);
  }
  if (given.text("device") != cuda::kDeviceParameter.fallback)
    throw BadParameter("device: engine host measures no GPU; hint: --engine cuda");
  decode_on_host(given, plan.with_cache(last_level_cache().value_or(kUnknownCache)), record);
}

}  // namespace
}  // namespace assay::inference

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::inference::kSpec, assay::inference::measure);
}
