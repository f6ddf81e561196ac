// rack_run: phases of one rack: sampled pairs in rounds, bisection, all to one, multicast; then links and figures.
//
// Work that shall run at once is asked of all ranks by one message, which does not reach them at one time. So each
// works for a margin before and after the part that counts. The wait for the answers is at least the latest begin plus
// that rank's work, and no rank begins before the message is sent: the wait less the shortest work bounds how far two
// begins are apart. While that is within half of the margin, which also has room for a batch, all others are at work in
// every counted part; else the phase is run again with a longer margin, once, and the condition together says
// whether it was.
#include "probes/cuda/rack_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "probes/core/statistics.h"
#include "probes/cuda/rack_plan.h"

namespace assay::cuda {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr Seconds kShareLimit = {60};  // making and mapping memory of all ranks
constexpr Seconds kMoveGrace = {30};   // beyond a phase's own time: a rank that hangs has said so by then
constexpr int kMostRepeats = 1;        // of a phase in which not all were at work, with a margin that much longer
constexpr double kLongerMargin = 8;

/// Rates of one phase, by the rank that moved.
struct Moved {
  std::map<std::size_t, std::vector<double>> rates;
  bool together = false;
};

class RackRun {
 public:
  RackRun(collective::Fleet& fleet, const Parameters& given, Recorder& record)
      : fleet_(fleet),
        given_(given),
        record_(record),
        size_(given.bytes("size").count),
        window_(given.seconds("window")),
        all_{.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))} {}

  void run() {
    meet();
    share();
    sampled("write_bandwidth", false);
    sampled("read_bandwidth", true);
    figures();
    bisection();
    all_to_one();
    multicast();
    for (const auto& [pair, wrong] : mismatches_) record_.measurement("mismatches", wrong, subject_of(pair));
    links();
    record_.condition("together", together_);
  }

 private:
  std::vector<json> ask(const json& request, Seconds limit) { return fleet_.ask(request, limit); }

  /// All GPUs introduce themselves, and the fabric is checked; nothing is allocated before.
  void meet() {
    const auto answers = ask({{"do", "hello"}}, collective::kHelloLimit);
    const std::size_t here = fleet_.ranks_per_node();
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      const json& one = answers[rank];
      const std::string& node = fleet_.nodes()[rank / here];
      const bool shared = std::ranges::count(fleet_.nodes(), node) > 1;
      RackGpu gpu{.tray = shared ? fmt::format("{}#{}", node, rank / here) : node,
                  .uuid = one.at("uuid"),
                  .state = one.at("state"),
                  .cluster = one.value("cluster", ""),
                  .fabric_handles = one.at("fabric_handles"),
                  .posix_handles = one.at("posix_handles"),
                  .multicast = one.at("multicast")};
      if (one.contains("clique")) gpu.clique = one.at("clique").get<unsigned>();
      const bool twice = std::ranges::any_of(gpus_, [&](const RackGpu& other) { return other.name() == gpu.name(); });
      if (twice) gpu.uuid += fmt::format(":{}", rank % here);  // several processes of one GPU
      gpus_.push_back(std::move(gpu));
    }
    trays_ = trays_of(gpus_);
    check_room(answers);
    sharing_ = check_fabric(gpus_);
    record_.condition("handles", std::string(word_of(sharing_.kind)));
    if (!sharing_.reason.empty()) record_.condition("handles_reason", sharing_.reason);
    record_.condition("fabric_state", gpus_.front().state);
    if (gpus_.front().clique) record_.condition("fabric_clique", std::int64_t{*gpus_.front().clique});
    if (!gpus_.front().cluster.empty()) record_.condition("fabric_uuid", gpus_.front().cluster);
  }

  /// A payload and a landing place of each process must fit into the free memory of its GPU.
  void check_room(const std::vector<json>& answers) const {
    constexpr std::uint64_t kGranule = std::uint64_t{2} << 20U;  // of an allocation
    const auto up = [](std::uint64_t size) { return (size + kGranule - 1) / kGranule * kGranule; };
    const auto sharers = static_cast<std::uint64_t>(given_.count("processes_per_gpu"));
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      const std::uint64_t free = answers[rank].at("free"), most = free / 2 / sharers / kGranule * kGranule;
      if (up(size_) > most)
        throw BadParameter(
            fmt::format("size: {} B twice for each of {} processes do not fit into the {} B of {} that are "
                        "free; the nearest that fits: {}",
                        size_, sharers, free, gpus_[rank].name(), most));
    }
  }

  void share() {
    slot_ = share_of_landing(size_, gpus_.size() - 1);
    const auto wanted = given_.text("multicast");
    const bool able = std::ranges::all_of(gpus_, &RackGpu::multicast) && given_.text("engine") == "sm";
    if (wanted == "1" && !able)
      throw std::runtime_error("multicast: not every GPU has it, or the engine is not sm; hint: leave it out");
    multicast_ = wanted != "0" && able && gpus_.size() > 1;
    record_.condition("multicast", multicast_);
    const auto given =
        ask({{"do", "export"}, {"kind", word_of(sharing_.kind)}, {"multicast", multicast_}}, kShareLimit);
    json handles = json::array(), names = json::array();
    for (const auto& one : given) handles.push_back(one.at("handle"));
    for (const auto& gpu : gpus_) names.push_back(gpu.name());
    (void)ask({{"do", "import"}, {"handles", handles}, {"names", names}}, kShareLimit);  // an error has been thrown
  }

  [[nodiscard]] Subject subject_of(DevicePair pair) const {
    return {.kind = "pair", .id = gpus_[pair.source].name() + ">" + gpus_[pair.target].name()};
  }
  [[nodiscard]] Subject subject_of(std::size_t rank) const { return {.kind = "group", .id = gpus_[rank].name()}; }

  /// One request in which ranks work for a while, again while they do not do so at once and `at_once` demands it.
  Moved timed(json request, bool at_once) {
    Moved moved;
    double lead_s = window_.count / 2;
    for (int repeat = 0; !moved.together && repeat <= kMostRepeats; ++repeat) {
      request["lead_s"] = lead_s;
      request["counted_s"] = window_.count;
      moved = {};
      const auto begin = Clock::now();
      const auto answers = ask(request, {2 * lead_s + window_.count + kMoveGrace.count});
      const double wait_s = std::chrono::duration<double>(Clock::now() - begin).count();
      double shortest_s = wait_s;
      for (std::size_t rank = 0; rank < answers.size(); ++rank) {
        auto rates = answers[rank].at("rates").get<std::vector<double>>();
        if (rates.empty()) continue;
        shortest_s = std::min(shortest_s, answers[rank].value("spent_s", wait_s));
        moved.rates.emplace(rank, std::move(rates));
      }
      moved.together = !at_once || wait_s - shortest_s <= lead_s / 2;
      lead_s *= kLongerMargin;
    }
    together_ = together_ && moved.together;
    return moved;
  }

  /// Moves `size` B along `flows` and checks the landing places. The rates are by the rank that moves.
  Moved move(const std::vector<DevicePair>& flows, bool read, std::size_t size, bool slots, bool at_once) {
    json list = json::array();
    for (const auto& flow : flows) list.push_back({flow.source, flow.target});
    json request = {{"do", "move"}, {"flows", list}, {"read", read}, {"size", size}, {"slots", slots}};
    Moved moved = timed(request, at_once);
    request["do"] = "check";
    take_mismatches(ask(request, kShareLimit));
    return moved;
  }

  void take_mismatches(const std::vector<json>& answers) {
    for (std::size_t target = 0; target < answers.size(); ++target) {
      for (const auto& one : answers[target].at("mismatches")) {
        const DevicePair pair{.source = one.at(0), .target = target};
        if (pair.source != target) mismatches_[pair] += one.at(1).get<double>();
      }
    }
  }

  void sampled(const char* metric, bool read) {
    const auto pairs = sampled_pairs(trays_, static_cast<std::size_t>(given_.count("peers")),
                                     static_cast<std::uint64_t>(given_.count("seed")));
    const auto rounds = rounds_of(pairs);
    for (const auto& round : rounds) {
      const Moved moved = move(round, read, size_, false, false);
      for (const DevicePair pair : round) {
        const auto& rates = moved.rates.at(read ? pair.target : pair.source);
        record_.measurement(metric, Sampling{.samples = rates, .warmup = {}, .stopped = "fixed"}, subject_of(pair));
        pairs_.push_back(pair);
        rates_.push_back(median(rates));
      }
    }
    record_.condition("pairs", static_cast<std::int64_t>(pairs.size()));
    record_.condition("rounds", static_cast<std::int64_t>(rounds.size()));
  }

  /// Of both directions of initiative, as each is a transfer from the source to the target.
  void figures() {
    const RackFigures all = rack_figures(trays_, pairs_, rates_);
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      if (all.sent[rank]) record_.measurement("gpu_send_bandwidth", *all.sent[rank], subject_of(rank));
      if (all.received[rank]) record_.measurement("gpu_receive_bandwidth", *all.received[rank], subject_of(rank));
    }
    for (std::size_t tray = 0; tray < trays_.names.size(); ++tray) {
      if (all.of_tray[tray])
        record_.measurement("tray_bandwidth", *all.of_tray[tray], {.kind = "group", .id = trays_.names[tray]});
    }
    record_.measurement("rack_median", all.middle, all_);
    record_.measurement("rack_minimum", all.least, all_);
  }

  void bisection() {
    const Moved moved = move(bisection_pairs(gpus_.size()), false, size_, false, true);
    double sum = 0;
    for (const auto& [rank, rates] : moved.rates) {
      record_.measurement("bisection_gpu_bandwidth", Sampling{.samples = rates, .warmup = {}, .stopped = "fixed"},
                          subject_of(rank));
      sum += median(rates);
    }
    record_.measurement("bisection_bandwidth", sum, all_);
  }

  void all_to_one() {
    std::vector<std::int64_t> left(trays_.names.size(), given_.count("targets"));
    for (std::size_t target = 0; target < gpus_.size(); ++target) {
      if (left[trays_.of_rank[target]]-- <= 0) continue;
      double sum = 0;
      for (const auto& [rank, rates] : move(pairs_to(target, gpus_.size()), false, slot_, true, true).rates)
        sum += median(rates);
      record_.measurement("all_to_one_bandwidth", sum, subject_of(target));
    }
  }

  void multicast() {
    if (!multicast_) return;
    const auto step = [&](const char* what, json more = json::object()) {
      more["do"] = "multicast";
      more["step"] = what;
      return ask(more, kShareLimit);
    };
    const auto handle = step("make").front().at("handle").get<std::string>();
    if (handle.empty()) throw std::runtime_error("the GPUs multicast, and no kernel of this build does");
    (void)step("join", {{"handle", handle}});  // an error has been thrown, here and below
    (void)step("bind");
    for (std::size_t root = 0; root < gpus_.size(); ++root) {
      const Moved moved = timed({{"do", "multicast"}, {"step", "send"}, {"root", root}}, false);
      record_.measurement("multicast_bandwidth",
                          Sampling{.samples = moved.rates.at(root), .warmup = {}, .stopped = "fixed"},
                          subject_of(root));
      take_mismatches(step("check", {{"root", root}}));
    }
  }

  void links() {
    std::vector<std::vector<LinkSeen>> seen;
    for (const auto& answer : ask({{"do", "links"}}, collective::kHelloLimit)) {
      auto& own = seen.emplace_back();
      for (const auto& link : answer.at("links")) own.push_back({.number = link.at(0), .at_fault = link.at(1)});
    }
    const bool known = std::ranges::none_of(seen, [](const auto& links) { return links.empty(); });
    record_.condition("links_known", known);
    const LinkFaults faults = link_faults(seen);
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      if (seen[rank].empty()) continue;
      const auto& own = faults.links_of_rank[rank];
      record_.measurement("link_faults", static_cast<double>(own.size()), subject_of(rank));
      if (!own.empty()) record_.condition("links_at_fault", fmt::format("{}", fmt::join(own, " ")), subject_of(rank));
    }
    for (const auto& [number, count] : faults.planes)
      record_.measurement("plane_faults", static_cast<double>(count),
                          {.kind = "group", .id = fmt::format("plane {}", number)});
  }

  struct ByEnds {
    bool operator()(DevicePair a, DevicePair b) const {
      return std::pair(a.source, a.target) < std::pair(b.source, b.target);
    }
  };

  collective::Fleet& fleet_;
  const Parameters& given_;
  Recorder& record_;
  std::size_t size_;
  std::size_t slot_ = 0;  ///< of the landing place, for each of all others
  Seconds window_;
  Subject all_;
  std::vector<RackGpu> gpus_;
  Trays trays_;
  Sharing sharing_;
  bool multicast_ = false, together_ = true;
  std::vector<DevicePair> pairs_;  ///< measured so far, and
  std::vector<double> rates_;      ///< their medians
  std::map<DevicePair, double, ByEnds> mismatches_;
};

}  // namespace

void run_rack(collective::Fleet& fleet, const Parameters& given, Recorder& record) {
  RackRun(fleet, given, record).run();
}

}  // namespace assay::cuda
