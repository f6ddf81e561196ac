// path_class: the kinds of network paths between tenants, as a site declares them and crossing_refused tries them.
#pragma once

#include <string_view>

#include "probes/core/words.h"

namespace assay {

/// The kind of attempt on a path. l2: the link itself, by ARP or neighbour discovery; kube_api, kubelet, etcd and dcgm
/// are TCP with their own port; rdma_cm: a connection by RDMA CM, over RoCE v2 or InfiniBand; ib_path: a path between
/// two ports in a partition of InfiniBand; nvlink: memory of a GPU by a handle of the NVLink fabric; roce: a queue pair
/// of RoCE v2 that no connection manager brought up.
enum class PathClass {
  tcp,
  udp,
  l2,
  nfs,
  s3,
  bmc_ipmi,
  bmc_redfish,
  bmc_ssh,
  metadata,
  kube_api,
  kubelet,
  etcd,
  dcgm,
  rdma_cm,
  ib_path,
  nvlink,
  roce
};

constexpr auto words_of(PathClass) { return names_as_words<PathClass>(); }

/// Whether a path of this class has a port.
constexpr bool has_port(PathClass type) {
  using enum PathClass;
  return type != l2 && type != ib_path && type != nvlink && type != roce;
}

/// Whether a path of this class needs a target, which hands a handle or numbers over in a folder that the path's nodes
/// share.
constexpr bool is_handed_over(PathClass type) { return type == PathClass::nvlink || type == PathClass::roce; }

/// Whether a node that holds the path's address can watch what arrives there, as the site's `target`.
constexpr bool has_target(PathClass type) {
  using enum PathClass;
  return type == tcp || type == udp || type == kube_api || type == kubelet || type == etcd || type == dcgm ||
         type == rdma_cm || is_handed_over(type);
}

/// The port that a path has when the site names none; 0: the site must name one, or the class has none.
constexpr int default_port(PathClass type) {
  switch (type) {
    case PathClass::nfs:
      return 2049;  // RFC 7530, 3.1
    case PathClass::bmc_ipmi:
      return 623;  // IPMI v2.0, 13.1.2
    case PathClass::s3:
    case PathClass::bmc_redfish:
      return 443;
    case PathClass::bmc_ssh:
      return 22;
    case PathClass::metadata:
      return 80;
    case PathClass::kube_api:
      return 6443;  // kubernetes.io, "Ports and Protocols"
    case PathClass::kubelet:
      return 10250;
    case PathClass::etcd:
      return 2379;
    case PathClass::dcgm:
      return 5555;  // dcgm_structs.h, DCGM_HE_PORT_NUMBER
    default:
      break;
  }
  return 0;
}
static_assert(default_port(PathClass::kubelet) == 10250 && default_port(PathClass::l2) == 0);

/// The packets on a path of class nfs whose file handle is tried too, as sent_on says them.
constexpr std::string_view kSentByHandle =
    "a TCP connection, a look-up of the export (NFS 4) and, if it is refused, queries of its attributes by that "
    "tenant's file handle and by at most four mixed of it and each own export's, all of it";

/// The packets on a path of this class, for people: once a try, and nothing else.
constexpr std::string_view sent_on(PathClass type) {
  switch (type) {
    case PathClass::udp:
      return "one datagram";
    case PathClass::l2:
      return "one ARP request, of IPv6 one neighbour solicitation";
    case PathClass::nfs:
      return "a TCP connection and a look-up of the export (NFS 4)";
    case PathClass::s3:
      return "a TCP connection, and a listing of at most one key of the bucket";
    case PathClass::bmc_ipmi:
      return "one IPMI request, Get Channel Authentication Capabilities";
    case PathClass::bmc_redfish:
      return "a TCP connection, and one GET over TLS without a login";
    case PathClass::metadata:
      return "a TCP connection and one GET";
    case PathClass::rdma_cm:
      return "a request of RDMA CM for a connection (the kernel repeats it while a try lasts)";
    case PathClass::ib_path:
      return "a query of the subnet manager for the path";
    case PathClass::nvlink:
      return "nothing, but an import of a handle of 2 MiB of GPU memory, which is neither read nor written,";
    case PathClass::roce:
      return "an RDMA write of 8 B (RoCE v2, UDP port 4791; the adapter repeats it up to seven times) into memory that "
             "the target offers for it,";
    default:
      return "a TCP connection, on which nothing is sent";
  }
}

}  // namespace assay
