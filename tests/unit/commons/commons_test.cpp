// commons_test: what a signed dossier gives away, what three sites add up to, and what is refused.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "probes/core/utc_time.h"
#include "reports/commons/commons.h"
#include "reports/dossier/dsse.h"
#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::commons {
namespace {

using dossier::key_of;
using dossier::said;

const auto kNow = utc_time("2026-01-05T09:00:00.000Z").value();

Group group_of(const std::string& model, double watts = 700) {
  return {.model = model,
          .probe = "cuda_gemm",
          .revision = 4,
          .metric = "throughput",
          .unit = "FLOP/s",
          .better = "higher",
          .statistic = "median",
          .at = {},
          .parameters = {{"n", std::int64_t{8192}}},
          .conditions = {{"power_limit_w", watts}}};
}

/// A site with `boards` of a model, whose figures are level, level + 1 %, …
Document site(const std::string& model, int boards, double level) {
  Document document{.kind = FileKind::contribution, .made_on = "2026-01-05"};
  for (int i = 0; i < boards; ++i) document.figures[group_of(model)].boards.add(level * (1 + 0.01 * i));
  return document;
}

SignedDocument signed_by(char key, const Document& document) {
  const auto text = signed_text(document, key_of(key));
  EXPECT_TRUE(text) << text.error().text();
  return read_signed(*text, "a file", {key_of(key).public_key()}).value();
}

std::expected<Document, InputError> merge_of(const std::vector<SignedDocument>& all) {
  return merged(all, std::vector<std::string>(all.size(), "a file"), kNow);
}

TEST(Sketch, has_quantiles_within_a_quarter_of_a_percent_and_adds_up_in_any_order) {
  Sketch whole, odd, even;
  for (int i = 1; i <= 1000; ++i) {
    whole.add(i * 1e9);
    (i % 2 == 0 ? even : odd).add(i * 1e9);
  }
  for (const double share : {0.05, 0.5, 0.95})
    EXPECT_NEAR(whole.quantile(share), share * 1e12, share * 1e12 * 0.0026) << share;
  EXPECT_NEAR(whole.quantile(0), 1e9, 1e9 * 0.0026);
  even.add(odd);
  EXPECT_EQ(even.counts(), whole.counts());
  Sketch small;
  small.add(1e-9);
  EXPECT_NEAR(small.quantile(0.5), 1e-9, 1e-9 * 0.0026);
}

TEST(Commons, of_three_sites_are_the_same_whichever_site_has_which_boards) {
  const auto bytes = [](int a, int b, int c) {
    const int boards[] = {a, b, c};
    std::vector<SignedDocument> all;
    for (const int i : {0, 1, 2})
      all.push_back(signed_by(static_cast<char>('a' + i), site("NVIDIA H200", boards[i], 6.5e14)));
    return signed_text(merge_of(all).value(), key_of('m')).value();
  };
  EXPECT_EQ(bytes(8, 4, 2), bytes(2, 8, 4));
  EXPECT_NE(bytes(8, 4, 2), bytes(8, 4, 3));
}

TEST(Commons, withhold_groups_of_few_boards_or_sites_and_say_how_many) {
  const auto merged_of = [](int a, int b, int c) {
    std::vector<SignedDocument> all;
    all.push_back(signed_by('a', site("NVIDIA H200", a, 6.5e14)));
    all.push_back(signed_by('b', site("NVIDIA H200", b, 6.6e14)));
    all.push_back(signed_by('c', site(c > 0 ? "NVIDIA H200" : "another", std::max(c, 1), 6.7e14)));
    return merge_of(all).value();
  };
  const Document enough = merged_of(5, 4, 1);
  ASSERT_EQ(enough.figures.size(), 1U);
  EXPECT_EQ(enough.figures.begin()->second.boards.boards(), 10U);
  EXPECT_EQ(enough.figures.begin()->second.contributors, 3U);
  EXPECT_EQ(enough.withheld, 0U);
  EXPECT_EQ(merged_of(5, 3, 1).withheld, 1U);  // nine boards
  const Document two = merged_of(50, 50, 0);   // two sites, and one board of another model
  EXPECT_TRUE(two.figures.empty());
  EXPECT_EQ(two.withheld, 2U);
}

TEST(Commons, keep_boards_of_another_power_limit_apart) {
  Document other;
  other.kind = FileKind::contribution;
  other.made_on = "2026-01-05";
  for (int i = 0; i < 20; ++i) other.figures[group_of("NVIDIA H200", 500)].boards.add(5e14);
  const auto sum = merge_of({signed_by('a', site("NVIDIA H200", 20, 6.5e14)),
                             signed_by('b', site("NVIDIA H200", 20, 6.5e14)), signed_by('c', other)});
  EXPECT_EQ(sum->withheld, 2U);
}

TEST(Commons, refuse_what_would_count_twice_and_who_did_not_sign) {
  const auto a = signed_by('a', site("NVIDIA H200", 20, 6.5e14)), b = signed_by('b', site("NVIDIA H200", 20, 6.5e14)),
             c = signed_by('c', site("NVIDIA H200", 20, 6.5e14));
  EXPECT_NE(said(merge_of({a, b, a})).find("is of the signer of a file"), std::string::npos);
  const auto sum = signed_by('m', merge_of({a, b, c}).value());
  EXPECT_NE(said(merge_of({sum, a})).find("is commons, whose contributions would count twice"), std::string::npos);
  const auto text = signed_text(a.document, key_of('a')).value();
  EXPECT_NE(said(read_signed(text, "f", {key_of('b').public_key()})).find("no valid signature"), std::string::npos);
}

TEST(Commons, refuse_figures_that_nobody_could_have_written) {
  const auto refusal = [](Document document) { return said(signed_text(document, key_of('a'))); };
  Document two = site("NVIDIA H200", 2, 6.5e14);
  two.figures.begin()->second.contributors = 2;
  EXPECT_NE(refusal(two).find("says it is of several"), std::string::npos);
  two.kind = FileKind::commons;
  EXPECT_NE(refusal(two).find("too few boards or contributors"), std::string::npos);
  EXPECT_NE(refusal(site("", 1, 6.5e14)).find("model"), std::string::npos);
  const auto envelope = dossier::read_envelope(signed_text(site("x", 1, 6.5e14), key_of('a')).value(), "f").value();
  auto payload = nlohmann::json::parse(envelope.payload);
  payload["predicate"]["groups"][0]["counts"][0][1] = 2;  // signed again, its digest is not
  dossier::Envelope again{
      .payload_type = envelope.payload_type, .payload = dossier::canonical_json(payload).value(), .signatures = {}};
  dossier::sign(again, key_of('a'));
  EXPECT_NE(said(read_signed(envelope_text(again), "f", {key_of('a').public_key()})).find("not spelled"),
            std::string::npos);
}

TEST(Commons, as_a_source_of_limits_name_the_percentile_that_boards_keep) {
  std::vector<SignedDocument> all;
  for (const char key : {'a', 'b', 'c'}) all.push_back(signed_by(key, site("NVIDIA H200", 10, 6.5e14)));
  const auto sum = signed_by('m', merge_of(all).value());
  const auto shown = nlohmann::json::parse(json_of(sum, "H200"));
  const auto& group = shown.at("groups").at(0);
  EXPECT_NEAR(group.at("limit").at("at_least").get<double>(), 6.5e14, 6.5e14 * 0.0026);
  EXPECT_EQ(group.at("source"),
            "p05 of 30 accepted boards of 3 contributors; commons of 2026-01-05, SHA-256 " + sum.sha256);
  EXPECT_TRUE(nlohmann::json::parse(json_of(sum, "H100")).at("groups").empty());
  EXPECT_NE(table(sum, "").find("30 boards of 3 contributors: p05"), std::string::npos);
}

class ContributionTest : public testing::Test {
 protected:
  /// The signed run of eight nodes that pass, or of every outcome.
  void make(bool accepted) {
    if (accepted)
      fixture::make_fleet(run_, {});
    else
      fixture::make_run(run_, fixture::Kind::mixed);
    sign();
  }
  void sign() {
    dossier::render(run_);
    const auto made = dossier::make_dossier({.run_directory = run_,
                                             .dossier = run_ + "/dossier",
                                             .role = "test lead",
                                             .name = "Ada Example",
                                             .organisation = "Example Lab",
                                             .issued_at = dossier::kIssued},
                                            key_);
    ASSERT_TRUE(made) << made.error().text();
  }
  [[nodiscard]] dossier::OpenedRun open(const std::string& path, bool with_key = true) const {
    dossier::Signers signers{.keys = {}, .policy = {}, .now = kNow};
    if (with_key) signers.keys.push_back(key_.public_key());
    return dossier::open_run(path, signers).value();
  }

