// The dossier against everybody who would change it: each way of forging one is refused, with its reason.
#include <algorithm>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/new_file.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify.h"
#include "reports/evidence/evidence_files.h"
#include "reports/page/render.h"
#include "tests/unit/run_fixture.h"

namespace assay::dossier {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kImported = "{\"schema\":\"assay.imported/1\",\"sequence\":0,\"source\":{\"tool\":\"fio\"}}\n";
constexpr const char* kIssued = "2026-01-05T08:00:00.000Z";

PrivateKey key_of(char filling) { return PrivateKey::from_seed(std::string(32, filling)).value(); }

void render(const std::string& run, const std::string& self_signed = "") {
  const auto files = evidence::read_evidence_files(run).value();
  fixture::write(run + "/report.html",
                 page::render_html(page::report_content(evidence::examine(files).value(), evidence::evidence_in(files),
                                                        self_signed)));
}

std::string said(const std::expected<void, InputError>& result) {
  return result ? "done" : result.error().where + ": " + result.error().what;
}

class DossierTest : public testing::Test {
 protected:
  void SetUp() override {
    fixture::make_run(run_, fixture::Kind::mixed);
    render(run_);
    const auto made = make_dossier(request(), vendor_);
    ASSERT_TRUE(made) << made.error().text();
  }

  [[nodiscard]] SignRequest request() const {
    return {.run_directory = run_,
            .dossier = dossier_,
            .role = "test lead",
            .name = "Ada Example",
            .organisation = "Example Lab",
            .issued_at = kIssued};
  }
  /// "verified", or why not.
  [[nodiscard]] std::string verify(const std::vector<PublicKey>& keys, const Expectations& expected = {}) const {
    const auto verified = verify_dossier(dossier_, keys, expected);
    return verified ? "verified" : verified.error().where + ": " + verified.error().what;
  }
  [[nodiscard]] std::string verify() const { return verify({vendor_.public_key()}); }
  [[nodiscard]] std::string path(const std::string& name) const { return dossier_ + "/" + name; }

  /// Signs the statement again with the right key after `change`: what a dishonest signer can do.
  void resign(const std::function<void(json&)>& change) {
    auto envelope = read_envelope(fixture::read(path(kStatementFile)), "e").value();
    json document = json::parse(envelope.payload);
    change(document);
    resign_bytes(canonical_json(document).value());
  }
  void resign_bytes(const std::string& payload, const std::string& type = std::string(kPayloadType)) {
    Envelope envelope{.payload_type = type, .payload = payload, .signatures = {}};
    sign(envelope, vendor_);
    fixture::write(path(kStatementFile), envelope_text(envelope));
  }
  /// Changes a file and brings manifest and statement in line, signed by the right key.
  void replace_and_resign(
      const std::string& name, const std::string& bytes, const std::function<void(json&)>& change = [](json&) {}) {
    const auto before = fixture::read(path(name)).size();
    fixture::write(path(name), bytes);
    auto manifest = evidence::read_manifest(fixture::read(path(kManifestFile)), "m").value();
    manifest[name] = files::sha256(bytes);
    fixture::write(path(kManifestFile), evidence::manifest_text(manifest));
    resign([&](json& document) {
      auto& evidence = document["predicate"]["evidence"];
      const auto summary =
          evidence::summary_of(manifest, evidence["totalBytes"].get<std::uint64_t>() - before + bytes.size());
      evidence = {{"manifestSha256", summary.manifest_sha256},
                  {"fileCount", summary.file_count},
                  {"totalBytes", summary.total_bytes},
                  {"merkleRoot", summary.merkle_root}};
      change(document);
    });
  }

