#include "store/migrations.h"

#include <fmt/format.h>

#include <array>

namespace cloister::store {
namespace {

struct Step {
    Sql script;
};

// PRAGMA user_version cannot take a bound value, so each step sets its own number.
constexpr std::array kSteps = {
    Step{R"sql(
        BEGIN IMMEDIATE;
        CREATE TABLE projects (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            created_ms INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE keys (
            project TEXT NOT NULL REFERENCES projects (id),
            id TEXT NOT NULL,
            hash TEXT NOT NULL UNIQUE,
            prefix TEXT NOT NULL,
            name TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            last_used_ms INTEGER,
            revoked_ms INTEGER,
            PRIMARY KEY (project, id)
        ) WITHOUT ROWID;
        CREATE TABLE sandboxes (
            project TEXT NOT NULL REFERENCES projects (id),
            id TEXT NOT NULL,
            template TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('creating', 'running', 'dead')),
            cpu INTEGER NOT NULL,
            memory_mb INTEGER NOT NULL,
            disk_mb INTEGER NOT NULL,
            idle_timeout_seconds INTEGER NOT NULL,
            metadata TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            died_ms INTEGER,
            PRIMARY KEY (project, id)
        );
        CREATE INDEX sandboxes_died ON sandboxes (died_ms);
        CREATE TABLE runs (
            project TEXT NOT NULL REFERENCES projects (id),
            id TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            ended_ms INTEGER,
            record TEXT NOT NULL,
            PRIMARY KEY (project, id)
        );
        CREATE INDEX runs_ended ON runs (ended_ms);
        PRAGMA user_version = 1;
        COMMIT;
    )sql"},
    // What a new server needs to take up the sandboxes and runs of a former one.
    Step{R"sql(
        BEGIN IMMEDIATE;
        ALTER TABLE sandboxes ADD COLUMN env TEXT NOT NULL DEFAULT '{}';
        ALTER TABLE sandboxes ADD COLUMN one_run INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE runs ADD COLUMN spec TEXT NOT NULL DEFAULT '';
        PRAGMA user_version = 2;
        COMMIT;
    )sql"},
    Step{R"sql(
        BEGIN IMMEDIATE;
        CREATE TABLE contexts (
            project TEXT NOT NULL REFERENCES projects (id),
            sandbox TEXT NOT NULL,
            id TEXT NOT NULL,
            language TEXT NOT NULL,
            cwd TEXT NOT NULL,
            env TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            is_default INTEGER NOT NULL,
            PRIMARY KEY (project, sandbox, id)
        );
        CREATE TRIGGER contexts_end AFTER UPDATE OF state ON sandboxes WHEN NEW.state = 'dead'
        BEGIN
            DELETE FROM contexts WHERE project = NEW.project AND sandbox = NEW.id;
        END;
        PRAGMA user_version = 3;
        COMMIT;
    )sql"},
    // The life of a sandbox. A deadline of 0 is none; paused_ms of 0: it is not paused.
    Step{R"sql(
        BEGIN IMMEDIATE;
        ALTER TABLE sandboxes ADD COLUMN on_idle TEXT NOT NULL DEFAULT 'kill';
        ALTER TABLE sandboxes ADD COLUMN deadline_ms INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE sandboxes ADD COLUMN on_deadline TEXT NOT NULL DEFAULT 'kill';
        ALTER TABLE sandboxes ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE sandboxes ADD COLUMN lost TEXT NOT NULL DEFAULT '';
        ALTER TABLE sandboxes ADD COLUMN ended TEXT NOT NULL DEFAULT '';
        PRAGMA user_version = 4;
        COMMIT;
    )sql"},
    Step{R"sql(
        BEGIN IMMEDIATE;
        ALTER TABLE sandboxes ADD COLUMN network TEXT NOT NULL DEFAULT '{"mode": "disabled"}';
        PRAGMA user_version = 5;
        COMMIT;
    )sql"},
};

Result<int64_t> version_of(Database& database) {
    Rows rows = TRY(database.query("PRAGMA user_version"));
    (void)TRY(rows.next());  // this pragma always has one row
    return rows.integer(0);
}

}  // namespace

Result<void> migrate(Database& database) {
    return migrate_to(database, kSteps.size());
}

Result<void> migrate_to(Database& database, size_t steps) {
    const auto version = static_cast<size_t>(TRY(version_of(database)));
    if (version > steps) {
        return make_error(
            ErrorKind::FailedPrecondition,
            fmt::format("the database has version {}, this program knows {}: start the "
                        "newer program, or choose another data directory",
                        version, steps));
    }
    for (size_t step = version; step < steps; ++step) {
        TRY_OK(database.script(kSteps[step].script));
    }
    return {};
}

}  // namespace cloister::store
