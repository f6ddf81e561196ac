// fake_rank BEHAVIOUR: a child that answers over its pipes as told, or fails in each way that a rank can.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include <unistd.h>

int main(int argc, char** argv) {
  const std::string behaviour = argc > 1 ? argv[1] : "echo";
  const char* const told = std::getenv("FAKE_RANK");
  if (behaviour == "deaf") ::pause();
  for (std::string line; std::getline(std::cin, line);) {
    if (behaviour == "exit") return 3;
    if (behaviour == "crash") (void)std::raise(SIGKILL);
    if (behaviour == "close") {
      ::close(STDOUT_FILENO);
      ::pause();
    }
    if (behaviour == "hang") ::pause();
    if (behaviour == "freeze") (void)std::raise(SIGSTOP);
    if (behaviour == "flood") {
      for (const std::string words(4096, 'x'); std::cout << words;) {
      }
    }
    std::cout << line << " from " << (told != nullptr ? told : "nobody") << std::endl;
  }
  if (behaviour == "freeze_at_end") (void)std::raise(SIGSTOP);
  if (behaviour == "stay") ::pause();
  return 0;
}
