// rank_job: writes the job as one JSON object in one argument, and reads it.
#include "workloads/train/step/rank_job.h"

#include <array>
#include <stdexcept>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"

namespace assay::train {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kModes = {"gaussian", "replicated", "ring"};

json plan_json(const ParallelPlan& p) {
  return {p.layers, p.seq, p.micro_batch, p.micro_batches,  p.tp,   p.cp,
          p.ep,     p.pp,  p.dp,          p.virtual_stages, p.zero, p.element};
}

ParallelPlan plan_of(const json& a) {
  return {.layers = a.at(0),
          .seq = a.at(1),
          .micro_batch = a.at(2),
          .micro_batches = a.at(3),
          .tp = a.at(4),
          .cp = a.at(5),
          .ep = a.at(6),
          .pp = a.at(7),
          .dp = a.at(8),
          .virtual_stages = a.at(9),
          .zero = a.at(10),
          .element = a.at(11)};
}

}  // namespace

DataMode data_mode_named(std::string_view word) {
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    if (kModes[i] == word) return static_cast<DataMode>(i);
  }
  throw std::logic_error("no data mode has this name");
}

std::vector<std::string> rank_arguments(const char* program, const RankStart& start) {
  json job = {{"model", model_card_json({.name = "model", .shape = start.job.model})},
              {"plan", plan_json(start.job.plan)},
              {"rank", start.job.rank},
              {"data", kModes.at(static_cast<std::size_t>(start.job.data))},
              {"beside", start.job.beside},
              {"bf16", start.job.factors == FactorType::bf16},
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
                             .plan = plan_of(job.at("plan")),
                             .rank = job.at("rank"),
                             .data = data_mode_named(job.at("data").get<std::string>()),
                             .beside = job.at("beside"),
                             .factors = job.at("bf16") ? FactorType::bf16 : FactorType::tf32},
                     .address = job.at("address"),
                     .board = board};
  } catch (const std::exception&) {  // not what a leader passes
    return std::nullopt;
  }
}

}  // namespace assay::train
