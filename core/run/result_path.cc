#include "core/run/result_path.h"

#include <fmt/format.h>

#include <system_error>

#include "assay/golden.h"
#include "core/golden/golden_name.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;

// Links resolved as far as something is there.
fs::path resolved(const fs::path& path) {
  std::error_code code;
  const fs::path whole = fs::absolute(path, code).lexically_normal();
  const fs::path real = fs::weakly_canonical(whole, code);
  return code ? whole : real;
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code code;
  if (fs::equivalent(a, b, code) && !code) return true;
  return resolved(a) == resolved(b);
}

}  // namespace

Status check_result_path(const std::string& what, const fs::path& path, const TestCase& test,
                         const std::vector<CaseInput>& inputs) {
  if (path.empty()) return {};
  const auto refused = [&](const std::string& input) {
    return invalid(fmt::format("{} {} is {} of the case, which results would replace: give them another place", what,
                               path.string(), input));
  };
  if (!test.config.empty() && same_file(path, test.config)) return refused("the config");
  for (const CaseInput& input : inputs) {
    if (!input.path.empty() && same_file(path, input.path)) return refused(input.what);
  }
  const fs::path file = resolved(path);
  if (parse_golden_name(file.filename().string()) && same_file(file.parent_path(), test.dir)) {
    return refused("a golden");
  }
  return {};
}

}  // namespace assay::run
