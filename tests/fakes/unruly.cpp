// unruly MODE [ARGUMENT...]: a program that behaves as probes should not, for the tests of the agent. Arguments beyond
// the first are markers by which a test finds its processes.
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

void write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written <= 0) std::exit(3);
    done += static_cast<std::size_t>(written);
  }
}

[[noreturn]] void wait_for_ever() {
  while (true) pause();
}

/// A grandchild in a session of its own, whose parents are gone: what a daemon does.
void daemonise() {
  std::array<int, 2> ready = {-1, -1};
  if (pipe(ready.data()) != 0) std::exit(3);
  if (fork() != 0) {
    close(ready[1]);
    char byte = 0;
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR) {
    }
    return;
  }
  setsid();
  if (fork() != 0) _exit(0);
  (void)std::signal(SIGTERM, SIG_IGN);
  for (const int file : {0, 1, 2}) close(file);
  write_all(ready[1], "r");
  wait_for_ever();
}

int surroundings() {
  for (char** variable = environ; *variable != nullptr; ++variable) (void)std::printf("environment %s\n", *variable);
  std::array<char, PATH_MAX> path = {};
  (void)std::printf("cwd %s\n", getcwd(path.data(), path.size()));
  (void)std::printf("session leader %d\n", getsid(0) == getpid() ? 1 : 0);
  for (int file = 0; file < 256; ++file) {
    if (fcntl(file, F_GETFD) >= 0) (void)std::printf("open %d\n", file);
  }
  rlimit core = {};
  getrlimit(RLIMIT_CORE, &core);
  (void)std::printf("core %d\n", static_cast<int>(core.rlim_max));
  const int self = open("/proc/self/exe", O_WRONLY);
  (void)std::printf("writable %d\n", self >= 0 ? 1 : 0);
  std::FILE* left = std::fopen("left-over", "w");
  if (left != nullptr) (void)std::fclose(left);
  return 0;
}

/// Ends at SIGTERM, as a companion does.
[[noreturn]] void obey() {
  (void)std::signal(SIGTERM, [](int) {
    (void)!write(1, "end\n", 4);
    _exit(0);
  });
  write_all(1, "ready\n");
  wait_for_ever();
}

/// A tree, none of which obeys.
[[noreturn]] void fork_and_hang() {
  daemonise();
  (void)std::signal(SIGTERM, SIG_IGN);
  if (fork() == 0) wait_for_ever();
  write_all(1, "tree\n");
  wait_for_ever();
}

int junk() {
  std::string junk;
  for (int i = 0; i < 70000; ++i) junk += static_cast<char>(i * 7);
  write_all(1, junk);
  return 0;
}

[[noreturn]] void eat() {
  constexpr std::size_t kPiece = 32 << 20;
  std::vector<char*> pieces;
  for (int i = 0; i < 8; ++i) {
    pieces.push_back(static_cast<char*>(std::malloc(kPiece)));
    std::memset(pieces.back(), 1, kPiece);
  }
  wait_for_ever();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "say") {  // say TEXT CODE
    write_all(1, argv[2]);
    write_all(2, "log\n");
    return std::stoi(argv[3]);
  }
  if (mode == "surroundings") return surroundings();
  if (mode == "hang") {
    (void)std::signal(SIGTERM, SIG_IGN);
    write_all(1, "hanging\n");
    wait_for_ever();
  }
  if (mode == "obey") obey();
  if (mode == "crash") {
    (void)std::signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
  }
  if (mode == "flood") {
    while (true) write_all(1, std::string(1 << 16, 'x'));
  }
  if (mode == "flood-log") {
    for (int i = 0; i < 64; ++i) write_all(2, std::string(1 << 16, 'e'));
    return 0;
  }
  if (mode == "daemonise") {
    daemonise();
    write_all(1, "parent ends\n");
    return 0;
  }
  if (mode == "fork-and-hang") fork_and_hang();
  if (mode == "junk") return junk();
  if (mode == "eat") eat();
  if (mode == "burn") {
    volatile unsigned turns = 0;
    while (turns == 0) {
    }
  }
  return 2;
}
