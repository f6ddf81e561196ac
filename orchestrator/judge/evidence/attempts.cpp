// attempts: an attempt is packed behind a hash of its bytes, so that damage on disk becomes no verdict.
#include "orchestrator/judge/evidence/attempts.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <system_error>

#include "orchestrator/judge/evidence/packing.h"

namespace assay::judge {

template <class Io, Of<EvidenceFile> F>
void members(Io& io, F& file) {
  io(file.path), io(file.sha256), io(file.bytes);
}
template <class Io, Of<Attempt> A>
void members(Io& io, A& one) {
  io(one.step), io(one.number), io(one.node), io(one.outcome), io(one.reason), io(one.begin), io(one.end);
  io(one.jumped_s), io(one.evidence), io(one.nodes), io(one.purpose), io(one.second_stage), io(one.asked);
}

namespace {

constexpr std::size_t kInMemory = std::size_t{64} << 10;  // bytes of the latest; small, because every part has some
constexpr std::uint64_t kMostBytes = std::uint64_t{32} << 30;
constexpr std::size_t kBlock = std::size_t{64} << 10;  // bytes that an iterator reads at once

std::uint64_t hash_of_bytes(std::string_view bytes) { return std::hash<std::string_view>{}(bytes); }

std::string packed(const Attempt& one) {
  Packer packer;
  packer(one);
  const std::string bytes = packer.take();
  const std::uint64_t hash = hash_of_bytes(bytes);
  return std::string(reinterpret_cast<const char*>(&hash), sizeof hash) + bytes;
}

Attempt unpacked_attempt(std::string_view bytes) {
  std::uint64_t hash = 0;
  if (bytes.size() < sizeof hash) throw std::system_error(EIO, std::generic_category(), "attempts put aside");
  std::memcpy(&hash, bytes.data(), sizeof hash);
  bytes.remove_prefix(sizeof hash);
  if (hash_of_bytes(bytes) != hash) throw std::system_error(EIO, std::generic_category(), "attempts put aside");
  Attempt one;
  Unpacker{bytes}(one);
  return one;
}

}  // namespace

std::uint32_t Attempts::hash_of(std::string_view step) { return static_cast<std::uint32_t>(hash_of_bytes(step)); }

Attempts::Place Attempts::keep(const Attempt& one) {
  if (bytes_ == nullptr) bytes_ = std::make_shared<files::SpilledBytes>(kInMemory, kMostBytes);
  std::string piece = packed(one);
  Place place{.size = static_cast<std::uint32_t>(piece.size()), .step = hash_of(one.step)};
  if (const auto begin = bytes_->add(piece)) {
    place.begin = *begin;
  } else {
    place.begin = kBeside + beside_.size();
    beside_.push_back(std::move(piece));
  }
  return place;
}

const Attempt Attempts::operator[](std::size_t i) const {
  const Place& place = places_.at(i);
  if (place.begin >= kBeside) return unpacked_attempt(beside_[place.begin - kBeside]);
  return unpacked_attempt(bytes_->read(place.begin, place.size).value_or(""));
}

void Attempts::add_if_of(std::string_view step, std::size_t number, std::vector<Attempt>& found) const {
  if (Attempt one = (*this)[number]; one.step == step) found.push_back(std::move(one));
}

std::vector<Attempt> Attempts::of(std::string_view step) const {
  std::vector<Attempt> found;
  const std::uint32_t hash = hash_of(step);
  for (std::size_t i = 0; i < size(); ++i) {
    if (places_[i].step == hash) add_if_of(step, i, found);
  }
  return found;
}

void Attempts::Iterator::read() {
  if (at_ >= all_->size()) return;
  const Place first = all_->places_[at_];
  if (first.begin >= kBeside) {
    one_ = (*all_)[at_];
    return;
  }
  if (first.begin < begin_ || first.begin + first.size > begin_ + block_.size()) {
    std::uint64_t end = first.begin + first.size;
    for (std::size_t i = at_ + 1; i < all_->size(); ++i) {
      const Place& next = all_->places_[i];
      if (next.begin < first.begin || next.begin + next.size > first.begin + kBlock) break;
      end = std::max(end, next.begin + next.size);
    }
    begin_ = first.begin;
    block_ = all_->bytes_->read(begin_, end - begin_).value_or("");
  }
  // A block that ends in memory and begins on disk is not read at once.
  one_ = first.begin + first.size > begin_ + block_.size()
             ? (*all_)[at_]
             : unpacked_attempt(std::string_view(block_).substr(first.begin - begin_, first.size));
}

AttemptsByStep::AttemptsByStep(const Attempts& all) : all_(&all) {
  order_.reserve(all.size());
  for (const auto& place : all.places_) order_.emplace_back(place.step, static_cast<std::uint32_t>(order_.size()));
  std::ranges::sort(order_);
}

std::vector<Attempt> AttemptsByStep::of(std::string_view step) const {
  std::vector<Attempt> found;
  const auto mine =
      std::ranges::equal_range(order_, Attempts::hash_of(step), {}, [](const auto& one) { return one.first; });
  for (const auto& [hash, number] : mine) all_->add_if_of(step, number, found);
  return found;
}

}  // namespace assay::judge
