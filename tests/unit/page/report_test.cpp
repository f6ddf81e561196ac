// The report: numbers that are not rounded across limits, texts that cannot break out, bytes that do not change.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/overall/verdict_table.h"
#include "profiles/actions.h"
#include "profiles/embedded.h"
#include "reports/evidence/evidence_files.h"
#include "reports/figures/axis.h"
#include "reports/figures/html.h"
#include "reports/figures/plot.h"
#include "reports/figures/result_text.h"
#include "reports/page/render.h"
#include "reports/page/sections.h"
#include "reports/page/style.h"
#include "tests/unit/paths.h"
#include "tests/unit/run_fixture.h"

namespace assay::page {
namespace {

std::string rendered(fixture::Kind kind, const std::string& self_signed = "") {
  const fixture::TemporaryFolder folder;
  fixture::make_run(folder.path(), kind);
  const auto files = evidence::read_evidence_files(folder.path()).value();
  return render_html(report_content(evidence::examine(files).value(), evidence::evidence_in(files), self_signed));
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(Report, of_a_measured_run_and_its_verdict_read_each_record_once) {
  const fixture::TemporaryFolder folder;
  fixture::make_run(folder.path(), fixture::Kind::mixed);
  const auto files = evidence::read_evidence_files(folder.path()).value();
  const auto examined = evidence::examine(files).value();
  std::size_t records = 0;
  examined.run.journal.each_file([&](const auto& file) { records += file.path.starts_with("records/"); });
  report_content(examined, evidence::evidence_in(files), "");
  report_content(examined, evidence::evidence_in(files), "");
  EXPECT_GT(records, 3U);
  EXPECT_LE(files.records.parsed(), records);
}

TEST(Escape, leaves_nothing_that_html_or_the_reading_direction_takes_up) {
  EXPECT_EQ(figures::escape("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(figures::escape("a\u202Eb\u2066c\u200F"), "a[U+202E]b[U+2066]c[U+200F]");
  EXPECT_EQ(figures::escape(std::string("\x1b[2J\0x", 6)), "[U+001B][2J[U+0000]x");
  EXPECT_EQ(figures::escape("µ – ✓ 😀"), "µ – ✓ 😀");
}

TEST(Scale, a_value_is_never_rounded_onto_or_across_its_limit) {
  const double just_below[] = {4.4999e11, 4.5e11};
  const Scale scale = scale_for(just_below, "B/s");
  EXPECT_EQ(scale.text(4.4999e11), "449.99 GB/s");
  EXPECT_EQ(scale.text(4.5e11), "450.00 GB/s");
  const double nearly[] = {449999999999.0, 4.5e11};
  EXPECT_EQ(scale_for(nearly, "B/s").text(449999999999.0), "449.999999999 GB/s");
  const double apart[] = {4.62e11, 4.5e11};
  EXPECT_EQ(scale_for(apart, "B/s").text(4.62e11), "462.0 GB/s");
}

TEST(Scale, prefixes_suit_the_unit) {
  const auto text = [](double value, const char* unit) { return scale_for(std::span(&value, 1), unit).text(value); };
  EXPECT_EQ(text(8.41e-5, "s"), "84.10 µs");
  EXPECT_EQ(text(1200, "s"), "1200 s");
  EXPECT_EQ(text(1.312e15, "FLOP/s"), "1.312 PFLOP/s");
  EXPECT_EQ(text(0.8123, "1"), "0.8123");
  EXPECT_EQ(text(0, "1"), "0");
  EXPECT_EQ(text(250, "W"), "250.0 W");
  EXPECT_EQ(figures::exact_text(4.5e11, "B/s"), "450000000000 B/s");
  EXPECT_EQ(figures::percent(0.05), "5 %");
  EXPECT_EQ(figures::percent(1e-9), "< 0.001 %");
  EXPECT_EQ(figures::percent(-0.0421), "-4.21 %");
}

TEST(Scale, a_duration_is_in_its_two_largest_units) {
  EXPECT_EQ(duration_words(6671), "1 h 51 min");
  EXPECT_EQ(duration_words(363), "6 min 3 s");
  EXPECT_EQ(duration_words(59.6), "1 min 0 s");
  EXPECT_EQ(duration_words(45), "45 s");
  EXPECT_EQ(duration_words(-3), "0 s");
}

/// A time against "at most 1 ms" that is accepted up to `acceptance`.
judge::Result latency(double value, double acceptance) {
  judge::Result result;
  result.unit = "s";
  result.value = value;
  result.limit_high = 1e-3;
  result.acceptance_high = acceptance;
  return result;
}

TEST(Scale, a_column_has_one_unit_and_four_digits_and_no_value_looks_like_its_limit) {
  const judge::Result slow = latency(1.2e-3, 9.9e-4), fast = latency(8.792e-6, 9.9e-4),
                      close = latency(9.9996e-4, 9.9e-4);
  const judge::Result* const all[] = {&slow, &fast, &close};
  const Scale scale = figures::column_scale(all);
  EXPECT_EQ(figures::text_in(scale, fast, *fast.value), "8.792 µs");
  EXPECT_EQ(figures::text_in(scale, slow, *slow.value), "1200 µs");
  EXPECT_EQ(figures::text_in(scale, close, *close.value), "999.96 µs");
  EXPECT_EQ(figures::limit_text(scale, fast, ""), "≤ 1000 µs");
  EXPECT_EQ(figures::value_text(slow), "1.200 ms");
}

TEST(Scale, an_acceptance_limit_that_nothing_can_reach_is_said_in_words) {
  const judge::Result possible = latency(8.792e-6, 9.9e-4), impossible = latency(8.792e-6, -2.993e-5);
  const judge::Result* const one[] = {&possible};
  const Scale scale = figures::column_scale(one);
  EXPECT_EQ(figures::acceptance_text(scale, possible, ""), "≤ 990.0 µs");
  EXPECT_EQ(figures::acceptance_text(scale, impossible, ""), "none: the guard band is wider than the limit");
  judge::Verdict verdict;
  verdict.results = {impossible};
  EXPECT_FALSE(contains(judge::verdict_table(verdict, {.every_cell = true}), "-29.93"));
}

TEST(Plot, axis_marks_are_round_and_inside) {
  EXPECT_EQ(figures::Axis(0, 10).marks(), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(figures::Axis(4.31e11, 4.66e11).marks().size(), 7U);
}

TEST(Plot, equal_samples_and_no_limit_still_draw) {
  const figures::Plot plot{
      .title = "errors",
      .unit = "1",
      .rows = {{.label = "n01", .samples = {0, 0, 0}, .value = 0, .outcome = "pass", .passes = true}}};
  EXPECT_FALSE(contains(figures::strip_plot(plot), "nan"));
  EXPECT_FALSE(contains(figures::strip_plot(plot), "inf"));
  EXPECT_FALSE(contains(figures::distribution_plot(plot), "nan"));
}

TEST(Plot, a_distribution_of_thousands_of_subjects_has_some_dots_and_every_one_that_does_not_pass) {
  figures::Plot plot{.title = "rate", .unit = "B/s", .rows = {}};
  for (int i = 0; i < 5000; ++i)
    plot.rows.push_back({.label = "n", .samples = {}, .value = 1e9 + i, .outcome = "", .passes = i % 1000 != 7});
  const std::string svg = figures::distribution_plot(plot);
  EXPECT_LE(count(svg, "<circle"), 501U);
  EXPECT_GE(count(svg, "<circle"), 490U);
  EXPECT_EQ(count(svg, "class=\"cross\""), 2 * 5U);
}

TEST(Report, a_part_that_cannot_be_made_is_named_and_costs_no_other) {
  const fixture::TemporaryFolder folder;
  fixture::make_run(folder.path(), fixture::Kind::accepted);
  const auto files = evidence::read_evidence_files(folder.path()).value();
  auto content = report_content(evidence::examine(files).value(), evidence::evidence_in(files), "");
  content.verdict.results.front().step = "no step of the plan";
  content.run.plan.profile.requirements.front().limit.reference = plan::Reference::peak;
  content.run.plan.profile.requirements.front().limit.name = "no peak of the profile";
  const std::string html = render_html(content);
  EXPECT_TRUE(contains(html, "This part of the report could not be made: results. The evidence has its figures."))
      << html;
  EXPECT_TRUE(contains(html, "<h2 id=\"s11\"")) << "the evidence is listed";
  EXPECT_TRUE(contains(html, "— end of report —"));
  EXPECT_FALSE(contains(rendered(fixture::Kind::accepted), kMissingPart));
}

TEST(Report, numbers_have_the_digits_that_people_read) {
  for (const auto kind : {fixture::Kind::accepted, fixture::Kind::mixed, fixture::Kind::inventory})
    EXPECT_EQ(fixture::long_numbers(rendered(kind)), std::vector<std::string>());
  EXPECT_EQ(fixture::long_numbers("<td>held_s = 678.5798457340665</td> 12.345 0.00012345 1234567"),
            std::vector<std::string>{"678.5798457340665"});
}

TEST(Report, has_no_script_and_no_reference_to_anything_outside) {
  for (const auto kind : {fixture::Kind::accepted, fixture::Kind::mixed}) {
    const std::string html = rendered(kind);
    for (const char* bad :
         {"<script", "<link", "<img", "<iframe", "@import", "url(http", "src=", "javascript:", "onload", "onerror"}) {
      EXPECT_FALSE(contains(html, bad)) << bad;
    }
    EXPECT_EQ(count(html, "href="), count(html, "href=\"#")) << "links lead to places of the page alone";
    EXPECT_TRUE(contains(html, "default-src 'none'"));
  }
}

TEST(Report, shows_what_a_hostile_node_sent_as_text) {
  const std::string html = rendered(fixture::Kind::mixed);
  EXPECT_TRUE(contains(html, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;[U+202E]evil"));
  EXPECT_FALSE(contains(html, "\u202E"));
}

TEST(Report, states_every_outcome_in_words_and_lists_every_attempt) {
  const std::string html = rendered(fixture::Kind::mixed);
  for (const char* part : {">pass<", ">conditional pass<", ">conditional fail<", ">fail<", ">inconclusive<",
                           ">not measured<", ">error<", "killed by signal 11", "interrupted",
                           "assay was killed while it ran", "the probe example_drive is not part of this build",
                           "NOT MET", "≥ 450.0 GB/s", "REJECTED", "failed, with no other node in the step"}) {
    EXPECT_TRUE(contains(html, part)) << part;
  }
}

TEST(Report, its_first_screen_says_what_to_do_before_who_signed) {
  const std::string html = rendered(fixture::Kind::mixed, files::sha256("key"));
  const auto verdict = html.find("class=\"verdict rejected\""), action = html.find("<h2 id=\"action\">What to do</h2>"),
             signer = html.find(">SELF-SIGNED<"), first = html.find("<h2 id=\"s1\"");
  ASSERT_NE(verdict, std::string::npos);
  EXPECT_LT(verdict, action);
  EXPECT_LT(action, signer);
  EXPECT_LT(signer, first);
  EXPECT_LT(html.find("<table class=\"action\">"), signer) << "the worst requirements are on the cover";
  EXPECT_TRUE(contains(html, "<title>rejected: "));
}

constexpr const char* kGpus[] = {"GPU-8f2c01d4-0000-1111-2222-333344445555",
                                 "GPU-8f2c01d4-9999-1111-2222-333344445555"};

/// The accepted run as if its first two rates were of two GPUs of one board, the second slower.
ReportContent content_of_gpus() {
  const fixture::TemporaryFolder folder;
  fixture::make_run(folder.path(), fixture::Kind::accepted);
  const auto files = evidence::read_evidence_files(folder.path()).value();
  ReportContent content = report_content(evidence::examine(files).value(), evidence::evidence_in(files), "");
  const judge::Result first = content.verdict.results.front();
  content.verdict.results.clear();
  for (int i = 0; i < 2; ++i) {
    judge::Result rate = first;
    rate.subject = {"gpu", kGpus[i]};
    rate.reason = std::string(kGpus[i]) + " meets the limit.";
    rate.unit = "FLOP/s";
    rate.value = 6.9e14 - i * 1e13;
    content.verdict.results.push_back(rate);
    Record record;
    record.conditions = {{"device_name", rate.subject, std::string("NVIDIA <H200>")},
                         {"driver_version", rate.subject, std::string("580.159.04")},
                         {"serial", rate.subject, std::string("165402407497") + std::to_string(i)},
                         {"pci_address", rate.subject, std::string("0000:0") + std::to_string(i) + ":00.0"},
                         {"sm_clock_mean_hz", rate.subject, 1.5e9},
                         {"sm_clock_counted_hz", rate.subject, 1.4e9 + i * 1e6},
                         {"power_mean_w", rate.subject, 692.4 - i},
                         {"power_limit_w", rate.subject, 700.0},
                         {"temperature_max_c", rate.subject, 60.0}};
    content.records[rate.step].push_back(std::move(record));
  }
  return content;
}

TEST(Report, its_first_page_shows_the_slowest_gpu_with_clock_power_and_temperature) {
  const ReportContent content = content_of_gpus();
  const std::string html = render_html(content);
  EXPECT_TRUE(contains(html, "<p>2 × <strong>NVIDIA &lt;H200&gt;</strong>, driver 580.159.04</p>"));
  EXPECT_TRUE(
      contains(html, "gpu GPU-8f2c01d4-9999, slowest of 2</small></td><td><strong>680.0 TFLOP/s</strong></td><td>≥ "));
  EXPECT_TRUE(contains(html, "<td>1401 MHz</td><td>691 W of 700 W</td><td>60 °C</td><td>—</td>"));
  EXPECT_LT(html.find("<table class=\"gpus\">"), html.find("<h2 id=\"s1\""));
  EXPECT_TRUE(contains(html,
                       ">GPU-8f2c01d4-0000</a></td><td>n01</td><td>NVIDIA &lt;H200&gt;</td><td>1654024074970</td>"
                       "<td>0000:00:00.0</td><td>580.159.04</td>"));
  EXPECT_FALSE(contains(rendered(fixture::Kind::accepted), "<h2 id=\"gpus\""));
}

TEST(Report, its_first_page_says_what_wrong_bits_the_checks_would_have_found_on_the_weakest_gpu) {
  ReportContent content = content_of_gpus();
  EXPECT_FALSE(contains(render_html(content), "Power of detection"));
  double share = 0.99;
  for (Record& record : std::span(content.records.at(content.verdict.results.front().step)).last(2)) {
    const Subject gpu = record.conditions.back().subject;
    record.start.probe = "cuda_hbm_bandwidth";
    const std::pair<const char*, double> seen[] = {
        {"stuck_share", share}, {"flip_rate", 10 * share}, {"burst_low", 0.98 * share}, {"burst_high", share},
        {"burst_put", 256},     {"single_bit_low", share}};  // without a number of faults: no row
    for (const auto& [name, value] : seen) record.conditions.push_back({std::string("detects_") + name, gpu, value});
    share = 0.5;
  }
  const std::string html = render_html(content), row = "<td>burst</td><td>0.49 to 0.5</td><td>256</td>";
  EXPECT_TRUE(
      contains(html, "0.95 <code>cuda_hbm_bandwidth</code>: a stuck bit in 0.5 of the memory, 9.9 flips a GiB"));
  EXPECT_TRUE(contains(html, "<td><code>cuda_hbm_bandwidth</code></td>" + row));
  EXPECT_FALSE(contains(html, "<td>single_bit</td>"));
}

TEST(Report, a_uuid_stands_once_beside_its_short_name) {
  const std::string html = render_html(content_of_gpus());
  for (const std::string uuid : kGpus) {
    EXPECT_EQ(count(html, uuid), 1U);
    EXPECT_TRUE(contains(html, "<td>" + uuid.substr(0, 17) + "</td><td>n01</td>"));
    EXPECT_TRUE(contains(html, "<code>" + uuid + "</code>"));
  }
}

TEST(Report, a_counter_that_stays_at_0_is_a_row_and_no_figure) {
  const fixture::TemporaryFolder folder;
  fixture::make_run(folder.path(), fixture::Kind::accepted);
  const auto files = evidence::read_evidence_files(folder.path()).value();
  ReportContent content = report_content(evidence::examine(files).value(), evidence::evidence_in(files), "");
  const std::size_t before = count(render_html(content), "<svg");
  plan::Requirement& counter = content.run.plan.profile.requirements.front();
  counter.limit = {};
  counter.limit.at_most = 0;
  counter.limit.unit = "1";
  std::size_t subjects = 0;
  const judge::Result* last = nullptr;
  for (auto& result : content.verdict.results) {
    if (result.requirement != counter.id) continue;
    ++subjects;
    result.unit = "1";
    result.value = result.limit_high = result.acceptance_high = 0;
    result.limit_low = result.acceptance_low = std::nullopt;
    content.ranges[&result] = {0, 0};
    last = &result;
  }
  const std::string html = render_html(content);
  EXPECT_EQ(count(html, "<svg"), before - 1);
  EXPECT_TRUE(contains(html, "<td><span id=\"R1\">R1</span></td>"));
  EXPECT_TRUE(contains(html, "<td><strong>0</strong></td><td>≤ 0</td><td>" + std::to_string(subjects) + "</td>"));
  content.ranges[last] = {0, 7};
  EXPECT_EQ(count(render_html(content), "<svg"), before) << "one sample of one subject is not 0";
}

TEST(Report, is_dark_by_the_reader_s_setting_and_light_on_paper) {
  const std::string sheet = style_sheet("");
  const auto dark = sheet.find("@media screen and (prefers-color-scheme: dark)");
  ASSERT_NE(dark, std::string::npos);
  EXPECT_EQ(count(sheet, "prefers-color-scheme"), 1U);
  for (const char* name : {"--ink: ", "--paper: ", "--blue: ", "--bad: "})
    EXPECT_NE(sheet.find(name, dark), std::string::npos);
}

TEST(Report, every_link_leads_to_a_place_and_every_table_has_a_caption) {
  const std::string html = rendered(fixture::Kind::mixed);
  EXPECT_GE(count(html, "<a href=\"#"), 13U);
  for (auto at = html.find("href=\"#"); at != std::string::npos; at = html.find("href=\"#", at + 1)) {
    const std::string place = html.substr(at + 7, html.find('"', at + 7) - at - 7);
    EXPECT_EQ(count(html, " id=\"" + place + "\""), 1U) << place;
  }
  EXPECT_EQ(count(html, "<table "), count(html, "<caption>"));
  EXPECT_EQ(count(html, "<main>"), 1U);
  EXPECT_EQ(count(html, "<nav "), 1U);
}

TEST(Report, lists_failures_first) {
  const std::string html = rendered(fixture::Kind::mixed);
  const auto begin = html.find("<table class=\"conformity\">");
  const auto failed = html.find(">fail</span>", begin), passed = html.find(">pass</span>", begin);
  ASSERT_NE(failed, std::string::npos);
  EXPECT_LT(failed, passed);
}

TEST(Report, letters_of_outcomes_differ_in_more_than_their_case) {
  std::set<std::string> seen;
  for (const auto& word : words_of(judge::Outcome{})) {
    std::string letter = figures::outcome_letter(word.value);
    std::ranges::transform(letter, letter.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    EXPECT_TRUE(seen.insert(letter).second) << letter;
  }
}

TEST(Report, says_in_large_letters_who_did_not_sign) {
  EXPECT_FALSE(contains(rendered(fixture::Kind::accepted), "SELF-SIGNED"));
  EXPECT_TRUE(
      contains(rendered(fixture::Kind::accepted, files::sha256("key")), "<div class=\"word\">SELF-SIGNED</div>"));
}

TEST(Report, a_footer_that_could_leave_its_css_string_is_left_out) {
  EXPECT_TRUE(contains(style_sheet("Report 5f0c"), "content: \"Report 5f0c\""));
  EXPECT_TRUE(contains(style_sheet("x\"; } body { display: none } /*"), "content: \"\""));
}

TEST(Report, a_setting_that_differs_between_nodes_is_one_line_however_many_nodes_there_are) {
  const fixture::TemporaryFolder folder;
  fixture::make_run(folder.path(), fixture::Kind::inventory);
  const auto files = evidence::read_evidence_files(folder.path()).value();
  auto content = report_content(evidence::examine(files).value(), evidence::evidence_in(files), "");
  EXPECT_EQ(content.settings,
            (decltype(content.settings){{"cpus_online", {{"n01", "64"}, {"n02", "64"}, {"n03", "64"}}}}));
  EXPECT_FALSE(contains(nodes_section(content), "<code>cpus_online</code>"));
  content.settings["iommu_mode"] = {{"n01", "passthrough"}, {"n02", "passthrough"}, {"n03", "<translated>"}};
  const std::string section = nodes_section(content);
  EXPECT_TRUE(contains(section, "<code>iommu_mode</code>"));
  EXPECT_TRUE(contains(section, "2 nodes passthrough; n03 &lt;translated&gt;")) << section;
  EXPECT_EQ(count(section, "passthrough"), 1U);
}

/// The digests of both reports, and of the table of actions that reports show. When they change while kRenderer does
/// not, old dossiers of this build's number are refused: raise the number in kRenderer, then bless.
TEST(Report, bytes_are_those_of_this_renderer) {
  const std::string now = std::string(kRenderer) + "\naccepted " +
                          files::sha256(rendered(fixture::Kind::accepted, files::sha256("key"))) + "\nmixed " +
                          files::sha256(rendered(fixture::Kind::mixed)) + "\nactions " +
                          files::sha256(profiles::embedded_documents().at(profiles::kActionsDocument)) + "\n";
  const std::string golden = golden_file("report.txt");
  if (std::getenv("ASSAY_BLESS") != nullptr) fixture::write(golden, now);
  EXPECT_EQ(fixture::read(golden), now)
      << "raise the number in kRenderer when the bytes must change, then run with ASSAY_BLESS=1";
}

}  // namespace
}  // namespace assay::page
