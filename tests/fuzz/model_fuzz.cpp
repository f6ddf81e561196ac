// The reader of model cards on hostile bytes: what it takes it writes and takes again, and its sums do not overflow.
#include <cstdint>
#include <cstdlib>

#include "workloads/train/graph/model_card.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay::train;
  const auto card = read_model_card({reinterpret_cast<const char*>(bytes), size}, "fuzz");
  if (!card && card.error().what.empty()) std::abort();
  if (!card) return 0;
  const auto again = read_model_card(model_card_json(*card), "again");
  if (!again || !(*again == *card)) std::abort();
  if (total_parameters(card->shape) <= 0 || matmul_parameters(card->shape) > total_parameters(card->shape))
    std::abort();
  return 0;
}
