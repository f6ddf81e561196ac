// xid_watch: an event set of NVML with one GPU and one kind of event.
#include "probes/nvml/xid_watch.h"

namespace assay::nvml {

namespace api = nvml_api;

XidWatch::XidWatch(const NvmlGpu& gpu) : functions_(&gpu.functions()), set_(nullptr, Free{functions_}) {
  const auto& f = *functions_;
  if (f.event_set_create == nullptr || f.register_events == nullptr || f.event_set_wait == nullptr ||
      f.event_set_free == nullptr || gpu.handle() == nullptr) {
    return;
  }
  api::EventSet set = nullptr;
  code_ = f.event_set_create(&set);
  if (code_ != api::kSuccess) return;
  set_.reset(set);
  code_ = f.register_events(gpu.handle(), api::kEventXid, set);
  if (code_ != api::kSuccess) set_.reset();
}

std::optional<std::vector<int>> XidWatch::take() {
  constexpr unsigned kWaitMs = 10;     // for events that the driver is about to deliver
  constexpr std::size_t kMost = 1000;  // a storm of errors says no more with more of them
  if (!set_) return std::nullopt;
  std::vector<int> numbers;
  while (numbers.size() < kMost) {
    api::Event event = {};
    const api::Return code = functions_->event_set_wait(set_.get(), &event, kWaitMs);
    if (code == api::kTimeout) return numbers;
    if (code != api::kSuccess) {
      code_ = code;
      return std::nullopt;
    }
    if (event.type == api::kEventXid) numbers.push_back(static_cast<int>(event.data));
  }
  return numbers;
}

}  // namespace assay::nvml
