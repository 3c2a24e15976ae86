#include "store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace cloister::store {
namespace {

// The disk takes no more bytes: full, or a quota or limit was hit. What was stored stays whole.
bool no_room(sqlite3* database) {
    const int code = sqlite3_extended_errcode(database);
    return (code & 0xFF) == SQLITE_FULL || code == SQLITE_IOERR_WRITE ||
           code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_TRUNCATE;
}

Error failure_of(sqlite3* database, std::string_view what) {
    if (no_room(database)) {
        return make_error(ErrorKind::Unavailable,
                          "the disk that holds the data directory is full: free some space there, "
                          "then try again");
    }
    const int code = sqlite3_errcode(database) & 0xFF;
    const bool passes = code == SQLITE_BUSY || code == SQLITE_NOMEM;
    return make_error(passes ? ErrorKind::Unavailable : ErrorKind::Internal,
                      fmt::format("the database: {}: {}", what, sqlite3_errmsg(database)));
}

}  // namespace

Rows::~Rows() {
    if (statement_ == nullptr) return;
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
}

Result<bool> Rows::next() {
    const int status = sqlite3_step(statement_);
    if (status == SQLITE_ROW) return true;
    if (status == SQLITE_DONE) return false;
    return failure_of(database_, sqlite3_sql(statement_));
}

std::string Rows::text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return bytes == nullptr ? std::string() : std::string(bytes, size);
}

int64_t Rows::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::optional<int64_t> Rows::maybe_integer(int column) const {
    if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
    return integer(column);
}

void Database::Close::operator()(sqlite3* database) const {
    sqlite3_close_v2(database);
}
void Database::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Result<Database> Database::open(const std::string& path) {
    sqlite3* raw = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int status = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
    Database database(raw);  // SQLite gives a handle also when it fails
    if (status != SQLITE_OK) return database.failure("opening " + path);
    return database;
}

Result<sqlite3_stmt*> Database::prepared(Sql sql) {
    auto& slot = statements_[sql.text()];
    if (!slot) {
        sqlite3_stmt* raw = nullptr;
        const int status = sqlite3_prepare_v3(database_.get(), sql.text(), -1,
                                              SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
        if (status != SQLITE_OK) return failure(sql.text());
        slot.reset(raw);
    }
    return slot.get();
}

Result<void> Database::script(Sql sql) {
    if (sqlite3_exec(database_.get(), sql.text(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        return failure("running a script");
    }
    return {};
}

int64_t Database::changed_rows() const {
    return sqlite3_changes64(database_.get());
}

Error Database::failure(std::string_view what) const {
    return failure_of(database_.get(), what);
}

int Database::bind(sqlite3_stmt* statement, int index, std::string_view value) {
    const char* bytes =
        value.data() == nullptr ? "" : value.data();  // a null pointer would bind NULL
    return sqlite3_bind_text64(statement, index, bytes, value.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
}

int Database::bind(sqlite3_stmt* statement, int index, int64_t value) {
    return sqlite3_bind_int64(statement, index, value);
}

int Database::bind(sqlite3_stmt* statement, int index, const std::optional<int64_t>& value) {
    return value ? bind(statement, index, *value) : sqlite3_bind_null(statement, index);
}

}  // namespace cloister::store
