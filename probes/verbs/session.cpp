// session: the order in which a rank finds its port, opens it and meets its peer.
#include "probes/verbs/session.h"

#include <array>
#include <exception>
#include <random>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "probes/core/host_facts.h"
#include "probes/core/json_io.h"
#include "probes/health/machine_tree.h"
#include "probes/verbs/port_choice.h"

namespace assay {
namespace {

/// What both ranks must have been given alike: all but the device, whose name is each node's own.
std::string shared_parameters(const Parameters& given) {
  Values values = given.values();
  values.erase("device");
  return to_json(values).dump();
}

constexpr std::int64_t kMaxTrafficClass = 255, kMaxServiceLevel = 15;

std::int64_t in_range(const Parameters& given, std::string_view name, std::int64_t most) {
  const std::int64_t value = given.count(name);
  if (value < 0 || value > most) throw BadParameter(fmt::format("{}: {} is not from 0 to {}", name, value, most));
  return value;
}

/// CPUs beside the device, from the kernel's own list for it.
std::vector<int> local_cpus(const MachineTree& tree, const std::string& device) {
  const auto text = tree.text(fmt::format("sys/class/infiniband/{}/device/local_cpulist", device));
  return text ? parse_cpu_list(*text).value_or(std::vector<int>{}) : std::vector<int>{};
}

void record_words(Recorder& record, std::string_view name, const std::string& value) {
  if (!value.empty()) record.condition(name, value);
}

std::string fresh_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

/// Both ranks of a loopback in this process.
void run_loopback(Recorder& record, const std::function<void(Rendezvous&, Recorder*)>& part, const RendezvousLimits& limits) {
  Endpoint at{.host = "127.0.0.1", .port = 0};
  RendezvousListener listener(at);
  at.port = listener.port();
  const std::string token = fresh_token();
  std::exception_ptr trouble;
  std::thread other([&] {
    try {
      auto group = Rendezvous::dial(at, 1, 2, token, limits);
      try {
        part(group, nullptr);
      } catch (const std::exception& error) {
        group.fail(error.what());
        throw;
      }
    } catch (...) {
      trouble = std::current_exception();
    }
  });
  std::exception_ptr mine;
  try {
    auto group = std::move(listener).gather(2, token, limits);
    try {
      part(group, &record);
    } catch (const std::exception& error) {
      group.fail(error.what());
      throw;
    }
  } catch (...) {
    mine = std::current_exception();
  }
  other.join();
  if (mine) std::rethrow_exception(mine);
  if (trouble) std::rethrow_exception(trouble);
}

}  // namespace

Session::Session(const Parameters& given, Rendezvous& group) : group_(group), stall_limit_(given.seconds("stall_limit")), loopback_(given.text("path") == "loopback"), root_(given.text("root")) {
  const PathWish wish{.mtu = given.text("mtu"),
                      .traffic_class = static_cast<int>(in_range(given, "traffic_class", kMaxTrafficClass)),
                      .service_level = static_cast<int>(in_range(given, "service_level", kMaxServiceLevel))};
  const MachineTree tree(root_);
  place_.emplace(given, tree, group.rank());
  const PortFacts& chosen = place_->port();
  const Gid gid = choose_gid(chosen, given.text("gid_index"));
  binding_ = std::make_unique<CpuBinding>(local_cpus(tree, chosen.device));
  adapter_.emplace(chosen);
  const auto& limits = adapter_->limits();
  mine_ = {.host = std::get<std::string>(host_facts().at("name")),
           .boot = tree.text("proc/sys/kernel/random/boot_id").value_or(""),
           .parameters = shared_parameters(given),
           .port = chosen.name(),
           .node_guid = chosen.node_guid,
           .link_layer = chosen.link_layer,
           .gid = gid.value,
           .gid_type = gid.type,
           .gid_index = gid.index,
           .lid = limits.lid,
           .mtu = limits.mtu,
           .reads_as_initiator = limits.reads_as_initiator,
           .reads_as_responder = limits.reads_as_responder};
  other_ = unpacked_introduction(swap(packed(mine_)));
  check_pair(mine_, other_, given.text("path"));
  path_ = path_between(mine_, other_, wish);
  before_ = read_counters(tree, chosen);
}

std::string Session::swap(std::string_view mine) { return group_.all_gather(mine).at(static_cast<std::size_t>(1 - group_.rank())); }

Subject Session::subject() const { return group_.rank() == 0 ? subject_of(mine_, other_) : subject_of(other_, mine_); }

void Session::connect(VerbsEndpoint& endpoint) {
  const EndpointAddress mine = endpoint.address();
  const EndpointAddress other = unpacked_address(swap(packed(mine)));
  if (pairs_text_.empty()) pairs_text_ = fmt::format("{} > {}", fmt::join(mine.queue_pairs, ","), fmt::join(other.queue_pairs, ","));
  endpoint.connect(other, path_);
  barrier();  // a message must not arrive at a queue pair that is not connected
}

void Session::record_conditions(Recorder& record, const RegisteredMemory& memory) {
  const MachineTree tree(root_);
  record.condition("path", std::string(loopback_ ? "loopback" : "fabric"));
  record.condition("local", address_words(mine_, path_.global));
  record.condition("peer", address_words(other_, path_.global));
  record.condition("transport", transport_of(mine_));
  record.condition("queue_pairs", pairs_text_);
  record.condition("device", mine_.port);
  record_words(record, "firmware", port().firmware);
  record_words(record, "board", port().board);
  record_words(record, "interface", port().interface);
  record_words(record, "link_layer", port().link_layer);
  record_words(record, "port_speed", port().speed);
  if (port().width) record.condition("port_width", std::int64_t{*port().width});
  if (port().rate) {
    record.condition("port_rate", port().rate->count);
    const int headers = port().link_layer == "Ethernet" ? kRoceHeaders : kInfinibandHeaders;
    record.condition("payload_limit", payload_limit(*port().rate, path_.mtu, headers).count);
  }
  record.condition("gid_index", std::int64_t{mine_.gid_index});
  record.condition("gid", gid_words(mine_.gid));
  if (mine_.lid != 0) record.condition("lid", std::int64_t{mine_.lid});
  record.condition("mtu", std::int64_t{path_.mtu});
  record.condition("traffic_class", std::int64_t{path_.traffic_class});
  record.condition("service_level", std::int64_t{path_.service_level});
  record.condition("reads_outstanding", std::int64_t{path_.reads_as_initiator});
  record.condition("relaxed_ordering", memory.relaxed());
  record.condition("completion_timestamps", adapter_->limits().completion_timestamps);
  if (port().numa_node) record.condition("numa_node", std::int64_t{*port().numa_node});
  record.condition("cpus_bound", binding_->bound());
  record.condition("library", adapter_->library());
  place_->record(record, tree, memory);
  record_counters(record, before_, read_counters(tree, port()));
  for (const auto& now : read_ports(tree)) {
    if (now.name() != mine_.port) continue;
    record_words(record, "port_state", now.state);
    record.condition("port_unchanged", now.state == port().state && now.speed == port().speed && now.width == port().width &&
                                           now.rate.has_value() == port().rate.has_value() && (!now.rate || now.rate->count == port().rate->count));
  }
}

void run_pair(const Parameters& given, const Placement& placement, Recorder& record,
              const std::function<void(Rendezvous&, Recorder*)>& part, Seconds exchange) {
  check_place(given);
  const RendezvousLimits limits{.exchange = exchange};
  const bool loopback = given.text("path") == "loopback";
  if (placement.world > 2) throw std::runtime_error(fmt::format("{} ranks: a pair has two; hint: scope pair", placement.world));
  if (placement.world == 1 && loopback) return run_loopback(record, part, limits);
  if (placement.world == 1) {
    const MachineTree tree(given.text("root"));
    (void)candidate_ports(read_ports(tree), given.text("device"));  // the lack of an adapter is the better reason
    throw Skip("one rank: a fabric is measured between two machines; hint: --path loopback measures one port as such");
  }
  work_together(placement, limits, [&](Rendezvous& group) { part(group, &record); });
}

}  // namespace assay
