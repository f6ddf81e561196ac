// Vocabularies: an enumerator is written as it is named.
#include <gtest/gtest.h>

#include "probes/core/words.h"

namespace assay {
namespace {

enum class Kind { first, default_, last };
constexpr auto words_of(Kind) { return names_as_words<Kind>(); }

}  // namespace

TEST(words, an_enumerator_is_written_as_it_is_named) {
  EXPECT_EQ(words_listed<Kind>(), "first, default, last");
  EXPECT_EQ(word_of(Kind::default_), "default");
  EXPECT_STREQ(word_of(Kind::default_).data(), "default");  // a zero follows
  EXPECT_EQ(from_word<Kind>("last"), Kind::last);
  EXPECT_EQ(from_word<Kind>("default_"), std::nullopt);
  EXPECT_EQ(from_word<Kind>("(anonymous)"), std::nullopt);
}

}  // namespace assay