  fixture::TemporaryFolder folder_;
  std::string run_ = folder_.path() + "/run";
  std::string dossier_ = folder_.path() + "/run/dossier";
  PrivateKey vendor_ = key_of('v');
  PrivateKey buyer_ = key_of('b');
};

TEST_F(DossierTest, an_untouched_dossier_verifies_and_says_what_it_proves) {
  const auto verified = verify_dossier(dossier_, {vendor_.public_key()}, {});
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_EQ(verified->contents.verdict.overall, judge::Overall::rejected);
  EXPECT_EQ(verified->contents.claims.issued_at, kIssued);
  EXPECT_EQ(verified->signers, std::vector<std::string>{vendor_.public_key().fingerprint()});
  EXPECT_EQ(verified->other_signatures, 0U);
  EXPECT_EQ(verified->contents.claims.signatories.at(0).name, "Ada Example");
  EXPECT_TRUE(verified->contents.notes.empty());
}

TEST_F(DossierTest, is_the_same_bytes_for_the_same_run) {
  const std::string other = folder_.path() + "/other";
  SignRequest again = request();
  again.dossier = other;
  ASSERT_EQ(said(make_dossier(again, vendor_)), "done");
  EXPECT_EQ(fixture::read(other + "/" + kStatementFile), fixture::read(path(kStatementFile)));
}

TEST_F(DossierTest, every_changed_byte_of_the_statement_is_refused) {
  const std::string good = fixture::read(path(kStatementFile));
  // The last 200 bytes hold the signature and the envelope's members; over the payload every eleventh byte is tried.
  std::size_t tried = 0;
  for (std::size_t at = 0; at < good.size(); at += at + 200 < good.size() ? 11 : 1) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto envelope = read_envelope(bad, "e");
    EXPECT_FALSE(envelope && envelope->payload_type == kPayloadType && is_signed_by(*envelope, vendor_.public_key()))
        << at;
    ++tried;
  }
  EXPECT_GT(tried, 300U);
  std::string bad = good;
  bad[good.size() / 2] = static_cast<char>(bad[good.size() / 2] ^ 1);
  fixture::write(path(kStatementFile), bad);
  EXPECT_NE(verify(), "verified");
}

TEST_F(DossierTest, every_changed_byte_of_the_manifest_is_refused) {
  const std::string good = fixture::read(path(kManifestFile));
  const auto summary = evidence::summary_of(evidence::read_manifest(good, "m").value(), 0);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_NE(files::sha256(bad), summary.manifest_sha256) << at;
  }
  std::string bad = good;
  bad[3] = bad[3] == '0' ? '1' : '0';
  fixture::write(path(kManifestFile), bad);
  EXPECT_EQ(verify(), "MANIFEST.sha256: SHA-256 differs from the signed one");
}

TEST_F(DossierTest, a_changed_byte_in_any_file_is_refused_by_the_name_of_the_file) {
  const evidence::Manifest manifest = evidence::read_manifest(fixture::read(path(kManifestFile)), "m").value();
  for (const auto& [name, digest] : manifest) {
    const std::string good = fixture::read(path(name));
    for (const std::size_t at : {std::size_t{0}, good.size() / 3, good.size() / 2, good.size() - 1}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      fixture::write(path(name), bad);
      EXPECT_EQ(verify(), name + ": SHA-256 differs") << at;
    }
    fixture::write(path(name), good);
  }
  EXPECT_EQ(verify(), "verified");
}

TEST_F(DossierTest, another_key_or_a_key_that_did_not_sign_is_refused) {
  EXPECT_EQ(verify({buyer_.public_key()}),
            "statement.dsse.json: has no valid signature of the key " + buyer_.public_key().fingerprint());
  EXPECT_EQ(verify({vendor_.public_key(), buyer_.public_key()}),
            "statement.dsse.json: has no valid signature of the key " + buyer_.public_key().fingerprint());
  EXPECT_EQ(verify({}), "--key: no key was given");
}

TEST_F(DossierTest, one_key_twice_is_not_two_signers) {
  EXPECT_EQ(verify({vendor_.public_key(), vendor_.public_key()}), "--key: the same key was given twice");
  EXPECT_EQ(said(add_signature(dossier_, vendor_)), "statement.dsse.json: is signed by this key already");
}

TEST_F(DossierTest, a_second_signature_is_over_the_same_payload) {
  const auto before = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  ASSERT_EQ(said(add_signature(dossier_, buyer_)), "done");
  const auto after = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  EXPECT_EQ(after.payload, before.payload);
  EXPECT_EQ(after.signatures.size(), 2U);
  EXPECT_EQ(verify({vendor_.public_key(), buyer_.public_key()}), "verified");
  EXPECT_EQ(verify_dossier(dossier_, {buyer_.public_key()}, {})->other_signatures, 1U);
}

TEST_F(DossierTest, nobody_adds_a_signature_to_a_changed_dossier) {
  fixture::write(path("evidence/report.html"), "<p>accepted</p>");
  EXPECT_EQ(said(add_signature(dossier_, buyer_)), "evidence/report.html: SHA-256 differs");
}

