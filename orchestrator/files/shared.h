// shared: a list or map that many have in common, kept once.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace assay::files {

/// A list, or another container, that does not change. Copies share it.
template <class List>
class Shared {
 public:
  Shared() = default;
  Shared(List list)  // NOLINT(google-explicit-constructor): it is the same list
      : list_(list.empty() ? nullptr : std::make_shared<const List>(std::move(list))) {}

  [[nodiscard]] const List& list() const {
    static const List kNone;
    return list_ == nullptr ? kNone : *list_;
  }
  operator const List&() const { return list(); }  // NOLINT(google-explicit-constructor): likewise
  [[nodiscard]] auto begin() const { return list().begin(); }
  [[nodiscard]] auto end() const { return list().end(); }
  [[nodiscard]] std::size_t size() const { return list().size(); }
  [[nodiscard]] bool empty() const { return list_ == nullptr; }
  [[nodiscard]] const auto& operator[](std::size_t i) const { return list()[i]; }
  [[nodiscard]] auto find(const auto& key) const { return list().find(key); }
  [[nodiscard]] const auto& at(const auto& key) const { return list().at(key); }

  friend bool operator==(const Shared& a, const Shared& b) { return a.list_ == b.list_ || a.list() == b.list(); }

 private:
  std::shared_ptr<const List> list_;  ///< none: empty
};

}  // namespace assay::files
