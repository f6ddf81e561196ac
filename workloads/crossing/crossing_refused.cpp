// crossing_refused: one path between tenants, tried by a node that must not reach it and, at the same time, by one that
// does; a third watches at the target where the site names its node. The ranks never talk to each other: where tenants
// are kept apart they could not. Ports and marks that they have in common follow from the token of the step.
#include <chrono>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/path_class.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "workloads/crossing/neighbour.h"
#include "workloads/crossing/next_hop.h"
#include "workloads/crossing/nfs.h"
#include "workloads/crossing/nvlink.h"
#include "workloads/crossing/rdma.h"
#include "workloads/crossing/roce.h"
#include "workloads/crossing/services.h"
#include "workloads/crossing/tried.h"
#include "workloads/crossing/watch.h"

namespace assay::crossing {
namespace {

constexpr std::int64_t kMostTries = 10;
constexpr double kLongestTimeout_s = 4;  // so that a try ends within 5 s of a stop
constexpr std::chrono::seconds kBetweenTries{1};
constexpr std::chrono::seconds kAhead{2};  // so much earlier the target watches: agents start ranks one after another
constexpr double kBehind_s = 3;            // and so much longer than the last try takes

constexpr Parameter kParameters[] = {
    choice("class", "tcp",
           "tcp udp l2 nfs s3 bmc_ipmi bmc_redfish bmc_ssh metadata kube_api kubelet etcd dcgm rdma_cm ib_path "
           "nvlink roce",
           "kind of the path"),
    parameter("path", "", "", "name of the path in the site, which the plan fills in with all below"),
    parameter("address", "", "", "numeric address that is tried, and no other; ib_path: a GID"),
    parameter("port", "1", "0", "its port"),
    parameter("resource", "", "",
              "nfs: the export; s3: the bucket; metadata, bmc_redfish: the path of a GET; udp: the datagram; ib_path: "
              "the partition key; nvlink, roce: a folder that all nodes of the path see, for handles and numbers"),
    choice("watched", "off", "off on",
           "whether a third rank, which holds the address, watches for arrivals; nvlink, roce: offers the memory"),
    parameter("folder", "", "",
              "nfs: a folder that all nodes of the path see, for the export's file handle, which is tried too; empty: "
              "only its name is"),
    parameter("own_export", "", "", "nfs: export of the node's own tenant at that address, to mix handles with"),
    parameter("interface", "", "", "l2: the interface that asks; empty: that of the route"),
    parameter("region", "", "", "s3: that requests are signed for"),
    choice("tls", "off", "off on", "s3: whether over HTTPS"),
    parameter("credentials", "", "",
              "s3: file on the node that only its owner may read, with the key of its own tenant"),
    parameter("timeout", "s", "2s", "longest wait for one answer, at most 4 s", "1s"),
    parameter("tries", "1", "3", "attempts at most, 1 s apart, until something comes back; 1 to 10", "1"),
};
constexpr Metric kMetrics[] = {
    fault("answered",
          "1 if the node of the other tenant was answered, or a watched target saw it arrive, so that the path is "
          "open, else 0",
          Recorded::rank_0),
    lower("unrefused", "1", "1 if nothing refused that node: it was answered, or nothing came back; else 0",
          Recorded::rank_0),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "tried",
     .meaning =
         "crossing on the node of the other tenant; on the node of the path's own tenant the outcome of the same "
         "attempt: control answered, refused, no_answer or unclear, or control sent where a target watches and nothing "
         "came back; on the target control seen or unseen, or control offered of nvlink"},
    rank_0("outcome", "of the crossing: refused, no_answer, answered or unclear"),
    {.name = "evidence", .meaning = "of the outcome, such as the ICMP message and its sender"},
};
constexpr ProbeSpec kSpec{
    .name = "crossing_refused",
    .revision = 3,
    .scope = Scope::group,
    .measures = "Whether a path into one tenant, declared by the site, is closed to a node of another tenant.",
    .method =
        "Rank 0, of another tenant, tries the path; rank 1, of the path's own tenant, makes the same attempt at the "
        "same time: the positive control, without whose answer the crossing is not judged. An attempt is answered "
        "where the connection is accepted (tcp and its kin), a datagram, ARP reply or neighbour advertisement comes "
        "back, NFS gives a file "
        "handle, or HTTP a status 2xx, RDMA CM accepts, an RDMA write is acknowledged or rejected, the subnet manager "
        "gives a path, or the driver imports the handle; refused by a TCP reset, by an ICMP message of a filter or "
        "closed port, by an error of permission of NFS (with `folder` also to the file handle that the control hands "
        "over, and to handles that begin as one of `own_export` in the same file system and end as that one), by HTTP "
        "401 or 403, by a reject of RDMA CM, by a subnet "
        "manager that gives no path or did not give the node the partition key, or by the driver that imports a "
        "handle of the node's own and not the tenant's. With `watched`, rank 2 holds the address: it sees packets "
        "that the kernel delivers there after its filters, or listens by RDMA CM, or (roce) offers 16 B of its own "
        "for a write through a queue pair without RDMA CM, whose numbers go through a folder; an arrival from rank 0 "
        "is answered even without a reply, and the control counts if it arrived. Nothing that comes back in `timeout` "
        "is no answer, which is no refusal: a filter that drops and a machine that is down look alike, and only the "
        "control differs. An attempt is repeated until something comes back, `tries` times at most, 1 s apart; a "
        "watching target of RDMA CM may refuse before it listens, so that its refusal counts of the last try; roce is "
        "tried once, which adapters repeat. It is unclear where nothing left the node (no route, no carrier, no "
        "gateway, its own filter), or the answer neither grants nor refuses. Only the named address is sent to, no "
        "name is resolved, no login is made, and nothing is written elsewhere.",
    .source =
        "RFC 792, RFC 826, RFC 1812 (5.2.7.1), RFC 4443, RFC 4861, RFC 5531, RFC 7530, RFC 9110; IPMI v2.0, 13 and "
        "22.13; "
        "AWS, Amazon S3 API Reference, ListObjectsV2; linux/rdma_user_cm.h, rdma_cma.h and verbs.h of rdma-core; CUDA "
        "Driver API, cuMemImportFromShareableHandle.",
    .needs =
        "Two nodes, a site with tenants, paths and consent (crossings); l2 and a watching target: CAP_NET_RAW; s3 and "
        "bmc_redfish: libcurl 7.85 or newer; rdma_cm and ib_path: the kernel's rdma_ucm; roce: libibverbs; nvlink: "
        "NVIDIA driver.",
    .typical = {3},
    .deadline = {90},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

Target target_of(const Parameters& given) {
  const double timeout_s = given.seconds("timeout").count;
  if (!(timeout_s > 0) || timeout_s > kLongestTimeout_s)
    throw BadParameter(fmt::format("timeout: {:g} s is not above 0 and at most 4 s", timeout_s));
  (void)given.count("tries", 1, kMostTries);
  const auto port = given.count("port", 0, 65535);
  return {.address = given.text("address"), .port = static_cast<int>(port), .timeout = {timeout_s}};
}

PathClass class_of(const Parameters& given) {
  return from_word<PathClass>(given.text("class")).value_or(PathClass::tcp);  // one of the choices
}

/// The time at which a target stops watching, and the wait for a handle ends.
Clock::time_point end_of_watch(const Parameters& given) {
  const double tries_s = static_cast<double>(given.count("tries")) * (given.seconds("timeout").count + 1);
  return after({tries_s + kBehind_s}) + kAhead;
}

protocols::S3Bucket bucket_of(const Parameters& given) {
  const std::string& path = given.text("credentials");
  const auto text = read_secret_file(path);
  if (!text) throw Skip(text.error().text());
  const auto words = parse_json(*text, path);
  const auto word = [&](const char* name) {
    if (!words || !words->is_object() || !words->contains(name) || !words->at(name).is_string())
      throw std::runtime_error(fmt::format("{}: is not {{\"access_key\": TEXT, \"secret_key\": TEXT}}", path));
    return words->at(name).get<std::string>();
  };
  return {.endpoint = given.text("tls") == "on" ? "https://" : "http://",
          .region = given.text("region"),
          .bucket = given.text("resource"),
          .access_key = word("access_key"),
          .secret_key = word("secret_key")};
}

Tried try_export(const Target& target, const Parameters& given, const Placement& placement) {
  const std::string& path = given.text("resource");
  const NoteFolder notes{given.text("folder"), placement.token};
  if (notes.folder.empty()) return try_nfs(target, path);
  return placement.rank == 0 ? try_handle(target, path, given.text("own_export"), notes, end_of_watch(given))
                             : offer_handle(target, path, notes, end_of_watch(given));
}

Tried try_once(const Target& target, const Parameters& given, const Placement& placement) {
  switch (class_of(given)) {
    case PathClass::rdma_cm:
      return try_rdma_cm(target, mark_of_rank(placement.token, placement.rank));
    case PathClass::ib_path:
      return try_ib_path(target, given.text("resource"));
    case PathClass::nvlink:
      return try_nvlink(given.text("resource"), placement.token, end_of_watch(given));
    case PathClass::roce:
      return try_roce(target, {given.text("resource"), placement.token}, placement.rank, end_of_watch(given));
    case PathClass::udp:
      return try_udp(target, given.text("resource"));
    case PathClass::l2:
      return try_neighbour(target, given.text("interface"));
    case PathClass::nfs:
      return try_export(target, given, placement);
    case PathClass::s3:
      return try_s3(target, bucket_of(given));
    case PathClass::bmc_ipmi:
      return try_ipmi(target);
    case PathClass::bmc_redfish:
      return try_https(target, given.text("resource"));
    case PathClass::metadata:
      return try_http(target, given.text("resource"));
    default:
      return try_tcp(target);
  }
}

void demand_time() {
  if (stop_requested()) throw std::runtime_error("stopped before the last try was over");
}

/// Why nothing can have left this node; empty if it can have: a node that is cut off would show every path as closed.
std::string why_nothing_left(const Target& target, const Parameters& given) {
  const PathClass type = class_of(given);
  if (type == PathClass::ib_path) return "";  // its own port was active
  const auto hop = next_hop_to(target.address);
  const std::string& link = given.text("interface");
  if (type == PathClass::l2) return why_cut_off(link.empty() && hop ? hop->interface : link);
  return hop ? why_cut_off(*hop) : "nothing left this node: no route";
}

/// Tries until something comes back, or the last try is over.
Tried try_path(const Parameters& given, const Placement& placement) {
  Target target = target_of(given);
  if (given.text("watched") == "on") {
    target.from_port = port_of_rank(placement.token, placement.rank);
    if (!is_handed_over(class_of(given))) sleep_until_stopped(kAhead);
  }
  Tried tried;
  for (std::int64_t i = 0; i < given.count("tries"); ++i) {
    if (i > 0) sleep_until_stopped(kBetweenTries);
    demand_time();
    tried = try_once(target, given, placement);
    if (class_of(given) == PathClass::roce) break;  // the adapter has repeated it
    // A target that has begun late is not listening yet: its refusal counts of the last try.
    const bool may_come = class_of(given) == PathClass::rdma_cm && tried.outcome == Outcome::refused;
    if (tried.outcome != Outcome::no_answer && !(target.from_port != 0 && may_come)) break;
  }
  demand_time();
  if (tried.outcome != Outcome::no_answer) return tried;
  const std::string cut_off = why_nothing_left(target, given);
  demand_time();
  return cut_off.empty() ? tried : Tried{Outcome::unclear, cut_off};
}

/// Rank 2, at the target: the arrivals, as the condition `tried` and the figure of the crossing.
void watch_path(const Parameters& given, const Placement& placement, const Subject& subject, const Values& at,
                Recorder& record) {
  const Target target = target_of(given);
  const PathClass type = class_of(given);
  const auto until = end_of_watch(given);
  if (type == PathClass::nvlink) {
    offer_memory(given.text("resource"), placement.token, until);
    demand_time();
    record.condition("tried", "control offered");
    record.condition("evidence", "the memory was offered until all had tried");
    return;
  }
  const std::string& payload = given.text("resource");
  const Arrivals seen = type == PathClass::rdma_cm ? watch_rdma_cm(target, placement.token, until)
                        : type == PathClass::roce  ? watch_roce(target, {payload, placement.token}, until)
                                                   : watch_packets(target, type == PathClass::udp ? &payload : nullptr,
                                                                   placement.token, until);
  demand_time();
  record.condition("tried", seen.control ? "control seen" : "control unseen");
  record.condition("evidence", without_controls(seen.evidence, kLongestShown));
  record.measurement("answered", seen.crossing ? 1 : 0, subject, at);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  (void)target_of(given);
  const bool watched = given.text("watched") == "on";
  if (placement.world != (watched ? 3 : 2))
    throw Skip(
        "needs two ranks: a node of another tenant, and one of the path's own as the positive control; and with "
        "watched=on a third at the target");
  if (given.text("address").empty() && class_of(given) != PathClass::nvlink)
    throw BadParameter("address: is empty; a plan fills in the path of the site");
  const Subject subject{.kind = "group", .id = given.text("path")};
  const Values at{{"path", given.text("path")}};
  if (placement.rank == 2) {
    watch_path(given, placement, subject, at, record);
    return;
  }
  const Tried tried = try_path(given, placement);
  record.condition("evidence", without_controls(tried.evidence, kLongestShown));
  if (placement.rank == 1) {
    const bool only_sent = watched && tried.outcome == Outcome::no_answer;
    record.condition("tried", only_sent ? "control sent" : fmt::format("control {}", tried.outcome));
    return;
  }
  record.condition("tried", "crossing");
  record.condition("outcome", std::string(word_of(tried.outcome)));
  record.measurement("answered", tried.outcome == Outcome::answered ? 1 : 0, subject, at);
  record.measurement("unrefused", tried.outcome == Outcome::refused ? 0 : 1, subject, at);
}

}  // namespace
}  // namespace assay::crossing

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::crossing::kSpec, assay::crossing::measure);
}
