// TransferBar: how far a transfer is, on one line of a terminal; nothing where there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cloister::cli {

// "big.bin  12 MB of 100 MB  [####      ]  40 MB/s"
std::string bar_text(const std::string& name, uint64_t done, std::optional<uint64_t> all,
                     int64_t ms);

class TransferBar {
  public:
    TransferBar(std::string name, std::optional<uint64_t> all);
    ~TransferBar();
    TransferBar(const TransferBar&) = delete;

    void add(uint64_t bytes);
    uint64_t done() const { return done_; }

  private:
    const std::string name_;
    const std::optional<uint64_t> all_;
    const bool on_terminal_;
    const int64_t began_ms_;
    int64_t shown_ms_ = 0;
    uint64_t done_ = 0;
};

}  // namespace cloister::cli
