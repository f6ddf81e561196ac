// The printed report: heads of pages, and what a program that prints may do wrong.
#include "reports/page/pdf.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "probes/core/error.h"

namespace assay::page {
namespace {

namespace fs = std::filesystem;

TEST(CssString, closes_no_string_and_no_style) {
  EXPECT_EQ(css_string("run 5f-1."), "\"run 5f-1.\"");
  EXPECT_EQ(css_string("\"}</style>\\"), "\"\\000022\\00007d\\00003c/style\\00003e\\00005c\"");
  EXPECT_EQ(css_string("a\nb"), "\"a\\00000ab\"");
}

TEST(FileAddress, quotes_what_an_address_would_take_apart) {
  EXPECT_EQ(file_address("/run a/50%#?/page.html"), "file:///run%20a/50%25%23%3F/page.html");
}

TEST(PdfNodes, are_numbered_as_they_appear_and_nothing_else_is_touched) {
  EXPECT_EQ(with_numbered_nodes("/ID (node00000041) (node00000033) (node00000041) (node7) (node0000003x) node00000033"),
            "/ID (node00000001) (node00000002) (node00000001) (node7) (node0000003x) node00000033");
}

TEST(PdfNodes, have_a_sorted_tree) {
  EXPECT_EQ(with_numbered_nodes("/ID (node00000041) /ID (node00000012) /Headers [(node00000012)] /ID (node00000033) "
                                "/Limits [(node00000012) (node00000041)] "
                                "/Names [(node00000012) 9 0 R (node00000033) 14 0 R (node00000041) 7 0 R] (x)"),
            "/ID (node00000001) /ID (node00000002) /Headers [(node00000002)] /ID (node00000003) "
            "/Limits [(node00000001) (node00000003)] "
            "/Names [(node00000001) 7 0 R (node00000002) 9 0 R (node00000003) 14 0 R] (x)");
}

TEST(PdfNodes, keep_their_numbers_where_the_tree_cannot_be_sorted) {
  const std::string nodes = "/ID (node00000041) /ID (node00000012) ",
                    limits = "/Limits [(node00000012) (node00000041)] ";
  for (const std::string& tree : {
           limits + "/Names [(node00000012) 9 0 R] /Names [(node00000041) 7 0 R]",  // two leaves
           limits + "/Names [(node00000012) 9 0 R (node00000041) 7]",               // half a pair
           limits + "/Names [(node00000012) 9 0 R (node00000041) 7 0 R",            // no end
           std::string("/Names [(node00000012) 9 0 R (node00000041) 7 0 R]"),       // no limits
       })
    EXPECT_EQ(with_numbered_nodes(nodes + tree), nodes + tree);
}

TEST(PdfDates, are_the_end_of_the_run_and_nothing_moves) {
  const std::string pdf = "%PDF-1.4 /CreationDate (D:20261123140643+00'00') /ModDate (D:20261123140643+00'00')";
  const std::string dated = with_dates(pdf, "2026-01-05T06:37:41.211Z");
  EXPECT_EQ(dated, "%PDF-1.4 /CreationDate (D:20260105063741+00'00') /ModDate (D:20260105063741+00'00')");
  EXPECT_EQ(with_dates(pdf, ""), pdf);
  EXPECT_EQ(with_dates("/ModDate (D:2026", "2026-01-05T06:37:41.211Z"), "/ModDate (D:2026");
}

/// A folder with one program, `chromium`, which is PATH while the test runs.
class Printing : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "assay-pdf-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::setenv("PATH", name.c_str(), 1);
    content_.run.journal.run_id = "5f0c3c1e";
    content_.run.journal.end = "2026-01-05T06:37:41.211Z";
    content_.verdict_sha256 = std::string(64, 'a');
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  void program(const std::string& body) {
    const fs::path file = folder_ / "chromium";
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }
  std::optional<InputError> print(Seconds deadline = Seconds{20}) {
    return write_pdf(content_, {.word = "unsigned", .signers = {}}, (folder_ / "out.pdf").string(), deadline);
  }
  std::string path_ = std::getenv("PATH");
  fs::path folder_;
  ReportContent content_;
};

TEST_F(Printing, a_machine_without_a_printer_gets_a_hint) {
  const auto problem = print();
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->text().find("neither chromium nor weasyprint"), std::string::npos);
  EXPECT_NE(problem->text().find("apt-get install chromium"), std::string::npos);
}

TEST_F(Printing, a_printer_that_hangs_is_killed_at_the_deadline) {
  program("exec /bin/sleep 60");
  const auto problem = print(Seconds{0.3});
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->text().find("did not print within 0.3 s and was killed"), std::string::npos);
}

TEST_F(Printing, a_printer_that_fails_is_quoted_and_leaves_nothing) {
  program("echo 'no usable sandbox' >&2; exit 7");
  const auto problem = print();
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->text().find("ended with exit code 7 and no PDF"), std::string::npos);
  EXPECT_NE(problem->text().find("no usable sandbox"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // the program
}

TEST_F(Printing, half_a_pdf_is_none) {
  program("for a; do case $a in --print-to-pdf=*) printf '%%PDF-1.4 half' > ${a#*=};; esac; done");
  const auto problem = print();
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->text().find("no PDF"), std::string::npos);
}

TEST_F(Printing, what_the_printer_draws_is_written_with_the_time_of_the_run) {
  program(
      "for a; do case $a in --print-to-pdf=*) printf '%%PDF-1.4 /ModDate (D:20261123140643) %%%%EOF' > ${a#*=};; "
      "esac; done");
  ASSERT_FALSE(print());
  EXPECT_EQ(read_file((folder_ / "out.pdf").string()).value(), "%PDF-1.4 /ModDate (D:20260105063741) %%EOF");
}

TEST_F(Printing, the_head_has_verdict_run_and_digest_and_says_what_vouches) {
  const std::string page = render_printed(content_, {.word = "signature_not_checked", .signers = {}});
  EXPECT_NE(page.find("INCOMPLETE  run 5f0c3c1e"), std::string::npos);
  EXPECT_NE(page.find("SHA-256 of the verdict " + std::string(64, 'a')), std::string::npos);
  EXPECT_NE(page.find("SIGNATURE NOT CHECKED"), std::string::npos);
  EXPECT_EQ(page.find("var("), std::string::npos);
  EXPECT_NE(page.find("color: #fff; background: #9b1c1c;"), std::string::npos);
  const std::string named = render_printed(content_, {.word = "verified", .signers = {"buyer: Bo <b> of \"AG\""}});
  EXPECT_NE(named.find("signed by buyer: Bo \\00003cb\\00003e of \\000022AG\\000022"), std::string::npos);
}

}  // namespace
}  // namespace assay::page
