// outcome: joining what ranks report without adding to it.
#include "probes/nccl/outcome.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/recorder.h"

namespace assay {
namespace {

using nlohmann::json;

/// Appends `word` where it is not there yet.
void add_once(std::vector<std::string>& words, const std::string& word) {
  if (std::ranges::find(words, word) == words.end()) words.push_back(word);
}

void record_choices(Recorder& record, const json& reported) {
  auto choices = reported.get<std::vector<json>>();
  std::ranges::stable_sort(choices, {}, [](const json& choice) { return choice.at("bytes").get<std::int64_t>(); });
  if (choices.empty()) return;
  std::vector<std::string> algorithms, protocols;
  for (const auto& choice : choices) {
    add_once(algorithms, choice.at("algorithm"));
    add_once(protocols, choice.at("protocol"));
    record.note(fmt::format("NCCL: {} of {} B by {} with {} on {} channels", choice.at("function").get<std::string>(),
                            choice.at("bytes").get<std::int64_t>(), choice.at("algorithm").get<std::string>(),
                            choice.at("protocol").get<std::string>(), choice.at("channels").get<std::int64_t>()));
  }
  record.condition("algorithm", fmt::format("{}", fmt::join(algorithms, " ")));
  record.condition("protocol", fmt::format("{}", fmt::join(protocols, " ")));
  record.condition("channels", choices.back().at("channels").get<std::int64_t>());
}

std::string bytes_list(const std::vector<Bytes>& sizes) {
  std::vector<std::uint64_t> counts;
  counts.reserve(sizes.size());
  for (const auto size : sizes) counts.push_back(size.count);
  return fmt::format("{}", fmt::join(counts, ","));
}

}  // namespace

void record_facts(Recorder& record, const std::vector<json>& facts) {
  const json& first = facts.front();
  record.condition("nccl_version", first.at("version").get<std::string>());
  record.condition("nccl_library", first.at("library").get<std::string>());
  record.condition("environment", first.at("environment").get<std::string>());
  std::set<std::string> transports, warnings;
  bool told = true, available = true;
  for (const auto& one : facts) {
    transports.merge(one.at("transports").get<std::set<std::string>>());
    warnings.merge(one.at("warnings").get<std::set<std::string>>());
    told = told && one.contains("multicast");
    available = available && one.value("multicast", false);
  }
  if (!transports.empty()) record.condition("transport", fmt::format("{}", fmt::join(transports, " ")));
  std::erase_if(transports, [](const std::string& way) { return !way.starts_with("NET/") && !way.starts_with("COLLNET/"); });
  if (!transports.empty()) record.condition("fabric", fmt::format("{}", fmt::join(transports, " ")));
  if (first.contains("network")) record.condition("network", first.at("network").get<std::string>());
  if (told) record.condition("nvls", available);
  record_choices(record, first.at("choices"));
  for (const auto& warning : warnings) record.note("NCCL warns: " + warning);
}

std::string left_out(const FittingSizes& sizes) {
  std::string text;
  if (!sizes.too_large.empty()) text += "too_large=" + bytes_list(sizes.too_large);
  if (!sizes.too_small.empty()) text += (text.empty() ? "too_small=" : " too_small=") + bytes_list(sizes.too_small);
  return text.empty() ? "none" : text;
}

}  // namespace assay
