// shard: writes the footer last, so that an interrupted write is not taken for a whole shard.
#include "workloads/storage/shared/shard.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>

namespace assay::cluster_storage {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87, kPrime2 = 0xc2b2ae3d27d4eb4f, kPrime3 = 0x165667b19e3779f9,
                        kPrime4 = 0x85ebca77c2b2ae63, kPrime5 = 0x27d4eb2f165667c5;
constexpr std::size_t kStripe = 32;

template <typename Word>
Word load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

constexpr std::uint64_t round_of(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

constexpr std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
}

std::uint64_t finish(std::uint64_t hash, std::span<const std::byte> tail) {
  while (tail.size() >= 8) {
    hash = std::rotl(hash ^ round_of(0, load<std::uint64_t>(tail.data())), 27) * kPrime1 + kPrime4;
    tail = tail.subspan(8);
  }
  if (tail.size() >= 4) {
    hash = std::rotl(hash ^ load<std::uint32_t>(tail.data()) * kPrime1, 23) * kPrime2 + kPrime3;
    tail = tail.subspan(4);
  }
  for (const std::byte byte : tail)
    hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(byte) * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

constexpr std::array<char, 16> kMagic = {'a', 's', 's', 'a', 'y', '.', 's', 'h', 'a', 'r', 'd', '/', '2', '\n', 0, 0};
constexpr std::size_t kFields = 5;

/// The first bytes of a footer block; the rest is zero up to the block's own hash.
struct FooterLayout {
  std::array<char, 16> magic;
  std::array<std::uint64_t, kFields> fields;  // rank, step, size, checksum, nonce
};
static_assert(sizeof(FooterLayout) == 56);

constexpr std::size_t kHashed = kDirectBlock - sizeof(std::uint64_t);

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.value();
}

std::unexpected<InputError> refuse(const std::string& where, std::string what) {
  return std::unexpected(InputError{
      .where = where, .what = std::move(what), .hint = "the shard is torn or damaged; it is no part of a checkpoint"});
}

}  // namespace

void Checksum::add(std::span<const std::byte> bytes) {
  if (tail_size_ != 0) throw std::logic_error("checksum: only the last part may end within a stripe of 32 bytes");
  total_ += bytes.size();
  auto lanes = lanes_;  // a local copy stays in registers
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = round_of(lanes[lane], load<std::uint64_t>(bytes.data() + lane * 8));
    }
  }
  lanes_ = lanes;
  tail_size_ = bytes.size();
  std::memcpy(tail_.data(), bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const {
  std::uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  return finish(hash + total_, std::span(tail_).first(tail_size_));
}

void write_footer(const ShardFooter& footer, std::span<std::byte, kDirectBlock> block) {
  const FooterLayout layout{
      .magic = kMagic, .fields = {footer.key.rank, footer.key.step, footer.size, footer.checksum, footer.key.nonce}};
  std::ranges::fill(block, std::byte{0});
  std::memcpy(block.data(), &layout, sizeof layout);
  const std::uint64_t hash = hash_of(block.first(kHashed));
  std::memcpy(block.data() + kHashed, &hash, sizeof hash);
}

std::expected<ShardFooter, InputError> read_footer(std::span<const std::byte, kDirectBlock> block,
                                                   const std::string& where) {
  FooterLayout layout;
  std::memcpy(&layout, block.data(), sizeof layout);
  if (layout.magic != kMagic) return refuse(where, "its last block is no shard footer");
  std::uint64_t hash = 0;
  std::memcpy(&hash, block.data() + kHashed, sizeof hash);
  if (hash != hash_of(block.first(kHashed))) return refuse(where, "its footer does not have the hash that it states");
  return ShardFooter{.key = {.rank = layout.fields[0], .step = layout.fields[1], .nonce = layout.fields[4]},
                     .size = layout.fields[2],
                     .checksum = layout.fields[3]};
}

std::string shard_name(std::uint64_t rank) { return fmt::format("shard-{:04}", rank); }

void save_shard(const std::string& directory, const PayloadKey& key, std::span<const std::byte> payload,
                const ChunkPlan& plan) {
  const std::string path = directory + "/" + shard_name(key.rank);
  const std::string temporary = path + ".tmp";
  const DirectMemory block(kDirectBlock);
  auto file = DirectFile::make(temporary, payload.size() + kDirectBlock, plan);
  Checksum checksum;
  file.write(payload, [&](std::span<const std::byte> chunk) { checksum.add(chunk); });
  write_footer({.key = key, .size = payload.size(), .checksum = checksum.value()}, block.bytes().first<kDirectBlock>());
  file.write_at(block.bytes(), payload.size());
  file.sync();
  std::filesystem::rename(temporary, path);
}

std::expected<ShardFooter, InputError> load_shard(const std::string& directory, const PayloadKey& key,
                                                  std::span<std::byte> payload, const ChunkPlan& plan) {
  const std::string path = directory + "/" + shard_name(key.rank);
  if (!std::filesystem::exists(path)) return refuse(path, "is not there");
  auto file = DirectFile::open_to_read(path, plan);
  const std::uint64_t whole = payload.size() + kDirectBlock;
  if (file.size() != whole) return refuse(path, fmt::format("is {} B long, not {}", file.size(), whole));
  const DirectMemory block(kDirectBlock);
  // The footer comes with the payload: on its own it would cost each file a round trip in which nothing else is read.
  file.read(payload, block.bytes());
  const auto footer = read_footer(block.bytes().first<kDirectBlock>(), path);
  if (!footer) return footer;
  if (footer->key.nonce != key.nonce) return refuse(path, "is of another run");
  if (footer->key.rank != key.rank || footer->key.step != key.step || footer->size != payload.size()) {
    return refuse(path, fmt::format("is rank {} of step {} with {} B, not rank {} of step {}", footer->key.rank,
                                    footer->key.step, footer->size, key.rank, key.step));
  }
  return footer;
}

std::uint64_t shard_mismatches(const ShardFooter& footer, std::span<const std::byte> payload) {
  return payload_mismatches(footer.key, 0, payload) + (hash_of(payload) == footer.checksum ? 0U : 1U);
}

}  // namespace assay::cluster_storage
