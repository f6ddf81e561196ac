// An empty value of an option or argument is bad usage, on every level of commands.
#include "probes/core/option_values.h"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

namespace assay {
namespace {

/// What is wrong with these words behind `tool`; "" if nothing is.
std::string said(std::vector<std::string> words) {
  CLI::App app{"a tool", "tool"};
  std::string name, file;
  std::vector<std::string> keys;
  bool quick = false;
  auto* command = app.add_subcommand("check", "")->add_subcommand("file", "");
  app.add_option("--name", name);
  command->add_option("file", file);
  command->add_option("--key", keys)->expected(1)->take_all();
  command->add_flag("--quick", quick);
  std::ranges::reverse(words);  // CLI11 takes them from the end
  try {
    app.parse(words);
    refuse_empty_values(app);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(option_values, an_empty_one_is_refused_wherever_it_stands) {
  const std::string empty = ": has an empty value: give one, or leave the option out (is a variable unset?)";
  EXPECT_EQ(said({"--name", ""}), "--name" + empty);
  EXPECT_EQ(said({"--name", " \t\n"}), "--name" + empty);
  EXPECT_EQ(said({"check", "file", ""}), "file" + empty);
  EXPECT_EQ(said({"check", "file", "x", "--key", "a", "--key", ""}), "--key" + empty);
  EXPECT_EQ(said({"--name", "n", "check", "file", "x", "--quick", "--key", "a"}), "");
  EXPECT_EQ(said({"check", "file"}), "");
}

}  // namespace
}  // namespace assay
