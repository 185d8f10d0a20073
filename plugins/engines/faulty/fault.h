// The faults that can be planted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::engines {

enum class Fault {
  kNone,
  // In the use of the backend.
  kStaleKv,           // a request finds the previous one's KV in the first positions of its row
  kOffByOnePosition,  // every decoded token is put one position too early
  // In the results.
  kEodKept,          // a request that ended early keeps the EOD as a token
  kWrongLogprob,     // one generated logprob is 0.5 nats too low
  kNanLogprob,       // one generated logprob is NaN
  kTruncatedText,    // the second half of the text is missing
  kDroppedRequest,   // the last request submitted is never answered
  kSwappedRequests,  // the first two results carry each other's id
  // In the process.
  kCrash,       // SIGSEGV in the second step
  kExit,        // exit code 0 in the second step
  kHang,        // the second step does not return
  kLeakMemory,  // the second step takes memory until something stops it, at most 4 GiB
};

// The value of the option `fault`, e.g. "stale_kv".
std::string_view to_string(Fault fault);
std::optional<Fault> parse_fault(std::string_view name);
const std::vector<Fault>& all_faults();  // kNone too

}  // namespace assay::engines
