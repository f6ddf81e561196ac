// descriptor_mail: descriptors handed from one process of a node to another, over a datagram socket without a file.
#pragma once

#include <string>
#include <utility>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"

namespace assay::cuda {

/// The mailbox of one rank. Only processes of this user can put anything into it.
class DescriptorMail {
 public:
  /// Throws std::system_error when there is no such socket.
  DescriptorMail();

  /// Where others send to; random, so that no other process has taken it.
  [[nodiscard]] const std::string& address() const { return address_; }
  /// Sends a copy of `descriptor` as rank `from`. Throws std::system_error, after `limit` at the latest.
  void send(const std::string& to, int from, const Descriptor& descriptor, Seconds limit) const;
  /// The next descriptor and its rank. Messages of other users are dropped. Throws std::runtime_error when none has
  /// come within `limit`.
  [[nodiscard]] std::pair<int, Descriptor> take(Seconds limit) const;

 private:
  std::string address_;
  Descriptor socket_;
};

}  // namespace assay::cuda
