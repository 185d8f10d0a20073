#include "core/discover/input_path.h"

#include <filesystem>

namespace assay::discover {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

std::string repository_root(const std::string& case_dir) {
  std::error_code error;
  const fs::path start = fs::absolute(case_dir, error).lexically_normal();
  if (error) return {};
  for (fs::path folder = start; !folder.empty(); folder = folder.parent_path()) {
    if (is_there(folder / ".git")) return folder.string();
    if (folder == folder.parent_path()) break;
  }
  for (fs::path folder = start; folder != folder.parent_path(); folder = folder.parent_path()) {
    if (folder.filename() == "functional_tests" && folder.parent_path().filename() == "tests") {
      return folder.parent_path().parent_path().string();
    }
  }
  return {};
}

namespace {

// The file of this name in the case's own folder, where `path` says that it lies in a folder of the case's name: a case
// that was copied out of its repository brings its files along. "" where it does not.
std::string beside_case(const std::string& path, const std::string& case_dir) {
  std::error_code error;
  fs::path folder = fs::absolute(case_dir, error).lexically_normal();
  if (error) return {};
  if (!folder.has_filename()) folder = folder.parent_path();
  const fs::path wanted = fs::path(path).lexically_normal();
  if (!wanted.has_filename() || wanted.parent_path().filename() != folder.filename()) return {};
  return (fs::path(case_dir) / wanted.filename()).string();
}

}  // namespace

Result<std::string> find_input(const std::string& path, const std::string& case_dir) {
  if (path.empty()) return not_found("an empty path is given");
  if (path.find('\0') != std::string::npos) return invalid("a path holds a NUL character");
  if (is_there(path)) return path;
  if (fs::path(path).is_absolute()) return not_found(path + " does not exist");
  const std::string beside = beside_case(path, case_dir);
  const std::string root = repository_root(case_dir);
  const std::string below = root.empty() ? "" : (fs::path(root) / path).lexically_normal().string();
  for (const std::string& place : {below, beside}) {
    if (!place.empty() && is_there(place)) return place;
  }
  if (root.empty()) {
    return not_found(path +
                     " does not exist below the current directory, and no repository root (.git) is above the case");
  }
  return not_found(path + " exists neither below the current directory nor as " + below +
                   (beside.empty() ? "" : " nor as " + beside));
}

}  // namespace assay::discover
