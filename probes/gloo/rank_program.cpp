// rank_program: carried as bytes, because a probe is one file and its ranks need a library that the probe must be able
// to miss.
#include "probes/gloo/rank_program.h"

#include <cerrno>
#include <span>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

asm(".section .rodata\n"
    ".global assay_rank_program_begin, assay_rank_program_end\n"
    "assay_rank_program_begin:\n"
    ".incbin \"" ASSAY_RANK_PROGRAM
    "\"\n"
    "assay_rank_program_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char assay_rank_program_begin[], assay_rank_program_end[];

namespace assay::gloo {

RankFile::RankFile(const char* name) : file_(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const char* const begin = assay_rank_program_begin;
  const std::span program(begin, static_cast<std::size_t>(assay_rank_program_end - begin));
  std::size_t done = 0;
  while (file_.number() >= 0 && done < program.size()) {
    const ssize_t written = write(file_.number(), program.data() + done, program.size() - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  if (done < program.size() ||
      fcntl(file_.number(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw std::system_error(errno, std::generic_category(), "the ranks' program cannot be put into memory");
  }
}

std::string RankFile::path() const { return fmt::format("/proc/self/fd/{}", file_.number()); }

}  // namespace assay::gloo
