// The limits on what one NVIDIA GPU shows, against typical_gpu_figures.json: a healthy board passes at both ends of the
// spread between boards, and one with a lower power limit, less rate or a hot die does not.
#include <map>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/simulate/simulate.h"
#include "probes/core/json_io.h"
#include "tests/unit/paths.h"
#include "tests/unit/profiles/built_in.h"

namespace assay::simulate {
namespace {

using Said = std::set<std::string>;

const nlohmann::json& typical_figures() {
  static const std::string kFile = source_file("tests/unit/profiles/typical_gpu_figures.json");
  static const auto kFigures = parse_json(read_file(kFile).value(), kFile).value();
  return kFigures;
}

/// Whether a limit is on a rate, a bandwidth or an energy that one GPU shows, in units or as a share of a peak.
bool is_of_one_gpu(const plan::Requirement& one) {
  return one.scope == plan::JudgedScope::gpu && one.probe.starts_with("cuda_") && one.limit.at_least &&
         one.limit.unit != "1" && !plan::is_relative(one.limit.reference);
}

/// The board that `profile` is of; null where it names no model.
const nlohmann::json* board_of(const std::string& profile) {
  for (const auto& board : typical_figures().at("boards"))
    for (const auto& name : board.at("profiles"))
      if (name == profile) return &board;
  return nullptr;
}

const nlohmann::json* figure_of(const nlohmann::json& board, const std::string& requirement) {
  for (const auto& figure : board.at("figures"))
    if (figure.at("requirement") == requirement) return &figure;
  return nullptr;
}

std::vector<std::string> profiles_of_boards() {
  std::vector<std::string> all;
  for (const auto& board : typical_figures().at("boards"))
    for (const auto& name : board.at("profiles")) all.push_back(name);
  return all;
}

/// How a board differs from a typical one.
struct Difference {
  double between = 0;                    ///< from -1, the lowest of the healthy, to 1, the highest
  double products = 1;                   ///< of the rate of products
  std::map<std::string, double> states;  ///< conditions as read
};

constexpr double kMargin = 0.08;  // of the simulated above their limits; cancels for what has a typical figure

judge::Verdict judged(const std::string& name, const Difference& difference, SimulationSummary& summary) {
  const auto& profile = built_in(name);
  site::Site site = simulated_site(shape_for(profile, {.nodes = name.ends_with("-one") ? 1U : 2U}));
  auto real = plan::make_plan(profile, site, built_programs(), {});
  if (!real) throw std::runtime_error(real.error().text());
  // Measured is what meets this plan, whose limits are the board's own figures less the margin; judged is the real one.
  real->simulation = plan::Simulation{.seed = 1, .faults = {.healthy = {.margin = kMargin, .spread = 0}}};
  plan::Plan board = *real;
  board.profile.guard_factor = 0;
  for (auto& one : board.profile.requirements) {
    const auto* figure = is_of_one_gpu(one) ? figure_of(*board_of(name), one.id) : nullptr;
    if (figure != nullptr && figure->at("typical").is_number()) {
      const double between = typical_figures().at("between").at(one.limit.unit);
      const double share = (1 + difference.between * between) * (one.limit.unit == "FLOP/s" ? difference.products : 1);
      one.limit = {.at_least = figure->at("typical").get<double>() * share / (1 + kMargin),
                   .at_most = {},
                   .unit = one.limit.unit};
    }
    for (auto& condition : one.conditions) {
      const auto state = difference.states.find(condition.name);
      if (state != difference.states.end()) condition = {.name = state->first, .equals = Value(state->second)};
    }
  }
  const auto run = simulate(board, "digest");
  auto verdict = judge::judge_run(*real, "digest", run.journal, simulated_evidence(board, run.journal, run.records));
  if (!verdict) throw std::runtime_error(verdict.error().text());
  summary = summarise(*real, run, *verdict);
  return std::move(*verdict);
}

struct Judged {
  SimulationSummary summary;
  judge::Verdict verdict;

  Judged(const std::string& name, const Difference& difference) : verdict(judged(name, difference, summary)) {}

