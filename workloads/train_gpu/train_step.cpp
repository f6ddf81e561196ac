// cuda_train_step: the steps of training a transformer on the GPUs of one or several nodes, divided as in production.
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/rank_names.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_record.h"
#include "probes/nccl/communicator.h"
#include "probes/nvml/gpu_watch.h"
#include "workloads/train/graph/plan_parameters.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/step_figures.h"
#include "workloads/train_gpu/device_line.h"
#include "workloads/train_gpu/device_rehearsal.h"
#include "workloads/train_gpu/fused_attention.h"
#include "workloads/train_gpu/gpu_rank.h"
#include "workloads/train_gpu/gpu_training.h"
#include "workloads/train_gpu/products.h"

namespace assay::train_gpu {
namespace {

constexpr Parameter kOwnParameters[] = {
    cuda::kDeviceParameter,
    choice(
        "type", "bf16", "bf16 fp8 tf32",
        "element type of the factors of products: bf16, which activations and a copy of the weights are kept as, "
        "with fp32 weights for the update; fp8, linear layers multiply E4M3 and gradients in E5M2, all else as bf16; "
        "tf32, rounded in the tensor cores, of fp32 numbers"),
    choice("data", "gaussian", "gaussian replicated ring",
           "gaussian: normal weights, other tokens on each replica; replicated: the same tokens on all, whose "
           "gradients must be equal; ring: exact arithmetic modulo 7, which yields no rate"),
    choice("overlap", "beside", "beside none",
           "beside: gradients are reduced in a stream of their own during the backward pass; none: after it"),
    choice("launch", "eager", "eager graph",
           "eager: the operations of a step are started one after the other; graph: a full step is recorded once and "
           "started as one CUDA graph, of one GPU"),
    choice("attention", "auto", "auto fused fused_unordered products",
           "fused: kernels of cuDNN, whose backward pass adds up in one order if the library offers it; "
           "fused_unordered: in any order, which needs less memory; products: of blocks of queries, with kept "
           "probabilities; auto: fused where cuDNN is there and has a plan for the shape, else products"),
    choice("reference", "auto", "auto one_rank none",
           "one_rank: exact steps are compared with those of one rank on the host of rank 0; none: only with "
           "themselves and with the replicas; auto: one_rank where a step is at most 1e11 FLOP"),
    parameter("steps", "1", "200", "full steps that are timed; only whole blocks", "30"),
    parameter("block", "1", "20", "full steps in a row, between compute-only and communication-only ones", "5"),
    parameter("warmup_steps", "1", "10", "full steps before those", "3"),
};
constexpr auto kParameters = join(train::kPlanParameters, kOwnParameters);
constexpr Metric kOwnMetrics[] = {
    lower("step_time", "s",
          "wall time from the end of one full step to the end of the next, the longest of all ranks; every step is a "
          "sample",
          Recorded::rank_0),
    fault("mismatches",
          "findings of all checks: exact steps that differ from themselves, from one rank or between replicas, "
          "gradients that are outvoted, weights that differ between replicas or are not finite",
          Recorded::rank_0),
};
constexpr auto kMetrics = join(kOwnMetrics, train::kFigureMetrics);
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "ranks", .meaning = "GPUs that took part"},
    {.name = "nodes", .meaning = "nodes that took part"},
    {.name = "node_names", .meaning = "names of the nodes by rank, separated by commas"},
    {.name = "plan", .meaning = "how the step was divided: tp, cp, ep, pp, dp, virtual and zero"},
    {.name = "flop_count", .meaning = "the count of FLOPs, see docs/FORMATS.md"},
    {.name = "flop_per_token", .meaning = "FLOPs of training on one token, by that count, of the layers that were run"},
    {.name = "tokens_per_step", .meaning = "tokens of all replicas"},
    {.name = "layers_run", .meaning = "layers of the model that were run"},
    {.name = "type", .meaning = "numbers of weights and activations, and of the factors of products"},
    {.name = "data_mode", .meaning = "what weights and tokens were: gaussian, replicated or ring"},
    {.name = "launch",
     .meaning = "how operations of full steps are started: eager, one after the other from a loop; graph"},
    {.name = "draw", .meaning = "where first weights and tokens are drawn, and by which logarithm"},
    rank_0("attention", "how attention is computed: by which library, or why not fused (rank 0)"),
    if_reported("attention_difference",
                "largest difference between fused attention and products of the same numbers, over the tolerance that "
                "follows from BF16's rounding"),
    rank_0("reference", "reference of exact steps: one_rank or none (rank 0)"),
    rank_0("gpu_memory_need", "B that steps take of the GPU that needs most, counted before anything is allocated"),
    rank_0("first_step_s", "s from the first question to the ranks to the end of the first step of the job (rank 0)"),
    rank_0("product_shapes", "products of different shapes in a step (rank 0)"),
    rank_0("algorithms_differed",
           "shapes for which the libraries of two ranks had chosen different algorithms, before all took the first "
           "rank's (rank 0)"),
    rank_0("cublaslt_version", "version of cuBLASLt (rank 0)"),
    if_asked("nccl_version", "version of the NCCL library (rank 0), with several ranks"),
};
constexpr auto kConditions = cuda::join_conditions(cuda::kDeviceConditions, nvml::kGpuWatchConditions, kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "cuda_train_step",
    .revision = 4,
    .scope = Scope::group,
    .measures =
        "Steps of training a transformer on the GPUs of one or several nodes, divided by tensor, context, pipeline and "
        "data parallelism: their time, the part of communication, the sum expected of the parts, and the ranks that "
        "delay others.",
    .method =
        "One process for each GPU walks the same graph of operations as train_step, by the same executor: activations, "
        "their gradients and the weights that products read are kept and sent as BF16, the weights that Adam updates, "
        "its moments and the gradients of weights as fp32; of type tf32 everything as fp32. Products are those of "
        "cuBLASLt, added up in fp32. Of type fp8 the products of a layer's linear layers have FP8 factors: inputs and "
        "weights E4M3, gradients of outputs E5M2, each matrix of a rank with one fp32 scale by its largest number of "
        "that moment (current scaling); a cast is a pass for that number and one that writes the matrix and its "
        "transpose, weights once a step, and its time is part of the step. Accumulation is fast forward and not "
        "backward; results are as those of bf16, and so is everything else: attention, head, embedding. FLOPs are "
        "counted as for every type. Causal attention is fused kernels of cuDNN, or products over blocks of 1024 "
        "queries with a softmax between them; small kernels whose sums have one order, collectives of NCCL with a "
        "communicator for each group, "
        "gradients reduced bucket by bucket in a stream of their own, Adam. First weights, tokens and prints are "
        "calculated on the GPU from the place of each number. A plan that needs more memory than is free is refused "
        "before anything is allocated. All memory is there before the first step, and no step waits for the GPU before "
        "its end. Every shape's algorithm "
        "is the first choice of the library of the first rank that has the shape, and all ranks use it. Times of "
        "operations are between events; a step's is the host's, from the end of the step before. A round is "
        "compute-only steps, communication-only steps, then a block of full ones. Before and after, two steps run in "
        "exact arithmetic modulo 7 on fp32 numbers, of type fp8 with scales that are powers of two, each twice from "
        "the same weights; their weights are compared "
        "with those of one rank that does all of it on a host, where the step is small. Exact steps do attention by "
        "products. Fused attention is compared with products on normal numbers, before and after: a number that is "
        "further off than BF16's rounding explains counts, and one that differs in a second run where sums have one "
        "order. Tokens go to routed experts by "
        "their place in the step, as in train_step. "
        "Clocks, power, throttling and errors of each GPU are read from the end of the warm-up steps to that of the "
        "last timed one.",
    .source =
        "Narayanan et al. 2021 (1F1B), Shoeybi et al. 2019 (tensor parallelism), Rajbhandari et al. 2020 (ZeRO), "
        "Kingma & Ba 2015 (Adam), Micikevicius et al. 2022 (FP8); cuBLAS manual (cublasLtMatmul); Transformer Engine "
        "(transformer_engine/common/recipe, Float8CurrentScaling: formats, scales, fast accumulation); graphs of "
        "attention: github.com/NVIDIA/cudnn-frontend 1.23.0.",
    .needs =
        "NVIDIA GPUs with a driver for CUDA 13, libcublasLt 13; for several GPUs libnccl.so.2 from 2.18 on, for fused "
        "attention libcudnn.so.9 from 9.10.2 on",
    .typical = {120},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

constexpr const char* kThisProgram = "/proc/self/exe";  // also where it runs from sealed memory and has no path
constexpr std::int64_t kMostSteps = 1'000'000, kMostWarmup = 1000, kMostBlock = 1000;

train::AttentionKind attention_named(std::string_view word) {
  using Kind = train::AttentionKind;
  return word == "auto"       ? Kind::automatic
         : word == "fused"    ? Kind::fused
         : word == "products" ? Kind::products
                              : Kind::fused_unordered;
}

train::RankJob job_of(const Parameters& given, std::int64_t ranks) {
  train::RankJob job = train::job_on(given, ranks);
  (void)given.count("warmup_steps", 1, kMostWarmup);
  const auto block = given.count("block", 2, kMostBlock);
  (void)given.count("steps", block, kMostSteps);
  job.data = train::data_mode_named(given.text("data"));
  job.factors = train::factor_type_named(given.text("type"));
  job.beside = given.text("overlap") == "beside";
  check_device_engine(job.model, job.plan, job.factors);
  job.graph = given.text("launch") == "graph";
  job.attention = attention_named(given.text("attention"));
  if (!unfused_reason(job).empty()) (void)chosen_attention(job, {}, kQueriesTogether);  // throws if it is asked for
  if (job.graph && ranks > 1)
    throw BadParameter(fmt::format("launch: graph is for one GPU, there are {}; the nearest that runs: eager", ranks));
  if (keeps_bf16(job)) job.plan.element = sizeof(train::Bf16);
  return job;
}

std::vector<collective::RankProgram> programs_of(const train::RankJob& job, const std::vector<cuda::Device>& devices,
                                                 int node) {
  std::vector<collective::RankProgram> programs;
  const auto node_name = std::get<std::string>(host_facts().at("name"));
  std::vector<std::string> environment;
  for (char** one = environ; *one != nullptr; ++one) environment.emplace_back(*one);
  for (std::size_t local = 0; local < devices.size(); ++local) {
    train::RankJob mine = job;
    mine.rank = node * static_cast<std::int64_t>(devices.size()) + static_cast<std::int64_t>(local);
    programs.push_back({.path = kThisProgram,
                        .arguments = train::rank_arguments(std::string(kSpec.name).c_str(),
                                                           {.job = mine, .address = devices[local].uuid}),
                        .environment = environment,
                        .title = fmt::format("rank {} ({} {})", mine.rank, node_name, devices[local].uuid)});
  }
  return programs;
}

/// The words of the condition `type`.
std::string type_words(const train::RankJob& job) {
  const bool kept = keeps_bf16(job);
  switch (job.factors) {
    case train::FactorType::tf32:
      return "fp32, multiplied as TF32";
    case train::FactorType::bf16:
      return kept ? "BF16, weights of the update fp32" : "fp32, factors rounded to BF16";
    case train::FactorType::fp8:
      break;
  }
  return fmt::format(
      "{}; linear layers multiply E4M3, gradients E5M2, each matrix by current scaling{}, fast accumulation forward "
      "only; head and attention {}",
      kept ? "BF16, weights of the update fp32" : "fp32", kept ? "" : " by powers of two",
      kept ? "BF16" : "rounded to BF16");
}

void record_plan(const Parameters& given, const train::RankJob& job, const collective::Fleet& fleet, Recorder& record) {
  const train::ParallelPlan& plan = job.plan;
  const train::ModelShape run = train::with_layers(job.model, plan.layers);
  record.condition("ranks", plan.world());
  record.condition("nodes", static_cast<std::int64_t>(fleet.nodes().size()));
  record.condition("node_names", fmt::format("{}", fmt::join(fleet.nodes(), ",")));
  record.condition("plan", fmt::format("tp={} cp={} ep={} pp={} dp={} virtual={} zero={}", plan.tp, plan.cp, plan.ep,
                                       plan.pp, plan.dp, plan.virtual_stages, plan.zero));
  record.condition("flop_count", std::string(train::kFlopCount));
  record.condition("flop_per_token", train::flop_per_token(run, plan.seq));
  record.condition("tokens_per_step", plan.tokens_per_step());
  record.condition("layers_run", plan.layers);
  record.condition("type", type_words(job));
  record.condition("draw", std::string(job.data == train::DataMode::ring ? "GPU, whole numbers as on a host"
                                                                         : "GPU, its own logarithm in fp32"));
  record.condition("data_mode", given.text("data"));
  record.condition("launch", given.text("launch"));
}

/// A rank's readings of its GPU during the steps.
void record_watch(const std::string& answer, const cuda::Device& device, Recorder& record) {
  const auto said = parse_json_or_throw(answer, "a rank of this node");
  if (said.contains("error"))
    throw std::runtime_error(fmt::format("{}: {}", device.uuid, said["error"].get<std::string>()));
  for (const auto& [name, value] : said.at("conditions").items())
    record.condition(name, value_from(value).value(), device.subject());
}

/// The part of this node.
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  const auto devices = cuda::chosen_devices(given);
  Products::demand_library();  // a node without a library is a skip of the probe, not an error of a rank
  if (placement.world > 1 || devices.size() > 1) (void)nccl::Nccl();
  for (const cuda::Device& device : devices) {
    if (given.text("type") == "fp8")
      demand_fp8(device.compute_major, device.compute_minor, fmt::format("{} ({})", device.uuid, device.name));
  }
  const train::RankJob job = job_of(given, placement.world * static_cast<std::int64_t>(devices.size()));
  if (asks_fused(job)) FusedAttention::demand_library();
  collective::LocalRanks ranks(programs_of(job, devices, placement.rank), {.after_error = collective::kAfterError});
  std::vector<std::string> titles;
  for (const cuda::Device& device : devices) titles.push_back(device.uuid);
  collective::Fleet fleet(
      [&](std::string_view request, Seconds limit) {
        return ranks.ask(request, limit, [&] {  // a library may never report to its rank that a peer is gone
          if (group != nullptr) group->check();
        });
      },
      titles, std::get<std::string>(host_facts().at("name")), group);
  const auto names = group != nullptr ? rank_names(*group) : fleet.nodes();
  record_plan(given, job, fleet, record);
  for (const cuda::Device& device : devices) cuda::record_device(record, device);
  if (placement.rank == 0) {
    conduct_gpu_training(fleet, given, job, names, record);
    fleet.release();
  } else {
    (void)fleet.follow();  // rank 0 records
  }
  const auto watched = ranks.ask(R"({"do": "watch"})", collective::kHelloLimit);
  for (std::size_t i = 0; i < devices.size(); ++i) record_watch(watched[i], devices[i], record);
  ranks.finish(collective::kLeaveLimit);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  if (placement.world == 1) return take_part(given, placement, record, nullptr);
  work_together(placement, {.exchange = collective::kExchangeLimit},
                [&](Rendezvous& group) { take_part(given, placement, record, &group); });
}

}  // namespace
}  // namespace assay::train_gpu

int main(int argc, char** argv) {
  if (const auto code = assay::train_gpu::gpu_rank_main(argc, argv)) return *code;
  return assay::probe_main(argc, argv, assay::train_gpu::kSpec, assay::train_gpu::measure);
}
