// What a command wrote, as records of requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/golden.h"
#include "assay/status.h"
#include "plugins/engines/process/options.h"

namespace assay::engines {

// What the output has to answer.
struct Expected {
  std::vector<std::string> ids;  // of the requests, in their order
};

struct Answers {
  std::vector<RequestRecord> records;  // by the order of Expected::ids; an empty id: no answer
  std::vector<std::string> failures;   // the program's own word on a request: field "error"; empty: none
  std::vector<Quantity> quantities;    // throughput and the like, of all requests together
  std::vector<std::string> notes;      // one line each
  uint64_t restarts = 0;               // of the program by its launcher; read_answers leaves it
};

// `text` is the content of `name`: a file, or "stdout of the command". Formats: docs/engines.md.
// kInvalid with one line that names the line or request: nothing at all, no JSON, invalid UTF-8, wrong types, requests
// that were not asked for, or were answered twice. Missing requests are no failure of the call.
Result<Answers> read_answers(const std::string& text, const std::string& name, OutputFormat format,
                             const Expected& expected);

// One line of the lines format; id: that of the line as decimal or text, empty where it has none; error: its field
// "error", "no message" where that says nothing; record: the rest, its own id says nothing. kInvalid as above.
struct LineRecord {
  std::string id;
  std::string error;
  RequestRecord record;
};
Result<LineRecord> read_line_record(const std::string& line, const std::string& place);

}  // namespace assay::engines
