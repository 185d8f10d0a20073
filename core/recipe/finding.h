// What is wrong with a recipe, with its place.
#pragma once

#include <string>
#include <vector>

#include "core/discover/yaml_tree.h"

namespace assay::recipe {

// kWarning: the recipe can still be read in one way, which is the one taken. kError: what stands there is left out.
enum class Severity { kWarning, kError };

struct Finding {
  Severity severity = Severity::kWarning;
  std::string file;
  int line = 0;  // from 1; 0: of the file as a whole
  int column = 0;
  std::string what;  // one line: thing, seen, expected, remedy
};

inline constexpr size_t kMostFindings = 1000;  // of one file

// "file:line:column: warning: what"; control characters escaped.
std::string to_line(const Finding& finding);

// Collects findings; one that repeats an earlier one is dropped. `file` is the one that notes speak of.
class Findings {
 public:
  explicit Findings(std::string file) : file_(std::move(file)) {}

  void warn(int line, int column, std::string what) { add({Severity::kWarning, file_, line, column, std::move(what)}); }
  void warn(const discover::YamlNode& at, std::string what) { warn(at.line, at.column, std::move(what)); }
  void error(int line, int column, std::string what) { add({Severity::kError, file_, line, column, std::move(what)}); }
  void error(const discover::YamlNode& at, std::string what) { error(at.line, at.column, std::move(what)); }
  void add(Finding finding);

  std::vector<Finding>& list() { return list_; }

 private:
  std::string file_;
  std::vector<Finding> list_;
};

}  // namespace assay::recipe
