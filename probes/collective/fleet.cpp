// fleet: passes requests down to the ranks and answers up to the leader.
#include "probes/collective/fleet.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "probes/collective/local_ranks.h"
#include "probes/core/json_io.h"

namespace assay::collective {

using nlohmann::json;

namespace {

constexpr const char* kOver = "over";  // instead of a request: none follows

json parsed(const std::string& text, std::string_view from) {
  auto value = parse_json(text, std::string(from));
  if (!value)
    throw std::runtime_error(
        fmt::format("{} said something that is no JSON: {}\n{}", from, text.substr(0, 200), value.error().text()));
  return std::move(*value);
}

}  // namespace

Fleet::Fleet(AskLocal ask, std::vector<std::string> titles, std::string node, Rendezvous* group)
    : ask_(std::move(ask)), group_(group) {
  const std::string mine = json{{"node", node}, {"ranks", titles}}.dump();
  const auto all = group_ != nullptr ? group_->all_gather(mine) : std::vector{mine};
  for (const auto& text : all) {
    const json one = parsed(text, "a leader");
    nodes_.push_back(one.at("node"));
    const auto there = one.at("ranks").get<std::vector<std::string>>();
    if (there.size() != titles.size()) {
      throw std::runtime_error(
          fmt::format("{} has {} ranks and {} has {}; a collective over several nodes needs the same number on each",
                      nodes_.back(), there.size(), node, titles.size()));
    }
    for (const auto& title : there)
      titles_.push_back(fmt::format("rank {} ({} {})", titles_.size(), nodes_.back(), title));
  }
}

/// Puts a message ({"request", "limit_s"}) to the ranks of this node; their answers as one array.
std::string Fleet::ask_here(const std::string& message) {
  const json whole = parsed(message, "the leader of rank 0");
  const json& request = whole.at("request");
  std::vector<std::string> answers;
  try {
    answers = ask_(request.dump(), Seconds{whole.at("limit_s").get<double>()});
  } catch (const RankLost& lost) {
    throw RankLost(lost.how, fmt::format("{}, asked to {}", lost.what(), request.at("do").get<std::string>()));
  }
  json array = json::array();
  for (const auto& answer : answers) array.push_back(parsed(answer, "a rank of this node"));
  return array.dump();
}

std::vector<json> Fleet::ask(const json& request, Seconds limit) {
  const std::string message = json{{"request", request}, {"limit_s", limit.count}}.dump();
  if (group_ != nullptr) (void)group_->broadcast(message);  // it returns the message
  const std::string here = ask_here(message);
  std::vector<json> answers;
  for (const auto& text : group_ != nullptr ? group_->all_gather(here) : std::vector{here}) {
    for (auto& answer : parsed(text, "a leader")) answers.push_back(std::move(answer));
  }
  if (answers.size() != titles_.size()) {
    throw std::runtime_error(fmt::format("{} answers of {} ranks", answers.size(), titles_.size()));
  }
  // A rank that waits for others is not the one that failed, if there is another.
  for (const bool waits : {false, true}) {
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      const auto error = answers[rank].find("error");
      if (error != answers[rank].end() && answers[rank].contains("waits") == waits)
        throw std::runtime_error(fmt::format("{}: {}", titles_[rank], error->get<std::string>()));
    }
  }
  return answers;
}

std::map<std::string, std::vector<json>> Fleet::follow() {
  std::map<std::string, std::vector<json>> last;
  while (true) {
    const std::string message = group_->broadcast("");
    if (message == kOver) return last;
    const std::string answers = ask_here(message);
    (void)group_->all_gather(answers);  // the leader of rank 0 judges them
    const std::string what = parsed(message, "the leader of rank 0").at("request").at("do");
    last[what] = parsed(answers, "this node").get<std::vector<json>>();
  }
}

void Fleet::release() {
  if (group_ != nullptr) (void)group_->broadcast(kOver);  // it returns the message
}

}  // namespace assay::collective
