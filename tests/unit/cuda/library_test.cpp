// A library that is missing, too old or incomplete is a skip that says so; one that is there is found where it is said
// to be.
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "tests/unit/paths.h"

extern "C" int fake_library_answer();

namespace assay::cuda {
namespace {

constexpr const char* kFake = "libfake_library.so";
const std::string kFolder = build_file("tests/fakes/library");

std::string skip_text(const std::function<void()>& action) {
  try {
    action();
  } catch (const Skip& skip) {
    return skip.what();
  }
  return "nothing was skipped";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(library, a_missing_library_is_a_skip_that_names_it_and_where_it_was_sought) {
  const std::string text =
      skip_text([] { (void)Library::open("libno_such.so.7", "No Such Library", "/nowhere/at/all"); });
  EXPECT_TRUE(contains(text, "No Such Library is not here")) << text;
  EXPECT_TRUE(contains(text, "libno_such.so.7")) << text;
  EXPECT_TRUE(contains(text, "/nowhere/at/all")) << text;
  EXPECT_TRUE(contains(text, "hint: ") && contains(text, "ASSAY_LIBRARY_PATH")) << text;
}

TEST(library, a_library_in_a_named_folder_is_opened_and_its_functions_called) {
  const auto library = Library::open(kFake, "the fake", kFolder);
  EXPECT_EQ(library.path(), kFolder + "/" + kFake);
  const decltype(&::fake_library_answer) answer = library.function("fake_library_answer");
  EXPECT_EQ(answer(), 42);
}

TEST(library, the_environment_names_folders_too) {
  ASSERT_EQ(setenv(kLibraryPathVariable, ("/nowhere:" + kFolder).c_str(), 1), 0);
  EXPECT_EQ(Library::open(kFake, "the fake").title(), "the fake");
  ASSERT_EQ(unsetenv(kLibraryPathVariable), 0);
}

TEST(library, the_first_of_several_names_that_is_there_is_taken) {
  const std::string_view names[] = {"libno_such.so.7", kFake};
  EXPECT_TRUE(Library::open(names, "the fake", kFolder).path().ends_with(kFake));
}

TEST(library, a_missing_function_is_a_skip_that_names_it) {
  const auto library = Library::open(kFake, "the fake", kFolder);
  const std::string text = skip_text([&] { (void)library.function("no_such_function"); });
  EXPECT_TRUE(contains(text, "has no function no_such_function")) << text;
  const decltype(&::fake_library_answer) newer = library.optional_function("no_such_function");
  EXPECT_EQ(newer, nullptr);
}

TEST(library, another_major_version_is_a_skip_that_names_both) {
  const auto library = Library::open(kFake, "the fake", kFolder);
  library.require_major(13, 13);
  const std::string text = skip_text([&] { library.require_major(12, 13); });
  EXPECT_TRUE(contains(text, "is version 12, this probe needs version 13")) << text;
}

TEST(library, folders_are_searched_from_the_most_to_the_least_explicit) {
  const std::vector<std::string> expected = {"/given",
                                             "/variable",
                                             "/opt/assay/libexec/assay/probes",
                                             "/opt/assay/libexec/assay/lib",
                                             "/opt/assay/lib/assay",
                                             "",
                                             "/usr/local/cuda/lib64"};
  EXPECT_EQ(library_folders("/given:", "/variable", "/opt/assay/libexec/assay/probes"), expected);
  EXPECT_EQ(library_folders("", "", ""), (std::vector<std::string>{"", "/usr/local/cuda/lib64"}));
}

}  // namespace assay::cuda
