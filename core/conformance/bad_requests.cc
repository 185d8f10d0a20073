#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/conformance/engine_checks.h"
#include "core/conformance/engine_under_test.h"

namespace assay::conformance {
namespace {

struct BadRequest {
  std::string what;
  Wish wish;
  bool must_fail = true;
};

std::vector<BadRequest> bad_requests(const EngineUnderTest& engine, bool computes) {
  std::vector<BadRequest> all;
  const auto add = [&](const std::string& what, bool must_fail, const auto& change) {
    Wish wish = engine.wish();
    change(wish);
    all.push_back({what, wish, must_fail});
  };
  add("an empty prompt", computes, [](Wish& w) {
    w.text.clear();
    w.ids.clear();
  });
  add("max_new_tokens -1", computes, [](Wish& w) { w.max_new_tokens = -1; });
  add("max_new_tokens 0", false, [](Wish& w) { w.max_new_tokens = 0; });
  add("max_new_tokens INT32_MIN", computes, [](Wish& w) { w.max_new_tokens = std::numeric_limits<int32_t>::min(); });
  add("top_n -1", computes, [](Wish& w) { w.top_n = -1; });
  add("top_n INT32_MAX", false, [](Wish& w) { w.top_n = std::numeric_limits<int32_t>::max(); });
  add("text that is no UTF-8", false, [](Wish& w) {
    w.ids.clear();
    w.text = "a \xC3 b \xFF";
  });
  add("text with NUL inside", false, [](Wish& w) {
    w.ids.clear();
    w.text = std::string("a\0b", 3);
  });
  add("a text of a million bytes", false, [](Wish& w) {
    w.ids.clear();
    w.text = std::string(1000000, '7');
  });
  if (!computes) return all;
  add("a token id of -1", true, [](Wish& w) { w.ids[1] = -1; });
  add("a token id beyond the vocabulary", true, [](Wish& w) { w.ids[1] = kVocabulary; });
  add("a token id of INT32_MAX", true, [](Wish& w) { w.ids[1] = std::numeric_limits<int32_t>::max(); });
  add("a forced token beyond the vocabulary", true, [](Wish& w) { w.forced = {kVocabulary + 5}; });
  add("a forced token of -1", true, [](Wish& w) { w.forced = {-1}; });
  add("more forced tokens than max_new_tokens", false, [](Wish& w) { w.forced.assign(9, 3); });
  add("a prompt longer than the model's positions", true, [](Wish& w) { w.ids.assign(kMaxPositions + 40, 3); });
  add("temperature 0", false, [](Wish& w) { w.sampling.temperature = 0; });
  add("a temperature that is no number", false, [](Wish& w) { w.sampling.temperature = std::nan(""); });
  add("top_p 5", false, [](Wish& w) { w.sampling.top_p = 5; });
  add("top_k -3", false, [](Wish& w) { w.sampling.top_k = -3; });
  return all;
}

}  // namespace

// Each beside a request that is in order: the bad one is refused or fails with a reason, the other is served as if
// alone.
void check_bad_requests(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!engine.opened()) return;
  const bool recorded = subject.plugin.can(ASSAY_CAP_RECORDED);
  const bool batch = engine.can(ASSAY_CAP_BATCH);
  const Answer expected = engine.ask(0, engine.wish(1));
  for (const BadRequest& bad : bad_requests(engine, subject.plugin.can(ASSAY_CAP_NEEDS_BACKEND))) {
    if (!findings.expect(engine.reset().ok(), "reset: failed")) return;
    if (batch) engine.submit(0, engine.wish(1));
    const Called called = engine.submit(1, bad.wish);
    if (!findings.expect(engine.drain(), bad.what + ": the requests do not come to an end")) return;
    if (called.ok()) {
      const Answer& answer = engine.answers().at(1);
      findings.expect(answer.ended, bad.what + ": the request neither finished nor failed");
      findings.expect(!answer.finished() || !bad.must_fail || recorded,
                      bad.what + ": served as if it were in order; refuse it");
    } else {
      findings.expect(called.code != ASSAY_INTERNAL,
                      bad.what + ": INTERNAL, a bug of the plugin by its own word: " + called.message);
    }
    if (!batch || !expected.finished()) continue;
    const Answer& other = engine.answers().at(0);
    findings.expect(other.finished(), bad.what + ": the request beside it fails too: " + other.message);
    if (engine.can(ASSAY_CAP_L2) || recorded) {
      findings.expect(first_difference(expected, other).empty(),
                      bad.what + ": the request beside it differs: " + first_difference(expected, other));
    }
  }
}

// The largest length: it ends by itself, fails, or can be cancelled.
void check_long_request(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!engine.opened()) return;
  if (subject.plugin.can(ASSAY_CAP_RECORDED)) {
    findings.nothing_checked("recorded results are as long as they are");
    return;
  }
  Wish wish = engine.wish();
  wish.max_new_tokens = std::numeric_limits<int32_t>::max();
  if (!engine.submit(0, wish).ok()) return;
  engine.drain(2000);
  if (engine.pending() == 0) {
    findings.expect(engine.answers().at(0).ended,
                    "max_new_tokens INT32_MAX: nothing is pending, and the request has not ended");
    return;
  }
  const Called called = engine.cancel(0);
  findings.expect(called.ok(), "cancel of a request that runs: " + called.text());
  findings.expect(engine.drain(100), "a cancelled request stays pending for 100 steps");
}

}  // namespace assay::conformance
