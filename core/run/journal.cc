#include "core/run/journal.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

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

}  // namespace

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
  fs::remove_all(folder / "workers", code);
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
