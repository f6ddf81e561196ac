// rendezvous_door: hello, challenge, proof, welcome.
#include "probes/core/rendezvous_door.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include <netdb.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "probes/core/rendezvous_link.h"
#include "probes/core/sha256.h"

namespace assay::rendezvous {

std::string fresh_nonce() {
  std::string nonce(kNonce, '\0');
  std::size_t have = 0;
  while (have < nonce.size()) {
    const ssize_t got = getrandom(nonce.data() + have, nonce.size() - have, 0);
    if (got < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return nonce;
}

std::string proof_of(std::string_view token, Side side, const Join& join) {
  std::string message = "assay rendezvous 2 ";
  message += static_cast<char>(side);
  put_u32(message, join.rank);
  put_u32(message, join.world);
  return hmac_sha256(token, message + join.caller + join.listener);
}

namespace {

constexpr std::size_t kHello = 8 + kNonce;  // rank, world, nonce: the most that a stranger may send at once
constexpr std::size_t kMaxRemarks = 100;    // remarks on refused callers that are kept
constexpr std::size_t kMostAtOnce = 64;     // callers taken in before others are looked at again
constexpr const char* kWrongToken = "wrong token";

std::string address_text(const sockaddr_storage& address, socklen_t length, std::string& host) {
  char name[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);  // the socket interface is made of such casts
  if (getnameinfo(plain, length, name, sizeof name, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown address";
  host = name;
  return std::strchr(name, ':') == nullptr ? fmt::format("{}:{}", name, port) : fmt::format("[{}]:{}", name, port);
}

}  // namespace

bool Door::take_one(const Group& group) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  Descriptor caller(accept4(listener_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC));
  if (caller.number() < 0) return false;  // none is left, or it has gone again
  Stranger stranger;
  const std::string peer = address_text(address, length, stranger.host);
  stranger.link = std::make_unique<Link>(std::move(caller), peer, kHello);
  stranger.until = after(group.limits.hello);
  stranger.link->read();  // a rank's hello comes with its call: it never waits behind silent ones
  strangers_.push_back(std::move(stranger));
  return true;
}

void Door::make_room(Group& group) {
  if (strangers_.size() <= kMostStrangers) return;
  std::map<std::string_view, std::size_t> callers;
  for (const auto& stranger : strangers_) ++callers[stranger.host];
  // A caller after hello needs one round trip more, in which any number of silent ones may come.
  const auto worst = std::ranges::max_element(strangers_, {}, [&](const Stranger& one) {
    return std::pair(!one.asked, callers[one.host]);
  });  // the first is the oldest
  let_go(*worst, group, kTooManyCallers);
  strangers_.erase(worst);
}

void Door::let_go(Stranger& stranger, Group& group, const std::string& reason) {
  if (group.refused.size() < kMaxRemarks) group.refused.push_back(stranger.link->peer() + ": " + reason);
  stranger.link->queue({.kind = Kind::refused, .sequence = 0, .payload = reason});
  stranger.link->flush();
}

/// Takes a hello and answers with a nonce; the reason when it is none.
std::string Door::hello(Stranger& stranger, const Frame& frame) {
  if (frame.kind != Kind::hello || frame.payload.size() != kHello) return kWrongToken;
  stranger.join = {.rank = u32_at(frame.payload, 0),
                   .world = u32_at(frame.payload, 4),
                   .caller = frame.payload.substr(8),
                   .listener = fresh_nonce()};
  stranger.asked = true;
  stranger.link->queue({.kind = Kind::challenge, .sequence = 0, .payload = stranger.join.listener});
  stranger.link->flush();
  return "";
}

/// Takes a proof and lets the caller join; the reason when it may not.
std::string Door::prove(Stranger& stranger, const Frame& frame, Group& group) const {
  if (frame.kind != Kind::proof ||
      !equal_in_constant_time(frame.payload, proof_of(token_, Side::caller, stranger.join)))
    return kWrongToken;
  const auto& [rank, world, caller, listener] = stranger.join;
  if (world != static_cast<std::uint32_t>(group.world))
    return fmt::format("rank {} counts {} ranks, rank 0 {}", rank, world, group.world);
  if (rank == 0 || rank >= world) return fmt::format("rank {} is not from 1 to {}", rank, world - 1);
  auto& place = group.links[rank - 1];
  if (place) return fmt::format("rank {} is taken by {}", rank, place->peer());
  stranger.link->queue(
      {.kind = Kind::welcome, .sequence = 0, .payload = proof_of(token_, Side::listener, stranger.join)});
  stranger.link->flush();
  stranger.link->allow(group.limits.message);
  place = std::move(stranger.link);
  return "";
}

/// Reads the frames of a stranger; true when it has joined or was let go.
bool Door::is_done(Stranger& stranger, Group& group) const {
  while (const auto frame = stranger.link->next()) {
    const std::string reason = stranger.asked ? prove(stranger, *frame, group) : hello(stranger, *frame);
    if (!reason.empty()) let_go(stranger, group, reason);
    if (!reason.empty() || !stranger.link) return true;
  }
  const Link& link = *stranger.link;
  if (!link.closed() && Clock::now() < stranger.until) return false;
  let_go(stranger, group,
         !link.closed()           ? "it said nothing"
         : link.trouble().empty() ? "it closed without a word"
                                  : link.trouble());
  return true;
}

void Door::serve(Group& group) {
  for (std::size_t taken = 0; taken < kMostAtOnce && take_one(group); ++taken) {
    if (is_done(strangers_.back(), group)) strangers_.pop_back();
    make_room(group);
  }
  std::erase_if(strangers_, [&](Stranger& stranger) { return is_done(stranger, group); });
}

Clock::time_point Door::add_waits(std::vector<Link*>& links, Clock::time_point until) const {
  for (const auto& stranger : strangers_) {
    links.push_back(stranger.link.get());
    until = std::min(until, stranger.until);
  }
  return until;
}

}  // namespace assay::rendezvous
