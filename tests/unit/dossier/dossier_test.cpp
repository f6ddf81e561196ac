// Dossiers: an untouched one verifies; one that was changed after signing is refused by the name of the file.
#include <algorithm>

#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::dossier {
namespace {

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
  EXPECT_EQ(said(add_signature(dossier_, vendor_, {vendor_.public_key()}, {})),
            "statement.dsse.json: is signed by this key already");
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
  EXPECT_EQ(verify(), "evidence/plan.json: is in the manifest, but not in the dossier");
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

}  // namespace
}  // namespace assay::dossier