  fixture::TemporaryFolder folder_;
  std::string run_ = folder_.path() + "/run";
  dossier::PrivateKey key_ = key_of('v');
};

TEST_F(ContributionTest, has_each_board_once_and_no_name_serial_or_time) {
  make(true);
  const auto given = contribution_of({open(run_ + "/dossier"), open(run_ + "/dossier")});
  ASSERT_TRUE(given) << given.error().text();
  ASSERT_EQ(given->figures.size(), 2U);  // cores, and bandwidth, of whose two limits one is the fleet's
  for (const auto& [group, figures] : given->figures) {
    EXPECT_EQ(group.model, "Example processor");
    EXPECT_EQ(group.metric, group.probe == "example_memory" ? "copy_bandwidth" : "cpus_online");
    EXPECT_EQ(figures.boards.boards(), 8U);
  }
  EXPECT_TRUE(given->left_out.empty());
  const auto text =
      signed_text({.kind = FileKind::contribution, .made_on = "2026-01-05", .figures = given->figures}, key_);
  const auto payload = dossier::read_envelope(text.value(), "f").value().payload;
  for (const auto& node : open(run_ + "/dossier").content.run.plan.site.nodes)
    EXPECT_EQ(payload.find("\"" + node.name), std::string::npos) << payload;
  EXPECT_EQ(payload.find("T06:"), std::string::npos);
}

TEST_F(ContributionTest, takes_nodes_of_one_name_at_two_sites_for_two_and_one_machine_at_both_for_one) {
  make(true);
  auto first = open(run_ + "/dossier");
  fixture::make_fleet(run_ = folder_.path() + "/other", {.site = "hall-4"});
  sign();
  auto second = open(run_ + "/dossier");
  const auto boards = [&] {
    const auto given = contribution_of({first, second});
    std::set<std::uint64_t> counts;
    for (const auto& [group, figures] : given.value().figures) counts.insert(figures.boards.boards());
    return counts;
  };
  const auto show = [](dossier::OpenedRun& run, const char* serial, const char* hypervisor) {
    const std::string node = run.content.run.plan.site.nodes.front().name;
    run.serials[node] = {serial};
    run.content.run.journal.node_facts[node]["hypervisor"] = hypervisor;
  };
  EXPECT_EQ(boards(), std::set<std::uint64_t>{16});
  for (auto* run : {&first, &second}) show(*run, "7XK2H13", "none");
  EXPECT_EQ(boards(), std::set<std::uint64_t>{15});
  for (auto* run : {&first, &second}) show(*run, "7XK2H13", "KVM");
  EXPECT_EQ(boards(), std::set<std::uint64_t>{16}) << "guests of one host";
  for (auto* run : {&first, &second}) show(*run, "Not Specified", "none");
  EXPECT_EQ(boards(), std::set<std::uint64_t>{16}) << "no serial number";
}

TEST_F(ContributionTest, of_another_signer_with_a_board_that_was_contributed_is_not_added_up) {
  make(true);
  auto run = open(run_ + "/dossier");
  const auto given = [&](const char* serial) {
    const std::string node = run.content.run.plan.site.nodes.front().name;
    run.serials[node] = {serial};
    run.content.run.journal.node_facts[node]["hypervisor"] = "none";
    const auto made = contribution_of({run}).value();
    return Document{
        .kind = FileKind::contribution, .made_on = "2026-01-05", .figures = made.figures, .boards = made.boards};
  };
  const Document one = given("4c4c4544-0042-4a10-8051-b7c04f4e3132"),
                 other = given("4c4c4544-0042-4a10-8051-b7c04f4e3133");
  EXPECT_EQ(one.boards.size(), 1U);
  EXPECT_EQ(signed_text(one, key_)->find("b7c04f4e3132"), std::string::npos);
  EXPECT_TRUE(merge_of({signed_by('a', one), signed_by('b', other)}));
  EXPECT_NE(said(merge_of({signed_by('a', one), signed_by('b', one)})).find("has a board that a file has, "),
            std::string::npos);
  EXPECT_TRUE(given("7XK2H13").boards.empty()) << "a serial number could be guessed";
}

TEST_F(ContributionTest, leaves_out_figures_whose_record_has_no_model) {
  fixture::make_run(run_, fixture::Kind::accepted);
  sign();
  const auto given = contribution_of({open(run_ + "/dossier")});
  ASSERT_TRUE(given) << given.error().text();
  EXPECT_TRUE(given->figures.empty());
  EXPECT_EQ(given->left_out.at("its record has no model"), 12U);  // six of nodes, six of accelerators
}

TEST_F(ContributionTest, is_refused_of_what_is_not_accepted_signed_and_measured) {
  make(false);
  EXPECT_NE(said(contribution_of({open(run_ + "/dossier")})).find("is not accepted"), std::string::npos);
  EXPECT_NE(said(contribution_of({open(run_)})).find("is unsigned"), std::string::npos);
  EXPECT_NE(said(contribution_of({open(run_ + "/dossier", false)})).find("signature_not_checked"), std::string::npos);
}

}  // namespace
}  // namespace assay::commons
