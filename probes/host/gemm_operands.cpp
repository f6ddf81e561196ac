// gemm_operands: filled by the threads that use them.
#include "probes/host/gemm_operands.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/scale.h"
#include "probes/host/gaussian.h"

namespace assay::host {

template <class Real>
GemmOperands<Real>::GemmOperands(PinnedThreads& crew, std::size_t n, std::size_t sets) : n_(n) {
  const std::uint64_t bytes = n * n * sizeof(Real);
  const double all = static_cast<double>(bytes) * 3 * static_cast<double>(sets);
  if (all > 0.75 * static_cast<double>(total_memory().count)) {
    throw std::runtime_error(
        fmt::format("{} sets of three {} x {} matrices need {}, over three quarters of memory; choose a smaller size",
                    sets, n, n, for_people(all, "B")));
  }
  for (std::size_t i = 0; i < 3 * sets; ++i) matrices_.emplace_back(Bytes{bytes}, Pages::huge);
  crew.run([&](std::size_t thread) {
    const Slice columns = slice(n, crew.size(), thread);
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      for (std::size_t column = columns.begin; column < columns.end; ++column) {
        const auto values = matrices_[i].template as<Real>().subspan(column * n, n);
        if (i % 3 == 2) {
          std::ranges::fill(values, std::numeric_limits<Real>::quiet_NaN());
        } else {
          fill_gaussian(values, i * n + column);
        }
      }
    }
  });
}

template <class Real>
typename GemmOperands<Real>::Set GemmOperands<Real>::set(std::size_t index) {
  return {.a = matrices_[3 * index].template as<Real>().data(),
          .b = matrices_[3 * index + 1].template as<Real>().data(),
          .c = matrices_[3 * index + 2].template as<Real>().data()};
}

template <class Real>
Product<Real> GemmOperands<Real>::product(std::size_t index) const {
  return {.n = n_,
          .a = matrices_[3 * index].template as<Real>(),
          .b = matrices_[3 * index + 1].template as<Real>(),
          .c = matrices_[3 * index + 2].template as<Real>()};
}

template <class Real>
std::uint64_t GemmOperands<Real>::fingerprint(PinnedThreads& crew, std::size_t index) {
  // Multiplying by an odd number is a bijection of 64 bits, so a single changed word always changes the sum.
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto bytes = std::as_bytes(matrices_[3 * index + 2].template as<Real>());
  std::vector<std::uint64_t> parts(crew.size());
  crew.run([&](std::size_t thread) {
    const Slice mine = slice(bytes.size(), crew.size(), thread, sizeof(std::uint64_t));
    std::uint64_t sum = 0;
    for (std::size_t at = mine.begin; at < mine.end; at += sizeof sum) {
      std::uint64_t word = 0;
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min(sizeof word, mine.end - at),
                  std::as_writable_bytes(std::span(&word, 1)).begin());
      sum = (sum + word) * kOdd;
    }
    parts[thread] = sum;
  });
  std::uint64_t all = 0;
  for (const std::uint64_t part : parts) all = (all + part) * kOdd;
  return all;
}

template <class Real>
double GemmOperands<Real>::huge_share() const {
  double sum = 0;
  for (const auto& matrix : matrices_) sum += matrix.huge_share();
  return sum / static_cast<double>(matrices_.size());
}

template class GemmOperands<float>;
template class GemmOperands<double>;

}  // namespace assay::host
