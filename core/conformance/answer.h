// What an engine answered to one request, copied out of its memory, and how two answers differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "core/conformance/findings.h"

namespace assay::conformance {

struct Answer {
  bool asked_in_utf8 = true;  // else what echoes the request may be ill-formed, too
  bool ended = false;         // FINISHED or FAILED was seen
  int32_t code = ASSAY_OK;    // of FAILED
  std::string message;
  std::vector<int32_t> streamed;  // TOKEN events
  std::string prompt;
  std::string text;
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> tokens;
  std::vector<double> prompt_logprobs;
  std::vector<double> generated_logprobs;
  std::vector<int32_t> top_ids;  // of generated positions, flattened
  std::vector<double> top_logprobs;
  std::vector<uint32_t> top_counts;
  std::vector<std::string> top_texts;
  std::vector<uint16_t> routing;
  size_t tpot = 0;  // how many times were given

  bool finished() const { return ended && code == ASSAY_OK; }
};

// Copies `result` into `answer`, reading only what its `size` covers; what it must be in itself is expected of it:
// lengths that agree, finite logprobs, lists in order, UTF-8 where the request was.
void copy_result(Findings& findings, const std::string& what, const assay_result& result, Answer* answer);

// "" where every value is equal bit for bit; else the first part that is not: "tokens[3]: 5 and 7". Times are not
// compared.
std::string first_difference(const Answer& a, const Answer& b);

}  // namespace assay::conformance
