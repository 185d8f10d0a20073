#include "core/report/write_file.h"

#include <fmt/format.h>

#include "core/golden/replace_file.h"

namespace assay::report {

Status write_report(const std::string& path, std::string_view text, const std::string& what) {
  if (replace_file(path, text, Durability::kProcess).ok()) return {};
  return infra(fmt::format("{}: the {} cannot be written; check that the folder exists and has room", path, what));
}

}  // namespace assay::report
