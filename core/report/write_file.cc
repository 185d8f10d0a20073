#include "core/report/write_file.h"

#include <fmt/format.h>

#include "core/golden/replace_file.h"

namespace assay::report {

Status write_report(const std::string& path, std::string_view text, const std::string& what) {
  const Status written = replace_file(path, text, Durability::kProcess);
  if (written.ok()) return {};
  return infra(fmt::format("the {} is lost: {}; check that the folder exists and has room", what, written.message()));
}

}  // namespace assay::report
