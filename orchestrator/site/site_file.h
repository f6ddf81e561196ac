// site_file: a site from a file of this machine: what its relative paths mean, and the directories that it leaves open.
#pragma once

#include <expected>
#include <string>

#include "orchestrator/site/site.h"

namespace assay::site {

/// The home of this user: $HOME, else that of the list of users; empty if neither names one.
std::string home_directory();

/// The directory of agents on nodes of launcher local, ssh and slurm whose site entry names none: /var/tmp/assay- and
/// `user`, or this user's number where it is empty. A directory belongs to the user who came first.
std::string default_directory(const std::string& user = "");

/// Reads the site file `path`. Relative `known_hosts` and `identity_file` are of the folder that `path` is in; ~/
/// is the user's home. Errors:
/// those of read_site; a known_hosts or identity file that does not exist.
std::expected<Site, InputError> read_site_file(const std::string& path);

}  // namespace assay::site
