// A thin wrapper of SQLite: statements that reset themselves, text of statements that cannot come
// from a client.
//
//     Database db = TRY(Database::open(path));
//     TRY_OK(db.run("UPDATE keys SET name = ? WHERE id = ?", name, id));
//     Rows rows = TRY(db.query("SELECT id, created_ms FROM keys WHERE project = ?", project));
//     while (TRY(rows.next())) use(rows.text(0), rows.integer(1));
//
// Statements are prepared once and kept. Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace cloister::store {

// The text of a statement: a literal of the source, never something that was put together at run
// time.
class Sql {
  public:
    consteval Sql(const char* literal) : text_(literal) {}
    const char* text() const { return text_; }

  private:
    const char* text_;
};

// The rows of one query. While it lives no other query with the same text may run.
class Rows {
  public:
    Rows(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
    Rows(Rows&& other) noexcept
        : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}
    Rows& operator=(Rows&&) = delete;
    ~Rows();

    Result<bool> next();  // false behind the last row
    std::string text(int column) const;
    int64_t integer(int column) const;
    std::optional<int64_t> maybe_integer(int column) const;  // nullopt for NULL

  private:
    sqlite3* database_;
    sqlite3_stmt* statement_;
};

class Database {
  public:
    static Result<Database> open(const std::string& path);
    Database(Database&&) noexcept = default;
    Database& operator=(Database&&) noexcept = default;
    ~Database() = default;

    template <class... Values>
    Result<Rows> query(Sql sql, const Values&... values) {
        sqlite3_stmt* statement = TRY(prepared(sql));
        Rows rows(database_.get(), statement);
        int index = 0;
        for (const int status : {0, bind(statement, ++index, values)...}) {
            if (status != 0) return failure("binding a value");
        }
        return rows;
    }
    template <class... Values>
    Result<void> run(Sql sql, const Values&... values) {
        Rows rows = TRY(query(sql, values...));
        while (TRY(rows.next())) {
        }
        return {};
    }
    // Several statements at once, without values: for the schema.
    Result<void> script(Sql sql);
    int64_t changed_rows() const;  // by the last run()

  private:
    struct Close {
        void operator()(sqlite3* database) const;
    };
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };

    explicit Database(sqlite3* database) : database_(database) {}
    Result<sqlite3_stmt*> prepared(Sql sql);
    Error failure(std::string_view what) const;
    static int bind(sqlite3_stmt* statement, int index, std::string_view value);
    static int bind(sqlite3_stmt* statement, int index, int64_t value);
    static int bind(sqlite3_stmt* statement, int index, const std::optional<int64_t>& value);

    std::unique_ptr<sqlite3, Close> database_;
    // By the address of the literal. Declared after the database: statements go first.
    std::unordered_map<const char*, std::unique_ptr<sqlite3_stmt, Finalize>> statements_;
};

}  // namespace cloister::store
