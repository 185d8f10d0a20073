// Options of engines: a flat JSON object.
#include "plugins/engines/common/options_json.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::engines::OptionsReader reader(assay::fuzz::text_of(data, size), "options of the fuzzer");
  std::optional<int64_t> whole;
  int32_t small = 3;
  double number = 0.5;
  bool flag = false;
  std::string text;
  std::string choice = "a";
  std::vector<std::string> texts;
  reader.integer("whole", -5, 5, &whole);
  reader.integer("small", 1, 7, &small);
  reader.number("number", {.above = 0, .most = 1}, &number);
  reader.boolean("flag", &flag);
  reader.string("text", &text);
  reader.choice("choice", {"a", "b"}, &choice);
  reader.strings("texts", &texts);
  const assay::Status status = reader.finish();
  if (!status.ok()) assay::fuzz::require_message(status.message());
  assay::fuzz::require(small >= 1 && small <= 7 && number > 0 && number <= 1, "numbers stay in their range");
  assay::fuzz::require(!whole || (*whole >= -5 && *whole <= 5), "numbers stay in their range");
  assay::fuzz::require(choice == "a" || choice == "b", "a choice is one of those that there are");
  return 0;
}
