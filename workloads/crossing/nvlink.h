// nvlink: memory of one tenant's GPU, whose handle a node of another tenant tries to import.
#pragma once

#include <string>
#include <string_view>

#include "workloads/crossing/tried.h"

namespace assay::crossing {

/// Offers 2 MiB of the first GPU with fabric handles until `until`: its handle is in a file of `folder` that only
/// processes with the token can name and find authentic. Nothing is written into the memory; the file is removed.
/// Throws Skip where no GPU offers fabric handles.
void offer_memory(const std::string& folder, std::string_view token, Clock::time_point until);

/// Waits for that handle until `until` and imports it; it is neither mapped nor read. A refusal counts only after a
/// handle of this node's own was imported: else nothing of the fabric works here, and the outcome is
/// unclear. Throws Skip on a node without the driver.
Tried try_nvlink(const std::string& folder, std::string_view token, Clock::time_point until);

}  // namespace assay::crossing
