#include "core/govern/record.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/compare/checks.h"
#include "core/golden/golden_name.h"
#include "core/golden/replace_file.h"

namespace assay::govern {
namespace {

namespace fs = std::filesystem;

Status check_results(const Recording& recording) {
  if (recording.results.requests.empty()) return invalid("the results hold no request");
  const std::vector<Finding> faults = compare::nonfinite_values("result", recording.results);
  if (faults.empty()) return {};
  const Finding& first = faults.front();
  return invalid(fmt::format("{}{}; results with NaN or infinities are never recorded",
                             first.request.empty() ? "" : fmt::format("request {}: ", first.request), first.message));
}

// An earlier recording's noise model: measuring it costs many runs.
void keep_noise(const std::string& path, const std::string& case_dir, GoldenMeta& meta) {
  const auto earlier = read_pending(path, case_dir);
  if (earlier && earlier->meta.noise) meta.noise = earlier->meta.noise;
}

}  // namespace

std::string pending_folder(const std::string& case_dir, const std::string& pending_dir) {
  if (pending_dir.empty()) return case_dir;
  std::error_code error;
  fs::path full = fs::weakly_canonical(fs::absolute(case_dir, error), error);
  if (!full.has_filename()) full = full.parent_path();
  return (fs::path(pending_dir) / full.parent_path().filename() / full.filename()).string();
}

std::optional<std::string> nearest_golden(const TestCase& test, const std::string& environment,
                                          const std::string& platform) {
  const GoldenFile* best = nullptr;
  int best_rank = 4;
  for (const GoldenFile& golden : test.goldens) {
    const bool here = golden.environment == environment;
    const int rank = here && golden.platform == platform ? 0 : here && golden.platform == "any" ? 1 : here ? 2 : 3;
    if (rank >= best_rank) continue;
    best = &golden;
    best_rank = rank;
  }
  if (best == nullptr) return std::nullopt;
  return (fs::path(test.dir) / best->file).string();
}

Result<Recorded> record(Recording recording, const compare::ComparatorLookup& lookup) {
  const TestCase& test = *recording.test;
  if (Status status = check_results(recording); !status.ok()) return status;
  const auto options = judge_options(test, lookup);
  if (!options) return options.status();
  if (Status status = check_can_judge(*options, recording.results); !status.ok()) return status;
  const auto choice = resolve_golden(test.dir, recording.environment, recording.platform);
  if (!choice && choice.status().code() != StatusCode::kNotFound) return choice.status();

  Recorded recorded;
  recorded.judges = choice.ok();
  const std::string file = golden_name(recording.environment, recording.platform);
  recorded.golden_path = (fs::path(test.dir) / file).string();
  const auto nearest =
      choice ? std::optional(choice->path) : nearest_golden(test, recording.environment, recording.platform);
  ResultSet golden;
  if (nearest) {
    auto read = read_results(*nearest);
    if (!read) return read.status();
    golden = *std::move(read);
    recorded.compared = *nearest;
  }
  recorded.drift = drift_of({.options = &*options,
                             .golden = nearest ? &golden : nullptr,
                             .recorded = &recording.results,
                             .provenance = &recording.provenance});

  const std::string folder = pending_folder(test.dir, recording.pending_dir);
  const std::string path = (fs::path(folder) / pending_name(recording.environment, recording.platform)).string();
  PendingGolden pending;
  keep_noise(path, test.dir, pending.meta);
  std::error_code error;
  if (recorded.judges && !recorded.drift.changed() && !pending.meta.noise) {
    fs::remove(path, error);  // what an earlier recording proposed is gone
    return recorded;
  }
  auto digest = golden_digest(choice ? choice->path : "");
  if (!digest) return digest.status();
  pending.results = std::move(recording.results);
  pending.meta.provenance = std::move(recording.provenance);
  pending.info = std::move(recording.info);
  pending.info.golden_sha256 = *std::move(digest);
  fs::create_directories(folder, error);
  if (error) return infra(fmt::format("{}: cannot be made: {}", folder, error.message()));
  const auto lock = FolderLock::take(folder);
  if (!lock) return lock.status();
  if (Status status = replace_file(path, pending_text(pending), Durability::kPower); !status.ok()) return status;
  recorded.pending = path;
  return recorded;
}

}  // namespace assay::govern
