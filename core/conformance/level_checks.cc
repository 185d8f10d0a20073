#include <fmt/format.h>

#include <algorithm>

#include "core/conformance/engine_checks.h"
#include "core/conformance/engine_under_test.h"

namespace assay::conformance {
namespace {

uint32_t wants(const EngineUnderTest& engine) {
  uint32_t want = 0;
  if (engine.can(ASSAY_CAP_LOGPROBS)) want |= ASSAY_WANT_LOGPROBS;
  if (engine.can(ASSAY_CAP_ROUTING)) want |= ASSAY_WANT_ROUTING;
  return want;
}

Wish rich_wish(const EngineUnderTest& engine, size_t which) {
  Wish wish = engine.wish(which);
  wish.want = wants(engine);
  if (engine.can(ASSAY_CAP_TOP_N)) wish.top_n = 3;
  return wish;
}

// False, and noted, where the engine does not claim `level`.
bool claims(const EngineUnderTest& engine, Findings& findings, uint64_t level, const char* name) {
  if (!engine.opened()) return false;
  if (engine.can(level)) return true;
  findings.nothing_checked(fmt::format("the plugin does not claim {}", name));
  return false;
}

// False, and noted, where all requests were refused: equal refusals say nothing.
bool any_served(const std::vector<Answer>& answers, Findings& findings, const char* level) {
  if (std::any_of(answers.begin(), answers.end(), [](const Answer& answer) { return answer.finished(); })) return true;
  findings.nothing_checked(fmt::format("{}: no small request is served: {}", level, answers[0].message));
  return false;
}

}  // namespace

void check_l1(const Subject& subject, Findings& findings) {
  EngineUnderTest first(subject, findings);
  if (!claims(first, findings, ASSAY_CAP_L1, "L1")) return;
  std::vector<Answer> before;
  for (size_t i = 0; i < 3; ++i) before.push_back(first.ask(i, rich_wish(first, i)));
  if (!any_served(before, findings, "L1")) return;
  for (size_t i = 0; i < 3; ++i) {
    const Answer again = first.ask(i + 3, rich_wish(first, i));
    findings.expect(first_difference(before[i], again).empty(),
                    "L1 is claimed, and a request asked twice differs: " + first_difference(before[i], again));
  }
  EngineUnderTest second(subject, findings);
  for (size_t i = 0; second.opened() && i < 3; ++i) {
    const Answer again = second.ask(i, rich_wish(second, i));
    findings.expect(first_difference(before[i], again).empty(),
                    "L1 is claimed, and a request to another handle differs: " + first_difference(before[i], again));
  }
}

void check_l2(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!claims(engine, findings, ASSAY_CAP_L2, "L2")) return;
  if (!engine.can(ASSAY_CAP_BATCH)) {
    findings.nothing_checked("the engine takes one request at a time: nothing runs beside another");
    return;
  }
  constexpr size_t kRequests = 6;
  for (const bool backwards : {false, true}) {  // the second time each request is of another length
    const auto wish_of = [&](size_t which) {
      Wish wish = rich_wish(engine, which);
      wish.max_new_tokens = static_cast<int32_t>(backwards ? 3 + 2 * which : 9);
      return wish;
    };
    std::vector<Answer> alone;
    for (size_t i = 0; i < kRequests; ++i) {
      engine.reset();
      alone.push_back(engine.ask(0, wish_of(i)));
    }
    if (!any_served(alone, findings, "L2")) return;
    engine.reset();
    for (size_t i = 0; i < kRequests; ++i) {
      const size_t which = backwards ? kRequests - 1 - i : i;
      engine.submit(i, wish_of(which));
      if (i == 2) engine.step();  // later ones join a batch that runs
    }
    engine.drain();
    for (size_t i = 0; i < kRequests; ++i) {
      const size_t which = backwards ? kRequests - 1 - i : i;
      const auto found = engine.answers().find(i);
      if (!findings.expect(found != engine.answers().end(), "L2: a batch of six small requests is refused")) return;
      if (backwards && found->second.finished() && found->second.tokens.size() != alone[which].tokens.size()) {
        findings.not_checked("L2 of requests of several lengths: the engine gives all of a batch one length");
        return;
      }
      findings.expect(
          first_difference(alone[which], found->second).empty(),
          "L2 is claimed, and a request differs beside others: " + first_difference(alone[which], found->second));
    }
  }
}

