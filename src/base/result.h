// Result<T>: a value or an Error. Nodiscard; an ignored one is written `(void)` with a reason.
//
//     Result<Fd> file = open_file(path);
//     Fd fd = TRY(open_file(path));      // in synchronous code: returns the error to the caller
//     TRY_OK(write_all(fd, bytes));      // for Result<void>
//
// In coroutines write the two plain lines instead:
//     auto x = co_await f();
//     if (!x) co_return std::unexpected(std::move(x).error());
#pragma once

#include <expected>
#include <utility>

#include "base/error.h"

namespace cloister {

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
  public:
    using std::expected<T, Error>::expected;
    Result(Error error) : std::expected<T, Error>(std::unexpect, std::move(error)) {}
};

template <>
class [[nodiscard]] Result<void> : public std::expected<void, Error> {
  public:
    using std::expected<void, Error>::expected;
    Result() = default;
    Result(Error error) : std::expected<void, Error>(std::unexpect, std::move(error)) {}
};

}  // namespace cloister

#define TRY(expression)                                              \
    __extension__({                                                  \
        auto&& try_result = (expression);                            \
        if (!try_result) [[unlikely]]                                \
            return ::cloister::Error(std::move(try_result).error()); \
        std::move(try_result).value();                               \
    })

#define TRY_OK(expression)                                           \
    do {                                                             \
        auto&& try_result = (expression);                            \
        if (!try_result) [[unlikely]]                                \
            return ::cloister::Error(std::move(try_result).error()); \
    } while (false)
