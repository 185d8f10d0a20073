#include "core/train/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/discover/arguments.h"
#include "core/golden/file.h"
#include "core/golden/replace_file.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{50};
constexpr int kUnreadable = 1;

fs::path mark(const fs::path& folder, int rank) { return folder / fmt::format("node_{}", rank); }

// The exit code that a node wrote; kUnreadable where the file holds none.
int code_in(const fs::path& file) {
  const Result<std::string> text = read_file(file.string());
  const Result<int64_t> code = text ? discover::parse_int(*text) : text.status();
  return code && *code >= 0 && *code <= std::numeric_limits<int>::max() ? static_cast<int>(*code) : kUnreadable;
}

}  // namespace

Meeting::Meeting(NodeMeeting where, int nodes, int rank, std::function<bool()> cancelled)
    : where_(std::move(where)), nodes_(nodes), rank_(rank), cancelled_(std::move(cancelled)) {}

Status Meeting::wait(const std::string& name) const {
  if (nodes_ <= 1) return {};
  const fs::path folder = fs::path(where_.folder) / name;
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return infra(folder.string() + ": " + code.message());
  if (!fs::exists(mark(folder, rank_), code)) {
    if (Status made = replace_file(mark(folder, rank_).string(), "", Durability::kProcess); !made.ok()) return made;
  }
  const auto deadline = Clock::now() + std::chrono::duration<double>(where_.seconds);
  while (true) {
    std::vector<int> missing;
    for (int rank = 0; rank < nodes_; ++rank) {
      if (!fs::exists(mark(folder, rank), code)) missing.push_back(rank);
    }
    if (missing.empty()) return {};
    if (cancelled_ && cancelled_()) return {StatusCode::kCancelled, "cancelled while waiting for other nodes"};
    if (Clock::now() > deadline) {
      return infra(fmt::format("{}: {} of {} nodes came within {:g} s, missing: {}", folder.string(),
                               nodes_ - static_cast<int>(missing.size()), nodes_, where_.seconds,
                               fmt::join(missing, ", ")));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

Result<int> Meeting::exchange(const std::string& phase, int exit_code) const {
  if (nodes_ <= 1) return exit_code;
  const std::string name = phase + "_status";
  const fs::path folder = fs::path(where_.folder) / name;
  std::error_code code;
  fs::create_directories(folder, code);
  Status written = replace_file(mark(folder, rank_).string(), std::to_string(exit_code) + "\n", Durability::kProcess);
  if (!written.ok()) return written;
  if (Status met = wait(name); !met.ok()) return met;
  int worst = exit_code;
  for (int rank = 0; rank < nodes_; ++rank) {
    if (worst == 0) worst = code_in(mark(folder, rank));
  }
  return worst;
}

}  // namespace assay::train
