#include <fmt/format.h>

#include <filesystem>

#include "core/golden/golden_name.h"
#include "core/golden/replace_file.h"
#include "core/govern/calibrate.h"

namespace assay::govern {
namespace {

namespace fs = std::filesystem;

// A pending golden that proposes nothing but what is added to it.
Result<PendingGolden> copy_of_judging(const Recording& recording) {
  const auto choice = resolve_golden(recording.test->dir, recording.environment, recording.platform);
  if (!choice) {
    return choice.status().with("noise belongs to a golden, and there is none: 'assay record' makes a pending one");
  }
  auto golden = read_results(choice->path);
  if (!golden) return golden.status();
  auto meta = parse_golden_meta(golden->extra);
  if (!meta) return meta.status().with(choice->path);
  auto digest = golden_digest(choice->path);
  if (!digest) return digest.status();
  PendingGolden pending;
  pending.results = *std::move(golden);
  pending.results.extra.clear();
  pending.meta.provenance = meta->provenance;
  pending.info = recording.info;
  pending.info.golden_sha256 = *std::move(digest);
  return pending;
}

}  // namespace

Result<std::string> write_noise(const Recording& recording, const NoiseModel& noise) {
  const std::string folder = pending_folder(recording.test->dir, recording.pending_dir);
  const std::string path = (fs::path(folder) / pending_name(recording.environment, recording.platform)).string();
  std::error_code error;
  auto pending = fs::exists(path, error) ? read_pending(path, recording.test->dir) : copy_of_judging(recording);
  if (!pending) return pending.status();
  pending->meta.noise = noise;
  fs::create_directories(folder, error);
  if (error) return infra(fmt::format("{}: cannot be made: {}", folder, error.message()));
  const auto lock = FolderLock::take(folder);
  if (!lock) return lock.status();
  if (Status status = replace_file(path, pending_text(*pending), Durability::kPower); !status.ok()) return status;
  return path;
}

}  // namespace assay::govern
