#include "core/compare/own_run.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "core/compare/near_tie.h"
#include "core/compare/reanchoring.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

// The judged run recorded, before generated token `index`, other numbers than the rerun did: the engine is not
// deterministic, so that a tie may fall either way. The token's own logprob is no witness: it may be another token's.
bool varies(const RequestRecord& judged, const RerunRequest& again, size_t index) {
  const std::vector<double> a = joined_logprobs(judged);
  const std::vector<double> b = again.record ? joined_logprobs(*again.record) : std::vector<double>();
  const size_t generated = again.golden_tokens.size();
  if (a.empty() || a.size() != b.size() || a.size() < generated) return false;
  for (size_t i = 0; i < a.size() - generated + index; ++i) {
    if (a[i] != b[i]) return true;
  }
  return false;
}

bool ties(const RerunPosition& position, const TopEntry& taken, const TieRule& rule, bool may_vary) {
  const double gap = position.top.front().logprob - taken.logprob;
  if (!may_vary) return gap == 0;
  return measure_gap(rule, position.top.front().logprob, taken.logprob, position.golden_logit).near_tie;
}

}  // namespace

std::string own_contradiction(const RequestRecord& judged, const RerunRequest& again, int mantissa) {
  if (!again.not_done.empty()) return "the judged run's own tokens fed back: " + again.not_done;
  const TieRule rule = tie_rule(mantissa, mantissa, 0);
  for (size_t i = 0; i < again.positions.size(); ++i) {
    const RerunPosition& position = again.positions[i];
    const int32_t token = again.golden_tokens[i];
    if (position.top.empty()) return fmt::format("no top-n logprobs at the judged run's generated token {}", i);
    if (position.top.front().id == token) continue;
    const TopEntry* taken = position.find(token);
    if (taken != nullptr && ties(position, *taken, rule, varies(judged, again, i))) continue;
    const std::string at = taken == nullptr
                               ? "not among its best"
                               : fmt::format("{:.3g} nats below it", position.top.front().logprob - taken->logprob);
    return fmt::format(
        "the judged run took {} at its generated token {}, but after the same tokens the engine takes {}; the token "
        "taken is {}",
        token, i, position.top.front().id, at);
  }
  if (again.positions.size() < again.golden_tokens.size()) {
    return fmt::format("the judged run has {} tokens, of which the engine, fed with them, gives {}",
                       again.golden_tokens.size(), again.positions.size());
  }
  if (again.further > 0) {
    return fmt::format("the judged run ends after {} tokens, where the engine, fed with them, goes on",
                       again.golden_tokens.size());
  }
  return "";
}

std::string text_contradiction(std::string_view name, const std::optional<std::string>& text,
                               const RerunRequest& again) {
  if (!text || !again.record || !again.record->text || *text == *again.record->text) return "";
  constexpr size_t kShown = 20;  // code points on either side
  const std::string& said = *again.record->text;
  const size_t equal = text::common_prefix(*text, said);
  return fmt::format("the same tokens give another text: {} {}, engine {}", name,
                     text::around(*text, equal, kShown, kShown), text::around(said, equal, kShown, kShown));
}

}  // namespace assay::compare
