// The engine run again with the golden's tokens fed back (re-anchoring): what judging asks for, implemented by whoever
// holds an engine (core/run/reanchor.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/golden.h"
#include "assay/status.h"

namespace assay::compare {

// What the engine says at one generated position after the golden tokens before it.
struct RerunPosition {
  std::vector<TopEntry> top;             // descending logprob, as the engine breaks ties; [0] is what it prefers
  std::optional<double> golden_logprob;  // nats
  std::optional<double> golden_logit;    // raw
  std::optional<int64_t> golden_rank;    // 0: preferred

  const TopEntry* find(int32_t id) const {
    for (const TopEntry& entry : top) {
      if (entry.id == id) return &entry;
    }
    return nullptr;
  }
};

struct RerunRequest {
  std::string id;
  std::string not_done;                // why this request could not be re-anchored, one line; empty: it was
  std::vector<int32_t> golden_tokens;  // (G) fed back: the golden's, or the ids of its text; run_own: the judged run's
  std::vector<RerunPosition> positions;  // (<= G) the first positions; fewer: the rest was not looked at
  uint64_t further = 0;                  // tokens that the engine went on with after the golden's last one
  // Results on the golden tokens (tokens == golden_tokens), top-n lists as long as the judged run's; nullopt: not
  // complete.
  std::optional<RequestRecord> record;
};

struct RerunResult {
  std::string method;                  // see Reanchoring::method
  std::vector<RerunRequest> requests;  // in any order; those of the golden that were submitted

  const RerunRequest* find(std::string_view id) const {
    for (const RerunRequest& request : requests) {
      if (request.id == id) return &request;
    }
    return nullptr;
  }
};

// A request whose tokens or text part from the golden's.
struct PartedRequest {
  std::string id;
  std::string golden_text;  // as judged, newlines plain; empty: the golden has none
};

struct RerunInput {
  const ResultSet* golden = nullptr;  // borrowed, never null
  const ResultSet* actual = nullptr;  // the judged run; borrowed, never null
  std::vector<PartedRequest> parted;  // ascending id
};

class Rerun {
 public:
  virtual ~Rerun() = default;

  // Bits of mantissa of the engine's logits, hidden bit included (assay_model_info); 0: not known.
  virtual int logits_mantissa() const = 0;

  // Runs all requests of the case on a fresh engine of the same options, in the same order and batches, so that a bug
  // that depends on state happens again. Called at most once a case. Fails where nothing can be rerun, with the reason.
  virtual Result<RerunResult> run(const RerunInput& input) = 0;

  // The same with the judged run's own tokens fed back, which shows whether the engine takes them: behind a split the
  // golden says nothing about the judged run any more. Called at most once, after run(). kUnsupported: cannot be done.
  virtual Result<RerunResult> run_own(const RerunInput&) {
    return unsupported("this engine cannot be fed the judged run's own tokens");
  }
};

}  // namespace assay::compare
