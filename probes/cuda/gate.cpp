// gate: the flags of a gate, in memory that host and device see.
#include "probes/cuda/gate.h"

#include <cstdlib>
#include <stdexcept>

namespace assay::cuda {

Gate::Gate() : flags_(Bytes{2 * sizeof(std::uint64_t)}), longest_hold_(kLongestHold) {
  constexpr double kLeast = 1, kMost = 100;
  const char* given = std::getenv("ASSAY_GATE_SECONDS");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  if (seconds >= kLeast && seconds <= kMost) longest_hold_ = {seconds};
}

void Gate::close(const Stream& stream) {
  auto* flags = flags_.as<std::uint64_t>();
  enqueue_hold(flags, flags + 1, ++round_, longest_hold_, stream);
}

void Gate::open() {
  // Written through a volatile pointer: the reader is a device, which the compiler cannot see.
  *static_cast<volatile std::uint64_t*>(flags_.as<std::uint64_t>()) = round_;
}

void Gate::check_held() const {
  if (*static_cast<volatile const std::uint64_t*>(flags_.as<std::uint64_t>() + 1) != 0) {
    throw std::runtime_error(
        "the gate before a measurement opened too early: enqueueing took longer than the gate's time");
  }
}

}  // namespace assay::cuda
