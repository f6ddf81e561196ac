// rendezvous: the ranks of one step find each other over TCP and exchange small messages. Rank 0 listens, the others
// dial.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/units.h"

namespace assay {

namespace rendezvous {
struct Group;
}

/// A TCP address. Port 0 asks the kernel for a free one.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "host:port", "10.0.0.1:5000" or "[::1]:5000". Throws BadParameter with the flag's name.
Endpoint parse_endpoint(std::string_view text);

/// Checks a one-time token: 32 to 128 hexadecimal digits. Throws BadParameter; what() never holds the token.
void check_token(std::string_view token);

/// How long and how much the ranks of a group wait for and send to each other.
struct RendezvousLimits {
  Seconds join = {120};           ///< launchers start hundreds of nodes within a minute; twice that
  Seconds hello = {10};           ///< a connected caller must identify itself within this, or is dropped
  Seconds exchange = {60};        ///< one rank may be this much later than another in one exchange
  std::size_t message = 1 << 20;  ///< B that one rank contributes to an exchange: ids and times, never payload
};

/// The group cannot continue: a rank vanished, fell silent, failed or was refused. what() names the rank.
struct RendezvousError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A group of ranks that have found each other. All ranks call the same exchanges in the same order. When one of them
/// throws RendezvousError, all others do within the same exchange, with the same reason.
class Rendezvous {
 public:
  Rendezvous(Rendezvous&&) noexcept;
  Rendezvous& operator=(Rendezvous&&) noexcept;
  /// Closes the connections; ranks that still wait for this one learn that it vanished.
  ~Rendezvous();

  /// Joins the group that rank 0 gathers at `at`, dialling again until it is there. Throws RendezvousError when rank 0
  /// refuses this rank, or is not there within limits.join.
  static Rendezvous dial(const Endpoint& at, int rank, int world, const std::string& token,
                         const RendezvousLimits& limits = {});

  /// This process' rank, 0 to world - 1.
  [[nodiscard]] int rank() const;
  /// Number of ranks.
  [[nodiscard]] int world() const;
  /// Rank 0: callers turned away while the group gathered, with the reason, one line each; at most 100.
  [[nodiscard]] const std::vector<std::string>& refused() const;

  /// Every rank's `mine`, by rank.
  std::vector<std::string> all_gather(std::string_view mine);
  /// Rank 0's `bytes`, on every rank; the other ranks' argument is not looked at.
  std::string broadcast(std::string_view bytes);
  /// Returns when every rank has called it.
  void barrier();
  /// Throws RendezvousError when a rank has failed or vanished since the last exchange, as the next one would. For
  /// callers that wait for something else between two exchanges; returns at once.
  void check();
  /// Sends all other ranks the reason of giving up; their exchange throws "rank N: reason". Later exchanges throw.
  /// Where another rank gave up before, its reason is returned, and is the one that all learn: what fails later follows
  /// from it.
  std::optional<std::string> fail(std::string_view reason) noexcept;
  /// What is removed when `work` of work_together() throws: not before all ranks have been told why, since they would
  /// fail for want of it. Not called when `work` returns, and called where the group has ended before.
  void after_failure(std::function<void()> removal);

 private:
  friend class RendezvousListener;
  friend void work_together(const Placement& placement, const RendezvousLimits& limits,
                            const std::function<void(Rendezvous&)>& work);
  void remove_now() noexcept;  ///< the paths of after_failure()
  explicit Rendezvous(std::unique_ptr<rendezvous::Group> group);
  std::unique_ptr<rendezvous::Group> group_;
};

/// Rank 0 before the others have come. It is listening as soon as it is constructed.
class RendezvousListener {
 public:
  /// Listens at `at`. Throws std::system_error with the address when it cannot.
  explicit RendezvousListener(const Endpoint& at);
  RendezvousListener(RendezvousListener&&) noexcept;
  ~RendezvousListener();

  /// The port it listens on.
  [[nodiscard]] std::uint16_t port() const;
  /// Takes ranks 1 to world - 1 in. Both sides prove by an HMAC over nonces that they know the token; it is never sent.
  /// A caller with a wrong token, or a rank that is out of range or taken, is refused and disturbs no other rank.
  /// Throws RendezvousError naming the ranks that have not come within limits.join. Callers that say nothing keep no
  /// rank out, however many they are.
  Rendezvous gather(int world, const std::string& token, const RendezvousLimits& limits = {}) &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The group of `placement`: rank 0 listens at its rendezvous and gathers, the others dial.
Rendezvous meet(const Placement& placement, const RendezvousLimits& limits = {});

/// Meets the group of `placement` and calls `work` with it. What `work` throws is reported to all other ranks, which
/// then end at once and know why, and is thrown on.
void work_together(const Placement& placement, const RendezvousLimits& limits,
                   const std::function<void(Rendezvous&)>& work);

}  // namespace assay
