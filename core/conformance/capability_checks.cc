#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/conformance/engine_checks.h"
#include "core/conformance/engine_under_test.h"
#include "core/conformance/lent.h"

namespace assay::conformance {
namespace {

void expect_generated(const EngineUnderTest& engine, Findings& findings, const Answer& answer) {
  if (engine.can(ASSAY_CAP_TOKENS)) {
    findings.expect(!answer.tokens.empty(), "tokens are claimed, and a result has none");
  }
  if (engine.can(ASSAY_CAP_TEXT)) {
    findings.expect(!answer.text.empty(), "text is claimed, and a result has none");
  }
  if (engine.can(ASSAY_CAP_LOGPROBS)) {
    findings.expect(!answer.generated_logprobs.empty(), "logprobs are claimed and wanted, and a result has none");
  }
  if (engine.can(ASSAY_CAP_PROMPT_LOGPROBS)) {
    findings.expect(!answer.prompt_logprobs.empty(), "prompt logprobs are claimed and wanted, and a result has none");
  }
  if (engine.can(ASSAY_CAP_ROUTING)) {
    findings.expect(!answer.routing.empty(),
                    "routing is claimed and wanted, and a result of a model that routes has none");
  }
}

void check_top_n(EngineUnderTest& engine, Findings& findings) {
  Wish wish = engine.wish();
  wish.top_n = 4;
  wish.want = ASSAY_WANT_LOGPROBS;
  const Answer answer = engine.ask(1, wish);
  if (!findings.expect(answer.finished(), "top-n is claimed, and a request for it: " + answer.message)) return;
  findings.expect(!answer.top_counts.empty() &&
                      std::all_of(answer.top_counts.begin(), answer.top_counts.end(), [](uint32_t n) { return n > 0; }),
                  "top-n is claimed and wanted, and a generated position has none");
  size_t at = 0;
  for (size_t i = 0; i < answer.top_counts.size() && i < answer.tokens.size();
       ++i) {  // greedy: the first entry was taken
    if (at < answer.top_ids.size() && answer.top_ids[at] >= 0) {
      findings.expect(
          answer.top_ids[at] == answer.tokens[i],
          fmt::format("greedy token {} is {}, the first of its top-n is {}", i, answer.tokens[i], answer.top_ids[at]));
    }
    at += answer.top_counts[i];
  }
}

void check_forced(EngineUnderTest& engine, Findings& findings, bool claimed, bool recorded) {
  Wish wish = engine.wish();
  wish.forced = {13, 2, 40};
  wish.max_new_tokens = 5;
  const Answer answer = engine.ask(2, wish);
  if (!claimed) {
    findings.expect(
        recorded || !answer.finished() ||
            (answer.tokens.size() >= 3 && std::equal(wish.forced.begin(), wish.forced.end(), answer.tokens.begin())),
        "forced tokens are not claimed, and a request with some is served as if it had none; refuse it");
    return;
  }
  if (!findings.expect(answer.finished(), "forced tokens are claimed, and a request with some: " + answer.message))
    return;
  const bool taken =
      answer.tokens.size() >= 3 && std::equal(wish.forced.begin(), wish.forced.end(), answer.tokens.begin());
  findings.expect(taken, "forced tokens are claimed, and the generated tokens are others");
}

void check_batch(EngineUnderTest& engine, Findings& findings, bool recorded) {
  engine.reset();
  for (uint64_t id = 0; id < 3; ++id) {
    const Called called = engine.submit(id, engine.wish(id));
    findings.expect(called.ok(), fmt::format("more than one request at once is claimed, and number {} is refused: {}",
                                             id + 1, called.message));
  }
  findings.expect(engine.drain(), "three requests at once do not come to an end");
  if (recorded) return;
  for (const auto& [id, one] : engine.answers()) {
    findings.expect(one.finished(), fmt::format("more than one request at once is claimed, and number {} fails: {}",
                                                id + 1, one.message));
  }
}

}  // namespace

void check_capabilities(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!engine.opened()) return;
  Wish wish = engine.wish();
  if (engine.can(ASSAY_CAP_LOGPROBS)) wish.want |= ASSAY_WANT_LOGPROBS;
  if (engine.can(ASSAY_CAP_ROUTING)) wish.want |= ASSAY_WANT_ROUTING;
  const Answer answer = engine.ask(0, wish);
  const bool recorded = engine.can(ASSAY_CAP_RECORDED);
  if (!answer.finished()) {
    if (!recorded && wish.want != 0 && engine.ask(9, engine.wish()).finished()) {
      findings.fail("logprobs or routing are claimed, and a request that wants them fails: " + answer.message);
    } else {
      findings.nothing_checked("capabilities: a small request is not served: " + answer.message);
    }
    return;
  }
  if (recorded) {
    findings.not_checked("claims of recorded results: they hold what was recorded");
  } else {
    expect_generated(engine, findings, answer);
    if (engine.can(ASSAY_CAP_TOP_N)) check_top_n(engine, findings);
  }
  check_forced(engine, findings, engine.can(ASSAY_CAP_FORCED_TOKENS), recorded);
  if (engine.can(ASSAY_CAP_BATCH)) check_batch(engine, findings, recorded);
}

