// Lines for a terminal.
#include <cstdio>

#include <gtest/gtest.h>

#include "orchestrator/files/terminal.h"

namespace assay::files {
namespace {

TEST(Wrapped, breaks_at_blanks_and_indents_what_follows) {
  EXPECT_EQ(wrapped("one two three four", 11, "- "), "- one two\n  three\n  four\n");
  EXPECT_EQ(wrapped("a_word_that_is_longer b", 10, ""), "a_word_that_is_longer\nb\n");
  EXPECT_EQ(wrapped("one two three", 0, "  "), "  one two three\n");
}

TEST(Columns, count_characters_and_not_bytes) { EXPECT_EQ(columns_of("84 µs"), 5U); }

TEST(Terminal, a_file_is_none) {
  std::FILE* const file = std::tmpfile();
  const Terminal terminal = terminal_of(fileno(file));
  std::fclose(file);
  EXPECT_EQ(terminal.width, 0U);
  EXPECT_FALSE(terminal.colour);
}

}  // namespace
}  // namespace assay::files
