// Dossiers that were changed and signed again with the right key are refused as well.
#include <fmt/format.h>
#include <algorithm>

#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::dossier {
namespace {

TEST_F(DossierTest, a_payload_with_duplicate_keys_is_refused_though_signed) {
  resign_bytes(R"({"_type":"x","_type":"https://in-toto.io/Statement/v1"})");
  EXPECT_EQ(verify(),
            "statement.dsse.json: payload: the key '_type' is in one object twice; the second one ends at column 20");
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
  resign([](json& document) { document["predicateType"] = "https://in-toto.io/attestation/test-result/v0.1"; });
  EXPECT_EQ(verify(), fmt::format("statement.dsse.json: payload: predicateType: is not '{}'", kPredicateType));
}

TEST_F(DossierTest, a_simulation_is_refused_as_such_though_signed) {
  resign([](json& document) { document["predicateType"] = kSimulationType; });
  EXPECT_EQ(verify(), "statement.dsse.json: payload: predicateType: is a simulation, in which nothing was measured");
}

TEST_F(DossierTest, a_run_that_was_not_measured_is_refused_though_signed) {
  resign([](json& document) { document["predicate"]["run"]["kind"] = "simulated"; });
  EXPECT_EQ(verify(), "statement.dsse.json: payload: predicate.run.kind: 'simulated' is not 'measured'");
}

TEST_F(DossierTest, an_unknown_missing_or_mistyped_member_is_refused_though_signed) {
  const auto good = json::parse(read_envelope(fixture::read(path(kStatementFile)), "e").value().payload);
  resign([](json& document) { document["predicate"]["waived"] = true; });
  EXPECT_EQ(verify(), "statement.dsse.json: payload: predicate: unknown field 'waived'");
  resign([&](json& document) {
    document = good;
    document["predicate"]["results"][0].erase("u");
    document["predicate"]["results"][0]["extra"] = 1;
  });
  EXPECT_EQ(verify(), "statement.dsse.json: payload: predicate.results[0]: unknown field 'extra'");
  resign([&](json& document) {
    document = good;
    document["predicate"].erase("nonClaims");
  });
  EXPECT_EQ(verify(), "statement.dsse.json: payload: predicate: the field 'nonClaims' is missing");
  resign([&](json& document) {
    document = good;
    document["predicate"]["results"][0]["value"] = 4.5e11;
  });
  EXPECT_EQ(verify(),
            "statement.dsse.json: payload: predicate.results[0].value: 450000000000 is not allowed: Value type not "
            "permitted by 'type' constraint.");
  resign([&](json& document) {
    document = good;
    document["predicate"]["results"][0]["value"] = "450e9";
  });
  EXPECT_EQ(verify(),
            "statement.dsse.json: payload: predicate.results[0].value: '450e9' has characters or a length that are not "
            "allowed here");
}

TEST_F(DossierTest, a_digest_count_or_flag_of_another_form_is_refused_though_signed) {
  const auto good = json::parse(read_envelope(fixture::read(path(kStatementFile)), "e").value().payload);
  const auto refusal_of = [&](const char* pointer, const json& value) {
    resign([&](json& document) {
      document = good;
      document[json::json_pointer(pointer)] = value;
    });
    return verify();
  };
  const std::string where = "statement.dsse.json: payload: ";
  EXPECT_EQ(refusal_of("/predicate/plan/sha256", std::string(64, 'A')),
            where + "predicate.plan.sha256: '" + std::string(59, 'A') +
                "… has characters or a length that are not allowed here");
  EXPECT_EQ(refusal_of("/predicate/plan/quick", "no"), where + "predicate.plan.quick: 'no' is not of type boolean");
  EXPECT_TRUE(refusal_of("/predicate/plan/steps", -1).starts_with(where + "predicate.plan.steps: -1 is not allowed"));
  EXPECT_EQ(refusal_of("/predicate/plan/steps", 1.5), where + "predicate.plan.steps: 1.5 is not of type integer");
  EXPECT_TRUE(
      refusal_of("/predicate/results/0/verdict", "waived")
          .starts_with(where + "predicate.results[0].verdict: 'waived' is not one of pass, conditional_pass, "));
  EXPECT_EQ(refusal_of("/predicate/site/nodes", "n01"), where + "predicate.site.nodes: 'n01' is not of type array");
  EXPECT_EQ(refusal_of("/predicate/site", "hall"), where + "predicate.site: 'hall' is not of type object");
}

TEST_F(DossierTest, a_number_or_time_that_only_looks_right_is_refused_though_signed) {
  const auto good = json::parse(read_envelope(fixture::read(path(kStatementFile)), "e").value().payload);
  const auto refusal_of = [&](const char* pointer, const std::string& value) {
    resign([&](json& document) {
      document = good;
      document[json::json_pointer(pointer)] = value;
    });
    return verify();
  };
  const std::string where = "statement.dsse.json: payload: predicate.";
  EXPECT_EQ(refusal_of("/predicate/results/0/value", "4.50"),
            where + "results[0].value: \"4.50\" is not a canonical decimal");
  EXPECT_EQ(refusal_of("/predicate/results/0/ci/low", "007"),
            where + "results[0].ci.low: \"007\" is not a canonical decimal");
  EXPECT_EQ(refusal_of("/predicate/decisionRule/guardFactor", "1e+1"),
            where + "decisionRule.guardFactor: \"1e+1\" is not a canonical decimal");
  EXPECT_EQ(refusal_of("/predicate/issuedAt", "2026-13-05T08:00:00.000Z"),
            where + "issuedAt: \"2026-13-05T08:00:00.000Z\" is not a time");
  EXPECT_EQ(refusal_of("/predicate/run/startedAt", "2026-01-05T24:00:00.000Z"),
            where + "run.startedAt: \"2026-01-05T24:00:00.000Z\" is not a time");
}

TEST_F(DossierTest, a_verifier_reads_no_tree_of_the_results_and_refuses_every_other_spelling_of_them) {
  const std::string payload = read_envelope(fixture::read(path(kStatementFile)), "e").value().payload;
  const auto claims = read_claims(payload, "payload");
  ASSERT_TRUE(claims) << claims.error().text();
  EXPECT_TRUE(claims->document.at("predicate").at("results").empty());
  EXPECT_FALSE(read_statement(payload, "payload")->document.at("predicate").at("results").empty());
  const auto place = payload.find(R"("attempts":)");
  for (const std::string odd : {" ", R"("attempts":1,)"}) {
    resign_bytes(std::string(payload).insert(place, odd));
    EXPECT_TRUE(verify().starts_with("statement.dsse.json: payload: ")) << verify();
  }
  resign_bytes(std::string(payload).insert(payload.find(R"("results":[)") + 11, "[],"));
  EXPECT_EQ(verify(), "statement.dsse.json: payload: predicate.results[0]: [] is not of type object");
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
  EXPECT_EQ(
      verify(),
      "evidence/verdict.json: differs from the verdict that the evidence gives: /overall is \"accepted\", should be "
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

TEST_F(DossierTest, a_report_with_other_figures_is_refused_though_signed) {
  std::string report = fixture::read(path("evidence/report.html"));
  report.replace(report.find("REJECTED"), 8, "ACCEPTED");
  replace_and_resign("evidence/report.html", report);
  EXPECT_EQ(verify(), "evidence/report.html: SHA-256 differs from that of the signed rendering");
  replace_and_resign("evidence/report.html", report,
                     [&](json& document) { document["predicate"]["renderings"][0]["sha256"] = files::sha256(report); });
  EXPECT_EQ(verify(), "evidence/report.html: differs from the report rendered from the evidence");
}

TEST_F(DossierTest, a_report_of_another_renderer_is_refused_unless_it_is_passed_over) {
  const std::string page = "<p>ACCEPTED</p>";
  replace_and_resign("evidence/report.html", page, [&](json& document) {
    document["predicate"]["renderings"][0]["sha256"] = files::sha256(page);
    document["predicate"]["renderings"][0]["renderer"] = "assay-report html/0";
  });
  EXPECT_EQ(verify(), std::string("evidence/report.html: was rendered by 'assay-report html/0', this build is '") +
                          page::kRenderer + "': it cannot be compared with the evidence");
  const auto verified = verify_dossier(dossier_, {vendor_.public_key()}, {.without_report = true});
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_FALSE(verified->contents.report_checked);
}

TEST_F(DossierTest, a_truncated_manifest_is_refused_also_when_signed_with_the_old_count) {
  const std::string good = fixture::read(path(kManifestFile));
  const std::string cut = good.substr(0, good.rfind('\n', good.size() - 2) + 1);
  fixture::write(path(kManifestFile), cut);
  EXPECT_EQ(verify(), "MANIFEST.sha256: SHA-256 differs from the signed one");
  const auto lines = std::ranges::count(good, '\n');
  resign([&](json& document) { document["predicate"]["evidence"]["manifestSha256"] = files::sha256(cut); });
  EXPECT_EQ(verify(),
            "MANIFEST.sha256: lists " + std::to_string(lines - 1) + " files, the statement " + std::to_string(lines));
  resign([&](json& document) { document["predicate"]["evidence"]["fileCount"] = lines - 1; });
  EXPECT_EQ(verify(), "MANIFEST.sha256: the Merkle root differs from the signed one");
}

}  // namespace
}  // namespace assay::dossier
