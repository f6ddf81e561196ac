// environment: the NCCL_* variables that ranks run under: those of the node, those this probe forces, and how they are
// passed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::nccl {

/// Names and values of variables.
using Variables = std::map<std::string, std::string>;

/// The parameters' settings of NCCL; "default" leaves the choice to NCCL and the node's own settings.
struct Forced {
  std::string algorithm = "default";  ///< one of kAlgorithms
  std::string protocol = "default";   ///< one of kProtocols
  std::string nvls = "default";       ///< default, 0 or 1
  std::string collnet = "default";    ///< default, 0 or 1: reduction in the switches of the network (SHARP)
  std::string mnnvl = "default";      ///< default, 0 or 1: NVLink between nodes
  std::string gpudirect = "default";  ///< default, 0 or 1: network adapters read and write GPU memory
};

/// Words of the parameters, separated by spaces.
inline constexpr std::string_view kAlgorithms = "default ring tree nvls nvls_tree collnet_direct collnet_chain pat";
inline constexpr std::string_view kProtocols = "default ll ll128 simple";

/// The variables of `environment` ("NAME=VALUE", as environ holds them) whose names begin with NCCL_, or with RCCL_ or
/// HSA_, which choose RCCL's ways and the copy engines of ROCm's runtime, without those
/// that set up logging (NCCL_DEBUG…): they are the probe's own.
Variables nccl_variables(const char* const* environment);

/// `environment` for a rank: everything as it is, but logging and `forced` as the probe needs them. The log's file is
/// the rank's own business.
std::vector<std::string> rank_environment(const char* const* environment, const Forced& forced);

/// "NCCL_ALGO=Ring NCCL_IB_HCA=mlx5_0": sorted by name; "none" for none.
std::string words(const Variables& variables);

}  // namespace assay::nccl
