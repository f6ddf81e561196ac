// volatile_store: files in the memory of a server that says they are on its disk.
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

/// Contents by the path of the backing file; what was not flushed is gone with the process.
class VolatileStore {
 public:
  void write(const std::string& path, std::optional<std::size_t> offset, const std::string& bytes) {
    const std::scoped_lock lock(mutex_);
    std::string& content = held(path);
    const std::size_t at = offset.value_or(content.size());
    content.resize(std::max(content.size(), at + bytes.size()), '\0');
    content.replace(at, bytes.size(), bytes);
  }
  std::optional<std::string> read(const std::string& path, std::size_t offset, std::size_t size) {
    const std::scoped_lock lock(mutex_);
    const auto found = contents_.find(path);
    if (found == contents_.end()) return std::nullopt;
    return found->second.substr(std::min(offset, found->second.size()), size);
  }
  std::optional<std::size_t> size(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const auto found = contents_.find(path);
    return found == contents_.end() ? std::nullopt : std::optional(found->second.size());
  }
  void resize(const std::string& path, std::size_t size) {
    const std::scoped_lock lock(mutex_);
    held(path).resize(size, '\0');
  }
  void rename(const std::string& from, const std::string& to) {
    const std::scoped_lock lock(mutex_);
    if (auto moved = contents_.extract(from)) {
      moved.key() = to;
      contents_.erase(to);
      contents_.insert(std::move(moved));
    }
  }
  void remove(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    contents_.erase(path);
  }
  /// Writes all to the backing files.
  void flush() {
    const std::scoped_lock lock(mutex_);
    for (const auto& [path, content] : contents_) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);  // a file that is gone stays gone
      file.write(content.data(), static_cast<std::streamsize>(content.size()));
    }
  }

 private:
  std::string& held(const std::string& path) {
    const auto [place, is_new] = contents_.try_emplace(path);
    if (is_new) {
      std::ostringstream text;
      if (std::ifstream file(path, std::ios::binary); file.peek() != std::ifstream::traits_type::eof())
        text << file.rdbuf();
      place->second = std::move(text).str();
    }
    return place->second;
  }

  std::mutex mutex_;
  std::map<std::string, std::string> contents_;
};
