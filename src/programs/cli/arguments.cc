#include "programs/cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/limits.h"

namespace cloister::cli {
namespace {

struct Unit {
    std::string_view suffix;
    double factor;
};

// A number with one of the units behind it; the unit with an empty suffix is the default.
template <size_t N>
std::optional<double> parse_number(std::string_view text, const std::array<Unit, N>& units) {
    double number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || !std::isfinite(number)) return std::nullopt;
    const std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
    const auto unit = std::ranges::find(units, suffix, &Unit::suffix);
    if (unit == units.end()) return std::nullopt;
    return number * unit->factor;
}

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

Result<int64_t> parse_duration_ms(std::string_view text) {
    constexpr std::array<Unit, 5> kUnits{
        {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}}};
    const std::optional<double> ms = parse_number(text, kUnits);
    if (!ms || *ms < limits::kRunTimeoutMinMs ||
        *ms > static_cast<double>(limits::kRunTimeoutMaxMs)) {
        return make_error(
            ErrorKind::InvalidArgument,
            fmt::format("`{}` is no duration: give seconds (1.5), or 500ms, 2s, 5m; at most 24h",
                        text));
    }
    return static_cast<int64_t>(*ms);
}

Result<int64_t> parse_megabytes(std::string_view text) {
    constexpr std::array<Unit, 4> kUnits{{{"", 1}, {"M", 1}, {"MB", 1}, {"G", 1024}}};
    const std::optional<double> megabytes = parse_number(text, kUnits);
    constexpr uint64_t kMost = limits::kSandboxMemoryMax / limits::kMiB;
    if (!megabytes || *megabytes < 1 || *megabytes > static_cast<double>(kMost)) {
        return make_error(
            ErrorKind::InvalidArgument,
            fmt::format("`{}` is no amount of memory: give megabytes (512), or 512M, 2G", text));
    }
    return static_cast<int64_t>(*megabytes);
}

Result<uint64_t> parse_pool_bytes(std::string_view text) {
    constexpr double kMost = 1ull << 50;  // no disk is larger, and a double is still exact
    constexpr std::array<Unit, 3> kUnits{{{"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}}};
    const std::optional<double> bytes = parse_number(text, kUnits);
    if (!bytes || *bytes < 1 || *bytes > kMost) {
        return make_error(ErrorKind::InvalidArgument,
                          fmt::format("`{}` is no size of a pool: give 20G, or 1.5T", text));
    }
    return static_cast<uint64_t>(*bytes);
}

Result<int64_t> parse_bytes(std::string_view text) {
    constexpr std::array<Unit, 4> kUnits{
        {{"", 1}, {"K", limits::kKiB}, {"M", limits::kMiB}, {"G", limits::kGiB}}};
    const std::optional<double> bytes = parse_number(text, kUnits);
    if (!bytes || *bytes < 1 || *bytes > static_cast<double>(limits::kOutputMaxDefault)) {
        return make_error(ErrorKind::InvalidArgument,
                          fmt::format("`{}` is no amount of output: give bytes (4096), or 64K, "
                                      "10M; at most {}M",
                                      text, limits::kOutputMaxDefault / limits::kMiB));
    }
    return static_cast<int64_t>(*bytes);
}

Result<std::pair<std::string, std::string>> parse_env(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
        return make_error(ErrorKind::InvalidArgument,
                          fmt::format("`{}` is no variable: give NAME=value", text));
    }
    return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<FileArgument> parse_file_argument(std::string_view text) {
    const size_t colon = text.rfind(':');
    FileArgument out;
    out.local = text.substr(0, colon);
    if (colon != std::string_view::npos) out.remote = text.substr(colon + 1);
    if (out.remote.empty() || out.remote.ends_with('/')) out.remote += base_name(out.local);
    if (out.local.empty() || base_name(out.remote).empty()) {
        return make_error(ErrorKind::InvalidArgument,
                          fmt::format("`{}` names no file: give PATH or PATH:DEST", text));
    }
    return out;
}

Result<ProgramWords> split_program(const std::vector<std::string>& words,
                                   const std::function<bool(const std::string&)>& takes_value) {
    ProgramWords out;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const bool is_code = word == "-c";
        const bool is_option = word.starts_with('-') && word != "-" && word != "--" && !is_code;
        if (is_option) {
            out.options.push_back(word);
            if (takes_value(word) && i + 1 < words.size()) out.options.push_back(words[++i]);
            continue;
        }
        if (is_code || word == "--") ++i;
        if (i >= words.size()) break;
        out.source = is_code       ? ProgramWords::Source::Code
                     : word == "-" ? ProgramWords::Source::Stdin
                                   : ProgramWords::Source::File;
        out.program = words[i];
        out.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
        return out;
    }
    return make_error(ErrorKind::InvalidArgument,
                      "there is nothing to run: give FILE, -c CODE, or - for code from stdin");
}

}  // namespace cloister::cli
