#include "http/gzip.h"

#include <zlib.h>

#include "base/limits.h"

namespace cloister::http {

struct Inflater::Stream {
    z_stream z{};
    bool open = false;
};

Inflater::Inflater(uint64_t free, uint64_t ratio)
    : stream_(std::make_unique<Stream>()), free_(free), ratio_(ratio) {
    constexpr int kGzipOrZlib = 15 + 32;  // the window of 32 KiB, and either header
    stream_->open = ::inflateInit2(&stream_->z, kGzipOrZlib) == Z_OK;
}

Inflater::~Inflater() {
    if (stream_->open) ::inflateEnd(&stream_->z);
}

void Inflater::feed(std::string bytes) {
    in_ += bytes.size();
    input_.erase(0, used_);
    used_ = 0;
    input_ += bytes;
}

Result<std::string> Inflater::next() {
    const auto broken = [] {
        return make_error(ErrorKind::InvalidArgument, "the body is not compressed as it says");
    };
    if (!stream_->open) return make_error(ErrorKind::ResourceExhausted, "no memory to unpack with");
    if (used_ == input_.size()) return std::string();
    if (finished_) {
        // gzip allows several streams behind one another.
        if (::inflateReset(&stream_->z) != Z_OK) return broken();
        finished_ = false;
    }
    std::string out(limits::kStreamChunk, '\0');
    z_stream& z = stream_->z;
    z.next_in = reinterpret_cast<Bytef*>(input_.data() + used_);
    z.avail_in = static_cast<uInt>(input_.size() - used_);
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    const int result = ::inflate(&z, Z_NO_FLUSH);
    used_ = input_.size() - z.avail_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) return broken();
    finished_ = result == Z_STREAM_END;
    out.resize(out.size() - z.avail_out);
    out_ += out.size();
    if (out_ > free_ && out_ > ratio_ * in_) {
        return make_error(ErrorKind::TooLarge,
                          "the body becomes too much larger than it is: send it uncompressed");
    }
    if (out.empty() && used_ < input_.size()) return next();
    return out;
}

}  // namespace cloister::http
