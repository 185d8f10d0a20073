// JSON as Python reads it: whatever strict JSON a common library takes, with the same shape.
#include <nlohmann/json.hpp>

#include "core/compat/py_json.h"
#include "tools/fuzz/fuzz.h"

namespace {

using assay::compat::Value;

bool same_shape(const nlohmann::json& theirs, const Value& ours) {
  using Kind = Value::Kind;
  switch (theirs.type()) {
    case nlohmann::json::value_t::null:
      return ours.kind == Kind::kNone;
    case nlohmann::json::value_t::boolean:
      return ours.kind == Kind::kBool && ours.integer == (theirs.get<bool>() ? 1 : 0);
    case nlohmann::json::value_t::number_integer:
    case nlohmann::json::value_t::number_unsigned:
      return ours.is_integer();
    case nlohmann::json::value_t::number_float:
      return ours.is_number();
    case nlohmann::json::value_t::string:
      return ours.kind == Kind::kText;
    case nlohmann::json::value_t::array:
      if (ours.kind != Kind::kList || ours.items.size() != theirs.size()) return false;
      for (size_t i = 0; i < theirs.size(); ++i) {
        if (!same_shape(theirs[i], ours.items[i])) return false;
      }
      return true;
    default:
      return ours.kind == Kind::kDict && ours.members.size() == theirs.size();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = assay::fuzz::text_of(data, size);
  if (text.find('\0') != std::string_view::npos) return 0;  // there the library takes the text for ended
  const nlohmann::json theirs = nlohmann::json::parse(text, nullptr, false);
  try {
    const Value ours = assay::compat::load_json(assay::compat::decode_utf8(text));
    assay::fuzz::require(theirs.is_discarded() || same_shape(theirs, ours), "both readers see the same value");
    const bool nan = ours.kind == Value::Kind::kFloat && ours.number != ours.number;
    assay::fuzz::require(assay::compat::equal(ours, ours) != nan, "a value equals itself, a bare NaN alone does not");
  } catch (const assay::compat::PyError& error) {
    assay::fuzz::require(!error.kind.empty(), "an exception has a class");
    const bool limit = error.kind == "RecursionError" || error.kind == "ValueError";
    const bool mark = text.substr(0, 3) == "\xEF\xBB\xBF";  // the library skips a byte order mark, Python does not
    assay::fuzz::require(theirs.is_discarded() || limit || mark, "strict JSON is read");
  }
  return 0;
}
