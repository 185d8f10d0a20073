// Which cases of a run belong to its shard i of n.
//
// The unit is the case, all its relations and repeats together. The division depends on the selected cases as they are
// written, on the options and on the durations given; never on the machine, its devices, its checkpoints or its
// variables. Cases of one model (engine, backend as asked for, ENV_VARS and model arguments, all as written) share a
// load; partition.h says how loads and balance are weighed.
//
// OUTPUT/shards.json, beside the journal of each shard, has the whole division:
//   {"schema": 1, "partition": DIGEST, "count": n, "cases": [{"name", "path", "model", "relations": [...], "shard":
//   i}]}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "core/run/filter.h"
#include "core/run/partition.h"
#include "core/run/run.h"

namespace assay::run {

inline constexpr uint32_t kMostShards = 100'000;
inline constexpr int kShardsSchema = 1;
inline constexpr const char* kShardsFile = "shards.json";

// "2/8". Fails with kInvalid on anything else, on 0/8, 9/8 and more than kMostShards.
Result<ShardOptions> parse_shard(std::string_view text);

// The relations of a case that the filter leaves, {""} where its golden judges; `dropped`: how many rows it takes away.
// `own`: what the case itself asks for, here and below.
std::vector<std::string> selected_relations(const TestCase& test, const RunOptions& options, const CaseSettings& own,
                                            const Filter& filter, size_t* dropped);

// Engine of a case in this run.
std::string engine_name(const TestCase& test, const RunOptions& options, const CaseSettings& own);

// What cases of one load have in common, as far as the case alone says.
std::string load_key(const TestCase& test, const RunOptions& options, const CaseSettings& own = {});

// Cases with their times, ready to be divided.
struct ShardWork {
  struct Unit {
    size_t at = 0;  // index of RunOptions::cases
    std::vector<std::string> relations;
    bool measured = false;  // all its rows have a recorded duration
  };
  std::vector<Unit> units;
  Workload work;         // pieces parallel to `units`
  bool seconds = false;  // times are microseconds; else they are parts of an estimate and have no unit
};
ShardWork shard_work(const RunOptions& options, const Filter& filter, const Durations& durations);

struct ShardPlan {
  std::vector<bool> mine;  // parallel to RunOptions::cases
  ShardInfo info;
  std::string file;  // text of shards.json
};

// The division for options.shard. Reads the case files for the digest.
ShardPlan plan_shards(const RunOptions& options, const Filter& filter);

// One case of shards.json.
struct ShardedCase {
  std::string name;
  std::string path;
  std::string model;
  std::vector<std::string> relations;  // {""}: judged by its golden
  uint32_t shard = 0;                  // from 1
};
struct ShardFile {
  std::string partition;  // digest
  uint32_t count = 0;
  std::vector<ShardedCase> cases;
};
Result<ShardFile> read_shard_file(const std::filesystem::path& file);

// What a person wants to know about it, one or two lines without a newline at the end.
std::string describe(const ShardInfo& info);

}  // namespace assay::run
