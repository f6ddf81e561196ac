// case_tallies: sends the tallies between the ranks as text, and records their sums as measurements.
#include "workloads/storage/shared/case_tallies.h"

#include <nlohmann/json.hpp>

#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

using nlohmann::json;

json words_of_tally(const CaseTally& tally) {
  return {{"checks", tally.checks}, {"stale", tally.stale},       {"wrong", tally.wrong},
          {"lies", tally.lies},     {"failures", tally.failures}, {"visible", tally.visible_after_s},
          {"named", tally.named}};
}

CaseTally case_tally_in(const json& words) {
  const auto count = [&](const char* name) { return words.at(name).get<std::uint64_t>(); };
  return {.checks = count("checks"),
          .stale = count("stale"),
          .wrong = count("wrong"),
          .lies = count("lies"),
          .failures = count("failures"),
          .visible_after_s = words.at("visible").get<double>(),
          .named = words.at("named").get<std::vector<std::string>>()};
}

}  // namespace

std::map<std::string, CaseTally> gather_tallies(Rendezvous& group, const std::map<std::string, CaseTally>& mine,
                                                Recorder& record) {
  json words = json::object();
  for (const auto& [name, tally] : mine) words[name] = words_of_tally(tally);
  std::map<std::string, CaseTally> all;
  for (const auto& rank : gather_words(group, words)) {
    for (const auto& [name, one] : rank.items()) {
      const CaseTally tally = case_tally_in(one);
      all[name].add(tally);
      if (group.rank() != 0) continue;
      for (const auto& fault : tally.named) record.note(name + ": " + fault);
    }
  }
  return all;
}

void record_tallies(const std::map<std::string, CaseTally>& tallies, Recorder& record) {
  for (const auto& [name, tally] : tallies) {
    const auto add = [&](const char* metric, double value) {
      record.measurement(metric, value, all_clients(), {{"case", name}});
    };
    add("stale_reads", static_cast<double>(tally.stale));
    add("wrong_reads", static_cast<double>(tally.wrong));
    add("false_successes", static_cast<double>(tally.lies));
    add("failures", static_cast<double>(tally.failures));
    add("visible_after", tally.visible_after_s);
    add("checks", static_cast<double>(tally.checks));
  }
}

}  // namespace assay::cluster_storage
