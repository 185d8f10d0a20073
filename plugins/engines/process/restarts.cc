// Restarts of a program that answers requests, by the launcher that started it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/golden/file.h"
#include "plugins/engines/process/process.h"

namespace assay::engines {

Restarts ProcessEngine::restarts_of(const Paths& paths, int attempts) const {
  Restarts all = restarts_in("", paths.folder / "logs");
  all.count = std::max(all.count - attempts, 0);
  for (const std::filesystem::path& file : {paths.err, paths.out}) {
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
