#include "ops/search_files.h"

#include <utility>

#include "base/limits.h"
#include "wire/file_limits.h"

namespace cloister::ops {
namespace {

Result<FileMatch> match_from(const json::value& value) {
    if (!value.is_object()) return make_error(ErrorKind::Unavailable, "no match");
    FieldReader in(value.as_object(), "");
    FileMatch match{.entry = TRY(engine::file_entry_from(in.optional_value("entry")))};
    if (const auto number = in.optional_int("line", 1, INT64_MAX)) {
        match.line =
            FileMatch::Line{.number = *number,
                            .column = in.optional_int("column", 1, INT64_MAX).value_or(1),
                            .text = in.required_string("text", 4 * limits::kSearchLineMax)};
    }
    TRY_OK(in.finish());
    return match;
}

Result<FileMatches> matches_from(const json::object& answer) {
    FieldReader in(answer, "");
    FileMatches out;
    (void)in.optional_bool("ok");  // it was looked at
    out.truncated = in.optional_bool("truncated").value_or(false);
    out.entries_seen = in.optional_int("entries_seen", 0, INT64_MAX).value_or(0);
    const json::array* list = in.optional_array("matches", limits::kFilePageMax);
    TRY_OK(in.finish());
    if (list == nullptr) return out;
    for (const json::value& one : *list) out.matches.push_back(TRY(match_from(one)));
    return out;
}

}  // namespace

Task<Result<FileMatches>> search_files(engine::Engine& engine, engine::Principal caller,
                                       FileInput input, SearchSettings settings) {
    json::object request{{"op", "file.search"},
                         {"glob", std::move(settings.glob)},
                         {"text", std::move(settings.text)},
                         {"ignore_case", settings.ignore_case},
                         {"depth", settings.depth},
                         {"limit", settings.limit}};
    const auto answer =
        co_await ask_about_file(engine, std::move(caller), std::move(input), std::move(request));
    if (!answer) co_return answer.error();
    auto matches = matches_from(*answer);
    if (!matches) {
        co_return make_error(ErrorKind::Unavailable, "the sandbox's agent told nonsense");
    }
    co_return matches;
}

}  // namespace cloister::ops
