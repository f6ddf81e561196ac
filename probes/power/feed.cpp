// power_feed: the meters of a site, read from the head while something else runs.
#include <cstdio>
#include <cstdlib>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/meters/feed_spec.h"
#include "probes/meters/feed_watch.h"

namespace assay::power {
namespace {

constexpr ProbeSpec kSpec{
    .name = "power_feed",
    .revision = 4,
    .companion = true,
    .measures =
        "Power, energy and coolant of racks, feeds, shelves and cooling units by their own meters, while something "
        "else runs.",
    .method =
        "Reads every meter of the site by a thread of its own, once an interval, with the meter's timeout as the "
        "longest wait: a meter that hangs delays no other. A reading belongs to the slot of UTC, a multiple of the "
        "interval, that holds the middle between question and answer; a stretch without a gap is one measurement, "
        "whose at has begin_s (s since 1970, by this machine's clock), interval_s and the meter. After 20,000 slots "
        "neighbours are joined in pairs. Scales are those of the model in the site; power is compared with voltage x "
        "current x power factor of the same strip (3 % on one phase; with three phases only a scale wrong by ten "
        "shows), heat with flow x rise of the coolant as water (10 %). What is stuck, absent, stale, mis-scaled, at "
        "the end of 16 bits, coarse, computed by the instrument, slower than a minute or full of gaps is named in "
        "meter_doubts. Power supplies that the site names for one chassis are added up, and the sum is absent where "
        "one of them is. Figures of several meters are computed slot by slot, and at.meters names them; a slot "
        "in which one of them gave nothing has no figure. The judge joins what needs the record of a load: "
        "energy_efficiency; outlets_wrong from turns, in which one node after another works: an outlet rose when its "
        "mean over a window is higher by 5 W and a tenth of the strongest rise than before; and agreement from stairs, "
        "by five windows of a minute at idle, half and full load, without the highest and the lowest of each, as "
        "MLPerf Training compares two meters.",
    .source =
        "DCMI specification 1.5; DMTF Redfish schemas (DSP8010); APC PowerNet-MIB and Raritan PDU2-MIB as public "
        "exporters and Network UPS Tools read them; Modbus application protocol 1.1b3; MLCommons training policies, "
        "power_measurement.adoc (one sample a second, evenly).",
    .needs = "a site file with the list meters, and Net-SNMP, libmodbus, libfreeipmi or libcurl for their kinds",
    .deadline = {meters::kLongestFeed_s},
    .parameters = meters::kFeedParameters,
    .metrics = meters::kFeedMetrics,
    .conditions = meters::kFeedConditions};

void measure(const Parameters& given, Recorder& record) {
  meters::FeedWatch feed(given);
  const std::string over_limit = feed.wait();
  feed.stop();
  feed.record(over_limit, record);
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) {
  const int code = assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure);
  (void)std::fflush(stdout);  // the record is out, line by line; errors of writing were thrown before
  std::_Exit(code);           // a thread may still wait inside a library
}
