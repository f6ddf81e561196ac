// Bytes that are put aside come back as they were, from memory and from disk, and a disk that takes none costs none.
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orchestrator/files/spilled_bytes.h"

namespace assay::files::spilled_bytes_test {
namespace {

constexpr std::uint64_t kMuch = 1'000'000;

/// A piece of its own, of 1 to 97 bytes.
std::string piece(std::size_t i) {
  std::string text = std::to_string(i);
  while (text.size() < i % 97 + 1) text += text;
  return text.substr(0, i % 97 + 1);
}

TEST(SpilledBytes, every_piece_comes_back_whether_it_is_in_memory_or_on_disk) {
  for (const std::size_t in_memory : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{kMuch}}) {
    SpilledBytes bytes(in_memory, kMuch);
    std::vector<std::uint64_t> places;
    for (std::size_t i = 0; i < 1000; ++i) {
      const auto place = bytes.add(piece(i));
      ASSERT_TRUE(place);
      places.push_back(*place);
      ASSERT_EQ(bytes.read(places[i / 2], piece(i / 2).size()), piece(i / 2)) << in_memory << " B in memory, " << i;
    }
    for (std::size_t i = 0; i < places.size(); ++i)
      EXPECT_EQ(bytes.read(places[i], piece(i).size()), piece(i)) << in_memory << " B in memory, " << i;
    EXPECT_FALSE(bytes.is_full());
  }
}

TEST(SpilledBytes, threads_add_and_read_at_the_same_time) {
  SpilledBytes bytes(100, kMuch);
  std::vector<std::size_t> wrong(3);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < wrong.size(); ++thread) {
    threads.emplace_back([&bytes, &mine = wrong[thread], thread] {
      std::vector<std::pair<std::uint64_t, std::string>> added;
      for (std::size_t i = 0; i < 500; ++i) {
        const std::string own = piece(1000 * thread + i);
        added.emplace_back(bytes.add(own).value(), own);
        const auto& [place, text] = added[i / 2];
        mine += bytes.read(place, text.size()) == text ? 0U : 1U;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<std::size_t>(3));
}

TEST(SpilledBytes, without_room_the_pieces_before_stay_and_none_is_taken_any_more) {
  const struct {
    std::size_t in_memory;
    std::uint64_t most;
    const char* folder;
  } cases[] = {{.in_memory = 10, .most = kMuch, .folder = "/nowhere/at/all"},  // the file cannot be made
               {.in_memory = kMuch, .most = 10, .folder = ""},
               {.in_memory = 4, .most = 10, .folder = ""}};
  for (const auto& one : cases) {
    SpilledBytes bytes(one.in_memory, one.most, one.folder);
    const auto first = bytes.add("1234"), second = bytes.add("567890");
    ASSERT_TRUE(first && second);
    EXPECT_FALSE(bytes.is_full());
    EXPECT_FALSE(bytes.add("a"));
    EXPECT_FALSE(bytes.add(""));
    EXPECT_TRUE(bytes.is_full());
    EXPECT_EQ(bytes.read(*first, 4), "1234");
    EXPECT_EQ(bytes.read(*second, 6), "567890");
  }
}

}  // namespace
}  // namespace assay::files::spilled_bytes_test