TEST_F(DossierTest, a_payload_with_duplicate_keys_is_refused_though_signed) {
  resign_bytes(R"({"_type":"x","_type":"https://in-toto.io/Statement/v1"})");
  EXPECT_EQ(verify(), "statement.dsse.json: payload: the key '_type' is in one object twice");
}

TEST_F(DossierTest, a_payload_that_is_not_canonical_is_refused_though_signed) {
  const auto envelope = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  resign_bytes(envelope.payload + "\n");
  EXPECT_EQ(verify(), "statement.dsse.json: payload: byte " + std::to_string(envelope.payload.size()) +
                          ": is not canonical JSON (RFC 8785)");
}

TEST_F(DossierTest, another_payload_type_is_refused_though_signed) {
  const auto envelope = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  resign_bytes(envelope.payload, "application/json");
  EXPECT_EQ(verify(), "statement.dsse.json: payloadType: is not 'application/vnd.in-toto+json'");
}

TEST_F(DossierTest, another_predicate_is_refused_though_signed) {
  resign([](json& document) { document["predicateType"] = "https://assay-suite.example/attestation/test-result/v1"; });
  EXPECT_EQ(
      verify(),
      "statement.dsse.json: payload: predicateType: is not 'https://assay-suite.example/attestation/acceptance/v1'");
}

TEST_F(DossierTest, a_simulation_is_refused_as_such_though_signed) {
  resign([](json& document) { document["predicateType"] = "https://assay-suite.example/attestation/simulation/v1"; });
  EXPECT_EQ(verify(), "statement.dsse.json: payload: predicateType: is a simulation, in which nothing was measured");
}

TEST_F(DossierTest, a_run_that_was_not_measured_is_refused_though_signed) {
  resign([](json& document) { document["predicate"]["run"]["kind"] = "simulated"; });
  EXPECT_EQ(verify(), "statement.dsse.json: payload.predicate.run.kind: is not 'measured'");
}

TEST_F(DossierTest, an_unknown_missing_or_mistyped_member_is_refused_though_signed) {
  const auto good = json::parse(read_envelope(fixture::read(path(kStatementFile)), "e").value().payload);
  resign([](json& document) { document["predicate"]["waived"] = true; });
  EXPECT_EQ(verify(), "statement.dsse.json: payload.predicate: has an unknown member 'waived'");
  resign([&](json& document) {
    document = good;
    document["predicate"]["results"][0].erase("u");
    document["predicate"]["results"][0]["extra"] = 1;
  });
  EXPECT_EQ(verify(), "statement.dsse.json: payload.predicate.results[0]: has an unknown member 'extra'");
  resign([&](json& document) {
    document = good;
    document["predicate"].erase("nonClaims");
  });
  EXPECT_EQ(verify(), "statement.dsse.json: payload.predicate.nonClaims: is missing");
  resign([&](json& document) {
    document = good;
    document["predicate"]["results"][0]["value"] = 4.5e11;
  });
  EXPECT_EQ(verify(), "statement.dsse.json: payload.predicate.results[0].value: is not of the form 'decimal'");
  resign([&](json& document) {
    document = good;
    document["predicate"]["results"][0]["value"] = "450e9";
  });
  EXPECT_EQ(verify(), "statement.dsse.json: payload.predicate.results[0].value: is not of the form 'decimal'");
}

TEST_F(DossierTest, a_result_that_the_evidence_does_not_give_is_refused_though_signed) {
  resign([](json& document) { document["predicate"]["results"][2]["verdict"] = "pass"; });
  EXPECT_EQ(verify(),
            "statement.dsse.json: payload: does not follow from the evidence: /predicate/results/2/verdict is "
            "\"pass\", should be \"fail\"");
}

TEST_F(DossierTest, a_verdict_that_was_edited_and_signed_again_is_refused_by_judging_again) {
  std::string verdict = fixture::read(path("evidence/verdict.json"));
  const std::string from = "\"overall\": \"rejected\"";
  ASSERT_NE(verdict.find(from), std::string::npos);
  verdict.replace(verdict.find(from), from.size(), "\"overall\": \"accepted\"");
  replace_and_resign("evidence/verdict.json", verdict, [&](json& document) {
    document["predicate"]["verdict"]["overall"] = "accepted";
    document["predicate"]["verdict"]["sha256"] = files::sha256(verdict);
    document["subject"][1]["digest"]["sha256"] = files::sha256(verdict);
  });
  EXPECT_EQ(verify(),
            "evidence/verdict.json: is not what judging the evidence gives: /overall is \"accepted\", should be "
            "\"rejected\"");
}

TEST_F(DossierTest, a_record_that_was_edited_and_signed_again_is_refused_by_the_journal) {
  const auto manifest = evidence::read_manifest(fixture::read(path(kManifestFile)), "m").value();
  const auto record =
      std::ranges::find_if(manifest, [](const auto& line) { return line.first.starts_with("evidence/records/"); });
  ASSERT_NE(record, manifest.end());
  replace_and_resign(record->first, fixture::read(path(record->first)) + "\n");
  EXPECT_EQ(verify(), record->first + ": is not the file that was journalled");
}

TEST_F(DossierTest, an_import_of_another_tool_is_refused_though_signed) {
  const std::string name = "evidence/records/vendor.jsonl";
  fixture::write(path(name), "");
  replace_and_resign(name, kImported);
  EXPECT_EQ(verify(), name + ": was imported from another tool's output");
}

TEST_F(DossierTest, a_run_that_holds_an_import_is_not_signed) {
  fs::remove_all(dossier_);
  fixture::write(run_ + "/records/vendor.jsonl", kImported);
  EXPECT_EQ(said(make_dossier(request(), vendor_)), "records/vendor.jsonl: was imported from another tool's output");
  EXPECT_FALSE(fs::exists(dossier_));
}

TEST_F(DossierTest, a_report_with_other_figures_is_refused_though_signed) {
  std::string report = fixture::read(path("evidence/report.html"));
  report.replace(report.find("REJECTED"), 8, "ACCEPTED");
  replace_and_resign("evidence/report.html", report);
  EXPECT_EQ(verify(), "evidence/report.html: SHA-256 differs from that of the signed rendering");
  replace_and_resign("evidence/report.html", report,
                     [&](json& document) { document["predicate"]["renderings"][0]["sha256"] = files::sha256(report); });
  EXPECT_EQ(verify(), "evidence/report.html: is not what the evidence renders to");
}

TEST_F(DossierTest, a_report_of_another_renderer_is_taken_by_its_digest_with_a_note) {
  resign([](json& document) { document["predicate"]["renderings"][0]["renderer"] = "assay-report html/0"; });
  const auto verified = verify_dossier(dossier_, {vendor_.public_key()}, {});
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_EQ(verified->contents.notes.size(), 1U);
}

TEST_F(DossierTest, an_extra_file_a_removed_file_and_a_link_in_place_of_a_file_are_refused) {
  fixture::write(path("evidence/records/extra.jsonl"), "");
  EXPECT_EQ(verify(), "evidence/records/extra.jsonl: is not in the manifest");
  fs::remove(path("evidence/records/extra.jsonl"));
  fixture::write(path("NOTE"), "");
  EXPECT_EQ(verify(), "NOTE: is not in the manifest");
  fs::remove(path("NOTE"));
  ASSERT_EQ(verify(), "verified");
  fs::create_directories(path("evidence/records/spare"));
  EXPECT_EQ(verify(), "evidence/records/spare: is an empty folder");
  fs::remove(path("evidence/records/spare"));
  fs::rename(path("evidence/plan.json"), folder_.path() + "/plan.json");
  EXPECT_EQ(verify(), "evidence/plan.json: is in the manifest and not in the dossier");
  fs::create_symlink(folder_.path() + "/plan.json", path("evidence/plan.json"));
  EXPECT_EQ(verify(), "evidence/plan.json: is a symbolic link");
  fs::remove(path("evidence/plan.json"));
  fs::create_hard_link(folder_.path() + "/plan.json", path("evidence/plan.json"));
  EXPECT_EQ(verify(), "evidence/plan.json: has a second hard link, through which it could change");
}

TEST_F(DossierTest, a_statement_that_is_a_link_is_refused) {
  fs::rename(path(kStatementFile), folder_.path() + "/s");
  fs::create_symlink(folder_.path() + "/s", path(kStatementFile));
  EXPECT_EQ(verify(), "statement.dsse.json: is a symbolic link");
}

TEST_F(DossierTest, a_truncated_manifest_is_refused_also_when_signed_with_the_old_count) {
  const std::string good = fixture::read(path(kManifestFile));
  const std::string cut = good.substr(0, good.rfind('\n', good.size() - 2) + 1);
  fixture::write(path(kManifestFile), cut);
  EXPECT_EQ(verify(), "MANIFEST.sha256: SHA-256 differs from the signed one");
  const auto lines = std::ranges::count(good, '\n');
  resign([&](json& document) { document["predicate"]["evidence"]["manifestSha256"] = files::sha256(cut); });
  EXPECT_EQ(verify(),
            "MANIFEST.sha256: lists " + std::to_string(lines - 1) + " files, signed were " + std::to_string(lines));
  resign([&](json& document) { document["predicate"]["evidence"]["fileCount"] = lines - 1; });
  EXPECT_EQ(verify(), "MANIFEST.sha256: its Merkle root differs from the signed one");
}

TEST_F(DossierTest, a_dossier_of_another_plan_site_or_profile_is_refused_where_one_is_expected) {
  EXPECT_EQ(verify({vendor_.public_key()}, {.plan_sha256 = files::sha256(fixture::read(run_ + "/plan.json")),
                                            .site = "hall-2-row-b",
                                            .profile = "example"}),
            "verified");
  EXPECT_EQ(verify({vendor_.public_key()}, {.site = "hall-3"}),
            "statement.dsse.json: is of the site 'hall-2-row-b', expected was 'hall-3'");
  EXPECT_EQ(verify({vendor_.public_key()}, {.profile = "other"}),
            "statement.dsse.json: is of the profile 'example', expected was 'other'");
  EXPECT_NE(verify({vendor_.public_key()}, {.plan_sha256 = files::sha256("")}), "verified");
  const auto plan = plan::read_plan(fixture::read(run_ + "/plan.json"), "plan.json");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(verify({vendor_.public_key()}, {.targets_sha256 = *digest_of_targets(plan->profile)}), "verified");
  plan::Profile laxer = plan->profile;
  laxer.requirements.pop_back();
  EXPECT_NE(verify({vendor_.public_key()}, {.profile = laxer.name, .targets_sha256 = *digest_of_targets(laxer)})
                .find("is of the targets (SHA-256)"),
            std::string::npos);
}

TEST_F(DossierTest, nothing_is_overwritten_and_nothing_is_left_behind) {
  EXPECT_EQ(said(make_dossier(request(), vendor_)), dossier_ + ": exists already");
  SignRequest again = request();
  again.dossier = folder_.path() + "/nowhere/dossier";
  EXPECT_FALSE(make_dossier(again, vendor_));
  again.dossier = folder_.path() + "/self";
  again.self_signed = true;
  EXPECT_EQ(said(make_dossier(again, vendor_)),
            "report.html: is not what this run and this kind of signature render to");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1)
      << "only the run is there";
}

