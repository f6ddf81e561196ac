// actor: the scheduler that takes nodes out of service and puts them back: Slurm, Kubernetes, or a program of the site.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::drain {

/// The kinds of actor.
enum class ActorKind { slurm, kubernetes, hook };

constexpr auto words_of(ActorKind) { return names_as_words<ActorKind>(); }

/// A node as the scheduler sees it now.
struct NodeNow {
  bool drained = false;  ///< it takes no new jobs, for any reason
  bool busy = false;     ///< jobs run on it
  bool down = false;     ///< it does not answer, or is marked down
  std::string reason;    ///< why it is drained or down, as the scheduler has it; empty: none given
  friend bool operator==(const NodeNow&, const NodeNow&) = default;
};

/// Operations of every actor. Each call ends within a minute or is an error; errors name the program and its message.
class Actor {
 public:
  virtual ~Actor() = default;
  /// The nodes that the scheduler knows, by name; only those of `names` if it has some.
  virtual std::expected<std::map<std::string, NodeNow>, InputError> read(const std::vector<std::string>& names) = 0;
  /// Takes `node` out of service with `reason`: no new jobs, running ones finish.
  virtual std::optional<InputError> drain(const std::string& node, const std::string& reason) = 0;
  /// Puts `node`, which was drained with `reason`, back into service.
  virtual std::optional<InputError> release(const std::string& node, const std::string& reason) = 0;
};

/// The actor of `kind`. `program`: path of the hook; of the others the program to call, found in PATH: scontrol,
/// kubectl. Errors: it is not there.
std::expected<std::unique_ptr<Actor>, InputError> make_actor(ActorKind kind, const std::string& program);

/// What `scontrol show nodes` printed with --json (22.05 and newer forms), with --oneliner or without. `sure`, if
/// given, becomes whether each reason has one possible end. Errors name `where`.
std::expected<std::map<std::string, NodeNow>, InputError> nodes_from_slurm(std::string_view printed,
                                                                           const std::string& where,
                                                                           bool* sure = nullptr);

/// What `kubectl get nodes --output=json` printed: cordoned or with assay's own taint is drained, not
/// ready is down. The reason is that of our annotation; a node that others cordoned has the reason "cordoned".
std::expected<std::map<std::string, NodeNow>, InputError> nodes_from_kubernetes(std::string_view printed,
                                                                                const std::string& where);

/// Output of a hook on `list`: a line {"node": …, "drained": …, "busy": …, "down": …, "reason": …} for each node.
std::expected<std::map<std::string, NodeNow>, InputError> nodes_from_hook(std::string_view printed,
                                                                          const std::string& where);

}  // namespace assay::drain
