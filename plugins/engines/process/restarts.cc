// Restarts of a program by the launcher that started it.
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/discover/arguments.h"
#include "core/golden/file.h"
#include "plugins/engines/process/process.h"

namespace assay::engines {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRestarts = 1'000'000;  // a folder that claims more is not of the launcher

}  // namespace

Restarts restarts_in(const std::string& log, const fs::path& logs) {
  Restarts restarts;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    if (line.find("attempts left; will restart") != std::string::npos) restarts.lines.push_back(std::move(line));
  }
  restarts.count = static_cast<int>(restarts.lines.size());
  // <logs>/<run id>/attempt_<n>/<rank>/...
  std::error_code code;
  for (auto entry = fs::recursive_directory_iterator(logs, fs::directory_options::skip_permission_denied, code);
       !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    if (entry.depth() > 1) entry.disable_recursion_pending();
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("attempt_") || !entry->is_directory(code)) continue;
    const Result<int64_t> number = discover::parse_int(name.substr(8));
    if (number && *number <= kMostRestarts) restarts.count = std::max(restarts.count, static_cast<int>(*number));
  }
  return restarts;
}

Restarts ProcessEngine::restarts_of(const fs::path& logs, const std::vector<fs::path>& files, int attempts) const {
  Restarts all = restarts_in("", logs);
  all.count = std::max(all.count - attempts, 0);
  for (const fs::path& file : files) {
    const Result<std::string> text = read_file(file.string());
    if (!text) continue;
    Restarts told = restarts_in(*text, {});
    for (std::string& line : told.lines) all.lines.push_back(redactor_.text(std::move(line)));
  }
  if (!all.lines.empty()) all.count = static_cast<int>(all.lines.size());
  return all;
}

std::string ProcessEngine::told_restarts(const Restarts& restarts) const {
  if (restarts.lines.empty() && restarts.count > 0) {
    const std::string line = fmt::format("restarted {} time{}", restarts.count, restarts.count == 1 ? "" : "s");
    host_.log(ASSAY_LOG_WARN, line);
    return "; " + line;
  }
  std::string told;
  for (size_t i = 0; i < restarts.lines.size(); ++i) {
    const std::string line = fmt::format("restart {}: {}", i + 1, restarts.lines[i]);
    host_.log(ASSAY_LOG_WARN, line);
    told += "; " + line;
  }
  return told;
}

}  // namespace assay::engines
