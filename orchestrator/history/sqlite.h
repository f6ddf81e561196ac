// sqlite: statements of the SQLite library as values, its errors as exceptions of this room.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "orchestrator/history/history.h"
#include "probes/core/units.h"

struct sqlite3;
struct sqlite3_stmt;

namespace assay::history {

/// The longest wait for one row: sums over a year of a large fleet take seconds.
inline constexpr Seconds kLongestStep{300};

/// Thrown inside this room only; History turns it into a Failure.
struct Broken : std::runtime_error {
  Broken(Failure what) : std::runtime_error(what.error.what), failure(std::move(what)) {}
  Failure failure;
};

/// A file of others may hold anything: its schema is not trusted, triggers and views do not run, no extension is
/// loaded, and no step of a statement takes longer than `longest`.
class Database {
 public:
  /// Opens `path`. Throws Broken.
  Database(const std::string& path, bool write, bool create, Seconds longest = kLongestStep);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();
  /// Runs statements without results.
  void run(const char* sql) const;
  /// Throws what `code` means.
  [[noreturn]] void fail(int code) const;
  [[nodiscard]] std::int64_t last_id() const;
  [[nodiscard]] sqlite3* handle() const { return handle_; }
  /// From now on the time of one step counts.
  void begin_step() const;

 private:
  static int is_late(void* database);
  void defend();
  std::string path_;
  sqlite3* handle_ = nullptr;
  Seconds longest_;
  mutable std::chrono::steady_clock::time_point end_;  ///< of the step
};

/// One prepared statement. Values are bound in order.
class Statement {
 public:
  Statement(const Database& database, const char* sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();
  template <class... Values>
  Statement& with(const Values&... values) {
    begin();
    int at = 0;
    (bind(++at, values), ...);
    return *this;
  }
  /// The next row; false at the end.
  bool step();
  /// For statements without rows.
  void run() {
    while (step()) {
    }
  }
  [[nodiscard]] std::int64_t whole(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] bool empty(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::string bytes(int column) const;

 private:
  void begin();
  void bind(int at, std::int64_t value);
  void bind(int at, int value) { bind(at, std::int64_t{value}); }
  void bind(int at, bool value) { bind(at, std::int64_t{value}); }
  void bind(int at, std::uint32_t value) { bind(at, std::int64_t{value}); }
  void bind(int at, double value);
  void bind(int at, const std::optional<double>& value);
  void bind(int at, const std::string& value);
  void bind(int at, std::span<const std::byte> value);
  void bind(int at, std::string_view value) { bind(at, std::string(value)); }
  const Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

/// A transaction that is undone unless it was committed. It begins as the only writer.
class Transaction {
 public:
  explicit Transaction(const Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  const Database& database_;
  bool done_ = false;
};

}  // namespace assay::history
