// recorder: writes a record line by line, each flushed at once, and refuses entries that the spec does not declare.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "probes/core/probe.h"
#include "probes/core/sampling.h"

namespace assay {

/// One record being written. Every call writes one line; a measurement or condition that the spec does not declare, or
/// a number that is not finite, throws std::logic_error and nothing is written.
class Recorder {
 public:
  /// Clock for the time of a line.
  using Clock = std::function<std::chrono::system_clock::time_point()>;

  /// Writes the start line at once. `out` must outlive the recorder. A simulation has a clock of its own.
  Recorder(std::ostream& out, const ProbeSpec& spec, const Start& start, Clock clock = std::chrono::system_clock::now);

  /// Records every sample of `metric`, in the metric's unit. An empty subject id means this node.
  void measurement(std::string_view metric, const Sampling& sampling, Subject subject = {}, Values at = {});
  /// Records one exact or derived value as a measurement of one sample.
  void measurement(std::string_view metric, double value, Subject subject = {}, Values at = {});
  /// Records one circumstance.
  void condition(std::string_view name, Value value, Subject subject = {});
  /// Records a remark for people.
  void note(std::string_view text);
  /// Writes the last line; nothing may follow.
  void end(const End& end);

 private:
  void write(const char* kind, const nlohmann::ordered_json& body);
  [[nodiscard]] Subject named(Subject subject) const;

  std::ostream& out_;
  const ProbeSpec& spec_;
  Clock clock_;
  std::string host_name_;
  int sequence_ = 0;
};

}  // namespace assay
