// The engine run again with a golden's tokens fed back, inside a worker (core/compare/rerun.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/compare/rerun.h"
#include "core/run/engine_session.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// Engines with ASSAY_CAP_FORCED_TOKENS get the golden's tokens forced ("forced"); others are asked again and again with
// prompt + golden prefix as ids ("continued"). For one thread.
class EngineRerun final : public compare::Rerun {
 public:
  // `input`, `order`: of the judged run; both outlive this. `changes`: its own, one of each prompt, or empty. The two
  // numbers are the model's, 0 where not known.
  EngineRerun(const EngineInput& input, const CaseOrder& order, int logits_mantissa, int vocab_size,
              std::vector<RequestChange> changes = {});

  // Why this engine cannot be run again for this order; empty: it can.
  static std::string impossible(const EngineInput& input, const CaseOrder& order);

  int logits_mantissa() const override { return logits_mantissa_; }
  Result<compare::RerunResult> run(const compare::RerunInput& input) override;
  Result<compare::RerunResult> run_own(const compare::RerunInput& input) override;

 private:
  using Tokens = std::map<std::string, std::vector<int32_t>, std::less<>>;  // request id -> tokens fed back

  Result<compare::RerunResult> forced(const compare::RerunInput& input, const Tokens& golden);
  Result<compare::RerunResult> continued(const compare::RerunInput& input, const Tokens& golden);
  // Ids of golden texts, for parted requests without golden tokens. What cannot be done is in `refused`.
  Tokens ids_of_texts(const compare::RerunInput& input, std::map<std::string, std::string>* refused);
  CaseOrder rerun_order() const;
  std::string name_of(size_t prompt) const;        // the request's id in results
  std::vector<RequestChange> own_changes() const;  // one of each prompt, with raw logits

  const EngineInput& input_;
  const CaseOrder& order_;
  const int logits_mantissa_;
  const int vocab_size_;
  const std::vector<RequestChange> changes_;
};

// What the engine said at position `position` of a result; lists left out with `lists` false.
compare::RerunPosition position_of(const assay_result& result, size_t position, bool lists);

inline constexpr int32_t kRerunTopN = 10;
inline constexpr int kMaxRestarts = 64;  // of a "continued" rerun

}  // namespace assay::run
