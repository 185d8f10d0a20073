// The expressions of --filter.
//
//   expression := term { "or" term }          term := factor { ["and"] factor }
//   factor     := "not" factor | "(" expression ")" | [key ":"] glob
//   key        := "name" | "metric" | "engine" | "tag" | "model" | "mode"  (a bare glob is a name)
// Globs know *, ? and [a-z]; they match the whole value, letters as written. A glob in double quotes may hold blanks,
// parentheses and the words and, or, not. `metric:` and `tag:` hold when one of the case's values matches; `name:` when
// the whole name or its last part ("moe/case_b1": "case_b1") does; of a relation ("moe/case_b1@prefix_cache") also when
// these do without what follows the case's name, so that a case's name selects all its relations.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::run {

// What an expression can ask about a case.
struct FilterSubject {
  std::string name;  // of the row: with "@relation" where there is one
  std::string model;
  std::string engine;
  std::vector<std::string> metrics;
  std::vector<std::string> tags;
  std::string relation = {};
  std::string mode = {};  // "inference", "rl", "pretraining"
};

// Immutable after parse(); safe from any thread.
class Filter {
 public:
  // Fails with kInvalid: what is wrong, at which column (1-based), and what was expected. Blank text selects
  // everything.
  static Result<Filter> parse(std::string_view text);

  bool matches(const FilterSubject& subject) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;  // null: everything
};

}  // namespace assay::run
