#include "core/golden/plain_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/golden/json_text.h"
#include "core/golden/result_builder.h"

namespace assay::json {
namespace {

// "line:column" of a byte offset, both from 1.
std::string position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return fmt::format("{}:{}", line, std::max<size_t>(column, 1));
}

// One pass over a document. `place` names it in messages.
Status parse(std::string_view document, const std::string& place, ResultSet& set, bool& was_string,
             std::string& inner) {
  if (document.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return invalid(place + " is empty; expected a JSON object of requests");
  }
  const Blanked blanked = blank_nonfinite(document);
  const std::string_view text = blanked.text(document);
  ResultBuilder builder(set, blanked.nonfinite);
  if (nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder)) {
    was_string = builder.was_string();
    inner = std::move(builder.top_string());
    return {};
  }
  if (builder.error_offset() == std::string::npos) return invalid(fmt::format("{}: {}", place, builder.error()));
  return invalid(
      fmt::format("{}:{}: not valid JSON: {}", place, position(text, builder.error_offset()), builder.error()));
}

}  // namespace

Result<ResultSet> read_plainly(std::string_view json, const std::string& name) {
  ResultSet set;
  bool was_string = false;
  std::string inner;
  if (Status status = parse(json, name, set, was_string, inner); !status.ok()) return status;
  if (was_string) {
    set.string_wrapped = true;
    const std::string document = std::move(inner);
    const std::string place = name + " (inside its string)";
    if (Status status = parse(document, place, set, was_string, inner); !status.ok()) return status;
    if (was_string) return invalid(place + " holds one more string; expected an object of requests");
  }
  return set;
}

}  // namespace assay::json
