// shared_list: a list that many results of a fleet have in common, kept once.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace assay::judge {

/// A list that does not change. Copies share it.
template <class T>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::vector<T> list)  // NOLINT(google-explicit-constructor): it is the same list
      : list_(list.empty() ? nullptr : std::make_shared<const std::vector<T>>(std::move(list))) {}

  [[nodiscard]] const std::vector<T>& list() const {
    static const std::vector<T> kNone;
    return list_ == nullptr ? kNone : *list_;
  }
  [[nodiscard]] auto begin() const { return list().begin(); }
  [[nodiscard]] auto end() const { return list().end(); }
  [[nodiscard]] std::size_t size() const { return list().size(); }
  [[nodiscard]] bool empty() const { return list_ == nullptr; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return list()[i]; }

  friend bool operator==(const SharedList& a, const SharedList& b) {
    return a.list_ == b.list_ || a.list() == b.list();
  }

 private:
  std::shared_ptr<const std::vector<T>> list_;  ///< none: empty
};

}  // namespace assay::judge
