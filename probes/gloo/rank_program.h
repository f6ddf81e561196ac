// rank_program: the program of a rank, which the probe carries with it.
#pragma once

#include <string>

#include "probes/core/rendezvous_link.h"

namespace assay::gloo {

/// The program in sealed memory, which a child of this process can be started from while this object lives.
class RankFile {
 public:
  /// The kernel shows `name`. Throws std::system_error when it gives no such memory.
  explicit RankFile(const char* name);
  /// The path to execute; it names this process' descriptor, so it is of use in its children only.
  [[nodiscard]] std::string path() const;

 private:
  rendezvous::Descriptor file_;
};

}  // namespace assay::gloo
