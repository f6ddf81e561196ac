// packing: values as few bytes one after another, from which they are made again much faster than they are read from
// JSON. Whole numbers have as many groups of seven bits as they need, doubles are as in memory, texts and lists follow
// their lengths. Each struct has one list of members for both directions, in this namespace:
//
//   template <class Io, Of<EvidenceFile> F>
//   void members(Io& io, F& file) {
//     io(file.path), io(file.sha256), io(file.bytes);
//   }
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "probes/core/fields.h"
#include "probes/core/record.h"

namespace assay::judge {

inline constexpr unsigned kPackedBits = 7;  // of a whole number in one byte; the eighth says that more follow
inline constexpr unsigned char kPackedMore = 1U << kPackedBits;

/// Packs its arguments.
class Packer {
 public:
  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void operator()(const T& value) {
    auto rest = static_cast<std::uint64_t>(value);
    for (; rest >= kPackedMore; rest >>= kPackedBits) bytes_ += static_cast<char>(rest | kPackedMore);
    bytes_ += static_cast<char>(rest);
  }
  void operator()(const double& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes_ += text;
  }
  void operator()(const Value& value) {
    (*this)(value.index());
    std::visit(*this, value);
  }
  void operator()(const Values& values) {
    (*this)(values.size());
    for (const auto& [name, value] : values) (*this)(name), (*this)(value);
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    (*this)(list.size());
    for (const auto& one : list) (*this)(one);
  }
  template <class T>
  requires requires(Packer& io, const T& one) { members(io, one); }
  void operator()(const T& one) { members(*this, one); }
  /// The bytes so far.
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Makes the values again, in their order. Throws std::logic_error when the bytes end before them.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void operator()(T& value) {
    std::uint64_t whole = 0;
    for (unsigned shift = 0;; shift += kPackedBits) {
      const auto byte = static_cast<unsigned char>(cut(1).front());
      whole |= std::uint64_t{byte & (kPackedMore - 1U)} << shift;
      if (byte < kPackedMore) break;
    }
    value = static_cast<T>(whole);
  }
  void operator()(double& value) { std::memcpy(&value, cut(sizeof value).data(), sizeof value); }
  void operator()(std::string& text) { text = cut(size()); }
  void operator()(Value& value) {
    constexpr std::size_t kFlag = 0, kWhole = 1, kReal = 2;
    switch (size()) {
      case kFlag:
        return (*this)(value.emplace<kFlag>());
      case kWhole:
        return (*this)(value.emplace<kWhole>());
      case kReal:
        return (*this)(value.emplace<kReal>());
      default:
        return (*this)(value.emplace<std::string>());
    }
  }
  void operator()(Values& values) {
    for (std::size_t left = size(); left > 0; --left) {
      std::string name;
      (*this)(name);
      (*this)(values.emplace_hint(values.end(), std::move(name), Value{})->second);
    }
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(size());
    for (auto& one : list) (*this)(one);
  }
  template <class T>
  requires requires(Unpacker& io, T& one) { members(io, one); }
  void operator()(T& one) { members(*this, one); }

 private:
  std::size_t size() {
    std::size_t value = 0;
    (*this)(value);
    return value;
  }
  std::string_view cut(std::size_t count) {
    if (count > rest_.size()) throw std::logic_error("a packed record is cut off");
    const auto front = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return front;
  }

  std::string_view rest_;
};

}  // namespace assay::judge
