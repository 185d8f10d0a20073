// shards.json and durations of earlier runs.
#include "core/run/durations.h"
#include "core/run/shards.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::run;
  static const assay::fuzz::Folder kFolder;
  const std::string_view text = assay::fuzz::text_of(data, size);
  const auto path = kFolder.write("shards.json", text);
  const auto shards = read_shard_file(path);
  if (!shards) assay::fuzz::require_message(shards.status().message());
  if (shards) {
    for (const ShardedCase& one : shards->cases) {
      assay::fuzz::require(one.shard >= 1 && one.shard <= shards->count, "a case lies in a shard");
    }
  }
  const auto durations = read_durations(path);
  if (!durations) assay::fuzz::require_message(durations.status().message());
  const auto shard = parse_shard(text.substr(0, 32));
  if (!shard) assay::fuzz::require_message(shard.status().message());
  return 0;
}
