// fake_fio: stands in for fio where a test needs one that misbehaves. FAKE_FIO names the misbehaviour.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr unsigned kEndOfHang_s = 60;  // a test that fails to kill leaves nothing behind for long

[[noreturn]] void hang() {
  alarm(kEndOfHang_s);
  while (true) pause();
}

/// Blocks until the test reads from the pipe that FAKE_FIO_READY names, so that the test knows we run.
void tell_ready() {
  if (const char* const pipe = std::getenv("FAKE_FIO_READY")) (void)close(open(pipe, O_WRONLY));
}

std::string value_of(const std::string& job, const std::string& name) {
  const auto begin = job.find("\n" + name + "=") + name.size() + 2;
  return job.substr(begin, job.find('\n', begin) - begin);
}

/// A whole result for the job file, as fio 3 writes it; with another bandwidth than that of its bytes when `bandwidth`
/// says so.
int answer(const std::string& output, double bandwidth = 1000) {
  std::ifstream file("job.fio");
  std::stringstream text;
  text << file.rdbuf();
  const std::string job = text.str();
  const std::string way = value_of(job, "rw").ends_with("read") ? "read" : "write";
  std::ofstream("data") << "fake";
  std::ofstream(output) << R"({"fio version":"fio-3.33","jobs":[{"error":0,"job options":{"direct":"1","ioengine":")"
                        << value_of(job, "ioengine") << R"("},")" << way << R"(":{"io_bytes":4096,"bw_bytes":)"
                        << bandwidth << R"(,"bw":0,"iops":2.5,"total_ios":1,"clat_ns":{"max":4000,)"
                        << R"("percentile":{"50.000000":1000,"99.000000":2000,"99.900000":3000}}}}]})";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const set = std::getenv("FAKE_FIO");
  const std::string mode = set == nullptr ? "" : set;
  if (argc == 2 && std::string(argv[1]) == "--version") {
    std::cout << (mode == "old" ? "fio-2.21\n" : "fio-3.33\n");
    return 0;
  }
  std::string output;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--output=")) output = argument.substr(9);
  }
  if (mode == "hang") {
    if (fork() == 0) hang();
    tell_ready();
    hang();
  }
  if (mode == "hang_alone") {
    tell_ready();
    hang();
  }
  if (mode == "garbage") {
    std::ofstream(output) << "Killed process 4711 { out of memory }\n";
    return 0;
  }
  if (mode == "nonzero") {
    std::cerr << "fio: data: Input/output error\n";
    return 1;
  }
  if (mode == "no_io_uring") {
    std::ifstream file("job.fio");
    for (std::string line; std::getline(file, line);) {
      if (line != "ioengine=io_uring") continue;
      std::cerr << "fio: io_queue_init failed: Operation not permitted\n";
      return 1;
    }
    return answer(output);
  }
  if (mode == "whole") return answer(output);
  if (mode == "doctored") return answer(output, 100 * 4096 / 0.01);  // a hundred times what it moved in 10 ms
  std::cerr << "fake_fio: FAKE_FIO is not set to a mode\n";
  return 3;
}
