// sqlite: thin wrappers; every code that is not success becomes an error with a hint.
#include "orchestrator/history/sqlite.h"
#include "orchestrator/files/exit_codes.h"

#include <sqlite3.h>

namespace assay::history {
namespace {

/// Makes the library copy bound values at once; a nullptr would promise that it stays.
sqlite3_destructor_type copied() {
  return reinterpret_cast<sqlite3_destructor_type>(-1);  // NOLINT(performance-no-int-to-ptr): SQLITE_TRANSIENT
}

constexpr int kPatience_ms = 5000;  // for another writer to end its transaction

Failure failure_of(const std::string& path, int code, const std::string& said) {
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {{path, "is damaged or no database: " + said,
               "keep it as it is, restore a copy, or add the runs to a new one with `assay history add`"},
              files::kExitRefused};
    case SQLITE_INTERRUPT:
      return {
          {path, "does not answer in time", "its contents or its disk are at fault: keep it as it is, restore a copy"},
          files::kExitRefused};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {{path, "another process writes to it", "one writer at a time: try again when it is done"},
              files::kExitBadInput};
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return {{path, "cannot be written: " + said, "nothing was changed; check the free space and the disk"},
              files::kExitBadInput};
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {{path, "cannot be opened: " + said, "check the path and its permissions"}, files::kExitBadInput};
    default:
      return {{path, said, "nothing was changed"}, files::kExitBadInput};
  }
}

}  // namespace

Database::Database(const std::string& path, bool write, bool create, Seconds longest) : path_(path), longest_(longest) {
  const int flags =
      (write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | (create ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOFOLLOW;
  const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) {
    const Failure failure = failure_of(path, code, sqlite3_errmsg(handle_));
    sqlite3_close(handle_);
    throw Broken(failure);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, kPatience_ms);
  defend();
}

void Database::defend() {
  const auto set = [this](int option, int value) { sqlite3_db_config(handle_, option, value, nullptr); };
  set(SQLITE_DBCONFIG_DEFENSIVE, 1);
  set(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
  set(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0);
  set(SQLITE_DBCONFIG_ENABLE_VIEW, 0);
  set(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0);
  set(SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0);
  // Far above what statements of this room need, far below what a schema can ask for.
  for (const auto& [limit, most] : {std::pair{SQLITE_LIMIT_SQL_LENGTH, 10'000},
                                    {SQLITE_LIMIT_COLUMN, 100},
                                    {SQLITE_LIMIT_EXPR_DEPTH, 50},
                                    {SQLITE_LIMIT_COMPOUND_SELECT, 5},
                                    {SQLITE_LIMIT_ATTACHED, 0},
                                    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                    {SQLITE_LIMIT_FUNCTION_ARG, 10},
                                    {SQLITE_LIMIT_VARIABLE_NUMBER, 50},
                                    {SQLITE_LIMIT_WORKER_THREADS, 0}})
    sqlite3_limit(handle_, limit, most);
  constexpr int kInstructions = 100'000;  // of its machine, a few milliseconds
  begin_step();
  sqlite3_progress_handler(handle_, kInstructions, is_late, this);
  run("PRAGMA cell_size_check=ON");
}

void Database::begin_step() const {
  end_ = std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(longest_.count));
}

int Database::is_late(void* database) {
  return std::chrono::steady_clock::now() > static_cast<const Database*>(database)->end_ ? 1 : 0;
}

Database::~Database() { sqlite3_close(handle_); }

void Database::fail(int code) const { throw Broken(failure_of(path_, code, sqlite3_errmsg(handle_))); }

void Database::run(const char* sql) const {
  begin_step();
  if (const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr); code != SQLITE_OK) fail(code);
}

std::int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_); }

Statement::Statement(const Database& database, const char* sql) : database_(database) {
  database.begin_step();
  if (const int code = sqlite3_prepare_v2(database.handle(), sql, -1, &handle_, nullptr); code != SQLITE_OK)
    database.fail(code);
}

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::begin() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

bool Statement::step() {
  database_.begin_step();
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail(code);
  return false;
}

void Statement::bind(int at, std::int64_t value) { sqlite3_bind_int64(handle_, at, value); }
void Statement::bind(int at, double value) { sqlite3_bind_double(handle_, at, value); }
void Statement::bind(int at, const std::optional<double>& value) {
  if (value) sqlite3_bind_double(handle_, at, *value);
}
void Statement::bind(int at, const std::string& value) {
  sqlite3_bind_text64(handle_, at, value.data(), value.size(), copied(), SQLITE_UTF8);
}
void Statement::bind(int at, std::span<const std::byte> value) {
  sqlite3_bind_blob64(handle_, at, value.data(), value.size(), copied());
}

std::int64_t Statement::whole(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::number(int column) const { return sqlite3_column_double(handle_, column); }
bool Statement::empty(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
std::string Statement::text(int column) const { return bytes(column); }
std::string Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(handle_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

Transaction::~Transaction() {
  if (!done_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  done_ = true;
}

}  // namespace assay::history
