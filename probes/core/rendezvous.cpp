// rendezvous: exchanges of a complete group. Rank 0 is the hub of a star.
#include "probes/core/rendezvous.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/rendezvous_group.h"

namespace assay {

using rendezvous::after;
using rendezvous::Clock;
using rendezvous::Frame;
using rendezvous::Group;
using rendezvous::Kind;
using rendezvous::kMaxGathered;
using rendezvous::Link;

namespace {

// A last word is a few hundred bytes; a peer that cannot take it in this time will notice the closed connection
// instead.
constexpr std::chrono::seconds kParting{2};

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string packed(const std::vector<std::string>& all) {
  std::string bytes;
  for (const auto& one : all) {
    rendezvous::put_u32(bytes, static_cast<std::uint32_t>(one.size()));
    bytes += one;
  }
  return bytes;
}

/// The `count` messages of packed(); nothing if the bytes are anything else.
std::optional<std::vector<std::string>> unpacked(std::string_view bytes, std::size_t count) {
  std::vector<std::string> all;
  while (!bytes.empty()) {
    if (bytes.size() < 4 || all.size() == count) return std::nullopt;
    const std::uint32_t length = rendezvous::u32_at(bytes, 0);
    bytes.remove_prefix(4);
    if (bytes.size() < length) return std::nullopt;
    all.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return all.size() == count ? std::optional(std::move(all)) : std::nullopt;
}

}  // namespace

std::vector<Link*> Group::open() const {
  std::vector<Link*> all;
  for (const auto& link : links) {
    if (link && !link->closed()) all.push_back(link.get());
  }
  return all;
}

std::string Group::departure(Link& link, int other) {
  while (const auto frame = link.next()) {
    if (frame->kind == Kind::failed)
      return other == 0 ? frame->payload : fmt::format("rank {}: {}", other, frame->payload);
  }
  return fmt::format("rank {} ({}) vanished{}{}", other, link.peer(), link.trouble().empty() ? "" : ": ",
                     link.trouble());
}

void Group::part(const std::string& reason) noexcept {
  if (!broken.empty()) return;
  broken = reason;
  try {
    for (Link* link : open()) {
      link->queue({.kind = Kind::failed, .sequence = sequence, .payload = reason.substr(0, limits.message)});
      link->flush();
    }
    const auto until = Clock::now() + kParting;
    const auto waiting = [&] {
      std::vector<Link*> all;
      for (Link* link : open()) {
        if (!link->flushed()) all.push_back(link);
      }
      return all;
    };
    for (auto left = waiting(); !left.empty(); left = waiting()) {
      if (!rendezvous::wait_for(left, -1, until)) return;
    }
  } catch (const std::exception&) {
    return;  // the group is lost already, and the caller reports the reason for that
  }
}

std::optional<std::string> Group::ended_by_another() {
  rendezvous::move_now(open());
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!links[i]) continue;
    while (const auto frame = links[i]->next()) {
      if (frame->kind == Kind::failed)
        return rank == 0 ? fmt::format("rank {}: {}", i + 1, frame->payload) : frame->payload;
    }
  }
  return std::nullopt;
}

void Group::wait_for_root() {
  constexpr Seconds kPatience = {5};  // rank 0 may be busy, and looks at its next exchange
  const auto until = after(kPatience);
  while (rank != 0 && !links.front()->closed()) {
    while (links.front()->next()) {
    }
    if (!rendezvous::wait_for(open(), -1, until)) return;
  }
}

void Group::abandon(const std::string& reason) {
  part(reason);
  throw RendezvousError(reason);
}

