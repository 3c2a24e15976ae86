#include "store/sqlite_store.h"

#include "base/ids.h"
#include "store/migrations.h"

namespace cloister::store {
namespace {

SandboxRow sandbox_in(const Rows& rows) {
    return {.project = rows.text(0),
            .id = rows.text(1),
            .template_name = rows.text(2),
            .state = rows.text(3),
            .cpu = rows.integer(4),
            .memory_mb = rows.integer(5),
            .disk_mb = rows.integer(6),
            .idle_timeout_seconds = rows.integer(7),
            .metadata = rows.text(8),
            .created_ms = rows.integer(9),
            .env = rows.text(10),
            .one_run = rows.integer(11),
            .on_idle = rows.text(12),
            .on_deadline = rows.text(13),
            .deadline_ms = rows.integer(14),
            .paused_ms = rows.integer(15),
            .lost = rows.text(16),
            .ended = rows.text(17),
            .network = rows.text(18)};
}

class SqliteStore final : public Store {
  public:
    explicit SqliteStore(Database database) : db_(std::move(database)) {}

    Result<std::string> ensure_project(std::string_view name, int64_t now_ms) override {
        TRY_OK(
            db_.run("INSERT INTO projects (id, name, created_ms) VALUES (?, ?, ?) "
                    "ON CONFLICT (name) DO NOTHING",
                    new_id(), name, now_ms));
        Rows rows = TRY(db_.query("SELECT id FROM projects WHERE name = ?", name));
        if (!TRY(rows.next())) return make_error(ErrorKind::Internal, "a project row went away");
        return rows.text(0);
    }

