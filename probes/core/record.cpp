// record: the names of subjects and of states.
#include "probes/core/record.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace assay {

std::optional<double> number_in(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

bool is_subject_kind(const std::string& kind) {
  constexpr std::array<std::string_view, 16> kKinds = {"node",  "cpu",  "dimm",  "gpu",        "nic",  "drive",
                                                       "rank",  "pair", "group", "cluster",    "rack", "feed",
                                                       "shelf", "cdu",  "meter", "switch_port"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

std::size_t longest_id(std::string_view kind) { return kind == "group" ? kLongestGroup : kLongestSubject; }

const char* to_string(Status status) {
  switch (status) {
    case Status::complete:
      return "complete";
    case Status::skip:
      return "skip";
    case Status::error:
      return "error";
  }
  return "error";
}

std::vector<const Condition*> conditions_of(const Record& record, std::string_view name, const Subject& subject) {
  std::vector<const Condition*> found;
  const auto fits = [&](const Condition& one) {
    return one.name == name && (one.subject == subject || one.subject.kind == "node");
  };
  if (record.sorted.size() != record.conditions.size()) {
    for (const auto& one : record.conditions) {
      if (fits(one)) found.push_back(&one);
    }
    return found;
  }
  // A kind after "node" and one before it: two ranges, which are one when the subject is the node.
  const auto key = [&](std::size_t i) {
    const Condition& one = record.conditions[i];
    return std::tie(one.name, one.subject.kind, one.subject.id);
  };
  const auto add = [&](const std::string& kind, const std::string* id) {
    const std::string text(name);
    static const std::string kFirst;
    auto at = std::ranges::lower_bound(record.sorted, std::tie(text, kind, id == nullptr ? kFirst : *id), {}, key);
    for (; at != record.sorted.end(); ++at) {
      const Condition& one = record.conditions[*at];
      if (one.name != name || one.subject.kind != kind || (id != nullptr && one.subject.id != *id)) break;
      found.push_back(&one);
    }
  };
  add("node", nullptr);
  if (subject.kind != "node") add(subject.kind, &subject.id);
  std::ranges::sort(found);  // they are in one vector, so their addresses have the order of the lines
  return found;
}

}  // namespace assay
