// make_run: writes the fixture's run to a folder, for end-to-end tests of assay-report.
#include <cstring>
#include <utility>

#include "tests/unit/run_fixture.h"

int main(int argc, char** argv) {
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
