// Relations through real workers: the gold model on both engines, and an engine that misbehaves.
#include <gmock/gmock.h>

#include <map>

#include "assay/golden.h"
#include "core/metamorphic/relation.h"
#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using testing::AllOf;
using testing::HasSubstr;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_TEST_SANITIZED 1
#endif
#endif
#ifdef ASSAY_TEST_SANITIZED
constexpr bool kSanitized = true;  // ten times slower
#else
constexpr bool kSanitized = false;
#endif

// Chunks divide these prompts as the usual ones divide theirs.
const MetamorphicBlock kShortPrompts{.batches = {1, 2, 7}, .chunks = {1, 7, 63, 64, 65}, .prompt_tokens = 129};

class Relations : public Run {
 protected:
  void run_gold(const std::string& name, const std::optional<MetamorphicBlock>& block = std::nullopt) {
    options_.platform.clear();
    options_.plugins.plugin_path.clear();  // test backends would be preferred
    options_.metamorphic = true;
    options_.backend_options = R"({"threads": 1})";     // the machine runs other tests
    options_.case_timeout = std::chrono::seconds(600);  // sanitized, on a busy machine
    Result<std::vector<TestCase>> cases = discover::discover({std::string(ASSAY_SOURCE_DIR "/testcases/moe/") + name});
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    options_.cases = *std::move(cases);
    for (TestCase& test : options_.cases) test.assay.metamorphic = block;
    result_ = run::run(options_, observer_);
    ASSERT_TRUE(result_->ok()) << result_->status().message();
    ASSERT_EQ(summary().outcomes.size(), metamorphic::relation_table().size());
  }

  // By the relation's name.
  std::map<std::string, CaseOutcome> outcomes() const {
    std::map<std::string, CaseOutcome> found;
    for (const CaseOutcome& one : summary().outcomes) found[one.name.substr(one.name.find('@') + 1)] = one;
    return found;
  }

  fs::path folder_of(const CaseOutcome& outcome) const { return fs::path(outcome.actual).parent_path(); }
};

TEST_F(Relations, AllTwelveHoldBitForBitOnTheBufferedEngine) {
  run_gold("moe_10m_licences_fp32_buffered", kSanitized ? std::optional(kShortPrompts) : std::nullopt);
  for (const auto& [relation, outcome] : outcomes()) {
    EXPECT_EQ(outcome.verdict.verdict, Verdict::kIdentical) << relation << ": " << outcome.verdict.reason;
    EXPECT_THAT(outcome.verdict.reason, AllOf(HasSubstr("values equal"), HasSubstr("equal bits alone pass")));
    EXPECT_EQ(outcome.verdict.golden, (folder_of(outcome) / "reference.json").string());
    EXPECT_TRUE(fs::exists(outcome.verdict.golden)) << relation;
    EXPECT_FALSE(fs::exists(folder_of(outcome) / "resaved")) << relation;
    EXPECT_TRUE(read_results(outcome.actual).ok()) << relation;
  }
  if (kSanitized) return;
  EXPECT_EQ(outcomes().at("solo_vs_batch").summary.batch, 33u);
  EXPECT_EQ(outcomes().at("solo_vs_batch").verdict.metrics.at(0).findings.size(), 7u);
}

TEST_F(Relations, AllThatApplyHoldBitForBitOnTheStaticEngineInBf16) {
  // This engine feeds a long prompt beside short ones token by token: shorter ones keep the test short.
  run_gold("moe_10m_licences_bf16_b4", kShortPrompts);
  for (const auto& [relation, outcome] : outcomes()) {
    const bool lacks = relation == "prefix_cache" || relation == "chunked_prefill" || relation == "preempt_resume";
    EXPECT_EQ(outcome.verdict.verdict, lacks ? Verdict::kNotComparable : Verdict::kIdentical)
        << relation << ": " << outcome.verdict.reason;
    EXPECT_THAT(outcome.verdict.reason, HasSubstr(lacks ? "options of engine static_legacy lack" : "values equal"));
  }
}

TEST_F(Relations, ARequestThatFailsIsInvalidAndACrashIsACrash) {
  options_.metamorphic = true;
  add_case("fails", {"ok hallo", "fail too long"});
  add_case("crashes", {"ok hallo", "segv"});
  run();
  for (const CaseOutcome& one : summary().outcomes) {
    const bool crashes = one.name.starts_with("crashes");
    EXPECT_EQ(one.verdict.verdict, crashes ? Verdict::kCrashed : Verdict::kInvalid) << one.name;
    const char* words = crashes ? "SIGSEGV" : "request 1: too long";
    const char* where = crashes ? "last finished request: 0 (the case's prompts)" : "";
    EXPECT_THAT(one.verdict.reason, AllOf(HasSubstr(words), HasSubstr(where))) << one.name;
  }
}

TEST_F(Relations, AnEngineWithoutModelOptionsOrCountersIsComparedAsFarAsItGoes) {
  options_.metamorphic = true;
  add_case("plain", {"ok hallo", "ok welt"});
  run();
  const std::map<std::string, CaseOutcome> found = outcomes();
  for (const char* relation : {"shuffled_order", "repeated_call"}) {
    EXPECT_EQ(found.at(relation).verdict.verdict, Verdict::kIdentical) << found.at(relation).verdict.reason;
    EXPECT_THAT(found.at(relation).verdict.reason, HasSubstr("is not declared: the usual tolerances hold"));
  }
  for (const auto& [relation, words] : {std::pair("solo_vs_batch", "lack max_requests"),
                                        {"changed_neighbours", "tells no engine_counters"},
                                        {"prefix_cache", "lack prefix_caching"},
                                        {"thread_count", "lack threads"},
                                        {"save_load", "no model"},
                                        {"static_vs_buffered", "needs a model"},
                                        {"prefill_vs_decode", "logprobs of prompts"}}) {
    EXPECT_EQ(found.at(relation).verdict.verdict, Verdict::kNotComparable) << relation;
    EXPECT_THAT(found.at(relation).verdict.reason, HasSubstr(words)) << relation;
  }
}

}  // namespace
}  // namespace assay::run
