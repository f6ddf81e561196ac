// make_run: writes the fixture's run to a folder, for end-to-end tests of assay-report.
#include <cstring>
#include <string>
#include <utility>

#include "tests/unit/run_fixture.h"

/// make_run KIND DIR, or make_run fleet DIR SITE RUN FIRST COUNT SERIALS LEVEL.
int main(int argc, char** argv) {
  if (argc == 9 && std::strcmp(argv[1], "fleet") == 0) {
    assay::fixture::make_fleet(argv[2], {.site = argv[3],
                                         .run_id = argv[4],
                                         .first = std::stoi(argv[5]),
                                         .count = std::stoi(argv[6]),
                                         .serials = argv[7],
                                         .level = std::stod(argv[8])});
    return 0;
  }
  if (argc != 3) return 2;
  using enum assay::fixture::Kind;
  for (const auto& [name, kind] :
       {std::pair("accepted", accepted), std::pair("mixed", mixed), std::pair("lookalike", lookalike),
        std::pair("known", known), std::pair("inventory", inventory)}) {
    if (std::strcmp(argv[1], name) != 0) continue;
    assay::fixture::make_run(argv[2], kind);
    return 0;
  }
  return 2;
}
