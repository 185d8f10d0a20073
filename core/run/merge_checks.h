// Whether runs may become one. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/run/read_run.h"

namespace assay::run {

// Whether all runs ask the same: version, options, environment, platform. kInvalid lists what differs, each with both
// runs and both values.
Status check_same_request(const std::vector<RunRecord>& runs);

// Whether those that are shards are shards of one division, each there once (unless `allow_twice`). kInvalid names two
// runs that do not fit.
Status check_shards(const std::vector<RunRecord>& runs, bool allow_twice);

// Numbers of the shards that no run is, ascending; empty also where no run is a shard.
std::vector<uint32_t> missing_shards(const std::vector<RunRecord>& runs);

// The command of a run without the words that differ between shards: --shard, --output and the like.
std::vector<std::string> common_command(const std::vector<std::string>& command);

}  // namespace assay::run
