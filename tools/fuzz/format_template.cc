// Format strings as Python reads them; a text whose braces are doubled comes back as it was.
#include "core/recipe/format.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::recipe;
  static const Value kValues = Value::parse(
      R"({"a": "word", "n": -42, "t": true, "none": null, "f": 1.5, "list": ["x", 3], "map": {"k": "v"}, "w": 6})");
  const Fields fields = [](std::string_view name) -> const Value* {
    const auto found = kValues.find(std::string(name));
    return found == kValues.end() ? nullptr : &*found;
  };
  const std::string_view text = assay::fuzz::text_of(data, size);
  const auto made = python_format(text, fields);
  if (!made) assay::fuzz::require_message(made.status().message());
  if (made) assay::fuzz::require(made->size() <= kMostFormatted + kWidestField * 4, "the text is bounded");
  format_fields(text);
  std::string doubled;
  for (const char c : text) doubled.append(c == '{' || c == '}' ? 2 : 1, c);
  const auto same = python_format(doubled, fields);
  assay::fuzz::require(same.ok() && *same == text, "doubled braces are braces");
  return 0;
}