TEST_F(DossierTest, a_run_that_changed_or_is_not_whole_is_not_signed) {
  SignRequest again = request();
  again.dossier = folder_.path() + "/again";
  fs::remove(run_ + "/report.html");
  EXPECT_EQ(said(make_dossier(again, vendor_)), "report.html: is missing");
  std::string verdict = fixture::read(run_ + "/verdict.json");
  verdict.replace(verdict.find("\"fail\": "), 9, "\"fail\": 9");
  fixture::write(run_ + "/verdict.json", verdict);
  EXPECT_TRUE(said(make_dossier(again, vendor_))
                  .starts_with("verdict.json: is not what judging the evidence gives: /counts/fail is 9, should be "));
}

TEST_F(DossierTest, a_run_that_lost_a_log_is_not_signed) {
  SignRequest again = request();
  again.dossier = folder_.path() + "/again";
  fs::remove(run_ + "/logs/0002-example_memory-n02/1/0.log");
  EXPECT_EQ(said(make_dossier(again, vendor_)), "logs/0002-example_memory-n02/1/0.log: was journalled and is missing");
}

TEST_F(DossierTest, a_self_signed_dossier_says_so_in_report_and_statement) {
  render(run_, vendor_.public_key().fingerprint());
  SignRequest again = request();
  again.dossier = folder_.path() + "/self";
  again.self_signed = true;
  ASSERT_EQ(said(make_dossier(again, vendor_)), "done");
  EXPECT_NE(fixture::read(again.dossier + "/evidence/report.html").find("SELF-SIGNED"), std::string::npos);
  const auto verified = verify_dossier(again.dossier, {vendor_.public_key()}, {});
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_TRUE(verified->contents.claims.signatories.at(0).is_self_signed());
}

}  // namespace
}  // namespace assay::dossier
