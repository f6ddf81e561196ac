// consistency_look: compares two contents and says how they differ; repeats the look of one reader until it is right or
// the time is over.
#include "workloads/storage/shared/consistency_look.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/probe.h"
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

constexpr auto kPauseBetweenLooks = std::chrono::milliseconds(10);

bool begins_with(const Content& whole, const Content& part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

/// Content of `found` where it differs from `now`.
std::string difference(const Content& found, const Content& now, const std::optional<Content>& before) {
  std::uint64_t wrong = 0, zeros = 0, old = 0;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < std::max(found.size(), now.size()); ++i) {
    if (i < found.size() && i < now.size() && found[i] == now[i]) continue;
    if (!first) first = i;
    ++wrong;
    if (i >= found.size()) continue;
    if (found[i] == std::byte{0}) ++zeros;
    if (before && i < before->size() && found[i] == (*before)[i]) ++old;
  }
  const char* what = "bytes that were never written there";
  if (zeros == wrong) what = "zeros";
  if (old == wrong) what = "what was there before";
  return fmt::format("{} of {} B differ from B {} on: {}", wrong, now.size(), first.value_or(0), what);
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

Look judge_content(const std::optional<Content>& found, const std::optional<Content>& now,
                   const std::optional<Content>& before) {
  if (found == now) return {};
  if (!found) {
    return before ? Look{Seen::wrong, "there is no such file, and there always was one"}
                  : Look{Seen::old, "there is no such file"};
  }
  if (!now) {
    return found == before ? Look{Seen::old, "the file is still there"}
                           : Look{Seen::wrong, "there is a file of other content than the one that was removed"};
  }
  if (found == before) return {Seen::old, fmt::format("all {} B are what was there before", found->size())};
  if (begins_with(*now, *found))
    return {Seen::old, fmt::format("the file ends after {} of {} B", found->size(), now->size())};
  return {Seen::wrong, difference(*found, *now, before)};
}

Look judge_records(const std::optional<Content>& found, const std::vector<Content>& records) {
  if (!found) return {Seen::wrong, "there is no such file, and there always was one"};
  const std::size_t size = records.at(0).size();
  if (found->size() % size != 0)
    return {Seen::wrong, fmt::format("{} B are no whole number of records of {} B", found->size(), size)};
  std::vector<bool> there(records.size());
  for (std::size_t at = 0; at < found->size(); at += size) {
    const auto piece = found->begin() + static_cast<std::ptrdiff_t>(at);
    const auto same = std::ranges::find_if(
        records, [&](const Content& record) { return std::equal(record.begin(), record.end(), piece); });
    if (same == records.end()) return {Seen::wrong, fmt::format("at B {} is none of the records", at)};
    const auto number = static_cast<std::size_t>(same - records.begin());
    if (there[number]) return {Seen::wrong, fmt::format("the record at B {} is there twice", at)};
    there[number] = true;
  }
  const auto missing = std::ranges::count(there, false);
  if (missing == 0) return {};
  return {Seen::old, fmt::format("{} of {} appended records are missing", missing, records.size())};
}

void CaseTally::fault(std::uint64_t CaseTally::*count, const std::string& text, std::uint64_t number) {
  if (this->*count == 0 && number > 0) named.push_back(text);
  this->*count += number;
}

void CaseTally::add(const CaseTally& other) {
  checks += other.checks;
  stale += other.stale;
  wrong += other.wrong;
  lies += other.lies;
  failures += other.failures;
  visible_after_s = std::max(visible_after_s, other.visible_after_s);
}

void check_until_right(CaseTally& tally, const std::function<Look()>& look, Seconds wait, const std::string& who) {
  const auto begin = std::chrono::steady_clock::now();
  const auto passed_s = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  ++tally.checks;
  const Look first = look();
  Look last = first;
  double at_s = 0;
  while (last.seen == Seen::old && at_s < wait.count) {
    if (stop_requested()) throw std::runtime_error("stopped by a signal");
    std::this_thread::sleep_for(kPauseBetweenLooks);
    last = look();
    at_s = passed_s();
  }
  if (first.seen == Seen::right) return;
  if (last.seen == Seen::wrong) return tally.fault(&CaseTally::wrong, fmt::format("{}: wrong: {}", who, last.text));
  if (last.seen == Seen::old) {
    return tally.fault(&CaseTally::lies,
                       fmt::format("{}: reported as done, but after {:g} s {}", who, wait.count, last.text));
  }
  tally.visible_after_s = std::max(tally.visible_after_s, at_s);
  tally.fault(&CaseTally::stale, fmt::format("{}: stale for {:.3f} s: {}", who, at_s, first.text));
}

}  // namespace assay::cluster_storage
