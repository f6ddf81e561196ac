// crossings: the tenants of a site, and the paths between them that may be tried.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/path_class.h"

namespace assay::site {

/// One path into a tenant: its nodes reach it, those of every other tenant must not.
struct CrossingPath {
  std::string name;  ///< of the letters of a node's name, unique
  PathClass type = PathClass::tcp;
  std::string tenant;     ///< whose it is
  std::string address;    ///< numeric: no name is resolved; ib_path: a GID; nvlink: none
  std::string target;     ///< node of the tenant that holds the address and watches it, or offers memory
  int port = 0;           ///< 0: the class has none
  std::string resource;   ///< nfs: the export; s3: the bucket; metadata, bmc_redfish: the path; udp: the datagram;
                          ///< ib_path: the partition key; nvlink, roce: a folder that the path's nodes share
  std::string folder;     ///< nfs: one that the path's nodes share, for the export's file handle; empty: only its name
  std::string interface;  ///< l2: of the nodes that try; empty: the one that the route to the address takes
  std::string region;     ///< s3
  bool tls = false;       ///< s3: over HTTPS
  std::string credentials;  ///< s3: a file of mode 0600 on each node, with the key of that node's own tenant
};

/// The owner's word that these paths may be tried.
struct Crossings {
  std::string consent;                                      ///< who allowed it, when and for how long
  std::map<std::string, std::vector<std::string>> tenants;  ///< nodes by tenant; a node is of one tenant at most
  std::vector<CrossingPath> paths;
  bool nightly = false;  ///< the consent is for sweeps too, every night
};

/// Reads the object `crossings` of a site, which meets its schema; `here` names it in errors, `nodes` are the site's.
/// Refused: a node that the site does not have or of two tenants, two paths of one name, a path of no tenant, an
/// address that is not numeric, a target that is not of the tenant or is its only node, a field that
/// the class needs and lacks, or that it does not have.
std::expected<Crossings, InputError> crossings_from(const nlohmann::json& object, const std::string& here,
                                                    const std::vector<std::string>& nodes);

/// Of a part of the site: leaves only the nodes `names` in the tenants, and no path whose target is another; nothing
/// where no path is left.
void keep_nodes(std::optional<Crossings>& crossings, const std::vector<std::string>& names);

/// The same as a document; crossings_from reads it back unchanged.
nlohmann::json to_json(const Crossings& crossings);

}  // namespace assay::site
