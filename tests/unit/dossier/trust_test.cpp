// The trust policy at the edges of times and limits, which no program with a real clock can stand on.
#include "reports/dossier/trust.h"

#include "reports/dossier/waiver.h"
#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::dossier {
namespace {

constexpr const char* kFrom = "2026-01-05T00:00:00.000Z";
constexpr const char* kUntil = "2026-02-01T00:00:00.000Z";
constexpr const char* kInside = "2026-01-20T00:00:00.000Z";

Moment at(const char* time) { return *utc_time(time); }

class TrustTest : public DossierTest {
 protected:
  /// The vendor's key counts from kFrom until before kUntil, and so does the policy, unless others are given.
  static TrustPolicy policy(const PublicKey& vendor, Moment from = at(kFrom), Moment until = at(kUntil)) {
    return {.path = "trust.json",
            .name = "hall",
            .from = from,
            .until = until,
            .require = {"vendor"},
            .parties = {{.name = "Example Lab",
                         .role = "vendor",
                         .threshold = 1,
                         .signers = {{.name = "Ada",
                                      .keys = {{.fingerprint = vendor.fingerprint(),
                                                .key = vendor,
                                                .from = at(kFrom),
                                                .until = at(kUntil),
                                                .revoked = std::nullopt}}}}}}};
  }
  [[nodiscard]] std::string by(const TrustPolicy& policy, const char* now) const {
    return verify({}, {.trust = policy, .now = at(now)});
  }
};

TEST_F(TrustTest, a_key_ends_before_its_last_moment_and_the_policy_too) {
  const auto key = vendor_.public_key();
  const auto ever = [&] { return policy(key, at("2020-01-01T00:00:00.000Z"), at("2090-01-01T00:00:00.000Z")); };
  EXPECT_EQ(by(ever(), "2026-01-31T23:59:59.999Z"), "verified");
  EXPECT_TRUE(by(ever(), kUntil).starts_with("trust.json: rule key_valid_until: ")) << by(ever(), kUntil);
  TrustPolicy long_key = policy(key);
  long_key.parties[0].signers[0].keys[0].until = at("2090-01-01T00:00:00.000Z");
  EXPECT_EQ(by(long_key, "2026-01-31T23:59:59.999Z"), "verified");
  EXPECT_TRUE(by(long_key, kUntil).starts_with("trust.json: rule policy_valid: "));
}

TEST_F(TrustTest, a_key_counts_from_its_first_moment_on) {
  TrustPolicy late = policy(vendor_.public_key());
  late.parties[0].signers[0].keys[0].from = at(kIssued);
  EXPECT_EQ(by(late, kInside), "verified") << "issued at its first moment";
  late.parties[0].signers[0].keys[0].from = at("2026-01-05T08:00:00.001Z");
  EXPECT_TRUE(by(late, kInside).starts_with("trust.json: rule key_valid_at_issue: ")) << by(late, kInside);
}

TEST_F(TrustTest, a_statement_that_is_issued_when_its_key_ends_counts_for_nothing) {
  TrustPolicy ended = policy(vendor_.public_key());
  ended.parties[0].signers[0].keys[0].until = at(kIssued);
  const std::string said = by(ended, "2026-01-05T07:59:59.999Z");
  EXPECT_TRUE(said.starts_with("trust.json: rule key_valid_at_issue: ")) << said;
}

TEST_F(TrustTest, a_policy_without_a_clock_is_refused) {
  EXPECT_EQ(verify({}, {.trust = policy(vendor_.public_key())}), "trust.json: needs a clock, because keys have a time");
}

TEST_F(TrustTest, neither_keys_nor_a_policy_is_refused) { EXPECT_EQ(verify({}), "--key: no key was given"); }

TEST_F(TrustTest, a_key_that_the_policy_knows_by_another_fingerprint_counts_for_nothing) {
  TrustPolicy crossed = policy(vendor_.public_key());
  crossed.parties[0].signers[0].keys[0].fingerprint = buyer_.public_key().fingerprint();
  EXPECT_TRUE(by(crossed, kInside).starts_with("trust.json: rule maker_listed: ")) << by(crossed, kInside);
}

TEST_F(TrustTest, more_keys_than_can_be_tried_are_refused) {
  json keys = json::array();
  for (std::size_t i = 0; i <= kMostTrustedKeys; ++i) {
    keys.push_back({{"fingerprint", files::sha256(std::to_string(i))},
                    {"valid_from", "2026-01-01"},
                    {"valid_until", "2027-01-01"}});
  }
  json parties = json::array();
  for (std::size_t begin = 0; begin < keys.size(); begin += 100) {
    const json some(std::vector<json>(keys.begin() + static_cast<std::ptrdiff_t>(begin),
                                      keys.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 100, keys.size()))));
    parties.push_back({{"name", std::to_string(begin)},
                       {"role", "vendor"},
                       {"threshold", 1},
                       {"signers", {{{"name", "Ada"}, {"keys", some}}}}});
  }
  const json document{{"schema", "assay.trust/1"},   {"name", "hall"},        {"valid_from", "2026-01-01"},
                      {"valid_until", "2027-01-01"}, {"require", {"vendor"}}, {"parties", parties}};
  const auto none = [](const std::string&) { return std::expected<std::string, InputError>(); };
  EXPECT_EQ(said(read_trust_policy(document.dump(), "t", none)), "t: parties: has 1001 keys");
}

