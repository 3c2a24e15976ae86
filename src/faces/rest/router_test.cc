#include "faces/rest/router.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace cloister::rest {
namespace {

std::string operation_of(std::string_view method, std::string_view path) {
    const auto found = find_route(method, path);
    const auto* match = std::get_if<Match>(&found);
    return match == nullptr ? "none" : std::string(match->route->operation);
}

TEST(Router, FindsARouteAndItsParameters) {
    const auto found = find_route("GET", "/v1/runs/abc/artifacts/7");
    const auto* match = std::get_if<Match>(&found);
    ASSERT_NE(match, nullptr);
    EXPECT_EQ(match->route->operation, "readArtifact");
    EXPECT_EQ(match->parameters, (std::vector<std::string>{"abc", "7"}));
    EXPECT_EQ(operation_of("HEAD", "/healthz"), "healthz");
    EXPECT_EQ(operation_of("POST", "/v1/sandboxes"), "createSandbox");
}

TEST(Router, OtherPathsAreNothing) {
    for (const char* path :
         {"", "/", "/v1", "/v1/", "/v1/sandboxes/", "/v1/sandboxes//runs", "/v1//runs", "v1/runs",
          "/v1/runs/abc/events/x", "/healthz/", "/V1/runs"}) {
        EXPECT_TRUE(std::holds_alternative<NoSuchPath>(find_route("GET", path))) << path;
    }
}

TEST(Router, OtherMethodsNameTheAllowedOnes) {
    const auto found = find_route("PUT", "/v1/sandboxes/abc");
    const auto* others = std::get_if<OtherMethods>(&found);
    ASSERT_NE(others, nullptr);
    EXPECT_EQ(others->allow, "GET, DELETE, PATCH");
}

// The operationIds of the contract, read by their indentation.
std::set<std::string> promised_operations() {
    const auto path =
        std::filesystem::path(__FILE__).parent_path() / "../../../contract/openapi.yaml";
    std::ifstream file(path);
    std::set<std::string> out;
    const std::string key = "operationId: ";
    for (std::string line; std::getline(file, line);) {
        const size_t at = line.find(key);
        if (at != std::string::npos) out.insert(line.substr(at + key.size()));
    }
    return out;
}

TEST(Router, HasExactlyTheOperationsOfTheContract) {
    std::set<std::string> routed;
    for (const Route& route : routes()) routed.emplace(route.operation);
    EXPECT_EQ(routed, promised_operations());
    EXPECT_EQ(routed.size(), routes().size());
}

}  // namespace
}  // namespace cloister::rest
