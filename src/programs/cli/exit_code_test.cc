#include "programs/cli/exit_code.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "os/fd.h"

namespace cloister::cli {
namespace {

constexpr size_t kKindCells = 7, kReasonCells = 3;

// The rows of contract/errors.md whose first cell is a word in backticks, of the table that has
// `cells` columns: word → its other cells.
std::map<std::string, std::vector<std::string>> table_rows(size_t cells_of_row) {
    std::map<std::string, std::vector<std::string>> rows;
    const std::string here = __FILE__;
    const std::string root = here.substr(0, here.rfind("/src/"));
    std::istringstream page(os::read_file(root + "/contract/errors.md", 1 << 20).value());
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("| `")) continue;
        std::istringstream cells(line);
        std::vector<std::string> found;
        for (std::string cell; std::getline(cells, cell, '|');) {
            const size_t first = cell.find_first_not_of(' ');
            if (first != std::string::npos)
                found.push_back(cell.substr(first, cell.find_last_not_of(' ') - first + 1));
        }
        if (found.size() != cells_of_row) continue;
        const std::string word = found.front().substr(1, found.front().size() - 2);
        rows[word] = {found.begin() + 1, found.end()};
    }
    return rows;
}

TEST(ExitCode, OfEveryErrorKindIsTheTables) {
    const auto rows = table_rows(kKindCells);
    for (int i = 0; i <= static_cast<int>(ErrorKind::Internal); ++i) {
        const auto kind = static_cast<ErrorKind>(i);
        const auto row = rows.find(std::string(to_string(kind)));
        ASSERT_NE(row, rows.end()) << to_string(kind);
        EXPECT_EQ(std::to_string(exit_code_of(kind)), row->second.at(3)) << to_string(kind);
    }
}

TEST(ExitCode, OfEveryEndReasonIsTheTables) {
    const auto rows = table_rows(kReasonCells);
    for (int i = 0; i <= static_cast<int>(EndReason::Ok); ++i) {
        const auto reason = static_cast<EndReason>(i);
        const auto row = rows.find(std::string(to_string(reason)));
        ASSERT_NE(row, rows.end()) << to_string(reason);
        const std::string& code = row->second.at(0);
        if (reason == EndReason::Error || reason == EndReason::KernelDied) continue;  // see below
        EXPECT_EQ(std::to_string(exit_code_of(reason, 1)), code) << to_string(reason);
    }
    EXPECT_EQ(rows.at("kernel_died").at(0),
              "the program's own (`os._exit(N)`), 128 + signal, or 118");
}

TEST(ExitCode, OfAProgramIsItsOwnUnlessThatLooksLikeSuccess) {
    EXPECT_EQ(exit_code_of(EndReason::Error, 7), 7);
    EXPECT_EQ(exit_code_of(EndReason::Error, std::nullopt), 1);
    EXPECT_EQ(exit_code_of(EndReason::Error, 256), 1);
    EXPECT_EQ(exit_code_of(EndReason::Error, -1), 255);
    EXPECT_EQ(exit_code_of(EndReason::KernelDied, 139), 139);
    EXPECT_EQ(exit_code_of(EndReason::KernelDied, 3), 3);
    EXPECT_EQ(exit_code_of(EndReason::KernelDied, 0), 118);
    EXPECT_EQ(exit_code_of(EndReason::KernelDied, std::nullopt), 118);
}

}  // namespace
}  // namespace cloister::cli