TEST_F(TrustTest, a_waiver_holds_before_its_end_and_not_at_it) {
  TrustPolicy buying = policy(buyer_.public_key());
  buying.parties[0].role = "buyer";
  const auto verified = verify_dossier(dossier_, {vendor_.public_key()}, {});
  ASSERT_TRUE(verified) << verified.error().text();
  const auto& contents = verified->contents;
  const Waiver waiver{.run_id = contents.verdict.run_id,
                      .plan_sha256 = contents.verdict.plan_sha256,
                      .verdict_sha256 = contents.verdict_sha256,
                      .cells = cells_to_waive(contents.verdict, {.requirement = "memory.copy", .node = "n03"}).value(),
                      .reason = "module comes in March",
                      .until = kInside,
                      .issued_at = kIssued,
                      .role = "buyer",
                      .name = "Bo",
                      .organisation = "Example AG",
                      .key_fingerprint = buyer_.public_key().fingerprint()};
  const std::string text = waiver_text(waiver, buyer_).value();
  const auto checked = [&](const char* now) {
    return said(
        check_waiver(text, "w", buying, {}, {contents.verdict, contents.verdict_sha256, contents.ended}, at(now)));
  };
  EXPECT_EQ(checked("2026-01-19T23:59:59.999Z"), "done");
  EXPECT_TRUE(checked(kInside).starts_with("w: rule waiver_until: ")) << checked(kInside);
}

/// A name, and its comparable form or why it has none.
struct Name {
  const char *name, *looks;
};

TEST(PartyName, what_looks_alike_is_one_name) {
  const Name names[] = {{"Example AG", "example ag"},
                        {"EXAMPLE AG", "example ag"},
                        {" Example \t AG. ", "example ag"},
                        {"Example\u00A0AG", "example ag"},         // no-break space
                        {"Exam\u200Bple\uFEFF AG", "example ag"},  // zero-width space, byte order mark
                        {"\uFF25\uFF58\uFF41\uFF4D\uFF50\uFF4C\uFF45 AG", "example ag"},  // full width
                        {"\u0415\u0425\u0410\u041C\u0420 AG", "examp ag"},  // a whole word in Cyrillic capitals
                        {"M\u00FCller", "muller"},
                        {"Mu\u0308ller", "muller"},  // the same with a mark of its own
                        {"Nguy\u1EC5n, Inc.", "nguyen inc"},
                        {"\u043E\u043E\u043E Lab", "ooo lab"},
                        {"Ex\u0430mple AG", "has a word with letters of two alphabets"},
                        {"\u2121 AG", "has the character U+2121, a form of another one"},
                        {"\u200B.", "has no character that is seen"},
                        {"\xFF", "is not UTF-8"},
                        {"Beta 2", "beta 2"}};
  for (const auto& one : names) {
    const auto looks = comparable_name(one.name);
    EXPECT_EQ(looks ? *looks : looks.error(), one.looks) << one.name;
  }
  EXPECT_NE(comparable_name("\u0411\u0410\u0420"), comparable_name("bap")) << "a letter that Latin does not have";
}

}  // namespace
}  // namespace assay::dossier
