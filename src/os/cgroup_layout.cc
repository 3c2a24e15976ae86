// Where the cgroup controllers live: pure functions on the kernel's texts.
#include <algorithm>
#include <array>
#include <ranges>

#include "os/cgroup.h"

namespace cloister::os {
namespace {

struct ControllerName {
    Controller controller;
    std::string_view word;
};
constexpr std::array kControllerNames = {
    ControllerName{.controller = Controller::Memory, .word = "memory"},
    ControllerName{.controller = Controller::Pids, .word = "pids"},
    ControllerName{.controller = Controller::Cpu, .word = "cpu"},
    ControllerName{.controller = Controller::Cpuacct, .word = "cpuacct"},
    ControllerName{.controller = Controller::Io, .word = "blkio"},         // of version 1
    ControllerName{.controller = Controller::Io, .word = "io"},            // of version 2
    ControllerName{.controller = Controller::Freezer, .word = "freezer"},  // of version 1
};

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (const auto part : std::views::split(text, separator)) {
        if (!part.empty()) parts.emplace_back(part.begin(), part.end());
    }
    return parts;
}

std::vector<Controller> controllers_among(const std::vector<std::string_view>& words) {
    std::vector<Controller> found;
    for (const auto& [controller, word] : kControllerNames) {
        if (std::ranges::find(words, word) != words.end()) found.push_back(controller);
    }
    return found;
}

// The kernel writes space, tab, newline and backslash of a path as \ and three octal digits.
std::string unescape(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size()) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                     (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

struct CgroupMount {
    std::string mount_point;
    CgroupFormat format = CgroupFormat::V1;
    std::string_view options;  // of the file system: names the controllers of version 1
};

// id parent major:minor root MOUNT_POINT options [tags…] - TYPE source OPTIONS
std::optional<CgroupMount> parse_line(std::string_view line) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) return std::nullopt;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 6 || after.size() < 3) return std::nullopt;
    if (after[0] != "cgroup" && after[0] != "cgroup2") return std::nullopt;
    return CgroupMount{.mount_point = unescape(before[4]),
                       .format = after[0] == "cgroup2" ? CgroupFormat::V2 : CgroupFormat::V1,
                       .options = after[2]};
}

std::vector<CgroupMount> parse_mounts(std::string_view mountinfo) {
    std::vector<CgroupMount> mounts;
    for (const std::string_view line : split(mountinfo, '\n')) {
        if (auto mount = parse_line(line)) mounts.push_back(std::move(*mount));
    }
    return mounts;
}

std::vector<Controller> controllers_of(const CgroupMount& mount, std::string_view v2_controllers) {
    if (mount.format == CgroupFormat::V1) return controllers_among(split(mount.options, ','));
    auto found = controllers_among(split(v2_controllers.substr(0, v2_controllers.find('\n')), ' '));
    // Version 2 counts CPU time in every group, and can freeze every group; there are no
    // controllers for it.
    if (!found.empty()) found.push_back(Controller::Cpuacct);
    found.push_back(Controller::Freezer);
    return found;
}

bool is_v2(const CgroupMount& mount) {
    return mount.format == CgroupFormat::V2;
}

CgroupMode mode_of(const std::vector<CgroupMount>& mounts, const std::vector<Hierarchy>& used) {
    // A bare version 2 can freeze, but sets no limit.
    if (std::ranges::none_of(used, [](const Hierarchy& h) {
            return h.controllers != std::vector{Controller::Freezer};
        }))
        return CgroupMode::None;
    const auto is_v1 = [](const Hierarchy& h) { return h.format == CgroupFormat::V1; };
    if (std::ranges::none_of(used, is_v1)) return CgroupMode::V2;
    return std::ranges::any_of(mounts, is_v2) ? CgroupMode::Hybrid : CgroupMode::V1;
}

}  // namespace

bool Hierarchy::has(Controller controller) const {
    return std::ranges::find(controllers, controller) != controllers.end();
}

CgroupLayout cgroup_layout(std::string_view mountinfo, std::string_view v2_controllers) {
    CgroupLayout layout;
    const std::vector<CgroupMount> mounts = parse_mounts(mountinfo);
    const bool any_v2 = std::ranges::any_of(mounts, is_v2);
    for (const CgroupMount& mount : mounts) {
        auto controllers = controllers_of(mount, v2_controllers);
        // The same hierarchy may be mounted twice; its first place is as good as any.
        std::erase_if(controllers, [&](Controller c) {
            if (c == Controller::Freezer && any_v2 && !is_v2(mount)) return true;
            return std::ranges::any_of(layout.hierarchies,
                                       [c](const Hierarchy& h) { return h.has(c); });
        });
        if (controllers.empty()) continue;
        layout.hierarchies.push_back(
            {.mount_point = mount.mount_point, .format = mount.format, .controllers = controllers});
    }
    layout.mode = mode_of(mounts, layout.hierarchies);
    return layout;
}

std::optional<std::string> v2_mount_point(std::string_view mountinfo) {
    for (const CgroupMount& mount : parse_mounts(mountinfo)) {
        if (mount.format == CgroupFormat::V2) return mount.mount_point;
    }
    return std::nullopt;
}

}  // namespace cloister::os
