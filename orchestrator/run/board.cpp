// board: the page as text.
#include "orchestrator/run/board.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::run {
namespace {

constexpr const char* kStyle = R"css(
body { font: 15px/1.4 system-ui, "DejaVu Sans", sans-serif; margin: 1.5rem auto; max-width: 76rem; padding: 0 1rem; color: #17202e; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; } h2 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; } p { margin: .2rem 0; }
progress { width: 100%; height: 1.1rem; } .soft { color: #55606f; }
.fleet { display: flex; flex-wrap: wrap; gap: 3px; } .fleet i { width: 15px; height: 15px; border-radius: 2px; background: #dfe3e8; }
.fleet .running { background: #1d4e89; } .fleet .idle { background: #a5cbe8; } .fleet .lost { background: #101010; }
.fleet .bad { outline: 3px solid #c0271a; outline-offset: -3px; } .bad td { color: #9b1c1c; font-weight: 600; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .15rem .7rem .15rem 0; border-bottom: 1px solid #dfe3e8; vertical-align: top; }
ul { margin: 0; padding-left: 1.2rem; } li { overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; } body { color: #e4e8ee; background: #161b22; } .soft { color: #a3adba; } th, td { border-color: #3a434f; }
  .fleet i { background: #3a434f; } .fleet .running { background: #4f8ac4; } .fleet .idle { background: #2c5578; } .fleet .lost { background: #e4e8ee; }
  .fleet .bad { outline-color: #ff9a90; } .bad td { color: #ff9a90; }
}
)css";

/// Text from nodes and probes, which may be hostile, as content of an element.
std::string escaped(const std::string& text) { return as_markup(harmless(text)); }

bool is_bad(const BoardNode& node) { return node.broken + node.missed > 0 || node.activity == Activity::lost; }

std::string fleet(const std::vector<BoardNode>& nodes) {
  std::string html = "<h2>Nodes</h2>\n<p>";
  constexpr std::array kShown = {std::pair{Activity::running, "at work"}, std::pair{Activity::idle, "between steps"},
                                 std::pair{Activity::waiting, "not started"}, std::pair{Activity::lost, "lost"}};
  for (const auto& [activity, words] : kShown) {
    html += fmt::format("<span class=\"count-{}\">{} {}</span>, ", word_of(activity),
                        std::ranges::count(nodes, activity, &BoardNode::activity), words);
  }
  html += fmt::format("{} with something that failed</p>\n<div class=\"fleet\">", std::ranges::count_if(nodes, is_bad));
  for (const auto& node : nodes) {
    html += fmt::format("<i class=\"{}{}\" title=\"{}: {}\"></i>", word_of(node.activity), is_bad(node) ? " bad" : "",
                        escaped(node.name), escaped(node.state));
  }
  return html + "</div>\n";
}

/// The nodes in a table: first those where something failed, then those that run longest against their usual time.
std::string table(std::vector<BoardNode> nodes) {
  constexpr std::size_t kMost = 64;
  std::ranges::stable_sort(nodes, [](const BoardNode& a, const BoardNode& b) {
    const auto rank = [](const BoardNode& one) {
      return std::pair(is_bad(one) ? 0 : 1, one.usual_s > 0 ? -one.ran_s / one.usual_s : 1.0);
    };
    return rank(a) < rank(b);
  });
  std::string html =
      "<table>\n<thead><tr><th>Node</th><th>Attempts</th><th>Failed</th><th>Now</th><th>For</th></tr></"
      "thead>\n<tbody>\n";
  for (std::size_t i = 0; i < std::min(nodes.size(), kMost); ++i) {
    const BoardNode& node = nodes[i];
    html += fmt::format(
        "<tr{}><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        is_bad(node) ? " class=\"bad\"" : "", escaped(node.name), node.done, node.total, node.broken + node.missed,
        escaped(node.state),
        node.usual_s > 0 ? fmt::format("{} of about {}", clock_text(node.ran_s), clock_text(node.usual_s)) : "");
  }
  html += "</tbody>\n</table>\n";
  if (nodes.size() > kMost) html += fmt::format("<p class=\"soft\">… and {} more nodes</p>\n", nodes.size() - kMost);
  return html;
}

std::string list(const char* title, const std::vector<std::string>& lines, const char* none) {
  std::string html = fmt::format("<h2>{}</h2>\n", title);
  if (lines.empty()) return html + fmt::format("<p class=\"soft\">{}</p>\n", none);
  html += "<ul>\n";
  for (const auto& line : lines) html += "<li>" + escaped(line) + "</li>\n";
  return html + "</ul>\n";
}

struct Closed {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

}  // namespace

std::string clock_text(double seconds) {
  constexpr int kMinute = 60, kHour = 3600;
  const auto whole = static_cast<int>(std::lround(std::max(0.0, seconds)));
  if (whole < kHour) return fmt::format("{}:{:02}", whole / kMinute, whole % kMinute);
  return fmt::format("{}:{:02}:{:02}", whole / kHour, whole % kHour / kMinute, whole % kMinute);
}

void CellCounts::add(const CellCounts& other) {
  steps += other.steps, passed += other.passed, failed += other.failed, open += other.open;
}

void CellCounts::remove(const CellCounts& other) {
  steps -= other.steps, passed -= other.passed, failed -= other.failed, open -= other.open;
}

std::string CellCounts::text(std::size_t all_steps) const {
  return fmt::format("{} of {} steps judged: {} required cells pass, {} fail, {} open", steps, all_steps, passed,
                     failed, open);
}

std::string board_html(const BoardView& view) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";
  if (!view.over) html += fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", kBoardPeriod_s);
  html += fmt::format("<title>{}/{} {}</title>\n<style>{}</style>\n</head>\n<body>\n", view.done, view.total,
                      escaped(view.site), kStyle);
  html += fmt::format("<h1>{}: {}</h1>\n", escaped(view.site), escaped(view.profile));
  html += fmt::format("<p class=\"soft\">As of {}. {}</p>\n", escaped(view.time),
                      view.over ? "assay has ended; this page does not change any more."
                                : "Written again every few seconds: if that time does not change, assay has stopped.");
  html +=
      fmt::format("<progress max=\"{}\" value=\"{}\"></progress>\n", std::max<std::size_t>(view.total, 1), view.done);
  html += fmt::format("<p>{} of {} attempts{}, {} elapsed{}</p>\n", view.done, view.total,
                      view.tests > 0 ? fmt::format(" and {} tests of searches", view.tests) : "",
                      clock_text(view.elapsed_s),
                      view.over ? "" : fmt::format(", about {} left", clock_text(view.remaining_s)));
  if (view.cells.steps > 0)
    html += fmt::format("<p>{}. Each step is judged without the others; the verdict compares them.</p>\n",
                        view.cells.text(view.steps));
  html += list("Failures", view.failures, "nothing so far") + fleet(view.nodes) + table(view.nodes);
  html += list("Ended last", view.recent, "nothing yet");
  return html +
         "<p class=\"soft\">This page decides nothing: the verdict is in verdict.json and report.html.</p>\n"
         "</body>\n</html>\n";
}

std::optional<InputError> write_board(const std::string& path, const std::string& html) {
  // Made anew; an existing file is never opened: in a folder of all users that may be a link of another.
  const std::string fresh = path + ".partial";
  (void)std::remove(fresh.c_str());  // left by a killed run
  const std::unique_ptr<std::FILE, Closed> file(std::fopen(fresh.c_str(), "wbxe"));
  const bool written = file != nullptr && std::fwrite(html.data(), 1, html.size(), file.get()) == html.size() &&
                       std::fflush(file.get()) == 0;
  if (written && std::rename(fresh.c_str(), path.c_str()) == 0) return std::nullopt;
  const int reason = errno;
  (void)std::remove(fresh.c_str());  // it may not exist
  return InputError{path, fmt::format("cannot be written: {}", std::generic_category().message(reason)),
                    "name a file in a folder that exists: --board board.html"};
}

void end_board(const std::string& path, BoardView view) {
  view.over = true;
  view.remaining_s = 0;
  (void)write_board(path, board_html(view));  // the sweep itself is not at fault
}

}  // namespace assay::run
