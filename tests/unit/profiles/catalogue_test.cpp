// profiles/probes.json: what it says of a probe is what the probe says of itself, and a plan may not say otherwise.
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/programs.h"
#include "profiles/embedded.h"
#include "tests/unit/fixture.h"
#include "tests/unit/paths.h"

namespace assay::plan {
namespace {

using nlohmann::json;

/// The probes of this build. Those that it leaves out keep their entries, and a build that has them compares those.
const std::vector<Program>& built() {
  static const auto kPrograms = find_programs(probe_file(""));
  if (!kPrograms) throw std::runtime_error(kPrograms.error().text());
  return *kPrograms;
}

/// Writes profiles/probes.json with the descriptions of this build in place of, or beside, those that are there.
void bless() {
  std::map<std::pair<std::string, int>, KnownProbe> entries;
  for (const auto& known : known_probes()) entries[{known.name, known.revision}] = known;
  for (const auto& program : built()) {
    KnownProbe& entry = entries[{program.name, program.description.revision}];
    const json& now = program.description.document;
    if (!entry.document.is_null() && differ_in_words_alone(entry.document, now)) {
      if (entry.document != now) entry.former.insert(entry.former.begin(), entry.document);
    } else {  // the form is newer
      for (json& words : entry.former) words = now.patch(json::diff(entry.document, words));
    }
    entry.document = now;
  }
  json document = {{"schema", "assay.probes/1"}, {"probes", json::array()}, {"former", json::array()}};
  for (const auto& [key, entry] : entries) {
    for (const json& words : entry.former) {
      if (words != entry.document)
        document["former"].push_back(
            {{"name", key.first}, {"revision", key.second}, {"patch", json::diff(entry.document, words)}});
    }
  }
  for (auto& [key, entry] : entries) document["probes"].push_back(std::move(entry.document));
  std::ofstream(source_file("profiles/probes.json")) << document.dump(1) << '\n';
}

/// A plan for the fixture's machine with one requirement on host_memory_bandwidth as `change` makes it.
std::string plan_with(const std::function<void(json&)>& change, const std::string& sha256 = std::string(64, 'a')) {
  json document;
  for (const auto& known : known_probes()) {
    if (known.name == "host_memory_bandwidth") document = known.document;  // the last is the newest
  }
  change(document);
  const auto description = read_description(document.dump(), "bent").value();
  const Program program{.name = description.name, .sha256 = sha256, .path = "", .description = description};
  const auto profile = fixture::profile(
      {R"({"probe": "host_memory_bandwidth", "metric": "triad_bandwidth", "limit": {"at_least": 1, "unit": "B/s"}})",
       R"({"probe": "host_memory_bandwidth", "metric": "mismatches", "statistic": "max", "limit": {"at_most": 0, "unit": "1"}})"});
  return plan_text(make_plan(profile, fixture::site(1), {program}, {}).value());
}

/// "read", or why read_plan refuses it.
std::string said(const std::string& text) {
  const auto plan = read_plan(text, "plan.json");
  return plan ? "read" : plan.error().where + ": " + plan.error().what;
}

}  // namespace

TEST(Catalogue, it_says_of_every_probe_of_this_build_what_the_probe_says_of_itself) {
  if (std::getenv("ASSAY_BLESS") != nullptr) {
    bless();
    GTEST_SKIP() << "profiles/probes.json was written; build again";
  }
  ASSERT_FALSE(built().empty());
  for (const auto& program : built()) {
    const KnownProbe* known = known_probe(program.name, program.description.revision);
    ASSERT_NE(known, nullptr) << program.name << ": raise its revision in profiles/probes.json with ASSAY_BLESS=1";
    EXPECT_EQ(program.description.document, known->document)
        << program.name << ": raise its revision when the number changes, then run with ASSAY_BLESS=1";
  }
}

TEST(Catalogue, a_plan_whose_probe_is_described_as_known_is_read) {
  EXPECT_EQ(said(plan_with([](json&) {})), "read");
}

/// A description as assay.probe/1 had it.
void age(json& probe) { probe = in_old_forms(probe).back(); }

TEST(Catalogue, a_plan_of_an_earlier_version_is_read_with_its_descriptions_of_assay_probe_3_and_2) {
  for (const std::size_t form : {0U, 1U})
    EXPECT_EQ(said(plan_with([&](json& probe) { probe = in_old_forms(probe).at(form); })), "read");
}

TEST(Catalogue, times_that_are_spent_lay_in_the_typical_time_until_assay_probe_3) {
  for (const auto& known : known_probes()) {
    if (known.name != "thermal_soak" || known.document["schema"] != "assay.probe/4") continue;
    EXPECT_EQ(in_old_forms(known.document).front()["typical_s"], 3600);
  }
}

TEST(Catalogue, a_description_of_today_without_its_deviation_between_runs_is_refused) {
  const std::string why = said(plan_with([](json& probe) {
    probe.erase("between_runs");
    for (auto& metric : probe["metrics"]) metric.erase("between_runs");
  }));
  EXPECT_NE(why.find("is not that of host_memory_bandwidth"), std::string::npos) << why;
}

TEST(Catalogue, a_plan_of_an_earlier_version_is_read_with_its_descriptions_of_assay_probe_1) {
  EXPECT_EQ(said(plan_with(age)), "read");
}

TEST(Catalogue, a_description_of_assay_probe_1_in_other_words_is_refused) {
  const std::string why = said(plan_with([](json& probe) {
    age(probe);
    probe["conditions"][0]["meaning"] = "where it likes";
  }));
  EXPECT_NE(why.find("is not that of host_memory_bandwidth"), std::string::npos) << why;
}

TEST(Catalogue, every_entry_is_cut_out_of_the_text_as_a_parser_finds_it) {
  const std::string text(profiles::embedded_documents().at(kCatalogueDocument));
  const json document = json::parse(text);
  ASSERT_EQ(text, document.dump(1) + "\n");
  ASSERT_EQ(known_probes().size(), document.at("probes").size());
  std::size_t former = 0;
  for (const json& entry : document.at("probes")) {
    const KnownProbe* known = known_probe(entry.at("name").get<std::string>(), entry.at("revision"));
    ASSERT_NE(known, nullptr) << entry.at("name");
    EXPECT_EQ(known->document, entry);
    former += known->former.size();
  }
  EXPECT_EQ(former, document.at("former").size());
  EXPECT_EQ(known_probe("host_gem", 1), nullptr);
  EXPECT_EQ(known_probe("host_gemm", 1000), nullptr);
}

TEST(Catalogue, former_words_are_words_alone_and_plans_that_have_them_are_read) {
  std::size_t former = 0;
  for (const auto& known : known_probes()) {
    for (const json& words : known.former) {
      EXPECT_NE(words, known.document) << known.name;
      EXPECT_TRUE(differ_in_words_alone(known.document, words)) << known.name;
      ++former;
    }
  }
  EXPECT_GT(former, 0U);
  json other = known_probes().front().document;
  other["method"] = "In other words.";
  EXPECT_TRUE(differ_in_words_alone(known_probes().front().document, other));
  other["deadline_s"] = 1;
  EXPECT_FALSE(differ_in_words_alone(known_probes().front().document, other));
}

TEST(Catalogue, a_condition_of_other_records_is_refused) {
  const std::string why = said(plan_with([](json& probe) { probe["conditions"][0]["recorded"] = "if_occurred"; }));
  EXPECT_NE(why.find("/conditions/0"), std::string::npos) << why;
}

TEST(Catalogue, a_bandwidth_that_gets_better_by_falling_is_refused) {
  EXPECT_EQ(said(plan_with([](json& probe) { probe["metrics"][1]["better"] = "lower"; })),
            "plan.json: probes.host_memory_bandwidth.description: is not that of host_memory_bandwidth revision 4: "
            "/metrics/1/better is \"lower\", should be \"higher\"");
}

TEST(Catalogue, an_instrument_without_uncertainty_is_refused) {
  const std::string why = said(plan_with([](json& probe) {
    for (auto& metric : probe["metrics"]) metric["instrument"] = 0.0;
  }));
  EXPECT_NE(why.find("/instrument is 0.0, should be "), std::string::npos) << why;
}

TEST(Catalogue, a_method_in_other_words_is_refused) {
  const std::string why = said(plan_with([](json& probe) { probe["method"] = "Every byte is counted twice."; }));
  EXPECT_NE(why.find("/method is \"Every byte is counted twice.\", should be "), std::string::npos) << why;
}

TEST(Catalogue, a_digest_of_zeros_or_of_another_form_is_refused) {
  EXPECT_EQ(
      said(plan_with([](json&) {}, std::string(64, '0'))),
      "plan.json: probes.host_memory_bandwidth.sha256: '" + std::string(64, '0') + "' is not the SHA-256 of a program");
  EXPECT_EQ(said(plan_with([](json&) {}, "unknown")),
            "plan.json: probes.host_memory_bandwidth.sha256: 'unknown' is not the SHA-256 of a program");
}

TEST(Catalogue, a_probe_that_is_not_known_is_named) {
  EXPECT_TRUE(unknown_probes(read_plan(plan_with([](json&) {}), "p").value()).empty());
  const std::string foreign = plan_with([](json& probe) { probe["revision"] = 999; });
  EXPECT_EQ(unknown_probes(read_plan(foreign, "p").value()),
            std::vector<std::string>{"host_memory_bandwidth revision 999"});
}

TEST(Catalogue, a_probe_in_the_form_of_an_earlier_number_is_read_and_not_known) {
  const std::string aged = plan_with([](json& probe) { probe = in_old_forms(probe).front(); });
  EXPECT_EQ(unknown_probes(read_plan(aged, "p").value()), std::vector<std::string>{"host_memory_bandwidth revision 4"});
}

}  // namespace assay::plan
