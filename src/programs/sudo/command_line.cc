#include "programs/sudo/command_line.h"

#include <algorithm>
#include <array>
#include <optional>

namespace cloister::sudo {
namespace {

enum class Argument { None, Needed, Optional };

struct Option {
    char letter;
    std::string_view name;
    Argument argument;
};
constexpr std::array kOptions = {
    Option{'u', "user", Argument::Needed},
    Option{'E', "preserve-env", Argument::Optional},
    Option{'H', "set-home", Argument::None},
    Option{'i', "login", Argument::None},
    Option{'s', "shell", Argument::None},
    Option{'v', "validate", Argument::None},
    Option{'l', "list", Argument::None},
    Option{'k', "reset-timestamp", Argument::None},
    Option{'K', "remove-timestamp", Argument::None},
    Option{'h', "help", Argument::None},
    Option{'V', "version", Argument::None},
    // About a password, which nobody is asked for here.
    Option{'n', "non-interactive", Argument::None},
    Option{'S', "stdin", Argument::None},
    Option{'A', "askpass", Argument::None},
    Option{'p', "prompt", Argument::Needed},
};

Error unknown_option(std::string_view option) {
    return make_error(ErrorKind::InvalidArgument,
                      "the option " + std::string(option) +
                          " is not known here (sudo --help lists those that are)");
}

Result<RootIdentity> identity_of(std::string_view name) {
    if (name == "root" || name == "#0") return RootIdentity::Root;
    if (name == "user" || name == "#1000") return RootIdentity::User;
    return make_error(ErrorKind::InvalidArgument,
                      "a sandbox has the users root and user, not " + std::string(name) +
                          "; root can become anybody: sudo su " + std::string(name));
}

std::vector<std::string> split_at_commas(std::string_view list) {
    std::vector<std::string> names;
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        if (end > 0) names.emplace_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return names;
}

bool is_assignment(std::string_view word) {
    const size_t sign = word.find('=');
    if (sign == std::string_view::npos || sign == 0) return false;
    const auto in_a_name = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    };
    return std::ranges::all_of(word.substr(0, sign), in_a_name);
}

class Parser {
  public:
    explicit Parser(const std::vector<std::string>& words) : words_(words) {}

    Result<CommandLine> parse() {
        TRY_OK(read_options());
        line_.command.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
        if (line_.command.empty() && line_.task == Task::Run && line_.shell == ShellKind::None) {
            if (only_forgets_) {
                line_.task = Task::Nothing;
            } else {
                return make_error(ErrorKind::InvalidArgument,
                                  "no command was given (sudo --help says more)");
            }
        }
        return std::move(line_);
    }

  private:
    Result<void> read_options() {
        for (; next_ < words_.size(); ++next_) {
            const std::string& word = words_[next_];
            if (word == "--") {
                ++next_;
                return {};
            }
            if (word.starts_with("--")) {
                TRY_OK(read_long(word));
            } else if (word.size() > 1 && word[0] == '-') {
                TRY_OK(read_short(word));
            } else if (is_assignment(word)) {
                const size_t sign = word.find('=');
                line_.assignments.emplace_back(word.substr(0, sign), word.substr(sign + 1));
            } else {
                return {};
            }
        }
        return {};
    }

    Result<void> read_long(std::string_view word) {
        const size_t sign = word.find('=');
        const std::string_view name = word.substr(2, sign - std::min<size_t>(sign, 2));
        const auto* option = std::ranges::find(kOptions, name, &Option::name);
        if (option == kOptions.end()) return unknown_option(word);
        std::optional<std::string> value;
        if (sign != std::string_view::npos) value = std::string(word.substr(sign + 1));
        if (value && option->argument == Argument::None) return unknown_option(word);
        if (!value && option->argument == Argument::Needed) value = TRY(next_word(word));
        return apply(option->letter, value.value_or(""));
    }

    // Several letters in one word; the argument of the last may follow in the same word.
    Result<void> read_short(std::string_view word) {
        for (size_t i = 1; i < word.size(); ++i) {
            const auto* option = std::ranges::find(kOptions, word[i], &Option::letter);
            if (option == kOptions.end()) return unknown_option(std::string("-") + word[i]);
            if (option->argument != Argument::Needed) {
                TRY_OK(apply(word[i], ""));
                continue;
            }
            const std::string rest(word.substr(i + 1));
            return apply(word[i], rest.empty() ? TRY(next_word(word)) : rest);
        }
        return {};
    }

    Result<std::string> next_word(std::string_view option) {
        if (next_ + 1 < words_.size()) return words_[++next_];
        return make_error(ErrorKind::InvalidArgument,
                          "the option " + std::string(option) + " needs a word behind it");
    }

    Result<void> apply(char letter, const std::string& value) {
        switch (letter) {
            case 'u':
                line_.identity = TRY(identity_of(value));
                break;
            case 'E':
                line_.kept = split_at_commas(value);
                if (value.empty()) line_.environment = Environment::Kept;
                break;
            case 'H':
                line_.home = Home::OfTarget;
                break;
            case 'i':
                line_.shell = ShellKind::Login;
                break;
            case 's':
                line_.shell = ShellKind::Plain;
                break;
            case 'v':
                line_.task = Task::Ask;
                break;
            case 'l':
                line_.task = Task::List;
                break;
            case 'h':
                line_.task = Task::Help;
                break;
            case 'V':
                line_.task = Task::Version;
                break;
            case 'k':
            case 'K':
                only_forgets_ = true;
                break;
            default:
                break;
        }
        return {};
    }

    const std::vector<std::string>& words_;
    size_t next_ = 0;
    bool only_forgets_ = false;
    CommandLine line_;
};

}  // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& words) {
    return Parser(words).parse();
}

}  // namespace cloister::sudo
