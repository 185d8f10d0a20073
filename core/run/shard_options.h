// What is asked for and what is told about the shards of a run: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay::run {

// How long a case took once.
struct Duration {
  double seconds = 0;       // > 0, of all its repeats, without the load
  double load_seconds = 0;  // of the load that it shared with its group
  int repeats = 1;
};

struct Durations {
  std::map<std::string, Duration> cases;  // by name, with "@relation" where one judged
};

// --shard i/n and --durations.
struct ShardOptions {
  uint32_t index = 1;  // from 1
  uint32_t count = 1;
  Durations durations;
};

// How a sharded run is divided, as its journal has it.
struct ShardInfo {
  uint32_t index = 0;  // from 1; 0: the run is no shard
  uint32_t count = 0;
  size_t cases = 0;               // of all shards
  size_t rows = 0;                // of all shards: each relation of a case counts
  size_t cases_here = 0;          // of this shard
  uint64_t loads = 0;             // of this shard, predicted
  size_t estimated = 0;           // cases of all shards without a recorded duration
  std::vector<double> predicted;  // (shards) seconds, loads included; empty where no duration is recorded
  std::string case_list;          // digest of all cases that were divided: names, configs, goldens
  std::string partition;          // digest of who is in which shard
};

}  // namespace assay::run
