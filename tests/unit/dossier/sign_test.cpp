// Signing: what is signed, what is refused, and what is left behind.

#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::dossier {
namespace {

TEST_F(DossierTest, is_the_same_bytes_for_the_same_run) {
  const std::string other = folder_.path() + "/other";
  SignRequest again = request();
  again.dossier = other;
  ASSERT_EQ(said(make_dossier(again, vendor_)), "done");
  EXPECT_EQ(fixture::read(other + "/" + kStatementFile), fixture::read(path(kStatementFile)));
}

TEST_F(DossierTest, a_second_signature_is_over_the_same_payload) {
  const auto before = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  ASSERT_EQ(said(add_signature(dossier_, buyer_, {vendor_.public_key()}, {})), "done");
  const auto after = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  EXPECT_EQ(after.payload, before.payload);
  EXPECT_EQ(after.signatures.size(), 2U);
  EXPECT_EQ(verify({vendor_.public_key(), buyer_.public_key()}), "verified");
  EXPECT_EQ(verify_dossier(dossier_, {buyer_.public_key()}, {})->other_signatures, 1U);
}

TEST_F(DossierTest, a_changed_dossier_takes_no_further_signature) {
  fixture::write(path("evidence/report.html"), "<p>accepted</p>");
  EXPECT_EQ(said(add_signature(dossier_, buyer_, {vendor_.public_key()}, {})), "evidence/report.html: SHA-256 differs");
}

TEST_F(DossierTest, a_signature_is_added_only_to_signatures_that_hold_and_to_what_is_expected) {
  const auto vendor = std::vector{vendor_.public_key()};
  EXPECT_EQ(said(add_signature(dossier_, buyer_, {}, {})), "--key: no key was given");
  EXPECT_EQ(said(add_signature(dossier_, buyer_, {key_of('x').public_key()}, {})),
            "statement.dsse.json: has no valid signature of the key " + key_of('x').public_key().fingerprint());
  EXPECT_EQ(said(add_signature(dossier_, buyer_, vendor, {.site = "hall-3"})),
            "statement.dsse.json: has the site 'hall-2-row-b', expected 'hall-3'");
  EXPECT_TRUE(said(add_signature(dossier_, buyer_, vendor, {.no_deviations = true}))
                  .starts_with("evidence/verdict.json: has "));
  auto envelope = read_envelope(fixture::read(path(kStatementFile)), "e").value();
  envelope.signatures.front()[7] = static_cast<char>(envelope.signatures.front()[7] ^ 1);
  fixture::write(path(kStatementFile), envelope_text(envelope));
  EXPECT_EQ(said(add_signature(dossier_, buyer_, vendor, {})),
            "statement.dsse.json: has no valid signature of the key " + vendor_.public_key().fingerprint());
  EXPECT_EQ(read_envelope(fixture::read(path(kStatementFile)), "e")->signatures.size(), 1U);
}

TEST_F(DossierTest, a_run_that_holds_an_import_is_not_signed) {
  fs::remove_all(dossier_);
  fixture::write(run_ + "/records/vendor.jsonl", kImported);
  EXPECT_EQ(said(make_dossier(request(), vendor_)), "records/vendor.jsonl: was imported from another tool's output");
  EXPECT_FALSE(fs::exists(dossier_));
}

TEST_F(DossierTest, nothing_is_overwritten_and_nothing_is_left_behind) {
  EXPECT_EQ(said(make_dossier(request(), vendor_)), dossier_ + ": exists already");
  SignRequest again = request();
  again.dossier = folder_.path() + "/nowhere/dossier";
  EXPECT_FALSE(make_dossier(again, vendor_));
  again.dossier = folder_.path() + "/self";
  again.self_signed = true;
  EXPECT_EQ(said(make_dossier(again, vendor_)),
            "report.html: differs from the report rendered for this run and kind of signature");
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
                  .starts_with(
                      "verdict.json: differs from the verdict that the evidence gives: /counts/fail is 9, should be "));
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
