// lanes: work on several streams, of one GPU or several, that starts at one moment and is timed on the devices.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "probes/cuda/device.h"
#include "probes/cuda/gate.h"

namespace assay::cuda {

/// Work for one stream. `enqueue` puts it there, with the device current.
struct StreamWork {
  std::size_t device = 0;  ///< place in the list of devices, not the runtime's number
  std::function<void(const Stream&)> enqueue;
};

/// Whether work waits until all of it is enqueued (gated), or starts as it comes. The latter is for what the driver
/// carries out with the host's help, which may never come while the host waits; the time then includes enqueueing.
enum class Begin { gated, as_it_comes };

/// Streams, events and the gate for lanes on some devices.
class StreamSet {
 public:
  /// Up to `per_device` lanes at once on each of `devices`, which are not none.
  StreamSet(std::vector<Device> devices, std::size_t per_device);

  /// Runs all lanes at once; returns for each the time on its device from the common start to its own end. Behind a
  /// gate a lane enqueues at most some hundreds of operations (see Gate). Throws std::logic_error for a device with
  /// more lanes than were asked for, std::runtime_error when work fails, hangs, or did not wait for the common start.
  std::vector<Seconds> run(std::span<const StreamWork> lanes, Begin how = Begin::gated);

  /// Runs the same work on every device: one lane each, enqueue(place of the device, stream).
  std::vector<Seconds> run_on_each(const std::function<void(std::size_t, const Stream&)>& enqueue);

  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }

 private:
  struct OneLane {
    Stream stream;
    Event end;
  };
  struct OneDevice {
    Stream gate;  ///< holds the gate, then the common start
    Event begin;
    std::vector<OneLane> lanes;
  };
  std::vector<Device> devices_;
  std::vector<OneDevice> parts_;
  Gate gate_;
};

}  // namespace assay::cuda
