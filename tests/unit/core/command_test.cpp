// An empty value of an option or argument is bad usage, on every level of commands.
#include "probes/core/command.h"

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
