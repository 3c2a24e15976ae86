// Bodies of uploads: compressed ones unpacked, and several files in one.
#pragma once

#include "engine/files.h"
#include "faces/rest/call.h"
#include "ops/upload_files.h"

namespace cloister::rest {

// The body as the client meant it (Content-Encoding: gzip, deflate), within limits::kUploadMax.
// Valid while `call` is.
Result<engine::ByteSource> upload_source(Call& call);
// The same; what begins as gzip is unpacked in any case.
Result<engine::ByteSource> archive_source(Call& call);
// The files of a multipart/form-data body.
Result<ops::IncomingFiles> incoming_files(Call& call);

}  // namespace cloister::rest
