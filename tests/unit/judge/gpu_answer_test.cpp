// Attestation reports of GPUs: honest, stale, relayed, damaged and cut ones. The GPUs and their makers are made up.
#include "orchestrator/judge/evidence/gpu_answer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/simulate/instrument.h"
#include "probes/core/text.h"
#include "tests/fakes/attesting_gpu.h"
#include "tests/unit/fixture.h"
#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace gpu_test {

using fakes::AttestingGpu;

const std::string kAsked = std::string(64, 'a') + ":";
const std::string kNonce = attempt_nonce("c", "p", "n1", kAsked);
constexpr const char *kFirst = "GPU-1", *kSecond = "GPU-2";

const AttestingGpu& gpu(int which) {
  static const fakes::GpuMaker maker;
  static const AttestingGpu gpus[] = {AttestingGpu(maker), AttestingGpu(maker), AttestingGpu(maker),
                                      AttestingGpu(maker, {.name = "GPU"}, "P-256")};
  return gpus[which];
}

std::string report_of(const AttestingGpu& one, const std::string& nonce, const std::string& uuid) {
  return one.report({.nonce = *from_hexadecimal(gpu_nonce(nonce, uuid))});
}

/// What is recorded of a GPU.
struct Said {
  std::string uuid, report, chain;
};

Record record_of_gpus(const std::vector<Said>& said, const std::vector<std::string>& without = {}) {
  Record record;
  const auto say = [&](const char* name, const Subject& subject, const std::string& value) {
    record.conditions.push_back({.name = name, .subject = subject, .value = value});
  };
  for (const auto& one : said) {
    say("attestation_report", {"gpu", one.uuid}, to_hexadecimal(one.report));
    say("certificate_chain", {"gpu", one.uuid}, to_hexadecimal(one.chain));
  }
  for (const auto& uuid : without) say("attestation_error", {"gpu", uuid}, "Not Supported");
  say("attested", {"node", "n1"}, without.empty() ? "all" : "some");
  return record;
}

