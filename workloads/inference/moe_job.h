// moe_job: parameters of moe_dispatch as the job of a rank, and a leader's arguments for its ranks at their start.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/parameters.h"
#include "workloads/inference/expert_exchange.h"

namespace assay::inference {

/// The exchange that `given` asks for on `ranks` ranks; rank 0's, without a nonce. Throws BadParameter if a value is
/// out of range, does not divide (with the nearest that does), or a model without experts.
ExchangeJob exchange_job(const Parameters& given, std::int64_t ranks);

/// A rank's part and the address it uses.
struct MoeStart {
  ExchangeJob job;
  std::string address;  ///< numeric, of this machine
};

/// The arguments of the ranks' program, its name first, then this process' id.
std::vector<std::string> moe_arguments(const MoeStart& start);
/// The content of moe_arguments(); nothing for other arguments.
std::optional<MoeStart> moe_start(const std::vector<std::string>& arguments);

}  // namespace assay::inference
