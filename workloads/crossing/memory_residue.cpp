// memory_residue: whether memory that one process gave back still has its content for the next, as for tenants of one
// machine after each other.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>

#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous_door.h"
#include "workloads/crossing/left_memory.h"

namespace assay::crossing {
namespace {

constexpr Parameter kParameters[] = {
    choice("memory", "host", "host gpu",
           "host: anonymous pages, tmpfs, and huge pages where some are free; gpu: of every GPU"),
    choice("phase", "both", "both leave look",
           "leave: fill memory with the mark and end, as the tenant that goes; look: search fresh memory, as the one "
           "that comes; both: one process after the other"),
    parameter("mark", "", "", "leave, look: words from which the content follows, the same in both"),
    parameter("size", "B", "256MiB", "of each kind; 0B: of a GPU all that is to be had", "16MiB"),
};
constexpr Metric kMetrics[] = {
    fault("residue_pages",
          "pieces of 4 KiB of fresh memory that were not zero (host), or held the mark (gpu), by kind of memory",
          Recorded::if_asked),
    neither("memory_searched", "B", "fresh memory that was searched, by kind", Recorded::if_asked),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "own_mark",
     .meaning = "seen where the process that wrote found its mark in all of its memory while it held it: the positive "
                "control; unseen, or not written by this run (phase=look)"},
};
constexpr ProbeSpec kSpec{
    .name = "memory_residue",
    .measures = "Whether fresh memory of a node still has the content that another process left.",
    .method =
        "One process allocates memory, fills it with 32 bytes that follow from a mark, reads all of it back, which is "
        "the positive control, gives it back and ends. Then another allocates memory and reads all of it: of the host "
        "every page must be zero, after one zero was written into it so that it is no shared page; of a GPU none may "
        "hold the mark. Only the process's own allocations "
        "are read and written. With phase=leave and phase=look the two are runs of two tenants, before and after a "
        "node changes hands. Pages that others hold are not seen: nothing found is no proof.",
    .source =
        "mmap(2), memfd_create(2) of the Linux manual pages; CUDA Driver API, cuMemAlloc, which does not promise "
        "cleared memory.",
    .needs = "gpu: NVIDIA driver.",
    .typical = {5},
    .deadline = {600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

void with_memory(const Parameters& given, const std::function<void(FreshMemory&)>& use) {
  const Bytes size = given.bytes("size");
  if (given.text("memory") == "gpu") return with_gpu_memory(size, use);
  if (size.count == 0) throw BadParameter("size: 0 B of the host are nothing to search");
  with_host_memory(size, use);
}

/// Whether every page that was written was found while it was held.
bool leave(const Parameters& given, const std::string& mark) {
  const auto page = page_of(mark);
  bool all = true;
  with_memory(given, [&](FreshMemory& memory) {
    fill(memory, page);
    all = all && pages_with(memory, page) == memory.size / kPage;
  });
  return all;
}

/// The same in a process of its own, whose memory goes back when it ends. Its failure is this one's.
bool leave_in_another(const Parameters& given, const std::string& mark) {
  constexpr int kSeen = 0, kUnseen = 3, kFailed = 4, kAbsent = 5;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process for the memory to be left by");
  if (child == 0) {
    int code = kFailed;
    try {
      code = leave(given, mark) ? kSeen : kUnseen;
    } catch (const Skip&) {
      code = kAbsent;  // this process finds the same, and says it
    } catch (const std::exception& error) {
      (void)fprintf(stderr, "the process that leaves memory: %s\n", error.what());
    }
    ::_exit(code);
  }
  constexpr std::chrono::milliseconds kLookForEnd{10};
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {  // the deadline of the run ends it with its group
    if (stop_requested()) {
      (void)::kill(child, SIGKILL);
      (void)::waitpid(child, &status, 0);
      throw std::runtime_error("stopped before the memory was left");
    }
    sleep_until_stopped(kLookForEnd);
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
  if (code == kFailed) throw std::runtime_error("the process that leaves memory failed; its words are on stderr");
  return code == kSeen;
}

void look(const Parameters& given, const std::string& mark, Recorder& record) {
  const auto page = page_of(mark);
  with_memory(given, [&](FreshMemory& memory) {
    const bool host = memory.subject.kind == "node";
    const std::uint64_t pages = host ? pages_not_zero(memory) : pages_with(memory, page);
    const Values at{{"kind", memory.kind}};
    record.measurement("residue_pages", static_cast<double>(pages), memory.subject, at);
    record.measurement("memory_searched", static_cast<double>(memory.size), memory.subject, at);
  });
}

void measure(const Parameters& given, Recorder& record) {
  const std::string phase = given.text("phase");
  std::string mark = given.text("mark");
  if ((phase == "both") != mark.empty())
    throw BadParameter("mark: goes with phase=leave and phase=look, and they need one");
  if (phase == "both") mark = rendezvous::fresh_nonce();
  // Of a GPU the driver is opened after the fork: a process that has opened it cannot leave it to another.
  const bool seen = phase == "both" ? leave_in_another(given, mark) : phase == "leave" && leave(given, mark);
  if (phase != "leave") look(given, mark, record);
  record.condition("own_mark", std::string(seen ? "seen" : "unseen"));
}

}  // namespace
}  // namespace assay::crossing

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::crossing::kSpec, assay::crossing::measure);
}