void check_info(const Subject& subject, Findings& findings) {
  const assay_engine_table& table = *subject.plugin.engine();
  EngineUnderTest engine(subject, findings);
  if (!engine.opened()) return;
  if (!ASSAY_KNOWS(&table, info) || table.info == nullptr) {
    findings.nothing_checked("the plugin has no `info`: its descriptor's capabilities hold");
    return;
  }
  auto info = sdk::sized<assay_engine_info>();
  const Called called = call(findings, "info", table.info, engine.handle(), &info);
  if (!findings.expect(called.ok(), "info: " + called.text())) return;
  findings.expect(info.size == sizeof(info), fmt::format("info: changed `size` to {}; it is the caller's", info.size));
  findings.expect((info.capabilities & ~subject.plugin.capabilities) == 0,
                  fmt::format("info: capabilities {:#x} that the descriptor does not have",
                              info.capabilities & ~subject.plugin.capabilities));
  const nlohmann::json facts = nlohmann::json::parse(sdk::text(info.facts), nullptr, false);
  const bool strings =
      facts.is_object() && std::all_of(facts.begin(), facts.end(), [](const auto& one) { return one.is_string(); });
  findings.expect(strings || info.facts.size == 0,
                  "info: facts are not a JSON object of strings: " + std::string(sdk::text(info.facts)));
  const std::string before(sdk::text(info.facts));
  engine.ask(0, engine.wish());
  churn_heap();
  findings.expect(sdk::text(info.facts) == before, "info: facts changed before close; they stay valid until then");
  // An older host's struct ends after `capabilities`.
  Lent lent("the info struct of a caller that knows less");
  auto small = sdk::sized<assay_engine_info>();
  small.size = offsetof(assay_engine_info, facts);
  auto* cut = lent.cut(small, small.size);
  const Called older = call(findings, "info with a smaller struct", table.info, engine.handle(), cut);
  findings.expect(older.ok() && cut->capabilities == info.capabilities, "info with a smaller struct: " + older.text());
}

void check_training(const Subject& subject, Findings& findings) {
  const assay_engine_table& table = *subject.plugin.engine();
  const bool entry = ASSAY_KNOWS(&table, train) && table.train != nullptr;
  const bool claimed = subject.plugin.can(ASSAY_CAP_TRAIN);
  findings.expect(entry == claimed, claimed ? "training is claimed, and `train` of the table is null"
                                            : "`train` of the table is there, and training is not claimed");
  if (!entry || !claimed) return;
  EngineUnderTest engine(subject, findings);
  if (!engine.opened()) return;
  Lent lent("the job of train");
  auto training = sdk::sized<assay_training>();
  training.run = 1;
  training.job = lent.put("no JSON");
  const auto* place = lent.object(training);
  lent.lock();
  auto result = sdk::sized<assay_training_result>();
  const Called called =
      call(findings, "train with a job that is no JSON", table.train, engine.handle(), place, &result);
  findings.expect(!called.ok(), "train: takes a job that is no JSON");
  findings.not_checked("training runs: they need a program");
}

}  // namespace assay::conformance
