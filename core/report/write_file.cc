#include "core/report/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace assay::report {

Status write_report(const std::string& path, std::string_view text, const std::string& what) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  std::remove(temporary.c_str());
  return infra(fmt::format("{}: the {} cannot be written; check that the folder exists and has room", path, what));
}

}  // namespace assay::report