  [[nodiscard]] bool is_accepted() const {
    return summary.would_be.find("it would be accepted: ") != std::string::npos;
  }
  /// Requirement, outcome and reason of the cells of GPUs for which `wanted` holds, each once.
  [[nodiscard]] Said cells(const std::function<bool(const judge::Result&)>& wanted) const {
    Said all;
    for (const auto& one : verdict.results) {
      if (one.subject.kind == "gpu" && wanted(one))
        all.insert(fmt::format("{}: {}: {}", one.requirement, judge::to_string(one.outcome), one.reason));
    }
    return all;
  }
};

bool is_no_pass(const judge::Result& one) { return one.outcome != judge::Outcome::pass; }

class GpuLimits : public testing::TestWithParam<std::string> {};

TEST_P(GpuLimits, have_a_typical_figure_each_and_those_that_reject_a_source_of_it) {
  for (const auto& one : built_in(GetParam()).requirements) {
    if (!is_of_one_gpu(one)) continue;
    const auto* figure = figure_of(*board_of(GetParam()), one.id);
    ASSERT_NE(figure, nullptr) << one.id;
    EXPECT_EQ(figure->at("unit"), one.limit.unit) << one.id;
    EXPECT_FALSE(figure->at("source").get<std::string>().empty()) << one.id;
    if (one.required && one.metric.starts_with("throughput")) {
      EXPECT_EQ(figure->at("status"), "sourced") << one.id;
      EXPECT_EQ(one.source.status, "sourced") << one.id;
    }
  }
}

TEST_P(GpuLimits, of_a_healthy_board_are_met_at_both_ends_of_the_spread) {
  for (const double between : {-1.0, 1.0}) {
    const Judged board(GetParam(), {.between = between});
    EXPECT_EQ(board.cells(is_no_pass), Said{});
    EXPECT_TRUE(board.is_accepted()) << board.summary.would_be;
  }
}

TEST_P(GpuLimits, make_a_board_with_another_power_limit_inconclusive_and_never_rejected) {
  const double limit_w = board_of(GetParam())->at("lowered_w");
  const Judged board(GetParam(),
                     {.products = 0.93, .states = {{"power_limit_w", limit_w}, {"power_mean_w", limit_w * 0.99}}});
  EXPECT_FALSE(board.is_accepted()) << board.summary.would_be;
  const auto others = board.cells(
      [](const judge::Result& one) { return is_no_pass(one) && one.outcome != judge::Outcome::inconclusive; });
  EXPECT_EQ(others, Said{});
  const auto words = fmt::format("The power limit was {} W, at least ", limit_w);
  for (const auto& said : board.cells(is_no_pass)) EXPECT_NE(said.find(words), std::string::npos) << said;
}

TEST_P(GpuLimits, fail_a_board_whose_products_are_an_eighth_slower) {
  const Judged board(GetParam(), {.products = 0.88});
  const auto& figures = *board_of(GetParam());
  EXPECT_EQ(board.cells([&](const judge::Result& one) {
    const auto* figure = figure_of(figures, one.requirement);
    return figure != nullptr && figure->at("unit") == "FLOP/s" && figure->at("typical").is_number() &&
           one.outcome == judge::Outcome::pass;
  }),
            Said{});
  // Of a B200 no sustained rate is published, so that none is required.
  EXPECT_EQ(board.is_accepted(), figures.at("board") == "NVIDIA B200 HGX") << board.summary.would_be;
}

TEST_P(GpuLimits, do_not_accept_a_board_that_heat_slows) {
  const Judged board(GetParam(), {.states = {{"throttle_sw_thermal_s", 3}}});
  EXPECT_FALSE(board.is_accepted()) << board.summary.would_be;
}

INSTANTIATE_TEST_SUITE_P(boards, GpuLimits, testing::ValuesIn(profiles_of_boards()), name_of_test);

TEST(GpuFigures, are_of_limits_that_there_are_and_every_profile_of_a_gpu_model_has_them) {
  for (const auto& board : typical_figures().at("boards")) {
    Said ids;
    for (const auto& name : board.at("profiles"))
      for (const auto& one : built_in(name).requirements) ids.insert(one.id);
    for (const auto& figure : board.at("figures"))
      EXPECT_TRUE(ids.contains(figure.at("requirement"))) << board.at("board") << ": " << figure.at("requirement");
  }
  for (const auto& [name, text] : plan::embedded_profiles()) {
    const auto& profile = built_in(name);
    const bool judges_a_model = name.starts_with("nvidia-") && std::ranges::any_of(profile.requirements, is_of_one_gpu);
    EXPECT_EQ(board_of(name) != nullptr, judges_a_model) << name;
  }
}

}  // namespace
}  // namespace assay::simulate
