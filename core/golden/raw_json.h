// Rebuilds JSON text from parser events: how a field that we only carry along is kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::json {

// Feed one value's events in order; done() turns true with its last one. Reusable after reset().
class RawJson {
 public:
  // Nesting that is refused (start_* return false).
  static constexpr size_t kMaxDepth = 64;

  void reset();
  void scalar(std::string_view json);
  void string(std::string_view value);
  void key(std::string_view name);
  bool start(char bracket);  // '{' or '['
  void end();
  bool done() const { return open_.empty() && !text_.empty(); }
  std::string take();

 private:
  void separate();

  std::string text_;
  std::vector<char> open_;  // closing brackets still due
  bool first_ = true;       // nothing stands yet in the innermost bracket
  bool after_key_ = false;
};

}  // namespace assay::json
