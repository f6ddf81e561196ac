// nccl_groups: streams, events and communicators; nothing waits on the host.
#include "workloads/train_gpu/nccl_groups.h"

#include <algorithm>
#include <stdexcept>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "workloads/train_gpu/device_line.h"

namespace assay::train_gpu {
namespace {

/// Names that both needs() and of() use.
std::string name_of(train::Group group, int lane) {
  if (group == train::Group::none) throw std::logic_error("this group has no collectives on GPUs");
  return fmt::format("{}{}", group, lane == 0 ? "" : " beside");
}
std::string channel_name(int channel) { return fmt::format("messages {}", channel); }

/// `stream` waits on the device for what `event` was marked behind.
void make_wait(const cuda::Stream& stream, const cuda::Event& event) {
  cuda::check(cudaStreamWaitEvent(stream.get(), event.get(), 0), "making a stream wait");
}

}  // namespace

std::vector<NcclGroups::Need> NcclGroups::needs(const train::ParallelPlan& plan, std::int64_t rank) {
  std::vector<Need> all;
  const auto add = [&](std::string name, train::Group group) {
    auto members = train::members_of(plan, group, rank);
    if (members.size() > 1) all.push_back({.name = std::move(name), .members = std::move(members)});
  };
  for (const train::Group group : {train::Group::tp, train::Group::cp, train::Group::replicas})
    add(name_of(group, 0), group);
  add(name_of(train::Group::replicas, 1), train::Group::replicas);
  if (plan.ep > 1) {  // else the replicas of experts are those of everything
    for (const train::Group group : {train::Group::ep, train::Group::expert_replicas}) add(name_of(group, 0), group);
    add(name_of(train::Group::expert_replicas, 1), train::Group::expert_replicas);
  }
  for (const int channel : {0, 1}) add(channel_name(channel), train::Group::pp);
  return all;
}

std::vector<std::string> NcclGroups::ids(const nccl::Nccl& nccl, const train::ParallelPlan& plan, std::int64_t rank) {
  std::vector<std::string> all;
  for (const Need& need : needs(plan, rank)) all.push_back(need.members.front() == rank ? nccl.unique_id() : "");
  return all;
}

NcclGroups::NcclGroups(const nccl::Nccl* nccl, const train::ParallelPlan& plan, std::int64_t rank,
                       const std::vector<std::vector<std::string>>& ids, std::size_t largest, std::size_t posted,
                       const RankGpu& gpu, Seconds limit)
    : gpu_(gpu),
      divides_experts_(plan.ep > 1),
      beside_(cuda::make_stream()),
      sends_{cuda::make_stream(), cuda::make_stream()},
      fork_(cuda::make_event()),
      packed_(cuda::make_event()) {
  for (std::size_t i = 0; i < posted; ++i) done_.push_back(cuda::make_event());
  const auto own = needs(plan, rank);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto& members = own[i].members;
    const std::string& id = ids.at(train::sized(members.front())).at(i);  // all ranks of a plan have the same needs
    const auto place = static_cast<int>(std::ranges::find(members, rank) - members.begin());
    joined_[own[i].name] = {.members = members,
                            .communicator = std::make_unique<nccl::Communicator>(
                                *nccl, id, static_cast<int>(members.size()), place, limit)};
  }
  for (auto& channel : stagings_) {
    for (std::int64_t i = 0; i < message_rooms(plan); ++i)
      channel.push_back({.data = cuda::DeviceBuffer(Bytes{largest * sizeof(float)}), .gone = cuda::make_event()});
  }
}

train::Group NcclGroups::sharing(train::Group group) const {
  return group == train::Group::expert_replicas && !divides_experts_ ? train::Group::replicas : group;
}
nccl::Communicator& NcclGroups::of(train::Group group, int lane) {
  return *joined_.at(name_of(sharing(group), lane)).communicator;
}

void NcclGroups::send(int channel, std::int64_t peer, const void* data, std::size_t count,
                      collective::Element element) {
  const Joined& joined = joined_.at(channel_name(channel));
  const auto which = static_cast<std::size_t>(channel);
  const cuda::Stream& sends = sends_.at(which);
  Staging& staging = stagings_[which][turns_[which]++ % stagings_[which].size()];
  if (staging.used) make_wait(gpu_.stream(), staging.gone);
  cuda::check(cudaMemcpyAsync(staging.data.data(), data, count * collective::size_of(element), cudaMemcpyDeviceToDevice,
                              gpu_.stream().get()),
              "packing a message");
  mark(packed_, gpu_.stream());
  make_wait(sends, packed_);
  const auto place = std::ranges::find(joined.members, peer) - joined.members.begin();
  joined.communicator->send(static_cast<int>(place), staging.data.data(), count, sends, element);
  mark(staging.gone, sends);
  staging.used = true;
}

void NcclGroups::receive(int channel, std::int64_t peer, void* data, std::size_t count, collective::Element element) {
  const Joined& joined = joined_.at(channel_name(channel));
  const auto place = std::ranges::find(joined.members, peer) - joined.members.begin();
  joined.communicator->receive(static_cast<int>(place), data, count, gpu_.stream(), element);
}

void NcclGroups::fork() {
  mark(fork_, gpu_.stream());
  make_wait(beside_, fork_);
}
void NcclGroups::note(std::size_t place) { mark(done_.at(place), beside_); }
void NcclGroups::join(std::size_t place) { make_wait(gpu_.stream(), done_.at(place)); }

void NcclGroups::check_alive() {
  for (const auto& [name, joined] : joined_) joined.communicator->check_alive();
}

}  // namespace assay::train_gpu
