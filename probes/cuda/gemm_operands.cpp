// gemm_operands: placement of the sets, and copies of the results for the check.
#include "probes/cuda/gemm_operands.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/rotation.h"
#include "probes/cuda/mixed.h"
#include "probes/cuda/quantise.h"
#include "probes/cuda/whole_kernels.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kAlignment = 256;    // cudaMalloc's alignment; every algorithm's demand is below it
constexpr std::size_t kSampledLines = 64;  // kSampledElements is its square
static_assert(kSampledLines * kSampledLines == kSampledElements);
constexpr double kShareOfMemory = 0.8;  // leaves room for the library's kernels and workspace

constexpr std::uint8_t kOneUe8m0 = 127;  // the code of the scale 1

std::size_t aligned(Bytes size) { return (size.count + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

GemmOperands::Matrices GemmOperands::laid_out(Format format, std::size_t lines, float tensor_scale) const {
  Matrices result{.format = format, .lines = lines, .tensor_scale = tensor_scale};
  result.stride = aligned(bytes_of(format, lines * shape_.k));
  if (const std::size_t block = block_of(type_.scaling); block != 0) {
    result.scale_stride = aligned({scale_count(lines, shape_.k / block)});
  }
  return result;
}

GemmOperands::GemmOperands(const Device& device, const GemmType& type, const GemmShape& shape, Pattern pattern,
                           std::uint64_t seed)
    : type_(type),
      shape_(shape),
      seed_(mixed(seed, 0)),
      a_(laid_out(type.a, shape.m, kTensorScaleA)),
      b_(laid_out(type.b, shape.n, kTensorScaleB)),
      d_stride_(aligned(bytes_of(type.d, shape.m * shape.n))),
      sets_(operand_sets(set_bytes(type, shape), device.l2)) {
  const Bytes free = free_memory();
  if (static_cast<double>(size().count) > kShareOfMemory * static_cast<double>(free.count)) {
    throw std::runtime_error(
        fmt::format("m, n, k: {} sets of operands take {} B, {} B are free on {}; hint: choose a smaller shape", sets_,
                    size().count, free.count, device.uuid));
  }
  const Stream stream = make_stream();
  make(a_, stream, seed_, pattern);
  make(b_, stream, seed_ + sets_, pattern);
  d_ = DeviceBuffer({d_stride_ * sets_});
  clear_results(stream);
}

void GemmOperands::make(Matrices& matrices, const Stream& stream, std::uint64_t first_seed, Pattern pattern) const {
  matrices.data = DeviceBuffer({matrices.stride * sets_});
  if (matrices.scale_stride != 0) {
    matrices.scales = DeviceBuffer({matrices.scale_stride * sets_});
    // The padding of the layout belongs to no line, and zero is a number in both formats of scales.
    clear(matrices.scales.data(), matrices.scales.size(), stream);
  } else if (type_.scaling == Scaling::tensor) {
    matrices.scales = DeviceBuffer({sizeof(float)});
    copy_up(matrices.scales.data(), reinterpret_cast<const std::byte*>(&matrices.tensor_scale), {sizeof(float)},
            stream);
    wait(stream);
  }
  for (std::size_t index = 0; index < sets_; ++index) {
    std::byte* target = matrices.data.data() + index * matrices.stride;
    if (matrices.scale_stride != 0) {
      fill_blocks(stream, target, matrices.scales.data() + index * matrices.scale_stride, type_.scaling, matrices.lines,
                  shape_.k, first_seed + index, pattern);
    } else {
      fill_elements(stream, target, matrices.format, matrices.lines * shape_.k, first_seed + index, pattern);
    }
  }
}

OperandSet GemmOperands::set(std::size_t index) const {
  const auto scale = [index](const Matrices& matrices) {
    return matrices.scales.data() + index * matrices.scale_stride;
  };
  return {.a = a_.data.data() + index * a_.stride,
          .b = b_.data.data() + index * b_.stride,
          .d = d_.data() + index * d_stride_,
          .a_scale = type_.scaling == Scaling::none ? nullptr : scale(a_),
          .b_scale = type_.scaling == Scaling::none ? nullptr : scale(b_)};
}

Bytes GemmOperands::size() const {
  return {(a_.stride + b_.stride + d_stride_ + a_.scale_stride + b_.scale_stride) * sets_};
}

void GemmOperands::sum_results(const Stream& stream, std::uint64_t* sums) const {
  sum_up(stream, d_.data(), d_stride_, bytes_of(type_.d, shape_.m * shape_.n), sets_, sums);
}

FaultCounts GemmOperands::put_faults(const Stream& stream) const {
  const Bytes result = bytes_of(type_.d, shape_.m * shape_.n);
  const std::size_t words = std::min(kFaultWords, result.count / sizeof(std::uint64_t));
  if (words < kLeastFaultWords) return {};
  const Bytes window = {words * sizeof(std::uint64_t)};
  const PinnedBuffer right(window), host(window);
  const DeviceBuffer on_device({sizeof(std::uint64_t)});
  const auto summed = [&](std::size_t set) {
    sum_up(stream, d_.data() + set * d_stride_, d_stride_, result, 1, on_device.as<std::uint64_t>());
    wait(stream);
    std::uint64_t sum = 0;
    copy_to_host(std::as_writable_bytes(std::span(&sum, 1)), on_device.data());
    return sum;
  };
  std::vector<std::uint64_t> before(sets_);
  for (std::size_t set = 0; set < sets_; ++set) before[set] = summed(set);
  const auto is_found = [&](FaultClass fault, std::uint64_t number, std::size_t set) {
    const std::uint64_t piece = mixed(seed_, number) % (result.count / window.count);
    std::byte* const place = d_.data() + set * d_stride_ + piece * window.count;
    for (const PinnedBuffer* copy : {&right, &host}) copy_down(copy->data(), place, window, stream);
    wait(stream);
    put_fault({host.as<std::uint64_t>(), words}, fault, number);
    copy_up(place, host.data(), window, stream);
    const bool found = summed(set) != before[set];
    copy_up(place, right.data(), window, stream);
    wait(stream);
    return found;
  };
  return count_faults(kFaultsPut, [&](FaultClass fault, std::uint64_t number) {
    const std::size_t sets = fault == FaultClass::rare_stuck ? sets_ : 1;  // it meets the results of all operands
    bool found = false;
    for (std::size_t set = 0; set < sets && !found; ++set) found = is_found(fault, number, set);
    return found;
  });
}

void GemmOperands::clear_results(const Stream& stream) const {
  constexpr int kAllOnes = 0xff;  // not a number in every floating-point format
  clear(d_.data(), d_.size(), stream, kAllOnes);
  wait(stream);
}

WholeNumbers GemmOperands::whole(WholeForm form) const {
  if (form == WholeForm::small) return whole_numbers(shape_.m, shape_.n, shape_.k, seed_);
  const Format wide = form == WholeForm::wide_a ? a_.format : b_.format;
  return wide_numbers(shape_.m, shape_.n, shape_.k, seed_, form, std::min(whole_bits_of(wide), whole_bits_of(type_.d)));
}

void GemmOperands::make_whole(const Stream& stream, WholeForm form) {
  for (Matrices* matrices : {&a_, &b_}) {
    fill_whole(stream, matrices->data.data(), matrices->format, whole(form),
               matrices == &a_ ? WholeStream::a : WholeStream::b, matrices->lines);
    if (matrices->scale_stride == 0) continue;
    const int one = static_cast<int>(type_.scaling == Scaling::mx ? kOneUe8m0 : encode(kE4m3, 1.0F));
    clear(matrices->scales.data(), {matrices->scale_stride}, stream, one);
  }
  clear_results(stream);
}

std::uint64_t GemmOperands::wrong_whole_lines(const Stream& stream, WholeForm form) const {
  const DeviceBuffer terms({shape_.k * sizeof(std::uint64_t)}), wrong({sizeof(std::uint64_t)});
  clear(wrong.data(), wrong.size(), stream);
  const double factor = type_.scaling == Scaling::tensor ? 1.0 / (kTensorScaleA * kTensorScaleB) : 1.0;
  check_whole(stream, d_.data(), type_.d, factor, whole(form), terms.as<std::uint64_t>(), wrong.as<std::uint64_t>());
  wait(stream);
  std::uint64_t count = 0;
  copy_to_host(std::as_writable_bytes(std::span(&count, 1)), wrong.data());
  return count;
}

std::vector<double> GemmOperands::sample_lines(const Matrices& matrices, std::size_t set,
                                               std::span<const std::size_t> chosen) const {
  const Bytes line = bytes_of(matrices.format, shape_.k);
  std::vector<std::byte> raw(line.count * chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    copy_to_host(std::span(raw).subspan(i * line.count, line.count),
                 matrices.data.data() + set * matrices.stride + chosen[i] * line.count);
  }
  auto values = decode_elements(matrices.format, raw, shape_.k * chosen.size());
  if (const std::size_t block = block_of(type_.scaling); block != 0) {
    std::vector<std::byte> scales(scale_count(matrices.lines, shape_.k / block));
    copy_to_host(scales, matrices.scales.data() + set * matrices.scale_stride);
    apply_block_scales(values, chosen, shape_.k, type_.scaling, scales);
  } else if (type_.scaling == Scaling::tensor) {
    for (double& value : values) value *= matrices.tensor_scale;
  }
  return values;
}

SampledProduct GemmOperands::sample(std::size_t index) const {
  const auto lines = sampled_indices(shape_.m, kSampledLines, seed_ + index);
  const auto columns = sampled_indices(shape_.n, kSampledLines, seed_ + sets_ + index);
  SampledProduct sampled{
      .k = shape_.k, .a = sample_lines(a_, index, lines), .b = sample_lines(b_, index, columns), .d = {}};
  const Bytes column = bytes_of(type_.d, shape_.m);
  sampled.d.resize(lines.size() * columns.size());
  std::vector<std::byte> raw(column.count);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    copy_to_host(raw, d_.data() + index * d_stride_ + columns[j] * column.count);
    const auto values = decode_elements(type_.d, raw, shape_.m);
    for (std::size_t i = 0; i < lines.size(); ++i) sampled.d[i * columns.size() + j] = values[lines[i]];
  }
  return sampled;
}

}  // namespace assay::cuda
