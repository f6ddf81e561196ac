// make_run: writes the fixture's run to a folder, for end-to-end tests of assay-report.
#include <cstring>

#include "tests/unit/run_fixture.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  assay::fixture::make_run(
      argv[2], std::strcmp(argv[1], "mixed") == 0 ? assay::fixture::Kind::mixed : assay::fixture::Kind::accepted);
  return 0;
}
