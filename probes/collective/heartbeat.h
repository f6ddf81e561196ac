// heartbeat: the side of a rank: a thread that shows its leader that the process is alive, and others over the network
// that the network is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include "probes/collective/rank_board.h"
#include "probes/core/descriptor.h"
#include "probes/core/units.h"

namespace assay::collective {

/// Where a rank takes beats of others.
struct BeatPlace {
  std::string address;  ///< numeric
  std::uint16_t port = 0;
};

/// Beats once a period: on the board, and to the ranks that follow this one by datagrams. Its thread ends with it.
class Heartbeat {
 public:
  /// A rank beats to as many of the ranks after it; each is so heard by several.
  static constexpr std::size_t kMostHearers = 8;

  /// Takes datagrams at `address`. `give_up` is called, once a group, when the leader says that its group is over; from
  /// the thread, and never after leave(). Throws std::system_error when the address cannot be used.
  Heartbeat(RankPage& page, const std::string& address, Seconds period, std::function<void()> give_up);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// The port at which it takes beats.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Belongs to the group `number` (over 0) as rank `rank` of `all`; beats without its `key` are not heard. Throws
  /// std::runtime_error for an address that is none.
  void join(std::int64_t number, std::uint64_t key, std::size_t rank, const std::vector<BeatPlace>& all);
  /// Belongs to none.
  void leave();

 private:
  void live();
  void beat();
  void listen();

  RankPage& page_;
  std::function<void()> give_up_;
  std::int64_t period_ns_;
  Descriptor socket_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::int64_t number_ = 0;
  std::uint64_t key_ = 0;
  std::vector<std::pair<sockaddr_storage, socklen_t>> hearers_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace assay::collective
