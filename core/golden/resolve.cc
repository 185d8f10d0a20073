#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "assay/golden.h"
#include "core/golden/golden_name.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> goldens_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (is_golden_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<GoldenChoice> resolve_golden(const std::string& case_dir, const std::string& environment,
                                    const std::string& platform) {
  for (const std::string& name : {environment, platform}) {
    if (name.empty() || name.find('/') != std::string::npos) {
      return invalid(fmt::format("environment or platform \"{}\": expected a plain name like dev or cpu_x86_64", name));
    }
  }
  if (!is_golden_name(golden_name(environment, platform))) {
    return invalid(
        fmt::format("platform \"{}\" names pending golden files, which judge nothing; expected one like "
                    "cpu_x86_64",
                    platform));
  }
  const fs::path folder(case_dir);
  for (const bool exact : {true, false}) {
    const fs::path path = folder / golden_name(environment, exact ? platform : "any");
    std::error_code error;
    const fs::file_type kind = fs::status(path, error).type();
    if (kind == fs::file_type::regular) return GoldenChoice{path.string(), exact};
    if (fs::symlink_status(path, error).type() == fs::file_type::not_found) continue;
    // It is there and cannot judge: falling through to another golden, or to none, would hide that.
    return invalid(fmt::format("{}: {}, expected a file", path.string(),
                               kind == fs::file_type::directory   ? "a folder"
                               : kind == fs::file_type::not_found ? "a link that leads nowhere"
                                                                  : "no regular file"));
  }
  const std::vector<std::string> present = goldens_in(folder);
  return not_found(
      fmt::format("{}: no golden file for environment {} and platform {} (looked for "
                  "golden_values_{}_{}.json, then golden_values_{}_any.json); present: {}",
                  case_dir, environment, platform, environment, platform, environment,
                  present.empty() ? "none" : fmt::format("{}", fmt::join(present, ", "))));
}

}  // namespace assay
