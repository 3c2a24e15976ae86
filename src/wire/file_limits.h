// Limits on operations with files.
#pragma once

#include "base/limits.h"

namespace cloister::limits {

inline constexpr size_t kFilePageMax = 1'000;  // entries or matches of one answer
inline constexpr size_t kFilePageBytes = 1 * kMiB;
inline constexpr int kFileDepthMax = 128;  // of a tree that is listed, searched, copied or packed
inline constexpr uint64_t kTreeEntriesMax = 250'000;  // of an archive, a copy, a search
inline constexpr int64_t kSearchTimeMs = 10'000;
inline constexpr uint64_t kSearchFileBytes = 64 * kMiB;  // of each file that is searched
inline constexpr size_t kSearchLineMax = 512;            // shown of a line that was found
inline constexpr size_t kGlobMax = 1'024;
inline constexpr size_t kSearchTextMax = 1'024;
inline constexpr size_t kWatchDirectoriesMax = 8'192;  // of one watch
inline constexpr size_t kFileMetadataEntriesMax = 64;
inline constexpr size_t kFileMetadataKeyMax = 240;
inline constexpr size_t kFileMetadataBytesMax = 4 * kKiB;  // keys and values together
inline constexpr size_t kEtagMax = 128;
inline constexpr size_t kFilesPerUpload = 1'000;  // parts of one multipart upload
inline constexpr int64_t kSignedUrlMaxMs = 7LL * 24 * 3600 * 1000;
inline constexpr int64_t kSignedUrlDefaultMs = 3'600'000;
// What a compressed body may become, beside a first allowance.
inline constexpr uint64_t kInflateRatioMax = 200;
inline constexpr uint64_t kInflateFree = 256 * kMiB;

}  // namespace cloister::limits
