// due: overdue nodes first, then by weight within each leaf, the leaves in turn.
#include "orchestrator/sweep/due.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>

#include "probes/core/sha256.h"

namespace assay::sweep {
namespace {

constexpr double kWatched = 3, kBesideFlag = 2;

/// The leaf, or the rack where no leaf is known.
const std::string& stratum_of(const DueNode& node) { return node.leaf.empty() ? node.rack : node.leaf; }

DueEntry entry_of(const DueNode& node, const DueRule& rule) {
  DueEntry entry{.node = node.name, .never = !node.last_visit};
  // A clock may have been set back by some nights. A visit that is further ahead than a node may wait is of a wrong
  // clock: it puts no measurement off.
  const auto age = node.last_visit ? (rule.tonight - *node.last_visit).count() : rule.max_age_nights;
  entry.age = age < -rule.max_age_nights ? rule.max_age_nights : static_cast<int>(std::max<std::int64_t>(age, 0));
  entry.overdue = entry.age >= rule.max_age_nights;
  entry.targeted = node.missed >= kMissedForTarget;
  entry.finding = entry.overdue && node.missed >= kMissedForFinding;
  entry.weight = hazard(node) * entry.age;
  entry.stagger = share_of_hash(drift::date_text(rule.tonight) + "/" + node.name);
  return entry;
}

/// The more urgent one first; the hash makes the order of equals one that no node has every night.
bool before(const DueEntry& a, const DueEntry& b) {
  return std::tuple(-a.weight, a.stagger, a.node) < std::tuple(-b.weight, b.stagger, b.node);
}

}  // namespace

double hazard(const DueNode& node) { return (node.watched ? kWatched : 1) * (node.beside_flag ? kBesideFlag : 1); }

double share_of_hash(const std::string& text) {
  const std::string digest = sha256_of(text);
  std::uint64_t bits = 0;
  for (int i = 0; i < 6; ++i) bits = bits << 8U | static_cast<unsigned char>(digest[static_cast<std::size_t>(i)]);
  return static_cast<double>(bits) / static_cast<double>(std::uint64_t{1} << 48U);
}

std::vector<DueEntry> due_list(std::span<const DueNode> nodes, const DueRule& rule) {
  std::vector<DueEntry> due;
  std::map<std::string, std::deque<DueEntry>> strata;
  std::size_t taken = 0;  // places of tonight's share that overdue nodes have
  for (const auto& node : nodes) {
    DueEntry entry = entry_of(node, rule);
    if (node.last_visit && entry.age == 0) continue;
    if (!entry.overdue) {
      strata[stratum_of(node)].push_back(std::move(entry));
      continue;
    }
    if (!entry.targeted) ++taken;
    due.push_back(std::move(entry));
  }
  std::ranges::sort(due, before);
  const std::size_t rotate = static_cast<std::size_t>(std::max(rule.rotate, 1));
  const std::size_t share = (nodes.size() + rotate - 1) / rotate;
  std::vector<std::deque<DueEntry>> queues;
  for (auto& [name, queue] : strata) {
    std::ranges::sort(queue, before);
    queues.push_back(std::move(queue));
  }
  // The leaf with the most urgent node begins; each gives one in its turn.
  std::ranges::sort(queues, [](const auto& a, const auto& b) { return before(a.front(), b.front()); });
  for (bool any = true; any && taken < share;) {
    any = false;
    for (auto& queue : queues) {
      if (queue.empty() || taken >= share) continue;
      due.push_back(std::move(queue.front()));
      queue.pop_front();
      ++taken;
      any = true;
    }
  }
  return due;
}

std::vector<std::string> rotated(std::vector<std::string> names, Night night) {
  const std::size_t count = names.size();
  if (count < 2) return names;
  // With an odd number everyone moves on and the first one pauses; with an even one the first one stays.
  const std::size_t fixed = count % 2 == 0 ? 1 : 0;
  const std::size_t moving = count - fixed;
  const std::size_t by = static_cast<std::size_t>(std::max<std::int64_t>(night.time_since_epoch().count(), 0)) % moving;
  std::rotate(names.begin() + static_cast<std::ptrdiff_t>(fixed),
              names.begin() + static_cast<std::ptrdiff_t>(fixed + by), names.end());
  return names;
}

}  // namespace assay::sweep
