// Evidence that does not fit into memory is read again when it is judged, and must be the same then.
#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::dossier {
namespace {

class LargeEvidence : public DossierTest {
 protected:
  void SetUp() override {
    DossierTest::SetUp();
    files_ = evidence::read_evidence_files(run_).value();
    for (const auto& [path, digest] : files_.digests) {
      if (path.starts_with("records/") && record_.empty()) record_ = path;
    }
    files_.kept.erase(record_);
  }

  evidence::EvidenceFiles files_;
  std::string record_;
};

TEST_F(LargeEvidence, is_judged_from_the_folder) {
  const auto examined = evidence::examine(files_);
  ASSERT_TRUE(examined) << examined.error().text();
  EXPECT_EQ(files_.read(record_).value(), fixture::read(run_ + "/" + record_));
}

TEST_F(LargeEvidence, that_has_changed_since_it_was_digested_is_refused) {
  std::string bytes = fixture::read(run_ + "/" + record_);
  bytes[bytes.size() / 2] ^= 1;
  fixture::write(run_ + "/" + record_, bytes);
  EXPECT_EQ(files_.read(record_).error().what, "changed while it was read");
  EXPECT_FALSE(evidence::examine(files_));
}

TEST_F(LargeEvidence, beyond_the_limit_is_not_kept) {
  evidence::EvidenceFiles files;
  files.kept_bytes = evidence::kMostKept - 10;
  files.add("records/a/1/0.jsonl", std::string(10, 'x'));
  files.add("records/b/1/0.jsonl", "y");
  files.add("logs/a/1/0.log", "");
  files.add("verdict.json", "{}");  // the documents are always kept
  EXPECT_TRUE(files.kept.contains("records/a/1/0.jsonl"));
  EXPECT_FALSE(files.kept.contains("records/b/1/0.jsonl"));
  EXPECT_FALSE(files.kept.contains("logs/a/1/0.log"));
  EXPECT_TRUE(files.kept.contains("verdict.json"));
  EXPECT_EQ(files.digests.size(), 4U);
}

}  // namespace
}  // namespace assay::dossier
