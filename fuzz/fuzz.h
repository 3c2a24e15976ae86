// What each fuzzer has: libFuzzer's entry, and EXPECT, which ends the program when a property does
// not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"

#define EXPECT(condition) CLOISTER_CHECK(condition)

namespace cloister::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

}  // namespace cloister::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
