// instrument: a probe's description as the specification that a recorder asks for.
#pragma once

#include <vector>

#include "probes/core/record_reader.h"
#include "probes/core/recorder.h"

namespace assay::simulate {

/// A ProbeSpec, and the lists that it refers to. `description` must outlive it.
class Instrument {
 public:
  explicit Instrument(const Description& description);
  Instrument(const Instrument&) = delete;
  Instrument& operator=(const Instrument&) = delete;

  [[nodiscard]] const ProbeSpec& spec() const { return spec_; }

 private:
  std::vector<Metric> metrics_;
  std::vector<ConditionSpec> conditions_;
  ProbeSpec spec_;
};

}  // namespace assay::simulate
