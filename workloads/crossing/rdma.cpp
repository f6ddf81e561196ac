// rdma: commands are written to a file, and each may answer into memory of the caller; events are asked for.
#include "workloads/crossing/rdma.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include <fcntl.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/sha256.h"

namespace assay::crossing {
namespace {

constexpr const char* kDevice = "/dev/infiniband/rdma_cm";
constexpr std::uint16_t kKeyWithoutMembership = 0x7fff;
constexpr std::uint8_t kReliable = 2;  // IBV_QPT_RC of infiniband/verbs.h
constexpr std::uint32_t kQueuePairs = 1U << 24;
constexpr int kNoService = 8, kRefusedByService = 28;  // ib_cm.h of Linux: enum ib_cm_rej_reason

// rdma_cma.h of rdma-core (2026-11-28): enum rdma_cm_event_type.
enum Event : std::uint32_t {
  kAddressResolved,
  kAddressError,
  kRouteResolved,
  kRouteError,
  kConnectRequest,
  kConnectResponse,
  kConnectError,
  kUnreachable,
  kRejected,
  kEstablished
};

/// struct sockaddr_ib of rdma/ib.h of Linux.
struct IbAddress {
  std::uint16_t family = AF_IB;
  std::uint16_t pkey = 0;  ///< this and the next three in network order
  std::uint32_t flow = 0;
  std::uint8_t gid[16] = {};
  std::uint64_t service = 0, service_mask = 0;
  std::uint64_t scope = 0;
};
static_assert(sizeof(IbAddress) == 48);

class Manager {
 public:
  Manager() : file_(::open(kDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC)) {
    if (!file_) throw Skip(fmt::format("{}: {}; load the kernel's module rdma_ucm", kDevice, std::strerror(errno)));
  }

  /// 0, or the error number.
  template <class Body>
  [[nodiscard]] int command(std::uint32_t number, const Body& body, std::size_t answer = 0) const {
    struct {
      rdma_ucm_cmd_hdr head;
      Body body;
    } request{{number, sizeof body, static_cast<std::uint16_t>(answer)}, body};
    static_assert(sizeof request == sizeof request.head + sizeof body);
    return ::write(file_.number(), &request, sizeof request) < 0 ? errno : 0;
  }

  /// A new identifier.
  [[nodiscard]] std::uint32_t identifier(rdma_ucm_port_space space) const {
    rdma_ucm_create_id_resp made{};
    const rdma_ucm_create_id body{.uid = 1,  // of an identifier without one the kernel reports nothing
                                  .response = reinterpret_cast<std::uint64_t>(&made),
                                  .ps = static_cast<std::uint16_t>(space),
                                  .qp_type = kReliable,
                                  .reserved = {}};
    if (const int error = command(RDMA_USER_CM_CMD_CREATE_ID, body, sizeof made); error != 0)
      throw std::runtime_error(fmt::format("{}: no identifier: {}", kDevice, std::strerror(error)));
    return made.id;
  }

  /// The next event, if one comes before `until` and before the probe is to stop.
  [[nodiscard]] std::optional<rdma_ucm_event_resp> event(Clock::time_point until) const {
    while (wait_for(file_.number(), POLLIN, until)) {
      rdma_ucm_event_resp came{};
      if (command(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{reinterpret_cast<std::uint64_t>(&came)},
                  sizeof came) == 0)
        return came;
    }
    return std::nullopt;
  }

