#include "core/train/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "core/discover/arguments.h"
#include "core/golden/file.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";
constexpr std::string_view kIteration = "iter_";

std::optional<int64_t> iteration_of(const std::string& name) {
  if (!name.starts_with(kIteration)) return std::nullopt;
  int64_t iteration = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kIteration.size(), end, iteration);
  return error == std::errc() && stop == end ? std::optional(iteration) : std::nullopt;
}

Status failed(const std::string& path, const std::error_code& code) { return infra(path + ": " + code.message()); }

// Empties `folder`, or makes it.
Status make_empty(const std::string& folder) {
  std::error_code code;
  fs::remove_all(folder, code);
  if (!code) fs::create_directories(folder, code);
  return code ? failed(folder, code) : Status();
}

}  // namespace

int64_t tracked_iteration(const std::string& folder) {
  const Result<std::string> text = read_file((fs::path(folder) / kTracker).string());
  const Result<int64_t> iteration = text ? discover::parse_int(*text) : text.status();
  return iteration && *iteration >= 0 ? *iteration : 0;
}

std::string iteration_name(int64_t iteration) { return fmt::format("iter_{:07}", iteration); }

bool is_empty_or_absent(const std::string& folder) {
  std::error_code code;
  const fs::directory_iterator entries(folder, code);
  if (code) return code == std::errc::no_such_file_or_directory;  // what cannot be read may hold something
  return entries == fs::directory_iterator();
}

Status set_aside(const std::string& path) {
  std::error_code code;
  for (int i = 1;; ++i) {
    const std::string other = fmt::format("{}.before_{}", path, i);
    if (fs::exists(other, code)) continue;
    fs::rename(path, other, code);
    return code ? infra(path + ": " + code.message()) : Status();
  }
}

Status make_resume_view(const std::string& saved, int64_t half, const std::string& view) {
  if (Status made = make_empty(view); !made.ok()) return made;
  std::error_code code;
  std::vector<std::string> iterations;
  bool found = false;
  for (fs::directory_iterator at(saved, code); !code && at != fs::directory_iterator(); at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name == kTracker) continue;
    if (const std::optional<int64_t> iteration = iteration_of(name)) {
      iterations.push_back(name);
      found = found || *iteration == half;
      if (*iteration > half) continue;
    }
    std::error_code linked;
    fs::create_symlink(fs::absolute(at->path()), fs::path(view) / name, linked);
    if (linked) return failed((fs::path(view) / name).string(), linked);
  }
  if (code) return failed(saved, code);
  if (!iterations.empty() && !found) {
    std::sort(iterations.begin(), iterations.end());
    return invalid(fmt::format("{}: run 1 saved no {} to resume from (there: {}); --save-interval has to divide {}",
                               saved, iteration_name(half), iterations.back(), half));
  }
  std::ofstream tracker(fs::path(view) / kTracker);
  tracker << half << "\n";
  tracker.close();
  return tracker ? Status() : infra(view + ": cannot be written");
}

}  // namespace assay::train
