// Serves operations on files (contract/agent-protocol.md), each on its own connection and by a
// child that is the asking user.
#pragma once

#include "os/fd.h"
#include "programs/agent/file_channel.h"
#include "programs/agent/file_place.h"
#include "programs/agent/file_request.h"

namespace cloister::agent {

// Answers on `connection`, the failure too.
void serve_file(const FileRequest& request, const os::Fd& connection);

// One function for each kind of work; a failure is answered by serve_file.
using FileServer = Result<void> (*)(const FileRequest&, const FileRoot&, FileChannel&);
Result<void> read_file(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> write_file(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> stat_file(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> list_files(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> make_directory(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> move_file(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> copy_file(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> remove_file(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> change_file(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> search_files(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> watch_files(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> pack_files(const FileRequest& request, const FileRoot& root, FileChannel& channel);
Result<void> unpack_files(const FileRequest& request, const FileRoot& root, FileChannel& channel);

}  // namespace cloister::agent