std::string flipped(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

TEST(gpu_answer, a_report_counts_only_as_the_answer_of_that_gpu_to_this_question) {
  using enum AnswerOutcome;
  const std::string right = report_of(gpu(0), kNonce, kFirst), &chain = gpu(0).chain;
  const auto stale = [&](const std::string& nonce) { return report_of(gpu(0), nonce, kFirst); };
  const std::string leaf = chain.substr(0, chain.find("-----BEGIN", 1));
  constexpr const char* kStale = "its report answers another question than that of this attempt and GPU";
  constexpr const char* kSigned = "the signature of its report does not hold";
  constexpr const char* kNone = "its report is none of SPDM 1.1 with signed measurements";
  constexpr const char* kChain = "the certificate of its key is not by the next one of its chain";
  struct Case {
    const char* what;
    std::string report, chain;
    AnswerOutcome outcome;
    std::string words;
  };
  const std::vector<Case> cases = {
      {"honest", right, chain, answered, ""},
      {"earlier journal", stale(attempt_nonce("c", "p", "n1", ":")), chain, wrong_challenge, kStale},
      {"earlier challenge", stale(attempt_nonce("", "p", "n1", kAsked)), chain, wrong_challenge, kStale},
      {"another plan", stale(attempt_nonce("c", "q", "n1", kAsked)), chain, wrong_challenge, kStale},
      {"another node", stale(attempt_nonce("c", "p", "n2", kAsked)), chain, wrong_challenge, kStale},
      {"of another GPU's question", report_of(gpu(0), kNonce, kSecond), chain, wrong_challenge, kStale},
      {"no question", gpu(0).report({.nonce = std::string(32, '\0')}), chain, wrong_challenge, kStale},
      {"flipped in the question", flipped(right, 10), chain, broken, kSigned},
      {"flipped in a measurement", flipped(right, 37 + 8 + 20), chain, broken, kSigned},
      {"flipped in a version", flipped(right, right.size() - 96 - 8), chain, broken, kSigned},
      {"flipped in the signature", flipped(right, right.size() - 1), chain, broken, kSigned},
      {"of SPDM 1.2", flipped(right, 0), chain, broken, kNone},
      {"without a signature asked for", flipped(right, 2), chain, broken, kNone},
      {"another message", flipped(right, 38), chain, broken, kNone},
      {"a measurement less in the count", flipped(right, 41), chain, broken, kNone},
      {"no measurement", gpu(0).report({.nonce = std::string(32, 'n'), .measurements = 0}), chain, broken, kNone},
      {"another GPU's certificates", right, gpu(1).chain, broken, kSigned},
      {"no certificate", right, "", broken, kSigned},
      {"a key on P-256", report_of(gpu(3), kNonce, kFirst), gpu(3).chain, broken, kSigned},
      {"the first certificate alone", right, leaf, broken, kChain},
      {"another identity behind it", right, leaf + gpu(1).chain, broken, kChain},
  };
  for (const auto& one : cases) {
    const GpuAnswers all = gpu_answers_in(record_of_gpus({{kFirst, one.report, one.chain}}), kNonce);
    const GpuAnswer& answer = all.gpus.at(kFirst);
    EXPECT_EQ(answer.outcome, one.outcome) << one.what << ": " << answer.words;
    EXPECT_EQ(answer.words, one.words) << one.what;
    EXPECT_EQ(all.outcome, one.outcome) << one.what;
    EXPECT_EQ(answer.driver, one.outcome == answered ? "575.57.08" : "") << one.what;
    EXPECT_EQ(answer.vbios, one.outcome == answered ? "96.00.89.00.01" : "") << one.what;
    if (one.outcome == answered) {
      EXPECT_EQ(answer.key, identity_key(chain)) << one.what;
    }
  }
}

TEST(gpu_answer, every_gpu_of_a_record_answers_with_a_key_of_its_own) {
  using enum AnswerOutcome;
  const auto said = [&](int which, const char* uuid) {
    return Said{uuid, report_of(gpu(which), kNonce, uuid), gpu(which).chain};
  };
  EXPECT_EQ(gpu_answers_in(record_of_gpus({said(0, kFirst), said(1, kSecond)}), kNonce).outcome, answered);
  const GpuAnswers twice = gpu_answers_in(record_of_gpus({said(0, kFirst), said(0, kSecond)}), kNonce);
  EXPECT_EQ(twice.outcome, broken);
  EXPECT_EQ(twice.words, "GPU-2: it answered with the key of the GPU GPU-1");
  const GpuAnswers some = gpu_answers_in(record_of_gpus({said(0, kFirst)}, {kSecond}), kNonce);
  EXPECT_EQ(some.outcome, no_answer);
  EXPECT_EQ(some.words, "GPU-2: Not Supported");
  EXPECT_EQ(gpu_answers_in(record_of_gpus({}), kNonce).words, "the record has no report of a GPU");
}

TEST(gpu_answer, reports_that_are_cut_or_longer_are_none) {
  const std::string right = report_of(gpu(0), kNonce, kFirst);
  const auto report = gpu_report(right);
  ASSERT_TRUE(report && is_signed_by(gpu(0).chain, *report));
  EXPECT_EQ(report->measured.size(), 64U);
  for (std::size_t size = 0; size < right.size(); ++size) EXPECT_FALSE(gpu_report(right.substr(0, size))) << size;
  EXPECT_FALSE(gpu_report(right + "x"));
}

/// A run of the profile on two nodes.
struct GpuRun : fixture::MemoryRun {
  GpuRun() : MemoryRun({test::kAtLeast100}, 2) {
    const auto* known = plan::known_probe(plan::kGpuIdentityProbe, 1);
    description = read_description(known->document.dump(), "known").value();
    const plan::Program program{
        .name = known->name, .sha256 = std::string(64, 'a'), .path = "", .description = description};
    plan = *plan::make_plan(*plan::profile_named("gpu-identity"), fixture::site(2), {program}, {});
    journal.plan_sha256 = "p";
  }

  /// An attempt on node `i` that asked, in which these answered; `heard` in the place of its question, if given.
  void answer(std::size_t i, const std::vector<std::pair<int, std::string>>& gpus,
              const std::vector<std::string>& without = {}, const std::string& heard = kAsked,
              const std::string& attested = "") {
    const std::string node = plan.steps[i].nodes.front();
    std::ostringstream out;
    const simulate::Instrument instrument(description);
    Recorder recorder(
        out, instrument.spec(),
        {.probe = description.name, .revision = 1, .parameters = plan.steps[i].parameters, .host = {{"name", node}}});
    std::vector<Said> said;
    for (const auto& [which, uuid] : gpus)
      said.push_back({uuid, report_of(gpu(which), attempt_nonce("", "p", node, heard), uuid), gpu(which).chain});
    for (const auto& condition : record_of_gpus(said, without).conditions) {
      if (condition.subject.kind == "gpu") recorder.condition(condition.name, condition.value, condition.subject);
    }
    recorder.condition("attested", !attested.empty() ? attested : without.empty() ? "all" : "some");
    recorder.condition("gpus_listed", std::int64_t{2});
    recorder.condition("driver_version", "575.57.08");
    recorder.condition("confidential_computing", "on");
    for (const auto& [which, uuid] : gpus) recorder.measurement("report_time", 0.5, {"gpu", uuid});
    recorder.end({.status = Status::complete, .reason = ""});
    attempt(i, "exited", out.str());
    journal.attempts.change_last([](Attempt& last) { last.asked = kAsked; });
  }

  Description description;
};

TEST(gpu_answer, a_cell_passes_with_all_reports_over_its_own_question_alone) {
  struct Case {
    const char* what;
    void (*make)(GpuRun&);
    Outcome outcome;
    std::string reason;
  };
  const Case cases[] = {
      {"honest",
       [](GpuRun& run) {
         run.answer(0, {{0, "GPU-a"}});
         run.answer(1, {{1, "GPU-b"}, {2, "GPU-c"}});
       },
       Outcome::pass, ""},
      {"stale",
       [](GpuRun& run) {
         run.answer(0, {{0, "GPU-a"}}, {}, ":");
         run.answer(1, {{1, "GPU-b"}}, {}, ":");
       },
       Outcome::error, "its report answers another question than that of this attempt and GPU"},
      {"one GPU for two nodes",
       [](GpuRun& run) {
         run.answer(0, {{0, "GPU-a"}});
         run.answer(1, {{0, "GPU-b"}});
       },
       Outcome::error, "The nodes n1 and n2 show the same identity key of a GPU"},
      {"one without a report",
       [](GpuRun& run) {
         run.answer(0, {{0, "GPU-a"}}, {"GPU-x"});
         run.answer(1, {{1, "GPU-b"}}, {"GPU-y"});
       },
       Outcome::fail, "Some of the GPUs gave an attestation report"},
      {"says all with one missing",
       [](GpuRun& run) {
         run.answer(0, {{0, "GPU-a"}}, {"GPU-x"}, kAsked, "all");
         run.answer(1, {{1, "GPU-b"}}, {"GPU-y"}, kAsked, "all");
       },
       Outcome::error, "the GPUs: GPU-"},
      {"says all without a report",
       [](GpuRun& run) {
         run.answer(0, {});
         run.answer(1, {});
       },
       Outcome::error, "the GPUs: the record has no report of a GPU"},
  };
  for (const auto& one : cases) {
    GpuRun run;
    one.make(run);
    for (const auto& result : test::judged(run).results) {
      EXPECT_EQ(result.outcome, one.outcome) << one.what << ": " << result.reason;
      EXPECT_NE(result.reason.find(one.reason), std::string::npos) << one.what << ": " << result.reason;
    }
  }
}

TEST(gpu_answer, of_several_attempts_the_first_that_does_not_hold_counts) {
  using enum AnswerOutcome;
  GpuRun run;
  run.answer(0, {{0, "GPU-a"}});
  run.answer(0, {{0, "GPU-a"}}, {}, ":");
  run.answer(0, {{0, "GPU-a"}});
  const auto answers = gpu_answers({run.plan, "p", run.journal}, run.reader());
  EXPECT_EQ(answers.at("n1").outcome, wrong_challenge);
  EXPECT_EQ(answers.at("n2").outcome, not_asked);
  run.attempt(1, "crashed", "");
  EXPECT_EQ(gpu_answers({run.plan, "p", run.journal}, run.reader()).at("n2").outcome, no_answer);
}

TEST(gpu_answer, is_demanded_of_every_gpu_of_which_another_record_has_a_figure) {
  using enum AnswerOutcome;
  const auto gpus_with = [](const std::string& measured) {
    GpuRun run;
    run.answer(0, {{0, "GPU-a"}});
    const auto programs = fixture::programs();
    run.plan.probes["disk"] = {.sha256 = programs[0].sha256, .description = programs[0].description};
    plan::Step step = run.plan.steps[0];
    step.id = "0009-disk-n1";
    step.probe = "disk";
    step.parameters = Values{{"size", std::int64_t{4}}};
    run.plan.steps.push_back(step);
    std::ostringstream out;
    Recorder recorder(out, fixture::kSpec,
                      {.probe = "disk", .revision = 1, .parameters = step.parameters, .host = {{"name", "n1"}}});
    recorder.measurement("bandwidth", 1.0, {"gpu", measured});
    recorder.end({.status = Status::complete, .reason = ""});
    run.attempt(run.plan.steps.size() - 1, "exited", out.str());
    return gpu_answers({run.plan, "p", run.journal}, run.reader()).at("n1");
  };
  EXPECT_EQ(gpus_with("GPU-a").outcome, answered);
  EXPECT_EQ(gpus_with("0000:03:00.0").outcome, answered);
  for (const char* other : {"GPU-b", "index-1"}) {
    EXPECT_EQ(gpus_with(other).outcome, no_answer) << other;
    EXPECT_NE(gpus_with(other).words.find("a record of the node names it"), std::string::npos)
        << gpus_with(other).words;
  }
}

}  // namespace gpu_test
}  // namespace assay::judge
