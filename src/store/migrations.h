// The schema, as numbered steps. A step that was released is never changed: add one.
#pragma once

#include "base/result.h"
#include "store/sqlite.h"

namespace cloister::store {

// Brings the database to the newest version, each step in a transaction of its own.
// FailedPrecondition if the file was written by a newer program.
Result<void> migrate(Database& database);
// Only so many steps of them: to test the later ones.
Result<void> migrate_to(Database& database, size_t steps);

}  // namespace cloister::store
