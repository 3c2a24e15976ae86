// The Store in one SQLite file. WAL, synchronous=NORMAL: a row survives the death of this program,
// and costs no disk wait. Keys are written with synchronous=FULL: rare, and they must survive a
// power cut.
//
// The WAL is put back into the file by checkpoint(), which is given a connection of its own so that
// it can run on a worker thread: it is the one call that waits for the disk.
#pragma once

#include <memory>
#include <string>

#include "store/sqlite.h"
#include "store/store.h"

namespace cloister::store {

// Opens the file, makes or migrates its tables.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path);
// Any thread; never inside a transaction of that thread.
Result<void> checkpoint(const std::string& path);

}  // namespace cloister::store
