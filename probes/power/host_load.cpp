// host_load: calls cblas_dgemm on one thread.
#include "probes/power/host_load.h"

#include <cmath>

#include <cblas.h>

#include "probes/host/gaussian.h"

namespace assay::power {
namespace {

constexpr std::size_t kOrder = 256;  // three matrices of 512 KiB
constexpr std::size_t kElements = kOrder * kOrder;

class CpuThread : public LoadUnit {
 public:
  explicit CpuThread(std::size_t number) : number_(number) {}

  void prepare() override {
    a_.resize(kElements);
    b_.resize(kElements);
    c_.resize(kElements);
    host::fill_gaussian<double>(a_, 2 * number_ + 1);
    host::fill_gaussian<double>(b_, 2 * number_ + 2);
    work();  // the library's buffers are made here, not at the start of the load
  }
  void work() override {
    constexpr auto n = static_cast<blasint>(kOrder);
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a_.data(), n, b_.data(), n, 0, c_.data(), n);
  }
  [[nodiscard]] double flop_of_work() const override { return 2.0 * std::pow(static_cast<double>(kOrder), 3); }

 private:
  std::size_t number_;
  std::vector<double> a_, b_, c_;
};

}  // namespace

std::vector<LoadPart> host_load(std::size_t threads) {
  openblas_set_num_threads(1);
  std::vector<LoadPart> parts;
  for (std::size_t i = 0; i < threads; ++i)
    parts.push_back({.unit = std::make_unique<CpuThread>(i), .place = i, .places = threads});
  return parts;
}

}  // namespace assay::power
