#include "core/run/merge_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

namespace assay::run {
namespace {

namespace fs = std::filesystem;

Status failed(const fs::path& path, const std::error_code& code) {
  return infra(fmt::format("{}: {}; check the disk and the permissions", path.string(), code.message()));
}

// Neither lies in the other.
bool apart(const fs::path& a, const fs::path& b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return in_a != a.end() && in_b != b.end();
}

// A folder or file with what lies below it. Links to what lies elsewhere become copies of that, as a case that an
// earlier merge took over is made of them; the others stay links. Pipes, sockets and devices hold nothing to keep.
// `roots` are the folders that are being copied, free of links.
Status copy_tree(const fs::path& from, const fs::path& to, std::vector<fs::path>* roots) {
  std::error_code code;
  const fs::file_status kind = fs::symlink_status(from, code);
  if (fs::is_symlink(kind)) {
    const fs::path real = fs::canonical(from, code);
    if (!code && std::all_of(roots->begin(), roots->end(), [&](const fs::path& root) { return apart(real, root); })) {
      roots->push_back(real);
      Status copied = copy_tree(real, to, roots);
      roots->pop_back();
      return copied;
    }
    fs::copy_symlink(from, to, code);
  } else if (fs::is_directory(kind)) {
    fs::create_directory(to, code);
    for (fs::directory_iterator at(from, code), end; !code && at != end; at.increment(code)) {
      if (Status copied = copy_tree(at->path(), to / at->path().filename(), roots); !copied.ok()) return copied;
    }
  } else if (fs::is_regular_file(kind)) {
    fs::copy_file(from, to, code);
  }
  return code ? failed(from, code) : Status();
}

Status link_to(const fs::path& from, const fs::path& to) {
  std::error_code code;
  fs::create_directory_symlink(from.lexically_relative(to.parent_path()), to, code);
  return code ? failed(to, code) : Status();
}

// Whether there is something at `path`; what cannot be looked at is a failure, not an absence.
Result<bool> is_there(const fs::path& path) {
  std::error_code code;
  const fs::file_status found = fs::status(path, code);
  if (!fs::status_known(found)) return failed(path, code);
  if (fs::exists(found) && !fs::is_directory(found)) {
    return infra(path.string() + ": is no folder, expected the results of a case; the run was damaged");
  }
  return fs::exists(found);
}

}  // namespace

Status place_cases(const fs::path& output, const std::vector<CaseFolder>& folders, bool copy) {
  std::error_code code;
  fs::remove_all(output / "cases", code);
  if (code) return failed(output / "cases", code);
  fs::create_directories(output / "cases", code);
  if (code) return failed(output / "cases", code);
  const fs::path cases = fs::canonical(output / "cases", code);
  if (code) return failed(output / "cases", code);
  std::vector<const CaseFolder*> sorted;
  for (const CaseFolder& folder : folders) sorted.push_back(&folder);
  std::sort(sorted.begin(), sorted.end(), [](const CaseFolder* a, const CaseFolder* b) { return a->id < b->id; });
  std::set<std::string> ids;
  std::set<std::string> parents;  // of cases: folders of their own, whatever they are besides
  for (const CaseFolder* folder : sorted) {
    ids.insert(folder->id);
    for (fs::path up = fs::path(folder->id).parent_path(); !up.empty(); up = up.parent_path()) {
      if (!parents.insert(up.string()).second) break;
      fs::create_directories(cases / up, code);
      if (code) return failed(cases / up, code);
    }
  }
  for (const CaseFolder* folder : sorted) {
    const Result<bool> there = is_there(folder->from);
    if (!there) return there.status();
    if (!*there) continue;  // nothing was written
    std::vector<fs::path> roots = {fs::canonical(folder->from, code)};
    if (code) return failed(folder->from, code);
    const auto place = [&](const fs::path& from, const fs::path& to) {
      return copy ? copy_tree(from, to, &roots) : link_to(from, to);
    };
    if (parents.count(folder->id) == 0) {
      if (Status placed = place(copy ? roots[0] : folder->from, cases / folder->id); !placed.ok()) return placed;
      continue;
    }
    for (fs::directory_iterator at(folder->from, code), end; !code && at != end; at.increment(code)) {
      const fs::path to = cases / folder->id / at->path().filename();
      std::error_code ignored;
      if (fs::exists(fs::symlink_status(to, ignored))) continue;
      const std::string below = (fs::path(folder->id) / at->path().filename()).string();
      if (ids.count(below) + parents.count(below) > 0) continue;  // a case has its own
      if (Status placed = place(at->path(), to); !placed.ok()) return placed;
    }
    if (code) return failed(folder->from, code);
  }
  return {};
}

}  // namespace assay::run
