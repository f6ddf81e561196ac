// import: selects the reader of a tool and turns refusals into errors.
#include "orchestrator/import/import.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/import/reading.h"
#include "probes/core/suggest.h"

namespace assay::imports {
namespace {

using ReadFunction = void (*)(std::string_view, judge::ImportSource&, Figures&);

/// The readers of one tool; nothing if it has no such form that is for programs.
struct Readers {
  std::string_view tool;
  ReadFunction text;
  ReadFunction json;
  const char* hint;  ///< how to get a form that can be read
};

constexpr Readers kReaders[] = {
    {"nccl-tests", read_nccl_tests_text, read_nccl_tests_json, ""},
    {"rccl-tests", read_nccl_tests_text, read_nccl_tests_json, ""},
    {"perftest", read_perftest_text, read_perftest_json, ""},
    {"nvbandwidth", nullptr, read_nvbandwidth, "run it with --json: `nvbandwidth -j > FILE`"},
    {"fio", nullptr, read_fio, "run it with --output-format=json+"},
    {"osu", read_osu, nullptr, "import the text that it prints"},
    {"dcgm", nullptr, read_dcgm, "run `dcgmi diag -r LEVEL -j`"},
    {"mlperf-storage", nullptr, read_mlperf_storage, "import summary.json of one invocation"},
    {"mlperf-training", read_mlperf_training, read_mlperf_training, ""},
    {"elbencho", read_elbencho, read_elbencho_json, ""},
    {"ior", nullptr, read_ior, "run it with -O summaryFormat=JSON"},
    {"iblinkinfo", read_iblinkinfo, nullptr, "import the text that it prints"},
    {"mlxlink", read_mlxlink_text, read_mlxlink_json, ""},
    {"ibdiagnet", read_ibdiagnet, nullptr, "import one of its files: net_dump, net_dump_ext or db_csv"},
    {"transferbench", read_transferbench, nullptr, "import the text that it prints"},
    {"rocm-bandwidth-test", read_rocm_bandwidth_test, nullptr, "import the text that it prints"},
    {"rvs", nullptr, read_rvs, "run `rvs -c FILE -j OUT` and import OUT"},
    {"amd-smi", nullptr, read_amd_smi, "run it with --json"},
    {"hccl-test", read_hccl_test, nullptr, "import the text that it prints"},
    {"ascend-dmi", read_ascend_dmi, read_ascend_dmi_json, ""},
    {"nixlbench", read_nixlbench, nullptr, "import the text that it prints"},
    {"doca-bench", read_doca_bench, nullptr, "import the file of --csv-output-file"},
    {"tpu", nullptr, read_tpu, "write it with tpu_figures.py"},
    {"sadf", nullptr, read_sadf, "print what sar recorded with `sadf -j`"},
    {"energy-table", read_energy_table, nullptr, "write a table as docs/FORMATS.md has it"},
};

}  // namespace

std::expected<judge::Import, InputError> import_output(const ImportRequest& request) {
  const auto* readers = std::ranges::find(kReaders, request.tool, &Readers::tool);
  if (readers == std::end(kReaders)) {
    const std::vector<std::string> names(kImportTools.begin(), kImportTools.end());
    return std::unexpected(InputError{"", fmt::format("'{}' is not a tool whose output can be imported", request.tool),
                                      suggestion(request.tool, names)});
  }
  judge::Import import;
  import.source = {.tool = request.tool,
                   .command = request.command,
                   .file = std::filesystem::path(request.path).filename().string(),
                   .bytes = request.bytes.size(),
                   .sha256 = files::sha256(request.bytes)};
  Figures figures;
  try {
    const std::string_view text = plain_text(request.bytes, figures);
    const bool json = document_begin(text).has_value();
    const ReadFunction reader = json ? readers->json : readers->text;
    if (reader == nullptr)
      throw ImportRefusal{"", fmt::format("is {}, which is not imported from {}", json ? "JSON" : "text", request.tool),
                          readers->hint};
    import.source.form = json ? "json" : "text";
    reader(text, import.source, figures);
    figures.give(import);
  } catch (const ImportRefusal& refusal) {
    return std::unexpected(located(request.path, refusal));
  }
  return import;
}

}  // namespace assay::imports
