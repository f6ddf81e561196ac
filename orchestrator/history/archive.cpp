// archive: raw records as zstd, and every figure as CSV.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include <zstd.h>

#include <fmt/format.h>

#include "orchestrator/files/exit_codes.h"
#include "orchestrator/history/history_internal.h"

namespace assay::history {
namespace {

/// A field of CSV (RFC 4180).
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string compressed(const std::string& text, const std::string& path) {
  constexpr int kLevel = 3;
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  std::size_t size = ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  if (ZSTD_isError(size) == 0) size = ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  if (ZSTD_isError(size) == 0)
    size = ZSTD_compress2(context.get(), packed.data(), packed.size(), text.data(), text.size());
  if (ZSTD_isError(size) != 0)
    throw Broken(Failure{{path, fmt::format("cannot be compressed: {}", ZSTD_getErrorName(size)), ""}, 2});
  packed.resize(size);
  return packed;
}

std::string expanded(const std::string& path) {
  constexpr unsigned long long kLargest = 4ULL << 30;  // a night of 10,000 units has 20 MB
  const auto packed = read_file(path, kLargest);
  if (!packed) throw Broken(Failure{packed.error(), files::kExitBadInput});
  const auto refuse = [&](const std::string& what) {
    throw Broken(Failure{{path, what, "take the file from a backup, or move it away to do without its contents"},
                         files::kExitRefused});
  };
  const auto length = ZSTD_getFrameContentSize(packed->data(), packed->size());
  if (length == ZSTD_CONTENTSIZE_ERROR || length == ZSTD_CONTENTSIZE_UNKNOWN || length > kLargest)
    refuse("was not compressed by assay");
  std::string text(length, '\0');
  const std::size_t size = ZSTD_decompress(text.data(), text.size(), packed->data(), packed->size());
  if (ZSTD_isError(size) != 0) refuse(fmt::format("cannot be expanded: {}", ZSTD_getErrorName(size)));
  if (size != text.size()) refuse("is shorter than it says");
  return text;
}

Result<void> History::export_csv(const std::function<void(std::string_view)>& write) const {
  return guarded([&] {
    write("night,unit,node,partner,metric,value,samples,state,retest,origin,run_sha256\n");
    const drift::Fleet all = taken(fleet());
    std::map<std::string, Origin> origins;
    for (const SweepRow& sweep : taken(sweeps())) origins[sweep.run_sha256] = sweep.origin;
    const auto rows = [&](const drift::Night& night) {
      const auto names = [&](const drift::Reading& one) {
        const drift::Series& series = all.series[one.series];
        return std::tie(all.units[series.unit].id, all.metrics[series.metric].name, one.visit);
      };
      std::vector<drift::Reading> sorted = night.readings;
      std::ranges::sort(sorted, {}, names);
      for (const drift::Reading& one : sorted) {
        const auto& visit = night.visits[one.visit];
        const auto& [unit, metric, place] = names(one);
        write(fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", drift::date_text(night.date), field(unit),
                          field(visit.node), field(visit.partner), field(metric), one.value, one.samples, visit.state,
                          int{visit.retest}, origins.at(visit.run_sha256), visit.run_sha256));
      }
    };
    if (const auto done = nights(kFirstNight, kLastNight, rows); !done) throw Broken(done.error());
  });
}

}  // namespace assay::history