 private:
  Descriptor file_;
};

rdma_ucm_conn_param parameters(std::string_view mark) {
  rdma_ucm_conn_param given{};
  // A request must name one; nothing is ever sent to it. One number twice is a stale connection to the other side.
  given.qp_num = 2 + std::random_device{}() % (kQueuePairs - 2);
  std::ranges::copy(mark, given.private_data);
  given.private_data_len = static_cast<std::uint8_t>(mark.size());
  given.responder_resources = given.initiator_depth = given.valid = 1;
  return given;
}

Tried nothing_left(int error) {
  return {Outcome::unclear, fmt::format("nothing left this node: {}",
                                        error == ENODEV ? "no RDMA device leads there" : std::strerror(error))};
}

/// Waits for `wanted`; else the outcome. `asked`: the question, for the evidence of silence.
std::optional<Tried> await(const Manager& manager, std::uint32_t wanted, Clock::time_point until, const Target& target,
                           const char* asked) {
  const auto came = manager.event(until);
  if (!came) return Tried{Outcome::no_answer, fmt::format("nothing came back to {}", asked)};
  if (came->event == wanted) return std::nullopt;
  return of_cm_event(came->event, static_cast<int>(came->status), target);
}

/// Three quarters of the time of an attempt, so that the kernel says itself that a look-up failed.
std::uint32_t for_look_up_ms(const Target& target) { return static_cast<std::uint32_t>(target.timeout.count * 750); }

/// The route to what `id` was resolved to, an answer of the subnet manager on InfiniBand; nothing if there is one.
std::optional<Tried> resolve(const Manager& manager, std::uint32_t id, const Target& target, Clock::time_point until) {
  if (auto ended = await(manager, kAddressResolved, until, target, "the look-up of the address")) return ended;
  if (const int error = manager.command(RDMA_USER_CM_CMD_RESOLVE_ROUTE,
                                        rdma_ucm_resolve_route{.id = id, .timeout_ms = for_look_up_ms(target)});
      error != 0)
    return nothing_left(error);
  return await(manager, kRouteResolved, until, target, "the look-up of the path");
}

/// Keys of the active InfiniBand ports of this node, membership bit left out; nothing if none is active.
std::optional<std::vector<std::uint16_t>> keys_of_ports(const std::string& root) {
  const MachineTree tree(root.empty() ? "/" : root);
  const std::string devices = "sys/class/infiniband/";
  std::optional<std::vector<std::uint16_t>> keys;
  for (const auto& device : tree.names(devices)) {
    for (const auto& port : tree.names(devices + device + "/ports")) {
      const std::string place = devices + device + "/ports/" + port;
      if (tree.text(place + "/link_layer") != "InfiniBand" ||
          tree.text(place + "/state").value_or("").find("ACTIVE") == std::string::npos)
        continue;
      if (!keys) keys.emplace();
      for (const auto& key : tree.names(place + "/pkeys"))
        keys->push_back(pkey_from(tree.text(place + "/pkeys/" + key).value_or("")) & kKeyWithoutMembership);
    }
  }
  return keys;
}

}  // namespace

std::uint16_t pkey_from(const std::string& text) {
  std::uint16_t key = 0;
  const char* const end = text.data() + text.size();
  if (!text.starts_with("0x") || std::from_chars(text.data() + 2, end, key, 16).ptr != end) return 0;
  return key;
}

std::string mark_of_rank(std::string_view token, int rank) {
  return hmac_sha256(token, fmt::format("mark of rank {}", rank)).substr(0, kMark);
}

Tried of_cm_event(std::uint32_t event, int status, const Target& target) {
  switch (event) {
    case kRouteResolved:
      return {Outcome::answered, "the subnet manager gives a path"};
    case kConnectResponse:
    case kEstablished:
      return {Outcome::answered, "RDMA CM: the connection was accepted"};
    case kRejected:  // other reasons are of the connection, such as a stale one, and do not refuse
      return {status == kNoService || status == kRefusedByService ? Outcome::refused : Outcome::unclear,
              fmt::format("RDMA CM: rejected, reason {}", status)};
    case kUnreachable:
      return {Outcome::no_answer, "nothing came back"};
    case kAddressError:
      return status == -ETIMEDOUT || status == -EHOSTUNREACH ? no_neighbour(target) : nothing_left(-status);
    case kRouteError:
      // A status of the answer is EINVAL (recv_handler in sa_query.c of Linux); others are no word of the manager.
      if (status == -EINVAL) return {Outcome::refused, "the subnet manager gives no path"};
      return {status == -ETIMEDOUT ? Outcome::no_answer : Outcome::unclear,
              fmt::format("no answer of the subnet manager: {}", std::strerror(-status))};
    default:
      return {Outcome::unclear, fmt::format("RDMA CM: event {}, status {}", event, status)};
  }
}

Tried of_completion(int status, const std::string& words) {
  // infiniband/verbs.h, enum ibv_wc_status: answers of the other adapter, and its silence.
  constexpr int kInvalidThere = 9, kNoAccessThere = 10, kFailedThere = 11, kNotAcknowledged = 12, kNotReadyThere = 13;
  if (status == kNotAcknowledged) return {Outcome::no_answer, "nothing came back to the write"};
  const bool said =
      status == kInvalidThere || status == kNoAccessThere || status == kFailedThere || status == kNotReadyThere;
  return {said ? Outcome::answered : Outcome::unclear, words};
}

Tried try_rdma_cm(const Target& target, std::string_view mark) {
  const Address address = address_of(target);
  const auto until = after(target.timeout);
  const Manager manager;
  const std::uint32_t id = manager.identifier(RDMA_PS_TCP);
  rdma_ucm_resolve_ip where{};
  std::memcpy(&where.dst_addr, address.get(), address.length);
  where.id = id;
  where.timeout_ms = for_look_up_ms(target);
  if (const int error = manager.command(RDMA_USER_CM_CMD_RESOLVE_IP, where); error != 0) return nothing_left(error);
  if (auto ended = resolve(manager, id, target, until)) return *ended;
  rdma_ucm_connect request{};
  request.conn_param = parameters(mark);
  request.id = id;
  if (const int error = manager.command(RDMA_USER_CM_CMD_CONNECT, request); error != 0) return nothing_left(error);
  return *await(manager, kConnectRequest, until, target,
                "the request");  // which only listeners get: every other event is an outcome
}

Tried try_ib_path(const Target& target, const std::string& pkey, const std::string& root) {
  const auto keys = keys_of_ports(root);
  if (!keys) return {Outcome::unclear, "nothing left this node: it has no active port of InfiniBand"};
  const std::uint16_t key = pkey_from(pkey);
  if (std::ranges::find(*keys, key & kKeyWithoutMembership) == keys->end())
    return {Outcome::refused, fmt::format("the subnet manager put {} into the table of no port of this node", pkey)};
  IbAddress there{.pkey = htons(key)};
  if (inet_pton(AF_INET6, target.address.c_str(), there.gid) != 1)
    throw std::runtime_error(fmt::format("address: '{}' is no GID", target.address));
  const auto until = after(target.timeout);
  const Manager manager;
  const std::uint32_t id = manager.identifier(RDMA_PS_IB);
  rdma_ucm_resolve_addr where{};
  std::memcpy(&where.dst_addr, &there, sizeof there);
  where.dst_size = sizeof there;
  where.id = id;
  where.timeout_ms = for_look_up_ms(target);
  if (const int error = manager.command(RDMA_USER_CM_CMD_RESOLVE_ADDR, where); error != 0) return nothing_left(error);
  if (auto ended = resolve(manager, id, target, until)) return *ended;
  return of_cm_event(kRouteResolved, 0, target);
}

Arrivals watch_rdma_cm(const Target& at, std::string_view token, Clock::time_point until) {
  const Address address = address_of(at);
  const Manager manager;
  const std::uint32_t id = manager.identifier(RDMA_PS_TCP);
  rdma_ucm_bind_ip here{};
  std::memcpy(&here.addr, address.get(), address.length);
  here.id = id;
  int error = manager.command(RDMA_USER_CM_CMD_BIND_IP, here);
  if (error == 0) error = manager.command(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{.id = id, .backlog = 8});
  if (error != 0)
    throw std::runtime_error(
        fmt::format("listening by RDMA CM at {} port {}: {}\nhint: the target of a path holds its address, and takes a "
                    "port that no service has",
                    at.address, at.port, std::strerror(error)));
  Arrivals found;
  while (!(found.control && found.crossing)) {
    const auto came = manager.event(until);
    if (!came) break;
    if (came->event != kConnectRequest) continue;
    const std::string_view mark(reinterpret_cast<const char*>(came->param.conn.private_data), kMark);
    found.control = found.control || mark == mark_of_rank(token, 1);
    if (mark == mark_of_rank(token, 0)) {
      found.crossing = true;
      found.evidence = "a request of RDMA CM for a connection arrived";
    }
    rdma_ucm_accept accepted{};
    accepted.conn_param = parameters("");
    accepted.id = came->id;
    accepted.uid = 2;
    (void)manager.command(RDMA_USER_CM_CMD_ACCEPT, accepted);  // the other side shows whether it was answered
  }
  sleep_until_stopped(kForReplies);  // an identifier that is closed takes its reply back
  return found;
}

}  // namespace assay::crossing
