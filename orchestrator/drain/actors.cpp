// actors: scontrol, kubectl, and the site's own program.
#include <algorithm>

#include <fmt/ranges.h>

#include "orchestrator/drain/actor.h"
#include "orchestrator/files/child.h"
#include "probes/core/text.h"

namespace assay::drain {
namespace {

using Nodes = std::map<std::string, NodeNow>;
using Words = std::vector<std::string>;

constexpr Seconds kDeadline{60};
constexpr std::size_t kMostOutput = 256 << 20;  // 10,000 nodes of Kubernetes have some 100 MB of JSON

/// Runs `program` and returns its output; an error unless it ended with exit code 0.
std::expected<std::string, InputError> call(const std::string& program, const Words& words) {
  const auto done = files::run_child(program, words, kDeadline, kMostOutput);
  if (!done) return std::unexpected(done.error());
  if (done->exit_code != 0)
    return std::unexpected(InputError{fmt::format("{} {}", program, fmt::join(words, " ")),
                                      fmt::format("ended with exit code {}", done->exit_code),
                                      "its own message is above"});
  return done->output;
}

std::optional<InputError> failure_of(const std::expected<std::string, InputError>& called) {
  if (called) return std::nullopt;
  return called.error();
}

std::optional<InputError> check_names(const Words& names) {
  for (const auto& name : names) {
    if (!is_node_name(name)) return InputError{printable(name), "is not a node name", ""};
  }
  return std::nullopt;
}

Nodes kept(Nodes nodes, const Words& names) {
  if (names.empty()) return nodes;
  std::erase_if(nodes, [&](const auto& one) { return std::ranges::find(names, one.first) == names.end(); });
  return nodes;
}

class Slurm final : public Actor {
 public:
  explicit Slurm(std::string scontrol) : scontrol_(std::move(scontrol)) {}

  std::expected<Nodes, InputError> read(const Words& names) override {
    if (auto problem = check_names(names)) return std::unexpected(*problem);
    bool sure = true;
    auto nodes = show("--oneliner", names, sure);
    if (!nodes) return nodes;
    // Reasons and comments are free text. JSON keeps them apart, if this Slurm has it.
    if (!sure) {
      if (auto exact = show("--json", names, sure)) nodes = std::move(exact);
    }
    return kept(std::move(*nodes), names);
  }
  std::optional<InputError> drain(const std::string& node, const std::string& reason) override {
    if (auto problem = check_names({node})) return problem;
    return failure_of(call(scontrol_, {"update", "NodeName=" + node, "State=DRAIN", "Reason=" + reason}));
  }
  std::optional<InputError> release(const std::string& node, const std::string&) override {
    if (auto problem = check_names({node})) return problem;
    return failure_of(call(scontrol_, {"update", "NodeName=" + node, "State=RESUME"}));
  }

 private:
  [[nodiscard]] std::expected<Nodes, InputError> show(const char* form, const Words& names, bool& sure) const {
    Words words = {form, "show", "node"};
    if (!names.empty()) words.push_back(fmt::format("{}", fmt::join(names, ",")));
    const auto printed = call(scontrol_, words);
    if (!printed) return std::unexpected(printed.error());
    return nodes_from_slurm(*printed, "scontrol show node", &sure);
  }
  std::string scontrol_;
};

class Kubernetes final : public Actor {
 public:
  explicit Kubernetes(std::string kubectl) : kubectl_(std::move(kubectl)) {}

  std::expected<Nodes, InputError> read(const Words& names) override {
    const auto printed = call(kubectl_, {"get", "nodes", "--output=json"});
    if (!printed) return std::unexpected(printed.error());
    auto nodes = nodes_from_kubernetes(*printed, "kubectl get nodes");
    if (!nodes) return std::unexpected(nodes.error());
    return kept(std::move(*nodes), names);
  }
  /// The annotation first: a reason without a taint does no harm, a taint without a reason would look like a foreign
  /// one. An annotation without a taint is left of a release that was killed, and overwritten.
  std::optional<InputError> drain(const std::string& node, const std::string& reason) override {
    if (auto problem = check_names({node})) return problem;
    const auto now = read({node});
    if (!now) return now.error();
    const auto found = now->find(node);
    if (found == now->end() || (found->second.drained && found->second.reason != reason))
      return InputError{node, "is not there any more, or drained by others", "nothing was changed"};
    if (auto problem =
            failure_of(call(kubectl_, {"annotate", "node", node, "assay.dev/reason=" + reason, "--overwrite"})))
      return problem;
    return failure_of(call(kubectl_, {"taint", "node", node, "assay.dev/drift=confirmed:NoSchedule", "--overwrite"}));
  }
  std::optional<InputError> release(const std::string& node, const std::string&) override {
    if (auto problem = check_names({node})) return problem;
    if (auto problem = failure_of(call(kubectl_, {"taint", "node", node, "assay.dev/drift:NoSchedule-"})))
      return problem;
    return failure_of(call(kubectl_, {"annotate", "node", node, "assay.dev/reason-"}));
  }

 private:
  std::string kubectl_;
};

class Hook final : public Actor {
 public:
  explicit Hook(std::string program) : program_(std::move(program)) {}

  std::expected<Nodes, InputError> read(const Words& names) override {
    const auto printed = call(program_, {"list"});
    if (!printed) return std::unexpected(printed.error());
    auto nodes = nodes_from_hook(*printed, program_ + " list");
    if (!nodes) return std::unexpected(nodes.error());
    return kept(std::move(*nodes), names);
  }
  std::optional<InputError> drain(const std::string& node, const std::string& reason) override {
    return failure_of(call(program_, {"drain", node, reason}));
  }
  std::optional<InputError> release(const std::string& node, const std::string& reason) override {
    return failure_of(call(program_, {"release", node, reason}));
  }

 private:
  std::string program_;
};

}  // namespace

std::expected<std::unique_ptr<Actor>, InputError> make_actor(ActorKind kind, const std::string& program) {
  const std::string path = program.find('/') == std::string::npos ? files::find_in_path(program) : program;
  if (path.empty())
    return std::unexpected(InputError{program, "is not in PATH", "name another actor with --actor, or the program"});
  switch (kind) {
    case ActorKind::slurm:
      return std::make_unique<Slurm>(path);
    case ActorKind::kubernetes:
      return std::make_unique<Kubernetes>(path);
    case ActorKind::hook:
      break;
  }
  return std::make_unique<Hook>(path);
}

}  // namespace assay::drain
