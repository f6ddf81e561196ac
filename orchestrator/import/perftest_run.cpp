// perftest_run: titles, options and coordinates of perftest's tests, for both forms of its output.
#include "orchestrator/import/perftest_run.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

bool is_of_gpu(std::string_view command) {
  constexpr std::array<std::string_view, 8> kMemories = {"--use_cuda", "--use_rocm", "--use_neuron", "--use_hl",
                                                         "--use_mlu",  "--use_musa", "--use_opencl", "--gpu_touch"};
  return std::ranges::any_of(words_of(command), [&](std::string_view word) {
    return std::ranges::any_of(kMemories, [&](std::string_view memory) { return word.starts_with(memory); });
  });
}

}  // namespace

std::optional<PerftestRun> perftest_run_of(std::string title) {
  std::ranges::replace(title, '_', ' ');
  if (!title.ends_with(" Test")) return std::nullopt;
  constexpr std::array<std::string_view, 6> kVerbs = {"Send imm",   "Send",      "RDMA Write imm",
                                                      "RDMA Write", "RDMA Read", "Atomic"};  // the longer first
  const auto* verb = std::ranges::find_if(kVerbs, [&](std::string_view one) { return title.starts_with(one); });
  if (verb == kVerbs.end()) return std::nullopt;
  PerftestRun test{.verb = std::string(*verb)};
  std::ranges::replace(test.verb, ' ', '_');
  test.bandwidth = title.find(" BW ") != std::string::npos;
  test.both_directions = title.find(" Bidirectional ") != std::string::npos;
  if (!test.bandwidth && title.find(" Latency ") == std::string::npos) return std::nullopt;
  return test;
}

bool has_perftest_option(std::string_view command, char letter, std::string_view name) {
  constexpr std::string_view kWithoutValue = "aFegzRvhbNVCHUOZP";
  constexpr std::size_t kShortest = 7;  // of a name that is not another's beginning
  return std::ranges::any_of(words_of(command), [&](std::string_view word) {
    if (word.starts_with("--")) return word == name || (word.size() >= kShortest && name.starts_with(word));
    return word.starts_with('-') && word.find_first_not_of(kWithoutValue, 1) == std::string_view::npos &&
           word.find(letter, 1) != std::string_view::npos;
  });
}

void check_perftest_command(std::string_view command, const PerftestRun& test, const std::string& where) {
  const char* const hint = "state the command that was run, with all its options: --command 'ib_write_bw …'";
  constexpr std::pair<std::string_view, std::string_view> kPrograms[] = {
      {"ib_write_", "RDMA_Write"}, {"ib_send_", "Send"}, {"ib_read_", "RDMA_Read"}, {"ib_atomic_", "Atomic"}};
  for (const auto& [program, verb] : kPrograms) {
    if (command.find(program) != std::string_view::npos && !test.verb.starts_with(verb))
      throw ImportRefusal{where, fmt::format("is of {}, and the command of {}…", test.verb, program), hint};
  }
  const bool both = has_perftest_option(command, 'b', "--bidirectional");
  if (test.bandwidth && both != test.both_directions) {
    throw ImportRefusal{
        where,
        both ? "is of one direction, and the command has -b" : "is of both directions, and the command has no -b",
        hint};
  }
}

Values perftest_coordinates(const judge::ImportSource& source, const PerftestRun& test, std::int64_t size) {
  Values at{{"verb", test.verb}, {"size", size}};
  if (!test.bandwidth)
    at["counted"] = std::string(test.verb == "RDMA_Read" || test.verb == "Atomic" ? "round_trip" : "half_round_trip");
  const auto fact = [&](const char* name, const char* in_json) {
    auto found = source.facts.find(name);
    if (found == source.facts.end()) found = source.facts.find(in_json);
    if (found == source.facts.end()) return std::string();
    const auto* text = std::get_if<std::string>(&found->second);
    return text != nullptr ? *text : to_json(found->second).dump();
  };
  if (const auto queue_pairs = whole_from(fact("Number of qps", "Number_of_qps"))) at["qps"] = *queue_pairs;
  const bool gpu = !fact("memory", "cuda_device").empty() || !fact("musa_device", "musa_device").empty() ||
                   fact("Use ROCm memory", "Use_ROCm_memory") == "ON" ||
                   fact("Use MUSA memory", "Use_MUSA_memory") == "ON" || is_of_gpu(source.command);
  at["memory"] = std::string(gpu ? "gpu" : "host");
  if (fact("Dual-port", "Dual_port") == "ON") add_condition(at, "two ports");
  if (const auto type = fact("Connection type", "Connection_type"); !type.empty() && type != "RC")
    add_condition(at, "connection type " + type);
  for (const char* option : {"--rate_limit", "--latency_gap", "--use-null-mr"}) {
    if (source.command.find(option) != std::string::npos) add_condition(at, option);
  }
  return at;
}

}  // namespace assay::imports
