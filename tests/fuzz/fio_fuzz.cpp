// What fio wrote, on hostile bytes: a result that is taken has bytes, I/Os and rates.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "probes/storage/fio_output.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const storage::Direction direction : {storage::Direction::read, storage::Direction::write}) {
    const auto result = storage::read_fio_output(text, direction, "fuzz");
    if (!result && result.error().what.empty()) std::abort();
    if (!result) continue;
    if (result->completions <= 0 || !(result->bandwidth > 0) || !std::isfinite(result->bandwidth) ||
        !std::isfinite(result->iops) || !std::isfinite(result->latency_p99))
      std::abort();
  }
  (void)storage::fio_major_version(text);
  return 0;
}
