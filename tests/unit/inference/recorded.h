// recorded: what a function writes to a record, metric by metric, with whatever metrics it likes.
#pragma once

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/recorder.h"

namespace assay::inference {

/// Samples by metric and the value of its first coordinate ("" without one); "note" has one entry for each note.
using Recorded = std::map<std::pair<std::string, std::string>, std::vector<double>>;

/// Runs `work` with a recorder that knows `metrics`, all of unit "1" here.
inline Recorded recorded(const std::vector<std::string_view>& metrics, const std::function<void(Recorder&)>& work) {
  std::vector<Metric> known;
  for (const auto& name : metrics) known.push_back({.name = name, .unit = "1", .meaning = "of the test"});
  const ProbeSpec spec{.name = "test_probe", .measures = "A.", .method = "B.", .source = "C.", .metrics = known};
  std::ostringstream out;
  Recorder recorder(out, spec, Start{.probe = "test_probe", .revision = 1, .host = {{"name", std::string("n")}}});
  work(recorder);
  Recorded all;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    const auto document = nlohmann::json::parse(line);
    if (document.contains("note")) all[{"note", ""}].push_back(1);
    if (!document.contains("measurement")) continue;
    const auto& one = document.at("measurement");
    std::string at;
    if (one.contains("at")) {
      const auto& value = one.at("at").begin().value();
      at = value.is_string() ? value.get<std::string>() : value.dump();
    }
    auto& samples = all[{one.at("metric"), at}];
    for (const auto& sample : one.at("samples")) samples.push_back(sample);
  }
  return all;
}

}  // namespace assay::inference
