// A recipe file: what it says, and the workloads that its products expand to.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "core/recipe/finding.h"
#include "core/recipe/value.h"

namespace assay::recipe {

inline constexpr std::array<std::string_view, 4> kCadences = {"pr", "nightly", "mergegroup", "weekly"};
inline constexpr size_t kMostWorkloads = 100'000;           // of one recipe
inline constexpr size_t kMostExpanded = size_t{256} << 20;  // bytes of all specs of one recipe, as written out

// The tier that a scope's older name stands for ("nightly" -> "L2"); other names stay.
std::string resolve_scope(const std::string& scope);

// One row of the matrix. `spec` holds the file's spec without the keys that the row sets, then the row's keys in their
// order, then test_case and cadence, as Megatron-LM's parser builds it; with `build` formatted, {platforms} of
// artifacts replaced, and the parser's defaults for n_repeat (1), time_limit (1800 seconds) and artifacts ({}).
struct Workload {
  Value spec = Value::object();
  std::string type;  // of the file: "basic", "build"
  std::string file;  // as reached from the given path
  int line = 0;      // of the product
  int column = 0;
  bool own_repeat = false;      // the recipe says n_repeat itself
  bool own_time_limit = false;  // likewise time_limit
  std::string name;             // spec.name formatted; the template where it cannot be
  std::string script;           // spec.script formatted; empty where it cannot be
  Status error;                 // a template, or a value that has to be there, is wrong; also a finding

  bool is_build() const { return type == "build"; }
  std::string text(std::string_view key) const;  // of spec, as Python prints it; "" where absent or null
};

// Where scripts are told to put results.
struct Folders {
  std::string assets = "$OUTPUT_PATH";
  std::string artifacts = "$OUTPUT_PATH";
};

struct Recipe {
  std::vector<Workload> workloads;
  std::optional<Workload> build;  // of a file named _build*: what workloads of this build depend on
  std::vector<Finding> findings;  // kError: something was left out
};

// Reads the text of one recipe file. Never fails as a whole: what cannot be read is an error in `findings`. Pure.
Recipe expand(std::string text, const std::string& file, const Folders& folders);

}  // namespace assay::recipe
