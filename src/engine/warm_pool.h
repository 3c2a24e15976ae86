// WarmPool: sandboxes that are whole before anybody asks for them: agent up, and a Python
// interpreter forked that has run a cell.
//
//     pool->wanted(project, shape);                       // at each create, hit or miss
//     if (auto warm = pool->claim(project, shape)) …      // it belongs to the caller from here on
//
// Kept for the shapes that were asked for last, `target` of each, together within a budget of
// memory; what was not asked for in a while goes. They are made one at a time, in the background,
// and only when no create has come for a moment. No row names them: a new server knows none, and
// the reconcile removes them. What comes out of one is as if it had been made for the caller: its
// id was never told to anybody, no code of anybody has run in it, and interpreters for a sandbox
// with an environment are forked anew. Threading: the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "engine/warden_client.h"
#include "loop/loop.h"

namespace cloister::engine {

struct PoolConfig {
    size_t target = 2;  // 0: no pool
    // 0: a tenth of the host's memory.
    uint64_t memory_bytes = 0;
};

// The template and the limits that a sandbox is born with.
struct Shape {
    std::string template_name;
    int cpu = 0;
    uint64_t memory_mb = 0, disk_mb = 0;
    bool operator==(const Shape&) const = default;
};

class WarmPool : public std::enable_shared_from_this<WarmPool> {
  public:
    using Plan = std::function<Result<warden::JailPlan>(const std::string& project,
                                                        const std::string& id, const Shape&)>;
    WarmPool(std::string data, std::shared_ptr<WardenClient> warden, PoolConfig config, Plan plan);

    struct Warm {
        std::string id;
        std::string context;  // its interpreter
        uint64_t memory_bytes = 0;
    };
    std::optional<Warm> claim(const std::string& project, const Shape& shape);
    void wanted(const std::string& project, const Shape& shape);

    // It ended by itself, or the warden has it no more.
    void forget(const std::string& id);
    // Those that are there, and those that are being made.
    std::vector<std::string> ids() const;
    // Removes all, and makes no more.
    static Task<void> stop(std::shared_ptr<WarmPool> self);

    struct Figures {
        size_t target = 0, ready = 0;
        uint64_t memory_bytes = 0, budget_bytes = 0;
        uint64_t hits = 0, misses = 0;
    };
    Figures figures() const;

  private:
    // One shape of one project; the one that was asked for last comes first.
    struct Shelf {
        std::string project;
        Shape shape;
        int64_t asked_at = 0;  // steady
        std::vector<Warm> warm;
    };
    Shelf* find(const std::string& project, const Shape& shape);
    Shelf* next_to_fill();
    static Task<void> fill(std::shared_ptr<WarmPool> self);
    Task<Result<Warm>> make(std::string project, Shape shape);
    Task<Result<void>> warm_up(std::string socket, const std::string& context);
    void drop_old();
    void drop(Shelf& shelf);
    uint64_t memory() const;
    uint64_t need() const;  // of one more, by what the others have

    const std::string data_;
    const std::shared_ptr<WardenClient> warden_;
    const PoolConfig config_;
    const Plan plan_;
    std::list<Shelf> shelves_;
    std::string making_;  // the id of the one that is being made
    uint64_t budget_ = 0;
    uint64_t hits_ = 0, misses_ = 0;
    bool filling_ = false, stopped_ = false;
    Signal wanted_, stop_signal_;
};

}  // namespace cloister::engine
