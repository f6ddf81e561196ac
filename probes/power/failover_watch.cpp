// failover_watch: the meters of a site while an operator takes a feed away and gives it back.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/meters/failover_record.h"
#include "probes/meters/feed_spec.h"
#include "probes/meters/feed_watch.h"

namespace assay::power {
namespace {

constexpr Parameter kOwnParameters[] = {
    parameter("feed", "", "",
              "the feed that the operator takes away: its letter in the site, or the name of one meter; nothing: of "
              "each rack whichever goes first"),
    parameter("event_deadline", "s", "30min",
              "a loss that comes later than this after the first reading is not the one that was announced"),
};
constexpr Metric kOwnMetrics[] = {
    lower("lost_nodes", "1", "nodes whose own supply fell below a tenth of its former value after the feed was lost",
          Recorded::if_occurred),
    meters::feed_reading("feed_rise", "W",
                         "mean of the other feeds of the rack together during the loss, less their mean before",
                         Recorded::if_occurred),
    lower("failover_rating_share", "1",
          "highest reading of the other feeds of the rack since the loss over their rating, the worst of them, where "
          "one was lost and a rating is in the site",
          Recorded::if_occurred),
    higher("power_dip", "1",
           "lowest power of the rack since the loss over its mean before: below 1 nodes lowered "
           "their clocks or went away",
           Recorded::if_occurred),
    lower("dip_time", "s", "how long the rack drew less than 0.9 of its mean before", Recorded::if_occurred),
    neither("outage", "s", "from the first reading without power to the first with half of the former one",
            Recorded::if_occurred),
    lower("restored_imbalance", "1",
          "the feed over an equal part of its rack's feeds, less 1, as a magnitude, over the last five readings, where "
          "it came back",
          Recorded::if_occurred),
};
constexpr ConditionSpec kOwnConditions[] = {
    if_present("event_seen", "whether a feed that carried its load lost it in time, where any meter answers"),
    if_occurred("feed_lost", "the meter of the lost feed"),
    if_occurred("feed_restored", "whether the lost feed carried its part again before the end"),
    if_occurred("nodes_unseen", "nodes of the rack without a meter of their own"),
    if_occurred("nodes_lost", "the nodes that lost_nodes counts, or none"),
    if_occurred("failover_refused", "why nothing follows from a loss"),
};

/// Two lists one after the other.
template <class Item, std::size_t first, std::size_t second>
constexpr std::array<Item, first + second> both(const Item (&a)[first], const Item (&b)[second]) {
  std::array<Item, first + second> all{};
  for (std::size_t i = 0; i < first; ++i) all[i] = a[i];
  for (std::size_t i = 0; i < second; ++i) all[first + i] = b[i];
  return all;
}
constexpr auto kParameters = both(meters::kFeedParameters, kOwnParameters);
constexpr auto kMetrics = both(meters::kFeedMetrics, kOwnMetrics);
constexpr auto kConditions = both(meters::kFeedConditions, kOwnConditions);

constexpr ProbeSpec kSpec{
    .name = "failover_watch",
    .companion = true,
    .measures =
        "What happens to nodes and feeds when an operator takes one feed of a rack away and gives it back, by the "
        "site's meters, while a load is held.",
    .method =
        "Reads and records every meter as power_feed does, and switches nothing. A feed is lost when, after five "
        "readings of more than a tenth of the load of its rack's other feeds, two in a row are below a fiftieth of "
        "their mean, or its meter is silent for three intervals while the others answer; it is back with half of it. A "
        "node is lost when its own meter, or the sum of its outlets, has two readings in a row below a tenth of its "
        "mean before. A meter that loses its own supply with the feed is asked again at growing intervals, up to a "
        "minute, so that outage can be long by so much. Times are known to an interval and the meters' averaging. What "
        "happens within milliseconds (transfer switches, hold-up of supplies) is not seen; a rank that is lost is an "
        "error of the load. An event that does not come is no figure.",
    .source =
        "assay: the procedure of an integrated systems test with a feed pulled by hand; DCMI, Redfish, SNMP and Modbus "
        "as power_feed reads them. The thresholds are this project's own.",
    .needs = "a site file with the list meters: two feeds of a rack, and outlets or BMCs of its nodes",
    .deadline = {meters::kLongestFeed_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// Every power that was read so far.
struct ReadSoFar {
  std::deque<meters::MeterHistory> histories;
  std::vector<meters::FeedReadings> all;
  double begin_s = 0, interval_s = 0;  ///< of the longest slots: after 20,000 neighbours are joined

  explicit ReadSoFar(const meters::Watched& watched) {
    for (const auto& one : watched) {
      const meters::MeterHistory& history = histories.emplace_back(one->history());
      all.push_back(meters::power_so_far(one->meter(), history));
      for (const auto& [key, series] : history.series) interval_s = std::max(interval_s, series.interval_s());
      for (const auto& reading : all.back().readings)
        if (begin_s == 0 || reading.taken_s < begin_s) begin_s = reading.taken_s;
    }
  }
};

/// The losses that were announced: of the feed named, and in time.
std::vector<meters::FeedLoss> announced(const ReadSoFar& read, const Parameters& given) {
  if (read.interval_s <= 0) return {};
  auto losses = meters::feed_losses(read.all, given.text("feed"), read.interval_s, meters::utc_now_s());
  const double latest_s = read.begin_s + given.seconds("event_deadline").count;
  std::erase_if(losses, [&](const meters::FeedLoss& one) { return one.lost_s > latest_s; });
  return losses;
}

/// Informs the operator on standard error.
class Teller {
 public:
  void tell(const std::vector<meters::FeedLoss>& losses) {
    for (const auto& loss : losses) {
      if (lost_.insert(loss.feed).second) say(loss.feed + " carries nothing; give it back when the load is to go on");
      if (loss.restored_s && restored_.insert(loss.feed).second) say(loss.feed + " carries its part again");
    }
  }

 private:
  static void say(const std::string& words) { (void)std::fputs((words + "\n").c_str(), stderr); }

  std::set<std::string> lost_, restored_;
};

void measure(const Parameters& given, Recorder& record) {
  meters::FeedWatch feed(given);
  Teller teller;
  double looked_s = meters::utc_now_s();
  const std::string over_limit = feed.wait([&] {
    if (meters::utc_now_s() - looked_s < feed.interval_s()) return false;
    looked_s = meters::utc_now_s();
    teller.tell(announced(ReadSoFar(feed.watched()), given));
    return false;  // the load decides when it is over, or the duration
  });
  feed.stop();
  feed.record(over_limit, record);
  const ReadSoFar read(feed.watched());
  const auto losses = announced(read, given);
  meters::record_failovers(read.all, losses, read.interval_s, record);
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) {
  const int code = assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure);
  (void)std::fflush(stdout);  // the record is out, line by line; errors of writing were thrown before
  std::_Exit(code);           // a thread may still wait inside a library
}
