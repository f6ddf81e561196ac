// rank_job: writes the job as one JSON object in one argument, and reads it.
#include "workloads/train/step/rank_job.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <unistd.h>

#include "probes/core/json_fields.h"
#include "probes/core/json_io.h"

namespace assay::train {

template <class Io, Of<ParallelPlan> P>
void fields(Io& io, P& plan) {
  io("layers", plan.layers), io("seq", plan.seq), io("micro_batch", plan.micro_batch);
  io("micro_batches", plan.micro_batches), io("tp", plan.tp), io("cp", plan.cp), io("ep", plan.ep), io("pp", plan.pp);
  io("dp", plan.dp), io("virtual_stages", plan.virtual_stages), io("zero", plan.zero), io("element", plan.element);
}

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kModes = {"gaussian", "replicated", "ring"};
constexpr std::array<std::string_view, 3> kFactors = {"tf32", "bf16", "fp8"};

template <class Kind>
Kind named(const std::array<std::string_view, 3>& words, std::string_view word) {
  const auto* const found = std::ranges::find(words, word);
  if (found == words.end()) throw std::logic_error("no mode of data and no type has this name");
  return static_cast<Kind>(found - words.begin());
}

}  // namespace

DataMode data_mode_named(std::string_view word) { return named<DataMode>(kModes, word); }
FactorType factor_type_named(std::string_view word) { return named<FactorType>(kFactors, word); }

std::vector<std::string> rank_arguments(const char* program, const RankStart& start) {
  json job = {{"model", model_card_json({.name = "model", .shape = start.job.model})},
              {"plan", start.job.plan},
              {"rank", start.job.rank},
              {"data", kModes.at(static_cast<std::size_t>(start.job.data))},
              {"beside", start.job.beside},
              {"type", kFactors.at(static_cast<std::size_t>(start.job.factors))},
              {"graph", start.job.graph},
              {"attention", static_cast<int>(start.job.attention)},
              {"address", start.address}};
  if (start.board)
    job["board"] = {start.board->descriptor, start.board->ranks, start.board->own, start.board->period_s,
                    start.board->folder};
  return {program, std::to_string(getpid()), job.dump()};
}

std::optional<RankStart> rank_start(const std::vector<std::string>& arguments) {
  constexpr std::size_t kCount = 3;
  if (arguments.size() != kCount) return std::nullopt;
  try {
    const json job = parse_json_or_throw(arguments[2], "job");
    const auto model = read_model_card(job.at("model").get<std::string>(), "model");
    if (!model) return std::nullopt;
    std::optional<BoardPlace> board;
    if (const auto found = job.find("board"); found != job.end())
      board = BoardPlace{.descriptor = found->at(0),
                         .ranks = found->at(1),
                         .own = found->at(2),
                         .period_s = found->at(3),
                         .folder = found->at(4)};
    return RankStart{.job = {.model = model->shape,
                             .plan = job.at("plan").get<ParallelPlan>(),
                             .rank = job.at("rank"),
                             .data = data_mode_named(job.at("data").get<std::string>()),
                             .beside = job.at("beside"),
                             .factors = factor_type_named(job.at("type").get<std::string>()),
                             .graph = job.at("graph"),
                             .attention = static_cast<AttentionKind>(job.at("attention").get<int>())},
                     .address = job.at("address"),
                     .board = board};
  } catch (const std::exception&) {  // not from a leader
    return std::nullopt;
  }
}

RankSteps steps_from(const json& answer) {
  RankSteps steps{.wall = answer.at("wall"),
                  .collective = answer.at("collective"),
                  .optimizer = answer.at("optimizer"),
                  .alone = {}};
  for (const auto& one : answer.at("alone"))
    steps.alone[{static_cast<Role>(one.at(0).get<int>()), static_cast<Pass>(one.at(1).get<int>())}] = one.at(2);
  return steps;
}

RankPrint print_from(const json& words) { return {.shared = words.at(0), .experts = words.at(1)}; }

}  // namespace assay::train
