// lanes: one gate before each device's common start; lanes wait for that start on the device itself.
#include "probes/cuda/lanes.h"

#include <stdexcept>
#include <utility>

namespace assay::cuda {
namespace {

/// Pinned memory makes a context on the current GPU, which must be one of those that were chosen.
Gate gate_of(const std::vector<Device>& devices) {
  use(devices.front());
  return {};
}

}  // namespace

StreamSet::StreamSet(std::vector<Device> devices, std::size_t per_device)
    : devices_(std::move(devices)), gate_(gate_of(devices_)) {
  for (const Device& device : devices_) {
    use(device);
    OneDevice part{.gate = make_stream(), .begin = make_event(), .lanes = {}};
    for (std::size_t i = 0; i < per_device; ++i) part.lanes.push_back({.stream = make_stream(), .end = make_event()});
    parts_.push_back(std::move(part));
  }
}

std::vector<Seconds> StreamSet::run(std::span<const StreamWork> lanes, Begin how) {
  std::vector<std::size_t> taken(parts_.size(), 0);
  for (const StreamWork& lane : lanes) {
    if (++taken.at(lane.device) > parts_[lane.device].lanes.size()) throw std::logic_error("more lanes than streams");
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (taken[i] == 0) continue;
    use(devices_[i]);
    if (how == Begin::gated) gate_.close(parts_[i].gate);
    mark(parts_[i].begin, parts_[i].gate);
  }
  std::vector<std::pair<const OneDevice*, const OneLane*>> running;
  taken.assign(parts_.size(), 0);
  for (const StreamWork& lane : lanes) {
    OneDevice& part = parts_[lane.device];
    OneLane& one = part.lanes[taken[lane.device]++];
    use(devices_[lane.device]);
    wait_for(one.stream, part.begin);
    lane.enqueue(one.stream);
    mark(one.end, one.stream);
    running.emplace_back(&part, &one);
  }
  gate_.open();
  std::vector<Seconds> times;
  times.reserve(running.size());
  for (std::size_t i = 0; i < running.size(); ++i) {
    use(devices_[lanes[i].device]);
    times.push_back(elapsed(running[i].first->begin, running[i].second->end));
  }
  if (how == Begin::gated) gate_.check_held();
  return times;
}

std::vector<Seconds> StreamSet::run_on_each(const std::function<void(std::size_t, const Stream&)>& enqueue) {
  std::vector<StreamWork> lanes;
  lanes.reserve(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    lanes.push_back({.device = i, .enqueue = [&enqueue, i](const Stream& stream) { enqueue(i, stream); }});
  }
  return run(lanes);
}

}  // namespace assay::cuda