namespace {

/// Checks a frame from `other` against the exchange under way.
bool in_step(const Frame& frame, Kind kind, std::uint32_t sequence) {
  return frame.kind == kind && frame.sequence == sequence;
}

/// Rank 0: one message of every other rank.
void collect(Group& group, std::vector<std::string>& all) {
  const std::size_t others = group.links.size();
  std::vector<bool> here(others, false);
  const auto until = after(group.limits.exchange);
  while (true) {
    std::vector<int> missing;
    for (std::size_t i = 0; i < others; ++i) {
      Link& link = *group.links[i];
      const int other = static_cast<int>(i) + 1;
      if (!here[i]) {
        if (auto frame = link.next()) {
          if (frame->kind == Kind::failed) group.abandon(fmt::format("rank {}: {}", other, frame->payload));
          if (!in_step(*frame, Kind::gather, group.sequence))
            group.abandon(fmt::format("rank {} is out of step with rank 0", other));
          all[i + 1] = std::move(frame->payload);
          here[i] = true;
        }
      }
      if (link.closed()) group.abandon(Group::departure(link, other));
      if (!here[i]) missing.push_back(other);
    }
    if (missing.empty()) return;
    if (!rendezvous::wait_for(group.open(), -1, until)) {
      group.abandon(fmt::format("{} sent nothing for {:g} s", ranks_text(missing), group.limits.exchange.count));
    }
  }
}

/// Rank 0: sends `bytes` to all and waits until the kernel has taken them.
void spread(Group& group, const std::string& bytes) {
  if (bytes.size() > kMaxGathered) {
    group.abandon(fmt::format("{} B in one exchange are over the limit of {} B", bytes.size(), kMaxGathered));
  }
  for (const auto& link : group.links) {
    link->queue({.kind = Kind::spread, .sequence = group.sequence, .payload = bytes});
    link->flush();
  }
  const auto until = after(group.limits.exchange);
  while (true) {
    std::vector<int> missing;
    for (std::size_t i = 0; i < group.links.size(); ++i) {
      if (!group.links[i]->flushed()) missing.push_back(static_cast<int>(i) + 1);
    }
    if (missing.empty()) return;
    if (!rendezvous::wait_for(group.open(), -1, until)) {
      group.abandon(fmt::format("{} took nothing for {:g} s", ranks_text(missing), group.limits.exchange.count));
    }
  }
}

/// Other ranks: rank 0's message in this exchange.
std::string receive(Group& group) {
  Link& root = *group.links.front();
  // Rank 0 may enter the exchange late by the limit and then wait as long for the last rank, whose name it sends.
  const auto until = after({2 * group.limits.exchange.count}) + kParting;
  while (true) {
    if (auto frame = root.next()) {
      if (frame->kind == Kind::failed) {
        group.broken = frame->payload;
        throw RendezvousError(frame->payload);
      }
      if (!in_step(*frame, Kind::spread, group.sequence)) group.abandon("it is out of step with rank 0");
      return std::move(frame->payload);
    }
    if (root.closed()) group.abandon(Group::departure(root, 0));
    if (!rendezvous::wait_for(group.open(), -1, until)) {
      group.abandon(fmt::format("rank 0 ({}) sent nothing for {:g} s", root.peer(), 2 * group.limits.exchange.count));
    }
  }
}

/// Starts the next exchange; a group that has ended stays ended.
void begin(Group& group, std::string_view mine) {
  if (!group.broken.empty()) throw RendezvousError(group.broken);
  if (mine.size() > group.limits.message) {
    group.abandon(fmt::format("a message of {} B is over the limit of {} B", mine.size(), group.limits.message));
  }
  ++group.sequence;
}

}  // namespace

Rendezvous::Rendezvous(std::unique_ptr<Group> group) : group_(std::move(group)) {}
Rendezvous::Rendezvous(Rendezvous&&) noexcept = default;
Rendezvous& Rendezvous::operator=(Rendezvous&&) noexcept = default;
Rendezvous::~Rendezvous() = default;

int Rendezvous::rank() const { return group_->rank; }
int Rendezvous::world() const { return group_->world; }
const std::vector<std::string>& Rendezvous::refused() const { return group_->refused; }

std::vector<std::string> Rendezvous::all_gather(std::string_view mine) {
  begin(*group_, mine);
  if (group_->rank == 0) {
    std::vector<std::string> all(static_cast<std::size_t>(group_->world));
    all[0] = mine;
    collect(*group_, all);
    spread(*group_, packed(all));
    return all;
  }
  group_->links.front()->queue({.kind = Kind::gather, .sequence = group_->sequence, .payload = std::string(mine)});
  group_->links.front()->flush();
  auto all = unpacked(receive(*group_), static_cast<std::size_t>(group_->world));
  if (!all) group_->abandon("rank 0 sent messages that cannot be distinguished");
  return std::move(*all);
}

std::string Rendezvous::broadcast(std::string_view bytes) {
  begin(*group_, group_->rank == 0 ? bytes : std::string_view());
  if (group_->rank != 0) return receive(*group_);
  spread(*group_, std::string(bytes));
  return std::string(bytes);
}

void Rendezvous::barrier() { (void)all_gather(""); }  // all messages are empty

void Rendezvous::check() {
  if (!group_->broken.empty()) throw RendezvousError(group_->broken);
  rendezvous::move_now(group_->open());
  for (std::size_t i = 0; i < group_->links.size(); ++i) {
    if (group_->links[i]->closed())
      group_->abandon(Group::departure(*group_->links[i], group_->rank == 0 ? static_cast<int>(i) + 1 : 0));
  }
}

std::optional<std::string> Rendezvous::fail(std::string_view reason) noexcept {
  if (!group_ || !group_->broken.empty()) return std::nullopt;
  std::optional<std::string> earlier;
  try {
    earlier = group_->ended_by_another();
  } catch (const std::exception&) {
    earlier.reset();  // this rank's reason is all there is
  }
  const bool is_root = group_->rank == 0;
  group_->part(earlier ? *earlier : is_root ? "rank 0: " + std::string(reason) : std::string(reason));
  return earlier;
}

void Rendezvous::after_failure(std::function<void()> removal) { group_->removals.push_back(std::move(removal)); }

void Rendezvous::remove_now() noexcept {
  if (group_->removals.empty()) return;
  try {
    group_->wait_for_root();
    for (const auto& removal : group_->removals) removal();
  } catch (const std::exception&) {
    return;  // the rest is removed by the next run
  }
}

}  // namespace assay
