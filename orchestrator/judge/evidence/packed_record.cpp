// packed_record: whole numbers in as many groups of seven bits as they need, doubles as in memory, texts and lists
// behind their lengths. One list of members serves both directions.
#include "orchestrator/judge/evidence/packed_record.h"

#include <concepts>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "probes/core/fields.h"

namespace assay::judge {
namespace {

constexpr unsigned kBits = 7;  // of a whole number in one byte; the eighth says that more follow
constexpr unsigned char kMore = 1U << kBits;

/// The members of a type of the record, in the order of their declarations.
template <class Io, Of<Subject> S>
void members(Io& io, S& subject) {
  io(subject.kind), io(subject.id);
}
template <class Io, Of<Measurement> M>
void members(Io& io, M& one) {
  io(one.metric), io(one.unit), io(one.subject), io(one.at), io(one.samples), io(one.warmup), io(one.stopped);
}
template <class Io, Of<Condition> C>
void members(Io& io, C& one) {
  io(one.name), io(one.subject), io(one.value);
}
template <class Io, Of<TimedRecord> T>
void members(Io& io, T& timed) {
  auto& [record, times] = timed;
  io(times.first), io(times.last);
  io(record.start.probe), io(record.start.revision), io(record.start.parameters), io(record.start.rank);
  io(record.start.world), io(record.start.host);
  io(record.measurements), io(record.conditions), io(record.notes);
  io(record.end.status), io(record.end.reason), io(record.sorted);
}

class Packer {
 public:
  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void operator()(const T& value) {
    auto rest = static_cast<std::uint64_t>(value);
    for (; rest >= kMore; rest >>= kBits) bytes_ += static_cast<char>(rest | kMore);
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
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void operator()(T& value) {
    std::uint64_t whole = 0;
    for (unsigned shift = 0;; shift += kBits) {
      const auto byte = static_cast<unsigned char>(cut(1).front());
      whole |= std::uint64_t{byte & (kMore - 1U)} << shift;
      if (byte < kMore) break;
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

}  // namespace

std::string packed(const TimedRecord& timed) {
  Packer packer;
  packer(timed);
  std::string bytes = packer.take();
  bytes.shrink_to_fit();
  return bytes;
}

TimedRecord unpacked(std::string_view bytes) {
  TimedRecord timed;
  Unpacker{bytes}(timed);
  return timed;
}

}  // namespace assay::judge
