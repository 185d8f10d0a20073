// What a command wrote: records of the requests it had, or one line that says what is wrong.
#include "plugins/engines/process/output.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::engines;
  if (size == 0) return 0;
  const std::string text(assay::fuzz::text_of(data, size).substr(1));
  const Expected expected{.ids = {"0", "1", "2"}};
  for (const OutputFormat format : {OutputFormat::kAuto, OutputFormat::kGolden, OutputFormat::kLines}) {
    const auto answers = read_answers(text, "f", format, expected);
    if (!answers) {
      assay::fuzz::require_message(answers.status().message());
      continue;
    }
    assay::fuzz::require(answers->records.size() == 3 && answers->failures.size() == 3, "one place a request");
    for (size_t i = 0; i < 3; ++i) {
      const std::string& id = answers->records[i].id;
      assay::fuzz::require(id.empty() || id == expected.ids[i], "a record stands at its request");
    }
  }
  const auto line = read_line_record(text, "f");
  if (!line) assay::fuzz::require_message(line.status().message());
  return 0;
}
