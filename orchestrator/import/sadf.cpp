// sadf: counters of a server over time, in the JSON of sysstat's `sadf -j` (json_stats.c of github.com/sysstat/sysstat,
// 12.6). Load of processors, disks, ports and the NFS server is taken, all else passed over.
#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"
#include "probes/core/utc_time.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kSadfHint =
    "record with `sar -o FILE 1` and print with `sadf -j FILE -- -u -q -d -n NFSD,DEV`, a long time in parts (-s, -e)";

/// A field of an activity's rows, and the field that names the row.
struct Activity {
  const char *field, *metric, *unit, *of;
  double factor = 1;
};
constexpr Activity kQueue[] = {{"runq-sz", "run_queue", "1", ""}, {"blocked", "blocked_tasks", "1", ""}};
constexpr Activity kDisks[] = {{"util-percent", "disk_busy", "1", "disk-device", 0.01},
                               {"aqu-sz", "disk_queue", "1", "disk-device"}};
constexpr Activity kPorts[] = {{"ifutil-percent", "port_busy", "1", "iface", 0.01}};
constexpr Activity kNfsServer[] = {{"scall", "nfsd_calls", "1/s", ""}, {"badcall", "nfsd_bad_calls", "1/s", ""}};

class SadfReader {
 public:
  explicit SadfReader(Figures& figures) : figures_(figures) {}

  void host(StrictObject& host) {
    at_["host"] = host.text("nodename");
    const json& all = host.list("statistics");
    for (std::size_t i = 0; i < all.size(); ++i) {
      StrictObject sample(all[i], fmt::format("{}[{}]", host.path("statistics"), i), kSadfHint);
      take(sample);
    }
  }

 private:
  void take(StrictObject& sample) {
    StrictObject stamp(sample.need("timestamp"), sample.path("timestamp"), kSadfHint);
    const std::string time = fmt::format("{}T{}.000Z", stamp.text("date"), stamp.text("time"));
    constexpr std::int64_t kDay = 86'400;
    at_["interval_s"] = stamp.whole("interval", 1, kDay);
    if (stamp.whole("utc", 0, 1) != 1 || !is_utc_text(time))
      stamp.refuse("time", "is not UTC, so that nothing can be joined with it");
    at_["time"] = time;
    for (const char* name : {"cpu-load", "cpu-load-all"}) {
      if (const json* list = sample.optional(name)) cpu(*list, sample.path(name));
    }
    rows(sample, "queue", kQueue);
    rows(sample, "disk", kDisks);
    if (const json* network = sample.optional("network")) {
      StrictObject activities(*network, sample.path("network"), kSadfHint);
      rows(activities, "net-dev", kPorts);
      rows(activities, "net-nfsd", kNfsServer);
    }
  }

  /// Of all processors together.
  void cpu(const json& list, const std::string& path) {
    for (const auto& element : list) {
      StrictObject row(element, path, kSadfHint);
      constexpr double kWholeLoad = 100;
      if (row.text("cpu") != "all") continue;
      const double idle = row.number("idle", 0, kWholeLoad), waits = row.number("iowait", 0, kWholeLoad);
      add({.metric = "cpu_busy", .unit = "1"}, "", 1 - (idle + waits) / kWholeLoad, path);
      add({.metric = "cpu_waits_for_disks", .unit = "1"}, "", waits / kWholeLoad, path);
    }
  }

  /// One row, or a list of them.
  template <std::size_t kCount>
  void rows(StrictObject& parent, const char* name, const Activity (&activities)[kCount]) {
    const json* found = parent.optional(name);
    if (found == nullptr) return;
    for (const auto& element : found->is_array() ? *found : json::array({*found})) {
      StrictObject row(element, parent.path(name), kSadfHint);
      for (const auto& one : activities) {
        if (row.optional(one.field) == nullptr) continue;  // an older sysstat has fewer
        constexpr double kMost = 1e15;
        const std::string part = *one.of == '\0' ? "" : row.text(one.of);
        add({.metric = one.metric, .unit = one.unit}, part, row.number(one.field, 0, kMost) * one.factor,
            row.path(one.field));
      }
    }
  }

  void add(FigureName name, const std::string& part, double value, const std::string& from) {
    name.statistic = "mean";
    Values at = at_;
    if (!part.empty()) at["part"] = part;
    figures_.count(name, at, value, from);
  }

  Figures& figures_;
  Values at_;  ///< of the current sample
};

}  // namespace

void read_sadf(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json whole = document_of(text, figures, kSadfHint);
  StrictObject top(whole, "", kSadfHint);
  StrictObject sysstat(top.need("sysstat"), "sysstat", kSadfHint);
  const json& hosts = sysstat.list("hosts");
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    StrictObject host(hosts[i], fmt::format("sysstat.hosts[{}]", i), kSadfHint);
    for (const char* fact : {"sysname", "release"}) source.facts[fact] = host.text(fact);
    SadfReader(figures).host(host);
  }
}

}  // namespace assay::imports
