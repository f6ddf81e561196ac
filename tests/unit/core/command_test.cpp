// An empty value of an option or argument is bad usage, on every level of commands.
#include "probes/core/command.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

/// What is wrong with these words behind `tool`; "" if nothing is.
std::string said(std::vector<std::string> words) {
  Command app{"a tool", "tool"};
  std::string name, file;
  std::vector<std::string> keys;
  bool quick = false;
  std::string program = "tool";
  auto& command = app.add_command("check", "").add_command("file", "");
  app.add_option("--name", name, "");
  command.add_option("file", file, "");
  command.add_option("--key", keys, "")->repeated();
  command.add_flag("--quick", quick, "");
  std::vector<char*> argv = {program.data()};
  for (auto& word : words) argv.push_back(word.data());
  try {
    EXPECT_TRUE(app.parse(static_cast<int>(argv.size()), argv.data()));
    app.refuse_empty_values();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Command, an_empty_one_is_refused_wherever_it_stands) {
  const std::string empty = ": has an empty value: give one, or leave the option out (is a variable unset?)";
  EXPECT_EQ(said({"--name", ""}), "--name" + empty);
  EXPECT_EQ(said({"--name", " \t\n"}), "--name" + empty);
  EXPECT_EQ(said({"check", "file", ""}), "file" + empty);
  EXPECT_EQ(said({"check", "file", "x", "--key", "a", "--key", ""}), "--key" + empty);
  EXPECT_EQ(said({"--name", "n", "check", "file", "x", "--quick", "--key", "a"}), "");
  EXPECT_EQ(said({"check", "file"}), "");
}

/// The exit code of these words behind `tool`, whose command `take` takes a number and names, and what it said.
std::pair<int, std::string> run(std::vector<std::string> words) {
  Command app{"a tool", "tool"};
  int number = 0;
  std::vector<std::string> names;
  Action action;
  auto& command = app.add_command("take", "");
  command.add_option("--number", number, "");
  command.add_option("names", names, "");
  std::string taken;
  end_command(command, "", action, [&] {
    taken = fmt::format("{} {}", number, fmt::join(names, ","));
    return 7;
  });
  std::string program = "tool";
  std::vector<char*> argv = {program.data()};
  for (auto& word : words) argv.push_back(word.data());
  testing::internal::CaptureStderr();
  const int code = run_command_line(app, action, static_cast<int>(argv.size()), argv.data(), {"other"});
  return {code, testing::internal::GetCapturedStderr() + taken};
}

TEST(run_command_line, runs_the_chosen_command_and_refuses_unknown_words_with_the_nearest_name) {
  using Said = std::pair<int, std::string>;
  EXPECT_EQ(run({"take", "--number", "-5", "a", "b"}), Said(7, "-5 a,b"));
  EXPECT_EQ(run({"take", "--", "-b", "a"}), Said(7, "0 -b,a"));
  EXPECT_EQ(run({"othr"}), Said(2, "tool: unknown command or option 'othr'\nhint: did you mean 'other'?\n"));
  EXPECT_EQ(run({"take", "--numbr=4"}),
            Said(2, "tool take: unknown command or option '--numbr'\nhint: did you mean '--number'?\n"));
  EXPECT_EQ(run({"take", "--number", "x"}).first, 2);
  EXPECT_TRUE(run({}).second.starts_with("a tool\nUsage: tool")) << run({}).second;
}

TEST(Command, help_shows_what_was_asked_of_options) {
  Command app{"a tool", "tool"};
  unsigned width = 3;
  std::string kind;
  app.add_option("--width", width, "how wide")->with_default()->between(1U, 64U);
  app.add_option("--kind", kind, "which")->one_of({"a", "b"})->form("KIND");
  app.end_help("Example: tool --width 4");
  const std::string help = app.help();
  for (const char* text : {"--width UINT:UINT in [1 - 64]=3", "--kind KIND:{a,b}", "Example: tool --width 4"})
    EXPECT_NE(help.find(text), std::string::npos) << text << "\n" << help;
}

}  // namespace
}  // namespace assay
