// The record reader on hostile bytes: it returns a record that can be written again, or an error with words.
#include <cstdint>
#include <cstdlib>

#include "probes/core/record_reader.h"
#include "tests/unit/fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  static const Description kDescription = fixture::description();
  const auto record = read_record({reinterpret_cast<const char*>(bytes), size}, kDescription);
  if (!record && record.error().what.empty()) std::abort();
  if (record) {
    for (const auto& measured : record->measurements) {
      if (measured.samples.empty() || !is_base_unit(measured.unit)) std::abort();
    }
  }
  return 0;
}
