// feed_spec: parameters, metrics and conditions of a probe that reads the meters of a site.
#pragma once

#include <string_view>

#include "probes/core/probe.h"

namespace assay::meters {

/// The longest that meters are watched, in s.
inline constexpr double kLongestFeed_s = 7 * 24 * 3600;

/// The meters, how often, for how long, and the guard of a load.
inline constexpr Parameter kFeedParameters[] = {
    parameter("meters", "", "", "a site file, or a plan, with the list meters; nothing: there are none"),
    parameter("interval", "s", "1s", "time between readings of a meter, 0.5s to 60s"),
    choice("guard", "no", "no yes",
           "end when a meter is over its rating (rating_w), or has not answered for ten seconds or intervals"),
    parameter("limit", "1", "0", "with guard: end when all racks together are over so many W; 0: no limit"),
    parameter("duration", "s", "0s", "end after this time; 0 means on SIGTERM"),
};

/// A metric that is neither better high nor low.
constexpr Metric feed_reading(std::string_view name, std::string_view unit, std::string_view meaning,
                              Recorded recorded = Recorded::always) {
  return neither(name, unit, meaning, recorded);
}

/// Every metric of the record: series of meters, values derived from several, and values that the judge joins.
inline constexpr Metric kFeedMetrics[] = {
    feed_reading("power", "W", "active power of one meter's subject, or of one outlet (at.outlet), at each reading",
                 Recorded::if_reported),
    feed_reading("apparent_power", "VA", "apparent power, where the meter reports it", Recorded::if_reported),
    feed_reading("energy", "J", "the meter's own energy counter at each reading, if it has one", Recorded::if_present),
    feed_reading("current", "A", "current of the first phase or of the inlet, where the meter reports it",
                 Recorded::if_reported),
    feed_reading("current_l2", "A", "current of the second phase, where the meter reports it", Recorded::if_reported),
    feed_reading("current_l3", "A", "current of the third phase, where the meter reports it", Recorded::if_reported),
    feed_reading("voltage", "V", "voltage of the first phase or of the inlet, where the meter reports it",
                 Recorded::if_reported),
    feed_reading("power_factor", "1", "active over apparent power, where the meter reports it", Recorded::if_reported),
    feed_reading("frequency", "Hz", "frequency of the mains, where the meter reports it", Recorded::if_reported),
    feed_reading("flow", "m3/s", "flow of the coolant, where the meter is of a cooling unit", Recorded::if_present),
    feed_reading("supply_temperature", "degC",
                 "temperature of the coolant to the racks, where the meter is of a cooling unit", Recorded::if_present),
    feed_reading("return_temperature", "degC", "temperature of the coolant back, where the meter is of a cooling unit",
                 Recorded::if_present),
    feed_reading("supply_pressure", "Pa", "pressure of the coolant, where the meter is of a cooling unit",
                 Recorded::if_present),
    feed_reading("delta_pressure", "Pa", "difference of pressure of the coolant, where the meter is of a cooling unit",
                 Recorded::if_present),
    feed_reading("heat", "W", "heat removed by the cooling unit, if it reports that", Recorded::if_reported),
    higher("leak_detectors", "1",
           "leak detectors that are present, enabled and report a state, where the meter has their resources",
           Recorded::if_present),
    lower("leaks", "1", "leak detectors that report a warning or a leak, where the meter has their resources",
          Recorded::if_present),
    feed_reading("outdoor_dry_bulb", "degC", "temperature of the air outside, where a meter has it",
                 Recorded::if_present),
    feed_reading("outdoor_wet_bulb", "degC", "wet-bulb temperature of the air outside, where a meter has it",
                 Recorded::if_present),
    feed_reading("output_power", "W", "output of the power supplies of a chassis, where they report it",
                 Recorded::if_reported),
    feed_reading("voltage_thd", "1", "harmonic distortion of the voltage, where the meter reports it",
                 Recorded::if_reported),
    feed_reading("voltage_deviation", "1",
                 "how far the voltage is off the nominal one of the site, up or down, as a share of it, where the site "
                 "states one (nominal_v)",
                 Recorded::if_reported),
    feed_reading("frequency_deviation", "1",
                 "how far the frequency is off the nominal one of the site, up or down, as a share of it, where the "
                 "site states one (nominal_hz)",
                 Recorded::if_reported),
    feed_reading("supply_efficiency", "1",
                 "output over input of the power supplies of a chassis, where they report both", Recorded::if_reported),
    feed_reading("total_power", "W",
                 "power of a rack: of its own meter, else the sum of its feeds, else of its shelves",
                 Recorded::if_present),
    feed_reading("rating_share", "1", "power over the rating of the meter in the site (rating_w)",
                 Recorded::if_present),
    neither("feed_share", "1",
            "power of a feed over an equal part of the sum of all feeds of its rack; 0: it carries nothing",
            Recorded::if_present),
    feed_reading("phase_imbalance", "1", "(max - mean) / mean of the currents of three phases", Recorded::if_reported),
    feed_reading("heat_share", "1",
                 "flow x rise of a cooling unit, as water, over the power of the rack that it serves, of all racks if "
                 "it names none",
                 Recorded::if_reported),
    feed_reading("power_ratio", "1",
                 "power of the site's intake over that of all racks, at this load and weather; not PUE, which is of "
                 "energy over twelve months",
                 Recorded::if_present),
    higher("energy_efficiency", "FLOP/J",
           "floating-point operations of the nodes of a rack over the energy that the rack drew in the same interval, "
           "where the judge joins the readings with the record of a load",
           Recorded::if_occurred),
    neither("rise_time", "s",
            "10 to 90 % of a step of a load as a meter shows it, where the judge joins the readings with the load's "
            "marks and the meter is fast enough",
            Recorded::if_occurred, 0.06),
    lower("power_ramp", "W/s", "0.8 of that step over its rise time, where the meter states its accuracy, too",
          Recorded::if_reported),
    lower("overshoot", "1", "farthest reading beyond the new level over the step, where the judge joins a step",
          Recorded::if_occurred),
    lower("settling_time", "s",
          "from the load's mark until readings stay within 5 % of the step, where the judge joins a step",
          Recorded::if_occurred, 0.06),
    lower("outlets_wrong", "1",
          "outlets that rose when only one node worked and are not the node's by the site, and those of the node that "
          "did not rise, where the judge joins the readings with a load of shape turns",
          Recorded::if_asked),
    neither("agreement_ratio", "1",
            "power of a node's meter over that of its outlets, or of all nodes' meters over that of their rack, at the "
            "level of load farthest from 1, where the judge joins them by a load of shape stairs",
            Recorded::if_asked),
    feed_reading("agreement_power", "W",
                 "mean of one side (at.side) of such a comparison at a level of load (at.load, in %), where the judge "
                 "joins them",
                 Recorded::if_occurred),
    neither("agreement_gain", "1",
            "slope of the meter over its reference, over three levels, where the judge joins them",
            Recorded::if_occurred),
    neither("agreement_offset", "W",
            "intercept of the line of meter over reference through the levels, where the judge joins them",
            Recorded::if_occurred),
};

/// Every condition of the record.
inline constexpr ConditionSpec kFeedConditions[] = {
    if_present("interval_s", "time between readings that was asked for, in s, where any meter answers"),
    if_present("transport", "protocol of the meter: ipmi, redfish, snmp or modbus, if it is read"),
    if_present("meter_doubts",
               "doubts about the power of the meter (absent, stuck, stale, mis_scaled, wrapped, coarse, synthesised, "
               "slow, gaps), or none, if it is read"),
    if_present("scale_checked",
               "whether the meter reports its power or heat twice, so that its scale was checked, if it is read"),
    if_present("answers", "number of answers of the meter, if it is read"),
    if_present("faults", "number of missing or meaningless answers, if it is read"),
    if_present("answer_max_s", "longest time of an answer, in s, if it is read"),
    if_reported("averaging_s", "window that one reading is the mean of, in s, where meter or site state it"),
    if_reported("accuracy_declared", "relative accuracy, where meter or site state it"),
    if_reported("accuracy_source", "the document that states accuracy and averaging, where the site names it"),
    if_present("implementation", "measured, synthesised or unknown, if it is read"),
    if_reported("clock_offset_s",
                "this machine's time less the meter's own of the newest reading, in s, where the meter reports a time"),
    if_occurred("over_limit", "why a guard ended the load, if it did"),
    if_present("weather_metered", "whether dry and wet bulb outside were read, where any meter answers"),
    if_occurred("energy_boundary", "rack, meters and nodes of an energy_efficiency, where the judge joins one"),
    if_occurred("method_level", "level of EE HPC WG that an energy_efficiency covers, where the judge joins one"),
    if_occurred("accuracy_bound",
                "worst relative accuracy that the meters of an energy_efficiency state, where the judge joins one"),
    if_occurred("meters_unread", "why meters were not read, where some were not"),
};

}  // namespace assay::meters
