// Every reader of JSON refuses a NUL byte and a byte order mark, and no file of the product reads JSON but through the
// strict reader.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "orchestrator/import/import.h"
#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/plan/simulation.h"
#include "orchestrator/site/site.h"
#include "orchestrator/site/sources.h"
#include "orchestrator/wire/protocol.h"
#include "probes/core/description.h"
#include "probes/core/lldp.h"
#include "probes/core/record_reader.h"
#include "probes/storage/fio_output.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/statement.h"
#include "reports/requirements/catalogue.h"
#include "tests/unit/paths.h"
#include "tests/unit/run_fixture.h"

namespace assay {
namespace {

/// A reader; gives its error's text, nothing for what it takes.
struct Reader {
  const char* name;
  std::function<std::string(const std::string&)> error;
  std::string (*good)() = nullptr;  ///< a text that it takes; nothing where one that it refuses later shows as much
};

void PrintTo(const Reader& one, std::ostream* out) { *out << one.name; }

template <class Result>
std::string error_of(const Result& result) {
  return result ? "" : result.error().text();
}

std::string of_run(const char* file) {
  const fixture::TemporaryFolder folder;
  fixture::make_run(folder.path() + "/run", fixture::Kind::accepted);
  return fixture::read(folder.path() + "/run/" + file);
}

const Reader kReaders[] = {
    {"profile",
     [](const std::string& text) { return error_of(plan::read_profile(text, "given", plan::embedded_profile)); },
     [] { return std::string(plan::embedded_profiles().begin()->second); }},
    {"catalogue", [](const std::string& text) { return error_of(requirements::read_catalogue(text, "given")); },
     [] { return std::string(requirements::embedded_catalogues().begin()->second); }},
    {"site", [](const std::string& text) { return error_of(site::read_site(text, "given")); },
     [] {
       return std::string(R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n1", "launcher": "local"}]})");
     }},
    {"plan", [](const std::string& text) { return error_of(plan::read_plan(text, "given")); },
     [] { return of_run("plan.json"); }},
    {"journal", [](const std::string& text) { return error_of(judge::read_journal(text, "given")); },
     [] { return of_run("journal.jsonl"); }},
    {"verdict", [](const std::string& text) { return error_of(judge::read_verdict(text, "given")); },
     [] { return of_run("verdict.json"); }},
    {"faults", [](const std::string& text) { return error_of(plan::read_faults(text, "given")); },
     [] { return std::string(R"({"schema": "assay.faults/1"})"); }},
    {"pods", [](const std::string& text) { return error_of(site::site_from_pods(text, "given", {})); }},
    {"fio_import",
     [](const std::string& text) {
       return error_of(imports::import_output({.tool = "fio", .bytes = text, .path = "given", .command = ""}));
     }},
    {"nccl_import",
     [](const std::string& text) {
       return error_of(imports::import_output({.tool = "nccl-tests", .bytes = text, .path = "given", .command = ""}));
     }},
    {"message_to_agent",
     [](const std::string& text) {
       return error_of(wire::decode_to_agent({.type = wire::FrameType::ping, .payload = text}));
     },
     [] { return std::string("{}"); }},
    {"message_from_agent",
     [](const std::string& text) {
       return error_of(wire::decode_from_agent({.type = wire::FrameType::pong, .payload = text}));
     },
     [] { return std::string("{}"); }},
    {"description", [](const std::string& text) { return error_of(read_description(text, "given")); }},
    {"record", [](const std::string& text) { return error_of(read_record(text + "\n", Description{})); }},
    {"lldp", [](const std::string& text) { return error_of(read_lldp(text, "given")); }},
    {"canonical_json", [](const std::string& text) { return error_of(dossier::read_canonical_json(text, "given")); },
     [] { return std::string("{}"); }},
    {"statement", [](const std::string& text) { return error_of(dossier::read_statement(text, "given")); }},
    {"claims", [](const std::string& text) { return error_of(dossier::read_claims(text, "given")); }},
    {"envelope", [](const std::string& text) { return error_of(dossier::read_envelope(text, "given")); },
     [] {
       return dossier::envelope_text({.payload_type = "t", .payload = "{}", .signatures = {std::string(64, 's')}});
     }},
};

class JsonReader : public testing::TestWithParam<Reader> {
 protected:
  static std::string good() { return GetParam().good != nullptr ? GetParam().good() : "{}"; }
  static std::string error(const std::string& text) { return GetParam().error(text); }
};

TEST_P(JsonReader, takes_the_text_without_them) {
  if (GetParam().good == nullptr) {
    EXPECT_EQ(error(good()).find("NUL"), std::string::npos) << error(good());
  } else {
    EXPECT_EQ(error(good()), "");
  }
}

TEST_P(JsonReader, refuses_what_follows_a_nul) {
  std::string text = good();
  const bool lines = text.ends_with('\n');
  if (lines) text.pop_back();
  EXPECT_NE(error(text + '\0' + "garbage" + (lines ? "\n" : "")).find("has a NUL byte"), std::string::npos)
      << error(text + '\0' + "garbage");
  EXPECT_NE(error(text + '\0' + (lines ? "\n" : "")).find("has a NUL byte"), std::string::npos);
}

TEST_P(JsonReader, refuses_a_byte_order_mark) {
  const std::string said = error("\xEF\xBB\xBF" + good());
  if (std::string(GetParam().name).ends_with("_import")) {  // published files may begin with one, which is listed
    EXPECT_EQ(said, error(good()));
    return;
  }
  EXPECT_NE(said.find("begins with a byte order mark"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Json, JsonReader, testing::ValuesIn(kReaders),
                         [](const auto& reader) { return std::string(reader.param.name); });

TEST(JsonReaders, fio_output_refuses_what_follows_a_nul) {
  const auto read =
      storage::read_fio_output(std::string("fio: said something\n{}\0garbage", 30), storage::Direction::read, "given");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text().find("has a NUL byte"), std::string::npos) << read.error().text();
}

TEST(Whole, numbers_that_the_type_does_not_hold_are_no_numbers_of_it) {
  using nlohmann::json;
  EXPECT_EQ((std::uint64_t{Whole(json::parse("18446744073709551615"))}), UINT64_MAX);
  EXPECT_EQ((int{Whole(json::parse("-3"))}), -3);
  for (const char* text : {"18446744073709551616", "1e20", "2.0", "2147483648", "-2147483649", "\"2\"", "null", "true"})
    EXPECT_THROW((void)int{Whole(json::parse(text))}, json::out_of_range) << text;
  EXPECT_THROW((void)std::size_t{Whole(json::parse("-1"))}, json::out_of_range);
}

TEST(JsonReaders, counts_beyond_every_type_are_errors_of_the_run) {
  for (const auto& [name, field] :
       {std::pair{"plan", "\"attempts\": "}, {"verdict", "\"samples\": "}, {"journal", "\"bytes\":"}}) {
    const auto& reader = *std::ranges::find(kReaders, std::string_view(name), &Reader::name);
    for (const char* number : {"184467440737095516160", "-1", "0.5"}) {
      std::string text = reader.good();
      const auto at = text.find(field);
      ASSERT_NE(at, std::string::npos) << name;
      const auto begin = at + std::strlen(field);
      text.replace(begin, text.find_first_not_of("0123456789", begin) - begin, number);
      EXPECT_NE(reader.error(text), "") << name << " " << number;
    }
  }
}

/// The places in `file` where nlohmann's own parser is called.
std::vector<std::string> own_parsers(const std::filesystem::path& file) {
  std::vector<std::string> found;
  const std::string text = fixture::read(file.string());
  for (const char* call : {"json::parse(", "json::sax_parse(", "json::accept(", "json::from_"}) {
    if (text.find(call) != std::string::npos) found.push_back(file.filename().string() + ": " + call);
  }
  return found;
}

TEST(JsonReaders, no_file_of_the_product_reads_json_but_through_the_strict_reader) {
  std::vector<std::string> found;
  std::size_t files = 0;
  for (const char* folder : {"probes", "workloads", "orchestrator", "reports"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_file(folder))) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h" && extension != ".cu") continue;
      ++files;
      for (auto& place : own_parsers(entry.path())) found.push_back(std::move(place));
    }
  }
  EXPECT_GT(files, 300U);
  EXPECT_EQ(found, std::vector<std::string>{"json_io.cpp: json::sax_parse("});
}

}  // namespace
}  // namespace assay
