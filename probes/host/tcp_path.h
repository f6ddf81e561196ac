// tcp_path: the network path of the streams between two ranks, so that no loopback passes for a network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/units.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {

/// The parameter of every probe that measures between two ranks over TCP.
inline constexpr Parameter kPathParameter =
    choice("path", "fabric", "fabric loopback",
           "what is measured: the network between two machines, or one machine's own loopback");

/// `interface` of those probes. The parameter is checked, not enforced: the route is the machine's own, and a wrong one
/// is a finding.
inline constexpr const char* kRendezvousPort = "rendezvous";
inline constexpr Parameter kInterfaceParameter =
    parameter("interface", "", kRendezvousPort,
              "network port of this node that the payload must go through, "
              "such as eth1; rendezvous: the one on which the ranks meet");

/// The conditions that record_path() records.
inline constexpr ConditionSpec kPathConditions[] = {
    {.name = "path", .meaning = "What the payload went through: fabric, between two machines, or loopback."},
    {.name = "address", .meaning = "This rank's address on the streams."},
    {.name = "peer_address", .meaning = "The other rank's address on the streams."},
    {.name = "interface", .meaning = "This rank's network port that has the address."},
    {.name = "mtu", .meaning = "Largest packet of that port, in B."},
    if_reported("link_speed", "Rate of that port in B/s, where its driver reports it."),
    if_reported("link_speed_max",
                "Rate in B/s of the fastest mode that port and driver support, where the driver lists its modes."),
    {.name = "mss", .meaning = "Largest segment that this rank sends, in B."},
    {.name = "congestion_control", .meaning = "Algorithm by which this rank decides how much may be under way."},
};

/// Facts of one end of a stream.
struct PathFacts {
  std::string address, peer_address, interface, congestion_control;
  std::int64_t mss = 0;
  std::optional<std::int64_t> mtu = {};
  std::optional<BytesPerSecond> link_speed = {};
  std::optional<BytesPerSecond> link_speed_max = {};
  std::string way_back =
      {};  ///< the address that this machine would send from on its own way to the peer; empty if there is none
};

/// The facts of a connected socket. Throws std::system_error when the kernel does not report the facts of every TCP
/// socket.
PathFacts path_of(int socket);

/// B/s from the text of /sys/class/net/*/speed, which is in Mbit/s; nothing for "-1" and other ways to say unknown.
std::optional<BytesPerSecond> link_speed_in(const std::string& text);

/// Why streams with these facts, between machines of these boots, are not what `wanted` (fabric or loopback) names;
/// empty if they are. The boot is the kernel's own boot id, and empty if the kernel reports none.
std::string other_path(const std::string& wanted, const PathFacts& facts, const std::string& boot,
                       const std::string& other_boot);

/// Why a stream with these facts does not go through the port `wanted` of this node; empty if it does, or any will do.
/// The end that accepted has the address that was connected to, wherever its packets leave: so its own way to the peer
/// must begin there too.
std::string other_interface(const std::string& wanted, const PathFacts& facts);

/// Records the conditions of one stream's path.
void record_facts(const std::string& path, const PathFacts& facts, Recorder& record);

/// The kernel's boot id; empty if the kernel reports none.
std::string boot_id();

/// Both ranks: throws Skip for a single rank, std::runtime_error for more than two.
void demand_pair(const Placement& placement);

/// Both ranks: throws std::runtime_error when the streams do not take the path or interface that `given` names; else
/// records every condition.
void record_path(const Parameters& given, Rendezvous& group, const Streams& streams, Recorder& record);

/// The pair as a subject: both host names, rank 0's first. Both ranks call it.
Subject pair_subject(Rendezvous& group);

}  // namespace assay::host
