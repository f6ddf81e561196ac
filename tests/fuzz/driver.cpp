// driver: feeds a fuzz target a fixed number of mutated seeds. The targets have libFuzzer's entry point, so that
// clang's coverage-guided engine can drive them as well; this driver needs no compiler but ours and is the same every
// time. usage: <target> SEED_DIRECTORY COUNT, or a time such as 20s for COUNT; the input in work stands in
// <target>.last, whatever kills the process.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

constexpr std::size_t kLongest = 1 << 20;

/// What breaks parsers: brackets, escapes, numbers at the edge, bad UTF-8, words of our formats.
const std::string kTokens[] = {"{",
                               "}",
                               "[",
                               "]",
                               "\"",
                               ":",
                               ",",
                               "null",
                               "true",
                               "-0",
                               "1e999",
                               "1e-999",
                               "9223372036854775808",
                               "-9223372036854775809",
                               "NaN",
                               "\\u0000",
                               "\\ud800",
                               "\xff",
                               "\xc0\x80",
                               "\xef\xbb\xbf",
                               std::string(1, '\0'),
                               "\n",
                               "\r",
                               "..",
                               "/",
                               "schema",
                               "sequence",
                               "samples",
                               "subject",
                               "end",
                               "limit",
                               "at_least",
                               "payload",
                               "sig",
                               std::string(40, '['),
                               std::string(300, 'A')};

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  std::string next() {
    std::string input = seeds_[below(seeds_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input);
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void change(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(input.size() - at, 64) + 1);
    switch (below(7)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 1:
        input.insert(at, kTokens[below(std::size(kTokens))]);
        break;
      case 2:
        input.erase(at, length);
        break;
      case 3:
        input.insert(below(input.size() + 1), std::string(input, at, length));
        break;
      case 4:
        input.resize(at);
        break;
      case 5:
        input.replace(at, length, kTokens[below(std::size(kTokens))]);
        break;
      default: {
        const std::string& other = seeds_[below(seeds_.size())];
        input.replace(at, length, other, below(other.size() + 1), below(256));
      }
    }
  }

  std::vector<std::string> seeds_;
  std::mt19937_64 random_{20260101};  // fixed: the same inputs every time
};

/// A file that holds the current input even when the process dies in the middle.
class LastInput {
 public:
  explicit LastInput(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (file_ < 0 || ::ftruncate(file_, kLongest) != 0) throw std::runtime_error("cannot write " + path);
    memory_ = static_cast<char*>(::mmap(nullptr, kLongest, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    if (memory_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  }
  void hold(const std::string& input) { std::memcpy(memory_, input.data(), std::min(input.size(), kLongest)); }

 private:
  int file_;
  char* memory_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " SEED_DIRECTORY COUNT|SECONDSs\n";
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (seeds.empty()) {
    std::cerr << argv[1] << " has no seeds\n";
    return 2;
  }
  LastInput last(std::string(argv[0]) + ".last");
  const auto feed = [&](const std::string& input) {
    last.hold(input);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  };
  for (const auto& seed : seeds) feed(seed);
  Mutator mutator(seeds);
  const long number = std::stol(argv[2]);
  const bool timed = std::string(argv[2]).ends_with('s');
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(number);
  long count = 0;
  for (; timed ? std::chrono::steady_clock::now() < end : count < number; ++count) feed(mutator.next());
  std::cout << seeds.size() << " seeds and " << count << " mutations survived\n";
}
