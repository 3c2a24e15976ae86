#include "faces/rest/byte_range.h"

#include <gtest/gtest.h>

#include <string>

namespace cloister::rest {
namespace {

// "OFFSET+LENGTH" of ten bytes, "none" if it has none of them, "whole" if the header says nothing.
std::string of_ten(std::string_view header) {
    const auto range = parse_range(header);
    if (!range) return "whole";
    const auto slice = slice_of(*range, 10);
    return slice ? std::to_string(slice->offset) + "+" + std::to_string(slice->length) : "none";
}

TEST(ByteRange, IsWhatTheRfcSays) {
    EXPECT_EQ(of_ten("bytes=0-0"), "0+1");
    EXPECT_EQ(of_ten("bytes=2-5"), "2+4");
    EXPECT_EQ(of_ten("bytes=2-"), "2+8");
    EXPECT_EQ(of_ten("bytes=9-100"), "9+1");
    EXPECT_EQ(of_ten("bytes=-3"), "7+3");
    EXPECT_EQ(of_ten("bytes=-30"), "0+10");
}

TEST(ByteRange, OneBehindTheEndHasNoBytes) {
    EXPECT_EQ(of_ten("bytes=10-"), "none");
    EXPECT_EQ(of_ten("bytes=10-12"), "none");
    EXPECT_EQ(of_ten("bytes=-0"), "none");
    EXPECT_FALSE(slice_of({.first = 0, .last = {}}, 0));
    EXPECT_FALSE(slice_of({.first = {}, .last = 5}, 0));
}

TEST(ByteRange, WhatIsNoSingleRangeSaysNothing) {
    for (const char* header : {"", "bytes=", "bytes=-", "bytes=5-2", "bytes=1-2,4-5", "lines=1-2",
                               "bytes=a-b", "bytes=99999999999999999999-", "bytes 1-2"}) {
        EXPECT_EQ(of_ten(header), "whole") << header;
    }
}

}  // namespace
}  // namespace cloister::rest
