#include "core/run/journal.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "core/golden/text.h"
#include "core/run/events.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;

Status make_parts(const fs::path& folder) {
  std::error_code code;
  for (const char* part : {"workers", "cases"}) {
    fs::create_directories(folder / part, code);
    if (code) return infra(fmt::format("{}: {}", (folder / part).string(), code.message()));
  }
  return {};
}

std::string printable(const fs::path& path) { return text::printable(path.string()); }

// w000.plan.json and the like, or the heartbeat of a runner.
bool belongs_to_workers(const std::string& name) {
  if (name == "heartbeat" || name == "heartbeat.part") return true;
  const size_t end = name.find_first_not_of("0123456789", 1);
  return name.starts_with('w') && end != std::string::npos && end > 1 && name[end] == '.';
}

// Removes what workers of an earlier run left. kInvalid, and nothing is removed: something else is there, too.
Status clear_workers(const fs::path& folder) {
  const fs::path workers = folder / "workers";
  std::error_code code;
  const fs::file_type type = fs::symlink_status(workers, code).type();
  if (type == fs::file_type::not_found) return {};
  const auto foreign = [](const fs::path& path) {
    return invalid(fmt::format("{}: is of no run and would be lost; choose another --output", printable(path)));
  };
  if (type != fs::file_type::directory) return foreign(workers);
  std::vector<fs::path> files;
  for (fs::directory_iterator at(workers, code), end; !code && at != end; at.increment(code)) {
    std::error_code unknown;
    const bool plain = !fs::is_directory(at->symlink_status(unknown));
    if (!plain || !belongs_to_workers(at->path().filename().string())) return foreign(at->path());
    files.push_back(at->path());
  }
  for (size_t i = 0; i < files.size() && !code; ++i) fs::remove(files[i], code);
  return code ? infra(fmt::format("{}: {}; choose another --output", printable(workers), code.message())) : Status();
}

// Whether a results.jsonl that is there may be replaced: no case was planned by who wrote it.
Status check_journal(const fs::path& folder) {
  const fs::path file = folder / "results.jsonl";
  std::error_code code;
  const fs::file_status found = fs::status(file, code);
  if (found.type() == fs::file_type::not_found) return {};
  std::ifstream stream(file, std::ios::binary);
  if (!fs::is_regular_file(found) || !stream) {
    return invalid(fmt::format("{}: cannot be read as a file; choose another --output", printable(file)));
  }
  std::string line;
  while (std::getline(stream, line) && !stream.eof()) {
    const auto event = parse_line(line);
    if (!event) {
      return invalid(
          fmt::format("{}: is no journal of a run and would be lost; choose another --output", printable(file)));
    }
    if (!event->contains("case")) continue;
    return invalid(
        fmt::format("--output {0}: holds a run, whose results would be lost; go on with it by --resume {0}, "
                    "or choose a new --output",
                    printable(folder)));
  }
  return {};
}

}  // namespace

Status check_new_output(const fs::path& folder) {
  if (Status free = check_journal(folder); !free.ok()) return free;
  std::error_code code;
  if (fs::exists(folder / ".lock", code)) return {};  // of a run that wrote nothing down, or one that was discarded
  for (const char* name : {"cases", "workers", "report.html", "report.json", "junit.xml"}) {
    const fs::path ours = folder / name;
    const fs::file_type type = fs::symlink_status(ours, code).type();
    if (type == fs::file_type::not_found) continue;
    if (type == fs::file_type::directory && fs::is_empty(ours, code) && !code) continue;
    return invalid(
        fmt::format("{}: is of no run, and a run would write over it; choose another --output", printable(ours)));
  }
  return {};
}

Status discard_run(const fs::path& folder) {
  std::error_code code;
  if (!fs::exists(folder / "results.jsonl", code)) return {};
  Result<FolderLock> lock = FolderLock::take(folder);
  if (!lock) return lock.status();
  std::ifstream stream(folder / "results.jsonl", std::ios::binary);
  std::string line;
  if (std::getline(stream, line) && !stream.eof() && !parse_line(line)) return check_journal(folder);
  fs::remove(folder / "results.jsonl", code);
  return code ? infra(
                    fmt::format("{}: {}; choose another --output", printable(folder / "results.jsonl"), code.message()))
              : Status();
}

Result<Journal> Journal::open(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  std::error_code unseen;
  if (!fs::is_directory(folder, unseen)) {
    const std::error_code& why = code ? code : unseen;
    return infra(fmt::format("{}: cannot be made a folder: {}; choose another --output", folder.string(),
                             why ? why.message() : "something else is there"));
  }
  Result<FolderLock> lock = FolderLock::take(folder);
  if (!lock) return lock.status();
  if (Status free = check_journal(folder); !free.ok()) return free;
  if (Status cleared = clear_workers(folder); !cleared.ok()) return cleared;
  if (Status made = make_parts(folder); !made.ok()) return made;
  Result<EventWriter> writer = EventWriter::create(folder / "results.jsonl");
  if (!writer) return writer.status();
  return Journal(*std::move(lock), *std::move(writer));
}

Result<Journal> Journal::reopen(const fs::path& folder, FolderLock lock) {
  if (Status made = make_parts(folder); !made.ok()) return made;
  Result<EventWriter> writer = EventWriter::reopen(folder / "results.jsonl");
  if (!writer) return writer.status();
  return Journal(std::move(lock), *std::move(writer));
}

}  // namespace assay::run
