// account: lines of the journal and their sum.
#include "orchestrator/drain/account.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/strict_object.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::drain {
namespace {

constexpr const char* kSchema = "assay.drain/1";
constexpr const char* kAccountHint =
    "the file is written by `assay drain` alone: put it aside only after a look at the nodes";

template <class Enum>
Enum word_in(StrictObject& object, const char* name) {
  const auto word = from_word<Enum>(object.text(name));
  if (!word) object.refuse(name, "is an unknown word; known are " + words_listed<Enum>());
  return *word;
}

}  // namespace

std::string text_of(const Line& line) {
  return nlohmann::json{{"schema", kSchema},   {"time", line.time},     {"night", drift::date_text(line.night)},
                        {"entry", line.entry}, {"action", line.action}, {"node", line.node},
                        {"flag", line.flag},   {"reason", line.reason}}
      .dump();
}

std::expected<Line, InputError> line_from(const std::string& text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] {
    StrictObject object(*document, "", kAccountHint);
    if (object.text("schema") != kSchema) object.refuse("schema", "is not assay.drain/1");
    Line line{.time = object.text("time", is_utc_text)};
    const auto night = drift::date_from(object.text("night"));
    if (!night) object.refuse("night", "is no date");
    line.night = *night;
    line.entry = word_in<Entry>(object, "entry");
    line.action = word_in<Action>(object, "action");
    line.node = object.text("node", is_node_name);
    line.flag = object.text("flag");
    line.reason = object.text("reason");
    object.done();
    return line;
  });
}

std::expected<Account, InputError> Account::from(const std::vector<std::string>& lines, const std::string& where) {
  Account account;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto line = line_from(lines[i], fmt::format("{}: line {}", where, i + 1));
    if (!line) return std::unexpected(line.error());
    account.take(*line);
  }
  return account;
}

void Account::take(const Line& line) {
  if (line.entry == Entry::begin) {
    begun_[line.node] = line;
    return;
  }
  begun_.erase(line.node);
  if (line.entry == Entry::failed) return;
  if (line.entry == Entry::lifted) {
    lifted_.emplace(line.node, line.flag);
    drained_.erase(line.node);
  } else if (line.action == Action::release) {
    drained_.erase(line.node);
  } else {
    drained_[line.node] = {
        .node = line.node, .flag = line.flag, .reason = line.reason, .time = line.time, .night = line.night};
    drains_.push_back(drained_[line.node]);
  }
}

std::vector<Line> Account::open() const {
  std::vector<Line> lines;
  for (const auto& [node, line] : begun_) lines.push_back(line);
  return lines;
}

int Account::drains_of(drift::Date night, std::chrono::system_clock::time_point time) const {
  constexpr std::chrono::hours kOneNight{12};
  const std::string since = utc_text(time - kOneNight);
  return static_cast<int>(
      std::ranges::count_if(drains_, [&](const OwnDrain& one) { return one.night == night || one.time > since; }));
}

int Account::drains_of(const std::string& node, drift::Date night, int days) const {
  return static_cast<int>(std::ranges::count_if(drains_, [&](const auto& one) {
    return one.node == node && one.night <= night && one.night > night - std::chrono::days(days);
  }));
}

bool Account::is_lifted(const std::string& node, const std::string& flag) const {
  return lifted_.contains({node, flag});
}

}  // namespace assay::drain