    Result<void> add_key(const KeyRow& key) override {
        return durably([&] {
            return db_.run(
                "INSERT INTO keys (project, id, hash, prefix, name, created_ms) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                key.project, key.id, key.hash, key.prefix, key.name, key.created_ms);
        });
    }

    Result<void> revoke_key(std::string_view project, std::string_view id,
                            int64_t now_ms) override {
        return durably([&] {
            return db_.run("UPDATE keys SET revoked_ms = ? WHERE project = ? AND id = ?", now_ms,
                           project, id);
        });
    }

    Result<void> touch_key(std::string_view project, std::string_view id, int64_t now_ms) override {
        return db_.run("UPDATE keys SET last_used_ms = ? WHERE project = ? AND id = ?", now_ms,
                       project, id);
    }

    Result<std::vector<KeyRow>> all_keys() override {
        Rows rows = TRY(db_.query(
            "SELECT project, id, hash, prefix, name, created_ms, last_used_ms, revoked_ms "
            "FROM keys ORDER BY created_ms, id"));
        std::vector<KeyRow> out;
        while (TRY(rows.next())) {
            out.push_back(KeyRow{.project = rows.text(0),
                                 .id = rows.text(1),
                                 .hash = rows.text(2),
                                 .prefix = rows.text(3),
                                 .name = rows.text(4),
                                 .created_ms = rows.integer(5),
                                 .last_used_ms = rows.maybe_integer(6),
                                 .revoked_ms = rows.maybe_integer(7)});
        }
        return out;
    }

    Result<void> add_sandbox(const SandboxRow& row) override {
        return db_.run(
            "INSERT INTO sandboxes (project, id, template, state, cpu, memory_mb, disk_mb, "
            "idle_timeout_seconds, metadata, created_ms, env, one_run, on_idle, on_deadline, "
            "deadline_ms, network) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row.project, row.id, row.template_name, row.state, row.cpu, row.memory_mb, row.disk_mb,
            row.idle_timeout_seconds, row.metadata, row.created_ms, row.env, row.one_run,
            row.on_idle, row.on_deadline, row.deadline_ms, row.network);
    }

    Result<void> set_sandbox_state(std::string_view project, std::string_view id,
                                   std::string_view state, int64_t now_ms) override {
        return db_.run(
            "UPDATE sandboxes SET state = ?1, died_ms = CASE WHEN ?1 = 'dead' THEN ?2 END, "
            "env = CASE WHEN ?1 = 'dead' THEN '{}' ELSE env END WHERE project = ?3 AND id = ?4",
            state, now_ms, project, id);
    }

    Result<void> set_sandbox_life(const SandboxRow& row) override {
        return db_.run(
            "UPDATE sandboxes SET idle_timeout_seconds = ?, on_idle = ?, on_deadline = ?, "
            "deadline_ms = ?, paused_ms = ?, lost = ? WHERE project = ? AND id = ?",
            row.idle_timeout_seconds, row.on_idle, row.on_deadline, row.deadline_ms, row.paused_ms,
            row.lost, row.project, row.id);
    }

    Result<void> end_sandbox(std::string_view project, std::string_view id, std::string_view why,
                             int64_t now_ms) override {
        return db_.run(
            "UPDATE sandboxes SET state = 'dead', died_ms = ?, env = '{}', ended = ? "
            "WHERE project = ? AND id = ?",
            now_ms, why, project, id);
    }

    Result<void> set_sandbox_network(std::string_view project, std::string_view id,
                                     std::string_view policy) override {
        return db_.run("UPDATE sandboxes SET network = ? WHERE project = ? AND id = ?", policy,
                       project, id);
    }

    Result<std::optional<SandboxRow>> find_sandbox(std::string_view project,
                                                   std::string_view id) override {
        Rows rows = TRY(db_.query(
            "SELECT project, id, template, state, cpu, memory_mb, disk_mb, idle_timeout_seconds, "
            "metadata, created_ms, env, one_run, on_idle, on_deadline, deadline_ms, paused_ms, "
            "lost, ended, network FROM sandboxes WHERE project = ? AND id = ?",
            project, id));
        if (!TRY(rows.next())) return std::optional<SandboxRow>();
        return std::optional<SandboxRow>(sandbox_in(rows));
    }

    Result<void> bury_unmade_sandboxes(int64_t now_ms) override {
        return db_.run(
            "UPDATE sandboxes SET state = 'dead', died_ms = ?, env = '{}' WHERE state = 'creating'",
            now_ms);
    }

    Result<std::vector<SandboxRow>> running_sandboxes() override {
        Rows rows = TRY(db_.query(
            "SELECT project, id, template, state, cpu, memory_mb, disk_mb, idle_timeout_seconds, "
            "metadata, created_ms, env, one_run, on_idle, on_deadline, deadline_ms, paused_ms, "
            "lost, ended, network FROM sandboxes WHERE state = 'running' "
            "ORDER BY rowid"));
        std::vector<SandboxRow> out;
        while (TRY(rows.next())) out.push_back(sandbox_in(rows));
        return out;
    }

    Result<void> add_context(const ContextRow& row) override {
        return db_.run(
            "INSERT INTO contexts (project, sandbox, id, language, cwd, env, created_ms, "
            "is_default) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            row.project, row.sandbox, row.id, row.language, row.cwd, row.env, row.created_ms,
            row.is_default);
    }

    Result<void> remove_context(std::string_view project, std::string_view sandbox,
                                std::string_view id) override {
        return db_.run("DELETE FROM contexts WHERE project = ? AND sandbox = ? AND id = ?", project,
                       sandbox, id);
    }

    Result<std::vector<ContextRow>> contexts_of(std::string_view project,
                                                std::string_view sandbox) override {
        Rows rows =
            TRY(db_.query("SELECT id, language, cwd, env, created_ms, is_default FROM contexts "
                          "WHERE project = ? AND sandbox = ? ORDER BY rowid",
                          project, sandbox));
        std::vector<ContextRow> out;
        while (TRY(rows.next())) {
            out.push_back(ContextRow{.project = std::string(project),
                                     .sandbox = std::string(sandbox),
                                     .id = rows.text(0),
                                     .language = rows.text(1),
                                     .cwd = rows.text(2),
                                     .env = rows.text(3),
                                     .created_ms = rows.integer(4),
                                     .is_default = rows.integer(5)});
        }
        return out;
    }

    Result<void> add_run(const RunRow& run) override {
        return db_.run(
            "INSERT INTO runs (project, id, created_ms, record, spec) VALUES (?, ?, ?, ?, ?)",
            run.project, run.id, run.created_ms, run.record, run.spec);
    }

    Result<void> end_run(const RunRow& run, int64_t now_ms) override {
        return db_.run(
            "UPDATE runs SET ended_ms = ?, record = ?, spec = '' "
            "WHERE project = ? AND id = ? AND ended_ms IS NULL",
            now_ms, run.record, run.project, run.id);
    }

    Result<std::optional<RunRow>> find_run(std::string_view project, std::string_view id) override {
        Rows rows = TRY(db_.query(
            "SELECT record, created_ms FROM runs WHERE project = ? AND id = ?", project, id));
        if (!TRY(rows.next())) return std::optional<RunRow>();
        return std::optional<RunRow>(RunRow{.project = std::string(project),
                                            .id = std::string(id),
                                            .record = rows.text(0),
                                            .spec = {},
                                            .created_ms = rows.integer(1)});
    }

    Result<std::vector<RunRow>> unended_runs() override {
        Rows rows = TRY(db_.query(
            "SELECT project, id, record, spec, created_ms FROM runs WHERE ended_ms IS NULL "
            "ORDER BY rowid"));
        std::vector<RunRow> out;
        while (TRY(rows.next())) {
            out.push_back(RunRow{.project = rows.text(0),
                                 .id = rows.text(1),
                                 .record = rows.text(2),
                                 .spec = rows.text(3),
                                 .created_ms = rows.integer(4)});
        }
        return out;
    }

    Result<void> expire(int64_t before_ms) override {
        TRY_OK(db_.run("DELETE FROM runs WHERE ended_ms < ?", before_ms));
        return db_.run("DELETE FROM sandboxes WHERE died_ms < ?", before_ms);
    }

  private:
    // Runs `write` so that it is on the disk when it returns.
    template <class Write>
    Result<void> durably(Write write) {
        TRY_OK(db_.run("PRAGMA synchronous = FULL"));
        Result<void> written = write();
        TRY_OK(db_.run("PRAGMA synchronous = NORMAL"));
        return written;
    }

    Database db_;
};

Result<Database> open_database(const std::string& path) {
    Database database = TRY(Database::open(path));
    TRY_OK(database.run("PRAGMA busy_timeout = 5000"));
    TRY_OK(database.run("PRAGMA journal_mode = WAL"));
    TRY_OK(database.run("PRAGMA synchronous = NORMAL"));
    TRY_OK(database.run("PRAGMA foreign_keys = ON"));
    return database;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path) {
    Database database = TRY(open_database(path));
    TRY_OK(migrate(database));
    // checkpoint() does it on a worker; this high bound is only a backstop.
    TRY_OK(database.run("PRAGMA wal_autocheckpoint = 100000"));
    return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(database)));
}

Result<void> checkpoint(const std::string& path) {
    Database database = TRY(open_database(path));
    return database.run("PRAGMA wal_checkpoint(PASSIVE)");
}

}  // namespace cloister::store
