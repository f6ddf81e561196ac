// archive: raw records as zstd, and every figure as CSV.
#include <memory>

#include <zstd.h>

#include <fmt/format.h>

#include "orchestrator/files/exit_codes.h"
#include "orchestrator/history/inside.h"

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
    throw Broken(Failure{{path, what, "take the file from a backup, or move it away to do without what it added"},
                         files::kExitRefused});
  };
  const auto length = ZSTD_getFrameContentSize(packed->data(), packed->size());
  if (length == ZSTD_CONTENTSIZE_ERROR || length == ZSTD_CONTENTSIZE_UNKNOWN || length > kLargest)
    refuse("is not what assay compressed");
  std::string text(length, '\0');
  const std::size_t size = ZSTD_decompress(text.data(), text.size(), packed->data(), packed->size());
  if (ZSTD_isError(size) != 0) refuse(fmt::format("cannot be expanded: {}", ZSTD_getErrorName(size)));
  if (size != text.size()) refuse("is shorter than it says");
  return text;
}

Result<void> History::export_csv(const std::function<void(std::string_view)>& write) const {
  return guarded([&] {
    write("night,unit,node,metric,value,samples,state,retest,origin,run_sha256\n");
    Statement row(
        inside_->database,
        "SELECT a.night,u.name,v.node,m.name,a.x,a.n,v.state,v.retest,w.origin,w.run_sha256 FROM value a JOIN "
        "series s ON s.id=a.series JOIN unit u ON u.id=s.unit JOIN metric m ON m.id=s.metric JOIN visit v ON "
        "v.id=a.visit JOIN sweep w ON w.id=v.sweep ORDER BY a.night,u.name,m.name,a.visit");
    while (row.step())
      write(fmt::format("{},{},{},{},{},{},{},{},{},{}\n", drift::date_text(date_of(row.whole(0))), field(row.text(1)),
                        field(row.text(2)), field(row.text(3)), row.number(4), row.whole(5), row.text(6), row.whole(7),
                        row.text(8), row.text(9)));
  });
}

}  // namespace assay::history
