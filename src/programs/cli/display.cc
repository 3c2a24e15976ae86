#include "programs/cli/display.h"

#include <array>
#include <cstdint>

namespace cloister::cli {
namespace {

struct FileForm {
    std::string_view mime, extension;
    enum class Coding { Base64, Text } coding;
};
// In the order of preference.
constexpr std::array<FileForm, 4> kPictures{{
    {"image/png", ".png", FileForm::Coding::Base64},
    {"image/jpeg", ".jpg", FileForm::Coding::Base64},
    {"image/svg+xml", ".svg", FileForm::Coding::Text},
    {"application/pdf", ".pdf", FileForm::Coding::Base64},
}};

std::optional<std::string> text_in(const json::object& data, std::string_view mime) {
    const json::value* value = data.if_contains(mime);
    if (value == nullptr) return std::nullopt;
    return value->is_string() ? std::string(value->as_string()) : json::serialize(*value);
}

// Whether a text/plain says only what kind of object it was, as "<IPython.core.display.HTML
// object>" does.
bool is_bare_repr(std::string_view plain) {
    return plain.starts_with('<') && plain.ends_with('>') &&
           plain.find('\n') == std::string_view::npos;
}

int base64_digit(char c) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t found = kDigits.find(c);
    return found == std::string_view::npos ? -1 : static_cast<int>(found);
}

}  // namespace

std::optional<std::string> base64_decode(std::string_view text) {
    while (text.ends_with('=') || text.ends_with('\n')) text.remove_suffix(1);
    std::string out;
    uint32_t bits = 0;
    int count = 0;
    for (char c : text) {
        if (c == '\n' || c == '\r') continue;
        const int digit = base64_digit(c);
        if (digit < 0) return std::nullopt;
        bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xFFFFFF;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out += static_cast<char>(bits >> count & 0xFF);
    }
    return out;
}

Shown choose_form(const json::object& data) {
    Shown shown;
    for (const FileForm& form : kPictures) {
        std::optional<std::string> bytes = text_in(data, form.mime);
        if (bytes && form.coding == FileForm::Coding::Base64) bytes = base64_decode(*bytes);
        if (!bytes) continue;
        shown.extension = form.extension;
        shown.bytes = std::move(*bytes);
        return shown;
    }
    const std::optional<std::string> plain = text_in(data, "text/plain");
    std::optional<std::string> page = text_in(data, "text/html");
    if (page && (!plain || is_bare_repr(*plain))) {
        shown.extension = ".html";
        shown.bytes = std::move(*page);
        return shown;
    }
    // Markdown and the like read well as they are, better than the name of their Python object.
    for (std::string_view mime : {"text/markdown", "text/latex", "application/json"}) {
        std::optional<std::string> text = text_in(data, mime);
        if (text && (!plain || is_bare_repr(*plain))) {
            shown.text = std::move(*text);
            return shown;
        }
    }
    shown.text = plain.value_or("");
    return shown;
}

}  // namespace cloister::cli
