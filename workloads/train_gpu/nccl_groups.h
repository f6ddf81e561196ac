// nccl_groups: the collectives of one rank's groups over NCCL: a communicator for each, so that collectives of two
// streams never share one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "probes/nccl/communicator.h"
#include "workloads/train/graph/step_graph.h"
#include "workloads/train_gpu/cuda_device.h"

namespace assay::train_gpu {

/// The collectives of DeviceLine; see there. Work is only enqueued. After the constructor only NCCL allocates: memory
/// for two ranks that first meet, in the first steps.
class NcclGroups {
 public:
  /// A user of a communicator of its own: a group of collectives, one in the second stream, messages of a channel.
  struct Need {
    std::string name;  ///< "tp", "replicas beside", "messages 1"
    std::vector<std::int64_t> members;
  };
  /// Those of `rank`, in one order on all ranks. A group of one rank needs none.
  static std::vector<Need> needs(const train::ParallelPlan& plan, std::int64_t rank);
  /// Ids for the communicators that this rank is the first of, by the place of the need; others empty.
  static std::vector<std::string> ids(const nccl::Nccl& nccl, const train::ParallelPlan& plan, std::int64_t rank);

  /// `nccl` may be null where there is one rank. `ids` of all ranks. Enters every communicator within `limit` each.
  /// `largest` numbers of a message, `posted` collectives of the second stream in a step. Throws std::runtime_error
  /// with NCCL's words.
  NcclGroups(const nccl::Nccl* nccl, const train::ParallelPlan& plan, std::int64_t rank,
             const std::vector<std::vector<std::string>>& ids, std::size_t largest, std::size_t posted,
             const RankGpu& gpu, Seconds limit);

  template <class Number>
  void all_reduce(train::Group group, Number* data, std::size_t count, int lane) {
    of(group, lane).all_reduce(data, count, stream(lane), element<Number>());
  }
  template <class Number>
  void all_gather(train::Group group, Number* data, std::size_t share, int lane) {
    of(group, lane).all_gather(data, share, stream(lane), element<Number>());
  }
  template <class Number>
  void reduce_scatter(train::Group group, Number* data, std::size_t share, int lane) {
    of(group, lane).reduce_scatter(data, share, stream(lane), element<Number>());
  }
  template <class Number>
  void all_to_all(train::Group group, const Number* sent, const std::vector<std::size_t>& to, Number* data,
                  const std::vector<std::size_t>& from) {
    of(group, 0).all_to_all(sent, to, data, from, stream(0), element<Number>());
  }
  template <class Number>
  void send(int channel, std::int64_t peer, const Number* data, std::size_t count) {
    send(channel, peer, data, count, element<Number>());
  }
  template <class Number>
  void receive(int channel, std::int64_t peer, Number* data, std::size_t count) {
    receive(channel, peer, data, count, element<Number>());
  }
  void fork();
  void note(std::size_t place);
  void join(std::size_t place);
  /// Throws when a communicator has failed; between steps.
  void check_alive();

 private:
  struct Joined {
    std::vector<std::int64_t> members;
    std::unique_ptr<nccl::Communicator> communicator;
  };
  /// A message on its way: a copy of its data until it is sent.
  struct Staging {
    cuda::DeviceBuffer data;
    cuda::Event gone;
    bool used = false;
  };
  template <class Number>
  static constexpr collective::Element element() {
    return sizeof(Number) == sizeof(float) ? collective::Element::fp32 : collective::Element::bf16;
  }
  void send(int channel, std::int64_t peer, const void* data, std::size_t count, collective::Element element);
  void receive(int channel, std::int64_t peer, void* data, std::size_t count, collective::Element element);
  nccl::Communicator& of(train::Group group, int lane);
  [[nodiscard]] train::Group sharing(train::Group group) const;
  const cuda::Stream& stream(int lane) const { return lane == 0 ? gpu_.stream() : beside_; }

  const RankGpu& gpu_;
  bool divides_experts_;
  cuda::Stream beside_;
  std::array<cuda::Stream, 2> sends_;  ///< by channel
  cuda::Event fork_, packed_;
  std::vector<cuda::Event> done_;                 ///< of the second stream
  std::array<std::vector<Staging>, 2> stagings_;  ///< by channel
  std::array<std::size_t, 2> turns_ = {};
  std::map<std::string, Joined> joined_;  // last: aborted first, while streams still live
};

}  // namespace assay::train_gpu