// Generated tokens fed back as part of the prompt: their logprobs, then of prompt positions, are the same bits.
void check_l3(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!claims(engine, findings, ASSAY_CAP_L3, "L3")) return;
  if (!engine.can(ASSAY_CAP_LOGPROBS) || !engine.can(ASSAY_CAP_PROMPT_LOGPROBS)) {
    findings.nothing_checked("L3: it takes logprobs of prompts to compare prefill with decode");
    return;
  }
  Wish decode = rich_wish(engine, 0);
  decode.top_n = 0;
  if (decode.ids.empty()) {
    findings.nothing_checked("L3: it takes prompts as ids, which engines without a backend need not take");
    return;
  }
  decode.max_new_tokens = 12;
  const Answer decoded = engine.ask(0, decode);
  if (!findings.expect(
          decoded.finished() && decoded.generated_logprobs.size() == decoded.tokens.size() && !decoded.tokens.empty(),
          "L3: a small request has no logprobs")) {
    return;
  }
  Wish prefill = decode;
  prefill.ids.insert(prefill.ids.end(), decoded.tokens.begin(), decoded.tokens.end());
  prefill.max_new_tokens = 1;
  const Answer filled = engine.ask(1, prefill);
  const size_t from = decode.ids.size() - 1;
  if (!findings.expect(
          filled.prompt_logprobs.size() == from + decoded.tokens.size(),
          fmt::format("L3: {} logprobs of {} prompt tokens", filled.prompt_logprobs.size(), prefill.ids.size()))) {
    return;
  }
  for (size_t i = 0; i < decoded.tokens.size(); ++i) {
    findings.expect(filled.prompt_logprobs[from + i] == decoded.generated_logprobs[i],
                    fmt::format("L3 is claimed, and token {} has logprob {} decoded, {} prefilled", i,
                                decoded.generated_logprobs[i], filled.prompt_logprobs[from + i]));
  }
}

void check_seed(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!claims(engine, findings, ASSAY_CAP_SEED, "seeded sampling")) return;
  const auto ask = [&](uint64_t id, uint64_t seed, uint64_t prompt_index) {
    Wish wish = engine.wish(0);
    wish.max_new_tokens = 16;
    wish.sampling.top_k = 0;
    wish.sampling.temperature = 1.5;
    wish.sampling.seed = seed;
    wish.sampling.prompt_index = prompt_index;
    return engine.ask(id, wish);
  };
  const Answer first = ask(0, 1, 0);
  if (!findings.expect(first.finished(), "a sampled request: " + code_name(first.code) + ": " + first.message)) return;
  const Answer again = ask(1, 1, 0);
  findings.expect(
      first.tokens == again.tokens && first.text == again.text,
      "seeded sampling is claimed, and one seed draws twice differently: " + first_difference(first, again));
  bool seed_matters = false;
  bool prompt_matters = false;
  for (uint64_t i = 1; i <= 6; ++i) {
    const Answer other = ask(2 * i, 1 + i, 0);
    seed_matters = seed_matters || other.tokens != first.tokens || other.text != first.text;
    const Answer another = ask(2 * i + 1, 1, i);
    prompt_matters = prompt_matters || another.tokens != first.tokens || another.text != first.text;
  }
  findings.expect(seed_matters, "seeded sampling is claimed, and seven seeds draw the same at temperature 1.5");
  if (first.tokens.empty() || !subject.plugin.can(ASSAY_CAP_NEEDS_BACKEND)) {
    if (!prompt_matters) findings.not_checked("draws of other prompts of a case: they came out alike");
  } else {
    findings.expect(prompt_matters,
                    "draws do not depend on prompt_index; they are keyed by seed, prompt index and position");
  }
}

}  // namespace assay::conformance
