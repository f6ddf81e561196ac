// What the receiver expects: another plan, site, node, target, program, time or course of the run is refused.
#include "orchestrator/plan/plan.h"
#include "reports/dossier/hardware_trust.h"
#include "tests/fakes/attesting_gpu.h"
#include "tests/unit/dossier/dossier_fixture.h"

namespace assay::dossier {
namespace {

class ExpectationsTest : public DossierTest {
 protected:
  [[nodiscard]] std::string expecting(const Expectations& expected) const {
    return verify({vendor_.public_key()}, expected);
  }
  [[nodiscard]] plan::Plan plan() const {
    return plan::read_plan(fixture::read(run_ + "/plan.json"), "plan.json").value();
  }
};

TEST_F(ExpectationsTest, what_it_is_verifies) {
  EXPECT_EQ(expecting({.plan_sha256 = files::sha256(fixture::read(run_ + "/plan.json")),
                       .site = "hall-2-row-b",
                       .whole_site = plan().site,
                       .nodes = {"n03", "n01", "n02"},
                       .profile = plan().profile,
                       .probes = {{"example_memory", files::sha256("example_memory")},
                                  {"example_gemm", files::sha256("example_gemm")},
                                  {"another", files::sha256("another")}},
                       .begun_after = utc_time("2026-01-05T06:30:00.000Z"),
                       .now = utc_time("2026-01-06T06:00:00.000Z"),
                       .max_age = Seconds{86400},
                       .unknown_probes = true}),
            "verified");
}

TEST_F(ExpectationsTest, another_plan_or_site_name_is_refused) {
  EXPECT_EQ(expecting({.site = "hall-3"}), "statement.dsse.json: has the site 'hall-2-row-b', expected 'hall-3'");
  EXPECT_TRUE(expecting({.plan_sha256 = files::sha256("")}).starts_with("statement.dsse.json: has the plan '"));
}

TEST_F(ExpectationsTest, other_nodes_under_the_same_site_name_are_refused_by_number_and_name) {
  EXPECT_EQ(expecting({.nodes = {"n01", "n02", "n03", "n04", "n05"}}),
            "statement.dsse.json: has 3 nodes, expected 5; not tested: n04, n05");
  EXPECT_EQ(expecting({.nodes = {"n01", "n02", "n9"}}),
            "statement.dsse.json: has 3 nodes, expected 3; not tested: n9; not expected: n03");
  site::Site other = plan().site;
  other.nodes[1].rack = "b7";
  EXPECT_EQ(
      expecting({.whole_site = other}),
      "evidence/plan.json: site: is not the expected site hall-2-row-b: /nodes/n02/rack is \"b1\", should be \"b7\"");
}

TEST_F(ExpectationsTest, where_the_tester_keeps_its_keys_is_no_part_of_a_site) {
  site::Site same = plan().site;
  same.known_hosts = "known_hosts";  // the plan has the absolute path of the machine that ran assay
  same.nodes[0].identity_file = "id";
  EXPECT_EQ(expecting({.whole_site = same}), "verified");
  same.nodes[0].directory = "/scratch/assay";
  EXPECT_TRUE(expecting({.whole_site = same}).find("/nodes/n01/directory") != std::string::npos)
      << "the storage under test is";
}

TEST_F(ExpectationsTest, a_profile_of_the_same_name_with_other_limits_is_refused_limit_by_limit) {
  plan::Profile stricter = plan().profile;
  stricter.requirements[0].limit.at_least = 4.6e11;
  stricter.requirements[2].conditions.clear();
  EXPECT_EQ(expecting({.profile = stricter}),
            "evidence/plan.json: profile: has other targets than the expected profile example: "
            "/requirements/gemm.fp16/conditions/0 is {\"at_most\":0.0,\"name\":\"throttle_ns\"}, should be nothing; "
            "/requirements/memory.copy/limit/at_least is 450000000000.0, should be 460000000000.0");
  plan::Profile other = stricter;
  other.name = "other";
  EXPECT_EQ(expecting({.profile = other}), "statement.dsse.json: has the profile 'example', expected 'other'");
}

TEST_F(ExpectationsTest, a_node_that_was_left_out_is_named) {
  site::Site whole = plan().site;
  site::Node more = whole.nodes[0];
  more.name = "n04";
  whole.nodes.push_back(more);
  const std::string why = expecting({.whole_site = whole});
  EXPECT_TRUE(
      why.starts_with("evidence/plan.json: site: is not the expected site hall-2-row-b: /nodes/n04 is nothing, "
                      "should be {"))
      << why;
}

TEST_F(ExpectationsTest, a_pinned_rule_needs_probes_that_are_known) {
  const std::string unknown =
      "evidence/plan.json: describes probes that this version does not know: example_gemm revision 1, "
      "example_memory revision 3";
  const std::map<std::string, std::string> programs = {{"example_memory", files::sha256("example_memory")},
                                                       {"example_gemm", files::sha256("example_gemm")}};
  EXPECT_EQ(expecting({.profile = plan().profile}), unknown);
  EXPECT_EQ(expecting({.targets_sha256 = *digest_of_targets(plan().profile)}), unknown);
  EXPECT_EQ(expecting({.probes = programs}), unknown);
  EXPECT_EQ(expecting({.profile = plan().profile, .probes = programs, .unknown_probes = true}), "verified");
}

TEST_F(ExpectationsTest, a_program_that_is_not_listed_or_another_one_is_refused) {
  EXPECT_EQ(expecting({.probes = {{"example_gemm", files::sha256("example_gemm")}}}),
            "statement.dsse.json: used the probe example_memory, which the list of programs does not have");
  EXPECT_EQ(expecting({.probes = {{"example_gemm", files::sha256("x")}, {"example_memory", files::sha256("x")}}}),
            "statement.dsse.json: used the probe example_gemm with the SHA-256 " + files::sha256("example_gemm") +
                ", expected " + files::sha256("x"));
}

TEST_F(ExpectationsTest, an_older_run_is_refused) {
  EXPECT_EQ(expecting({.begun_after = utc_time("2026-01-05T07:00:00.000Z")}),
            "statement.dsse.json: is of a run that began 2026-01-05T06:30:00.000Z, before 2026-01-05T07:00:00.000Z");
  const std::string why = expecting({.now = utc_time("2026-01-07T07:00:00.000Z"), .max_age = Seconds{86400}});
  EXPECT_TRUE(why.starts_with("statement.dsse.json: is of a run that ended 2026-01-05T06:")) << why;
  EXPECT_TRUE(why.ends_with(", and it is 2026-01-07T07:00:00.000Z here: older than 86400 s")) << why;
}

TEST_F(ExpectationsTest, deviations_are_refused_where_none_is_allowed) {
  EXPECT_EQ(expecting({.no_deviations = true}),
            "evidence/verdict.json: has 3 deviations, first: The run was interrupted and resumed 1 times.");
}

TEST_F(ExpectationsTest, probes_that_this_version_does_not_know_are_a_deviation) {
  fs::remove_all(run_);
  fixture::make_run(run_, fixture::Kind::accepted);
  render(run_);
  ASSERT_EQ(said(make_dossier(request(), vendor_)), "done");
  EXPECT_EQ(expecting({.no_deviations = true}),
            "evidence/plan.json: describes probes that this version does not know: example_gemm revision 1, "
            "example_memory revision 3");
  const auto verified = verify_dossier(dossier_, {vendor_.public_key()}, {});
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_FALSE(verified->contents.probes.at(0).known);
  EXPECT_FALSE(verified->contents.targets_built_in);
  EXPECT_EQ(verified->contents.nodes, (std::vector<std::string>{"n01", "n02", "n03"}));
  EXPECT_EQ(verified->contents.machines.size(), 3U);
  EXPECT_EQ(verified->contents.began, "2026-01-05T06:30:00.000Z");
}

TEST_F(ExpectationsTest, a_challenge_is_64_digits_and_part_of_the_plan) {
  const plan::Plan made = plan();
  EXPECT_EQ(said(plan::make_plan(made.profile, made.site, {}, {.challenge = "mine"})),
            "--challenge: 'mine' is not 64 hexadecimal digits");
  const auto challenge = files::sha256("a challenge");
  const auto answering = plan::make_plan(made.profile, made.site, {}, {.challenge = challenge});
  ASSERT_TRUE(answering) << answering.error().text();
  const auto again = plan::read_plan(plan::plan_text(*answering), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->challenge, challenge);
}

TEST_F(ExpectationsTest, an_age_without_a_clock_and_a_role_without_a_policy_are_refused) {
  EXPECT_EQ(expecting({.max_age = Seconds{86400}}), "--max-age: needs a clock");
  EXPECT_EQ(expecting({.require = {"buyer"}}), "--require: needs --policy, which binds roles to keys");
}

TEST(ReadSerials, a_node_and_a_number_a_line_each_once) {
  const auto serials = read_serials("n01 7XK2H13\nn02\tAB 12\n", "S");
  ASSERT_TRUE(serials) << serials.error().text();
  EXPECT_EQ(*serials, (Serials{{"n01", "7XK2H13"}, {"n02", "AB 12"}}));
  EXPECT_EQ(said(read_serials("n01\n", "S")), "S: line 1: is not a node and its serial number");
  EXPECT_EQ(said(read_serials("n01 \n", "S")), "S: line 1: is not a node and its serial number");
  EXPECT_EQ(said(read_serials(" n01 x\n", "S")), "S: line 1: is not a node and its serial number");
  EXPECT_EQ(said(read_serials("n01 x\r\n", "S")), "S: line 1: is not a node and its serial number");
  EXPECT_EQ(said(read_serials("n01 x\n\n", "S")), "S: line 2: is not a node and its serial number");
  EXPECT_EQ(said(read_serials("n01 x\nn01 y\n", "S")), "S: line 2: has the node n01 twice");
  EXPECT_EQ(said(read_serials("", "S")), "S: lists nothing");
}

TEST(ReadSums, the_list_of_a_bundle_is_read_by_the_names_of_its_files) {
  const std::string a(64, 'a');
  const std::string b(64, 'b');
  const auto sums = read_sums(a + "  libexec/assay/probes/host_gemm\n" + b + " *README\n", "SHA256SUMS");
  ASSERT_TRUE(sums) << sums.error().text();
  EXPECT_EQ(*sums, (std::map<std::string, std::string>{{"host_gemm", a}, {"README", b}}));
}

TEST(ReadSums, zeros_other_forms_and_two_digests_of_one_name_are_refused) {
  const std::string a(64, 'a');
  EXPECT_EQ(said(read_sums(std::string(64, '0') + "  host_gemm\n", "S")), "S: line 1: has a digest of zeros");
  EXPECT_EQ(said(read_sums(a + "  x\nhost_gemm " + a + "\n", "S")), "S: line 2: is not '<SHA-256>  <path>'");
  EXPECT_EQ(said(read_sums(a + "  x/host_gemm\n" + std::string(64, 'b') + "  y/host_gemm\n", "S")),
            "S: line 2: gives host_gemm a second digest");
  EXPECT_EQ(said(read_sums("", "S")), "S: lists nothing");
}

TEST(TpmTrust, a_tpm_counts_as_the_one_of_its_node_and_of_a_given_root_alone) {
  using enum judge::AnswerOutcome;
  const std::string mine(64, 'a'), other(64, 'b'), foreign(64, 'c');
  const HardwareTrust listed{.roots = "", .keys = {{"n01", mine}, {"n02", other}}}, rooted{.roots = "PEM", .keys = {}};
  struct Case {
    HardwareTrust trust;
    judge::TpmAnswer answer;
    judge::AnswerOutcome outcome;
    std::string words;
  };
  const std::vector<Case> cases = {
      {{}, {.outcome = answered, .words = "", .key = foreign}, answered, ""},
      {listed, {.outcome = answered, .words = "", .key = mine}, answered, ""},
      {listed,
       {.outcome = answered, .words = "", .key = other},
       unknown_key,
       "the TPM of the node n02 answered in its"},
      {listed, {.outcome = answered, .words = "", .key = foreign}, unknown_key, "it answered with the key cccc"},
      {listed, {.outcome = no_tpm, .words = "none"}, no_tpm, "none"},
      {rooted, {.outcome = answered, .words = "", .key = mine}, unknown_key, "its key is not bound to an endorsement"},
      {rooted, {.outcome = answered, .words = "", .key = mine, .activated = true}, other_root, "its TPM has no certif"},
      {rooted,
       {.outcome = answered, .words = "", .key = mine, .activated = true, .endorsement_certificate = "x"},
       other_root,
       "the certificate of its endorsement key cannot be read"},
  };
  for (const auto& one : cases) {
    const auto held = held_against(one.trust, "n01", one.answer, Moment{});
    EXPECT_EQ(held.outcome, one.outcome) << held.words;
    EXPECT_TRUE(held.words.starts_with(one.words)) << held.words;
  }
  std::map<std::string, judge::TpmAnswer> answers = {{"n01", {.outcome = not_asked, .words = "w"}}};
  EXPECT_FALSE(check_tpms({}, Moment{}, answers)) << "it only informs";
  EXPECT_EQ(check_tpms(listed, Moment{}, answers)->what, "the TPM of n01: not_asked: w");
}

TEST(GpuTrust, a_gpu_counts_by_a_chain_to_a_root_that_holds_and_by_the_key_of_the_list_alone) {
  using enum judge::AnswerOutcome;
  using fakes::AttestingGpu;
  constexpr std::time_t kRun = 1767571200, kDay = 86400;  // 2026-01-05
  const fakes::GpuMaker maker, foreign("foreign");
  const AttestingGpu gpu(maker), other(maker);
  const AttestingGpu expired(maker, {.name = "GPU", .until = kRun - 1}),
      later(maker, {.name = "GPU", .from = kRun + 1}),
      for_calls(maker, {.name = "GPU", .usage = "critical,keyAgreement"}), ca(maker, fakes::GpuMaker::ca("GPU"));
  const std::string a(64, 'a');
  const auto to = [&](const fakes::GpuMaker& one, std::string crls = "") {
    return HardwareTrust{.roots = one.root_pem(), .keys = {}, .crls = std::move(crls)};
  };
  constexpr const char* kNoChain =
      "the certificate of its key has no chain to a given root that holds when the run began ";
  constexpr const char* kUse = "the certificate of its key is for another use than signatures of reports";
  struct Case {
    const char* what;
    HardwareTrust trust;
    std::string chain;
    judge::AnswerOutcome outcome;
    std::string words;
  };
  const std::vector<Case> cases = {
      {"right", to(maker), gpu.chain, answered, ""},
      {"no root and no list", {}, gpu.chain, answered, ""},
      {"foreign root", to(foreign), gpu.chain, other_root, kNoChain},
      {"foreign maker", to(maker), AttestingGpu(foreign).chain, other_root, kNoChain},
      {"expired", to(maker), expired.chain, other_root, std::string(kNoChain) + "(certificate has expired)"},
      {"not yet", to(maker), later.chain, other_root, std::string(kNoChain) + "(certificate is not yet valid)"},
      {"another use", to(maker), for_calls.chain, other_root, kUse},
      {"a CA", to(maker), ca.chain, other_root, kUse},
      {"no certificate", to(maker), "x", other_root, "its certificate cannot be read"},
      {"none revoked", to(maker, maker.list({other.own.get()})), gpu.chain, answered, ""},
      {"revoked", to(maker, maker.list({gpu.own.get()})), gpu.chain, other_root,
       std::string(kNoChain) + "(certificate revoked)"},
      {"revoked by a later list", to(maker, maker.list({gpu.own.get()}, kRun + kDay)), gpu.chain, other_root,
       std::string(kNoChain) + "(certificate revoked)"},
      {"a later list", to(maker, maker.list({}, kRun + kDay)), gpu.chain, answered, ""},
      {"a list that had ended", to(maker, maker.list({}, kRun - 2 * kDay, kRun - kDay)), gpu.chain, other_root,
       std::string(kNoChain) + "(CRL has expired)"},
      {"a list of another maker", to(maker, foreign.list({})), gpu.chain, other_root,
       std::string(kNoChain) + "(no given list of revoked certificates is by one of its issuers)"},
  };
  const Moment at = std::chrono::system_clock::from_time_t(kRun);
  for (const auto& one : cases) {
    const auto held = held_against(
        one.trust, "GPU-1", judge::GpuAnswer{.outcome = answered, .words = "", .key = a, .chain = one.chain}, at);
    EXPECT_EQ(held.outcome, one.outcome) << one.what << ": " << held.words;
    EXPECT_TRUE(held.words.starts_with(one.words)) << one.what << ": " << held.words;
  }
}

TEST(GpuTrust, a_list_has_one_key_for_every_gpu_of_the_run_and_no_other) {
  using enum judge::AnswerOutcome;
  const std::string a(64, 'a'), b(64, 'b');
  const HardwareTrust listed{.roots = "", .keys = {{"GPU-1", a}, {"GPU-2", b}}};
  const Moment at;
  const auto by = [&](const std::string& uuid, const std::string& key) {
    return held_against(listed, uuid, judge::GpuAnswer{.outcome = answered, .words = "", .key = key}, at).words;
  };
  EXPECT_EQ(by("GPU-1", a), "");
  EXPECT_EQ(by("GPU-1", b), "the GPU GPU-2 answered in its place");
  EXPECT_TRUE(by("GPU-1", std::string(64, 'c')).starts_with("it answered with the key cccc"));
  EXPECT_EQ(by("GPU-3", a), "the list of keys does not have the GPU GPU-3");

  std::map<std::string, judge::GpuAnswers> answers = {
      {"n01", {.outcome = answered, .gpus = {{"GPU-1", {.outcome = answered, .words = "", .key = a}}}}}};
  EXPECT_EQ(check_gpus(listed, at, answers)->what, "does not test the GPU GPU-2 of the list of keys");
  answers["n02"] = {.outcome = not_asked, .words = "w"};
  EXPECT_FALSE(check_gpus({}, at, answers)) << "it only informs";
  EXPECT_EQ(check_gpus(listed, at, answers)->what, "the GPUs of n02: not_asked: w");
}

TEST(Statement, risks_of_another_curve_are_told_from_a_contradiction) {
  const json made = {
      {"predicate",
       {{"plan",
         {{"steps", 3},
          {"agreedRisk", {{"vendorRiskOfPlan", "0.01"}, {"buyerRiskOfPlan", "0.02"}, {"beyond", "0.04"}}}}}}}};
  json read = made;
  read["predicate"]["plan"]["agreedRisk"]["buyerRiskOfPlan"] = "0.03";
  EXPECT_NE(hint_of_difference(read, made).find("computes another curve"), std::string::npos);
  read["predicate"]["plan"]["agreedRisk"]["beyond"] = "0.05";
  EXPECT_NE(hint_of_difference(read, made).find("contradicts"), std::string::npos);
  EXPECT_NE(hint_of_difference({{"predicate", 1}}, made).find("contradicts"), std::string::npos);
}

}  // namespace
}  // namespace assay::dossier
