// failover: effect of the loss of one feed on nodes and feeds, from readings. Arithmetic only.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/core/meter_list.h"
#include "probes/meters/reading.h"

namespace assay::meters {

/// A meter with its readings of power so far, in the order taken. An absent one counts as no power.
struct FeedReadings {
  const Meter* meter = nullptr;
  std::vector<MeterReading> readings;
};

/// A feed that went away while its rack drew power.
struct FeedLoss {
  std::string feed, rack;                 ///< the meter's name, and its rack
  double lost_s = 0;                      ///< the first reading without power, s since 1970
  std::optional<double> restored_s = {};  ///< the first with its part of the power again
};

/// Of each rack the first feed that lost its power: after five readings of more than a tenth of an equal part of its
/// rack's, two in a row below a fiftieth of its former power, or no reading for three intervals while another feed of
/// the rack was read. `only` limits it to the meter of this name, or to the feeds of this letter; empty: any feed.
/// Empty while all carry their load. In the order of the racks' names.
std::vector<FeedLoss> feed_losses(std::span<const FeedReadings> meters, const std::string& only, double interval_s,
                                  double now_s);

/// Effects of a loss.
struct Failover {
  FeedLoss loss;
  std::vector<std::string> lost_nodes;    ///< their own supply fell below a tenth of its power before, for good or not
  std::vector<std::string> unseen_nodes;  ///< without a meter of their own
  std::map<std::string, double> rise_w;   ///< of the other feeds of the rack: mean after less mean before
  std::map<std::string, double> rating_share;  ///< of them: their highest reading after the loss over their rating
  double dip = 1;                              ///< the rack's lowest power after the loss over the mean before
  double dip_s = 0;                            ///< how long the rack drew less than 0.9 of the mean before
  std::optional<double> outage_s = {};         ///< from the loss to the return
  std::optional<double> imbalance = {};  ///< after the return: the feed over an equal part, less 1, as a magnitude
};

/// Reads the loss out of the meters of its rack: feeds, and each of its nodes (on an outlet of them, or with a meter of
/// this rack) by its own meter or its outlets. Refused with the reason: less than five readings of a feed before the
/// loss, no second feed, none after it.
std::expected<Failover, std::string> failover_of(std::span<const FeedReadings> meters, const FeedLoss& loss,
                                                 double interval_s);

}  // namespace assay::meters
