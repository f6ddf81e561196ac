// crossings: reads tenants and paths; the schema has checked types and characters.
#include "orchestrator/site/crossings.h"

#include <algorithm>
#include <set>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "probes/core/json_fields.h"

namespace assay::site {

template <class Io, Of<CrossingPath> P>
void fields(Io& io, P& path) {
  io("name", path.name), io("class", path.type), io("tenant", path.tenant), io.sparse("address", path.address);
  io.sparse("target", path.target);
  io.sparse("port", path.port), io.sparse("resource", path.resource), io.sparse("folder", path.folder);
  io.sparse("interface", path.interface);
  io.sparse("region", path.region), io.sparse("tls", path.tls), io.sparse("credentials", path.credentials);
}

namespace {

using nlohmann::json;

bool is_numeric(const std::string& address) {
  in6_addr bytes{};
  return inet_pton(AF_INET, address.c_str(), &bytes) == 1 || inet_pton(AF_INET6, address.c_str(), &bytes) == 1;
}

bool is_partition_key(const std::string& text) {
  return text.size() == std::string_view("0x8005").size() && text.starts_with("0x") && text != "0x0000" &&
         text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
}

bool is_of_http(PathClass type) { return type == PathClass::metadata || type == PathClass::bmc_redfish; }

/// Fills in what the class has by default.
void complete(CrossingPath& path) {
  if (path.port == 0) path.port = default_port(path.type);
  if (path.resource.empty() && is_of_http(path.type))
    path.resource = path.type == PathClass::metadata ? "/" : "/redfish/v1/";
  if (path.resource.empty() && path.type == PathClass::udp) path.resource = "assay";
  if (path.region.empty() && path.type == PathClass::s3) path.region = "us-east-1";
}

/// What the class needs and lacks, or has and cannot use.
std::optional<InputError> check_fields(const CrossingPath& path, const std::string& here) {
  const PathClass type = path.type;
  const auto error = [&](const char* field, const char* what, const char* hint) {
    return InputError{fmt::format("{}.{}", here, field), fmt::format("{} of class {}", what, type), hint};
  };
  if (type == PathClass::nvlink ? !path.address.empty() : !is_numeric(path.address))
    return InputError{here + ".address",
                      type == PathClass::nvlink ? "is not a field of class nvlink"
                                                : fmt::format("'{}' is not a numeric address", path.address),
                      type == PathClass::nvlink
                          ? "memory has none: give target and resource"
                          : "no name is resolved, so that nothing else is asked: 10.1.2.3, fd00::3"};
  if (has_port(type) == (path.port == 0))
    return has_port(type)
               ? error("port", "is missing in a path", "name the port that is tried")
               : error("port", "is not a field",
                       "the link, paths of InfiniBand and memory have no ports, and RoCE v2 has always 4791");
  if (!path.target.empty() && !has_target(type))
    return error("target", "is not a field",
                 "it goes with tcp, udp, kube_api, kubelet, etcd, dcgm, rdma_cm, nvlink and roce");
  if (is_handed_over(type) && path.target.empty())
    return error("target", "is missing in a path", "name the node of the tenant whose memory is offered");
  const bool of_path = type == PathClass::nfs || is_handed_over(type) || is_of_http(type);
  if (of_path && !path.resource.starts_with('/'))
    return error("resource", "is no absolute path in a path", "nfs: the export, \"/home\"; others: \"/redfish/v1/\"");
  if (type == PathClass::ib_path && !is_partition_key(path.resource))
    return error("resource", "is no partition key in a path", "\"0x8005\", as in the pkeys of the port");
  if (type == PathClass::s3 && (path.resource.empty() || path.credentials.empty()))
    return error("credentials", "or resource is missing in a path", "give the bucket, and the file with the own key");
  if (!path.resource.empty() && !of_path && type != PathClass::s3 && type != PathClass::udp &&
      type != PathClass::ib_path)
    return error("resource", "is not a field",
                 "it goes with nfs, s3, metadata, bmc_redfish, udp, ib_path, nvlink and roce");
  if (!path.folder.empty() && type != PathClass::nfs) return error("folder", "is not a field", "it goes with nfs");
  if (!path.interface.empty() && type != PathClass::l2) return error("interface", "is not a field", "it goes with l2");
  if ((!path.credentials.empty() || !path.region.empty() || path.tls) && type != PathClass::s3)
    return error("credentials", "or region or tls is not a field", "they go with s3");
  return std::nullopt;
}

}  // namespace

std::expected<Crossings, InputError> crossings_from(const json& object, const std::string& here,
                                                    const std::vector<std::string>& nodes) {
  Crossings all{
      .consent = object.at("consent"), .tenants = object.at("tenants"), .nightly = object.value("nightly", false)};
  std::set<std::string> taken, names;
  for (const auto& [tenant, members] : all.tenants) {
    for (const auto& node : members) {
      if (std::ranges::find(nodes, node) == nodes.end())
        return std::unexpected(InputError{fmt::format("{}.tenants.{}", here, tenant),
                                          fmt::format("the site has no node '{}'", node), "name nodes of this file"});
      if (!taken.insert(node).second)
        return std::unexpected(InputError{fmt::format("{}.tenants.{}", here, tenant),
                                          fmt::format("'{}' is already of a tenant", node),
                                          "a node is of one tenant, or of none"});
    }
  }
  for (const auto& entry : object.at("paths")) {
    const std::string place = fmt::format("{}.paths[{}]", here, all.paths.size());
    auto path = entry.get<CrossingPath>();
    complete(path);
    if (!names.insert(path.name).second)
      return std::unexpected(InputError{place + ".name", fmt::format("'{}' appears twice", path.name),
                                        "every path has a name of its own"});
    if (!all.tenants.contains(path.tenant))
      return std::unexpected(InputError{place + ".tenant", fmt::format("'{}' is no tenant", path.tenant),
                                        "name one of `tenants`; management can be one"});
    if (const auto& own = all.tenants.at(path.tenant); !path.target.empty()) {
      if (std::ranges::find(own, path.target) == own.end() || own.size() < 2)
        return std::unexpected(InputError{
            place + ".target", fmt::format("'{}' is not one of several nodes of {}", path.target, path.tenant),
            "a node of the path's tenant watches, and another one is the positive control"});
    }
    if (auto problem = check_fields(path, place)) return std::unexpected(std::move(*problem));
    all.paths.push_back(std::move(path));
  }
  return all;
}

void keep_nodes(std::optional<Crossings>& crossings, const std::vector<std::string>& names) {
  if (!crossings) return;
  const auto is_absent = [&](const std::string& node) { return std::ranges::find(names, node) == names.end(); };
  for (auto& [tenant, nodes] : crossings->tenants) std::erase_if(nodes, is_absent);
  std::erase_if(crossings->paths,
                [&](const CrossingPath& path) { return !path.target.empty() && is_absent(path.target); });
  if (crossings->paths.empty()) crossings.reset();
}

json to_json(const Crossings& crossings) {
  json document = {{"consent", crossings.consent}, {"tenants", crossings.tenants}, {"paths", crossings.paths}};
  if (crossings.nightly) document["nightly"] = true;
  return document;
}

}  // namespace assay::site
