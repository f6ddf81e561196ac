// rack_run: the leader of rank 0, which checks the fabric, asks all ranks of all trays, and records.
#pragma once

namespace assay {
class Parameters;
class Recorder;
namespace collective {
class Fleet;
}
}  // namespace assay

namespace assay::cuda {

/// Measures the rack that `fleet` is, as the probe's description says. Throws std::runtime_error when the trays are not
/// in one fabric, or a rank fails, with its name; Skip where nothing can be shared.
void run_rack(collective::Fleet& fleet, const Parameters& given, Recorder& record);

}  // namespace assay::cuda
