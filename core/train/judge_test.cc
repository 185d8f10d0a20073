#include "core/train/judge.h"

#include <gmock/gmock.h>

#include "core/golden/text.h"
#include "core/train/compat.h"

namespace assay::train {
namespace {

using testing::HasSubstr;

Metric series(const std::string& name, int64_t steps, double value) {
  Metric metric{name, 1, steps, 1, {}};
  for (int64_t step = 1; step <= steps; ++step) metric.values.push_back({step, value, false});
  return metric;
}

MetricSet set_of(std::vector<Metric> metrics) {
  MetricSet set;
  set.metrics = std::move(metrics);
  return set;
}

JudgeRules rules_for(const std::string& metric, bool nondeterministic = false) {
  return {.metrics = std::vector<std::string>{metric}, .nondeterministic = nondeterministic};
}

class Loss : public testing::Test {
 protected:
  double& at(int64_t step) { return actual_.metrics[0].values[static_cast<size_t>(step - 1)].value; }
  Verdict verdict(bool nondeterministic = false) {
    judged_ = judge(golden_, actual_, rules_for("lm loss", nondeterministic));
    return judged_.verdict;
  }
  bool theirs(bool nondeterministic = false) const {
    return compat_pretraining(golden_, actual_, {CompatMetrics::Form::kList, {"lm loss"}}, nondeterministic).passes();
  }
  MetricSet golden_ = set_of({series("lm loss", 50, 10)});
  MetricSet actual_ = golden_;
  CaseVerdict judged_;
};

TEST_F(Loss, EqualValuesAreIdentical) {
  EXPECT_EQ(verdict(), Verdict::kIdentical);
  EXPECT_TRUE(theirs());
}

TEST_F(Loss, AFileThatIsFlawedJudgesNothingAndIsJudgedByNothing) {
  golden_.metrics[0].gap = "step 5 is missing";
  EXPECT_EQ(verdict(), Verdict::kInvalid);
  EXPECT_EQ(judged_.reason, "lm loss: in the golden step 5 is missing; record it again");
  EXPECT_TRUE(theirs());
  std::swap(golden_, actual_);
  EXPECT_EQ(verdict(), Verdict::kIdentical) << "of the run every step of the golden is looked for";
  for (MetricSet* set : {&golden_, &actual_}) {
    golden_.metrics[0].flaw = actual_.metrics[0].flaw = "";
    set->metrics[0].flaw = "step 5 stands twice";
    EXPECT_EQ(verdict(), Verdict::kInvalid);
    EXPECT_EQ(judged_.reason,
              std::string("lm loss: in ") + (set == &golden_ ? "the golden" : "the run") + " step 5 stands twice");
    EXPECT_TRUE(theirs());
  }
}

TEST_F(Loss, TwoSpellingsThatDifferAreRefused) {
  for (MetricSet* set : {&golden_, &actual_}) {
    golden_ = actual_ = set_of({series("lm loss", 50, 10)});
    for (const bool first : {true, false}) {
      const Metric other = series("lm-loss", 50, 10);
      set->metrics.insert(first ? set->metrics.begin() : set->metrics.end(), other);
      EXPECT_EQ(verdict(), Verdict::kIdentical) << "they say the same";
      for (Metric& metric : set->metrics) {
        if (metric.name == "lm-loss") metric.values[4].value = 9;
      }
      EXPECT_EQ(verdict(), Verdict::kInvalid);
      EXPECT_THAT(judged_.reason, HasSubstr("'lm loss' and 'lm-loss' are both there and differ, first at step 5"));
      EXPECT_TRUE(theirs());
      *set = set_of({series("lm loss", 50, 10)});
    }
    set->metrics.push_back(series("lm_loss", 49, 10));
    EXPECT_EQ(verdict(), Verdict::kInvalid);
    EXPECT_THAT(judged_.reason, HasSubstr("differ, first at step 50"));
  }
}

TEST_F(Loss, ADeterministicRunMayNotDifferAtAll) {
  at(7) = 10.00001;
  EXPECT_EQ(verdict(), Verdict::kDrift);
  EXPECT_THAT(
      judged_.reason,
      HasSubstr("lm loss: step 7: 10.00001, the golden has 10.0 (relative difference 1e-06); 1 of 50 steps differ"));
  EXPECT_EQ(judged_.metrics[0].findings[0].index, 7);
  EXPECT_FALSE(theirs());
}

TEST_F(Loss, ANondeterministicOneMayWithinTheTolerance) {
  at(7) = 10.4;
  EXPECT_EQ(verdict(true), Verdict::kEquivalent);
  EXPECT_TRUE(theirs(true));
  at(8) = 11;
  EXPECT_EQ(verdict(true), Verdict::kDrift) << "theirs allows one step in a hundred, at least one";
  EXPECT_TRUE(theirs(true));
  at(9) = 11;
  EXPECT_EQ(verdict(true), Verdict::kDiverged);
  EXPECT_FALSE(theirs(true));
}

TEST_F(Loss, AStatedToleranceCounts) {
  at(7) = 10.01;
  JudgeRules rules = rules_for("lm loss");
  rules.tolerances["lm loss"] = 0.002;
  EXPECT_EQ(judge(golden_, actual_, rules).verdict, Verdict::kEquivalent);
  rules.tolerances["lm loss"] = 0.0005;
  EXPECT_EQ(judge(golden_, actual_, rules).verdict, Verdict::kDrift);
}

TEST_F(Loss, MissingStepsAndNaNAreInvalid) {
  at(12) = NAN;
  EXPECT_EQ(verdict(true), Verdict::kInvalid);
  EXPECT_THAT(judged_.reason, HasSubstr("step 12 is nan, no finite number: 1 of 50"));
  EXPECT_TRUE(theirs(true)) << "their approximate test forgives one";
  actual_.metrics[0].values.erase(actual_.metrics[0].values.begin() + 20);
  EXPECT_EQ(verdict(true), Verdict::kInvalid);
  EXPECT_THAT(judged_.reason, HasSubstr("step 21 is missing from the run: 1 of 50"));
  actual_.metrics.clear();
  EXPECT_EQ(verdict(true), Verdict::kInvalid);
  EXPECT_THAT(judged_.reason, HasSubstr("logged no value"));
}

TEST_F(Loss, AGoldenWithoutNumbersJudgesNothing) {
  for (StepValue& value : golden_.metrics[0].values) value.is_text = true;
  EXPECT_EQ(verdict(), Verdict::kInvalid);
  golden_.metrics[0].values.clear();
  EXPECT_EQ(verdict(), Verdict::kInvalid);
  golden_.metrics.clear();
  EXPECT_EQ(verdict(), Verdict::kNotComparable);
}

TEST_F(Loss, TextInTheGoldenIsAStepWithoutAValue) {
  golden_.metrics[0].values[4].is_text = true;
  EXPECT_EQ(verdict(), Verdict::kIdentical);
  EXPECT_THAT(judged_.metrics[0].findings[0].message, HasSubstr("1 of 50 steps have no number"));
  EXPECT_FALSE(theirs()) << "a number is not their infinity";
}

TEST(Judge, NothingNamedIsNotComparable) {
  const MetricSet set = set_of({series("lm loss", 5, 1)});
  JudgeRules rules;
  rules.metrics.emplace();
  EXPECT_EQ(judge(set, set, rules).verdict, Verdict::kNotComparable);
  EXPECT_TRUE(compat_pretraining(set, set, {CompatMetrics::Form::kList, {}}, false).passes()) << "their hole";
  EXPECT_FALSE(compat_pretraining(set, set, {CompatMetrics::Form::kNull, {}}, false).passes());
  EXPECT_EQ(judge(set, set, {}).verdict, Verdict::kNotComparable) << "num-zeros is compared where METRICS is absent";
  EXPECT_EQ(judge(set, set, rules_for("perplexity")).verdict, Verdict::kNotComparable);
}

TEST(Judge, TheReasonIsOneLineWhateverAMetricIsCalled) {
  const MetricSet set = set_of({series("lm loss", 5, 1)});
  const std::string reason = judge(set, set, rules_for("lm\nIDENTICAL")).reason;
  EXPECT_THAT(reason, HasSubstr(R"(lm\nIDENTICAL)"));
  EXPECT_EQ(reason.find('\n'), std::string::npos);
}

TEST(Judge, OfThreeStepsTheyForgiveNone) {
  const MetricSet golden = set_of({series("lm loss", 3, 10)});
  MetricSet actual = golden;
  actual.metrics[0].values[0].value = 20;
  // 2/3 in binary is less than 1 - 1/3 in binary.
  EXPECT_FALSE(compat_pretraining(golden, actual, {CompatMetrics::Form::kList, {"lm loss"}}, true).passes());
}

TEST(Judge, IterationTimeIsAMedianAndFasterIsFine) {
  MetricSet golden = set_of({series("iteration-time", 50, 2)});
  MetricSet actual = golden;
  actual.metrics[0].values[0].value = 90;  // before the window
  EXPECT_EQ(judge(golden, actual, rules_for("iteration-time")).verdict, Verdict::kIdentical);
  for (StepValue& value : actual.metrics[0].values) value.value = 2.05;
  EXPECT_EQ(judge(golden, actual, rules_for("iteration-time")).verdict, Verdict::kEquivalent);
  for (StepValue& value : actual.metrics[0].values) value.value = 2.2;
  EXPECT_EQ(judge(golden, actual, rules_for("iteration-time")).verdict, Verdict::kDrift);
  for (StepValue& value : actual.metrics[0].values) value.value = 1;
  const CaseVerdict faster = judge(golden, actual, rules_for("iteration-time"));
  EXPECT_EQ(faster.verdict, Verdict::kEquivalent);
  EXPECT_TRUE(faster.metrics[0].findings.back().note);
  EXPECT_FALSE(compat_pretraining(golden, actual, {CompatMetrics::Form::kList, {"iteration-time"}}, false).passes());
}

TEST(Judge, MoreMemoryIsDrift) {
  MetricSet golden = set_of({series("mem-max-allocated-bytes", 50, 1e9)});
  MetricSet actual = golden;
  actual.metrics[0].values[30].value = 1.2e9;
  const CaseVerdict verdict = judge(golden, actual, rules_for("mem-max-allocated-bytes"));
  EXPECT_EQ(verdict.verdict, Verdict::kDrift);
  EXPECT_THAT(verdict.reason, HasSubstr("step 31"));
  EXPECT_TRUE(
      compat_pretraining(golden, actual, {CompatMetrics::Form::kList, {"mem-max-allocated-bytes"}}, false).passes());
}

TEST(Judge, TimesAndMemoryOfNothingAreNoMeasurement) {
  for (const char* name : {"iteration-time", "mem-allocated-bytes", "mem-max-allocated-bytes"}) {
    for (const bool rl : {false, true}) {
      JudgeRules rules = rules_for(name);
      rules.rl = rl;
      const MetricSet good = set_of({series(name, 50, 2)});
      for (const double wrong : {0.0, -0.0, -3.0, static_cast<double>(-INFINITY), static_cast<double>(NAN)}) {
        MetricSet bad = good;
        bad.metrics[0].values[34].value = wrong;  // one step of many: no median, no maximum would show it
        const CaseVerdict run = judge(good, bad, rules);
        EXPECT_EQ(run.verdict, Verdict::kInvalid) << name << " " << wrong;
        EXPECT_THAT(run.reason, HasSubstr("step 35 is " + text::python_repr(wrong)));
        const CaseVerdict golden = judge(bad, good, rules);
        const bool judged = std::isfinite(wrong) || std::string(name) != "iteration-time" || rl;
        EXPECT_EQ(golden.verdict, judged ? Verdict::kInvalid : Verdict::kIdentical) << name << " " << wrong;
        if (judged) {
          EXPECT_THAT(golden.reason, HasSubstr("step 35 is " + text::python_repr(wrong) + " in the golden"));
        }
      }
      MetricSet warmup = good;
      warmup.metrics[0].values[0].value = 0;
      const bool judged = std::string(name) != "iteration-time" && !rl;
      EXPECT_EQ(judge(good, warmup, rules).verdict, judged ? Verdict::kInvalid : Verdict::kIdentical)
          << name << ": steps that are not judged do not count";
    }
  }
  const MetricSet zero = set_of({series("num-zeros", 5, 0)});
  EXPECT_EQ(judge(zero, zero, rules_for("num-zeros")).verdict, Verdict::kIdentical) << "a count may be zero";
}

TEST(Judge, SpellingsOfAMetricMeet) {
  const char* const spellings[][3] = {
      {"lm loss", "lm-loss", "lm_loss"},
      {"mtp_1 loss", "mtp-1-loss", "mtp 1 loss"},
      {"num-zeros", "num zeros", "num_zeros"},
      {"iteration-time", "iteration_time", "iteration time"},
      {"mem-max-allocated-bytes", "mem_max_allocated_bytes", "mem max-allocated bytes"}};
  for (const auto& all : spellings) {
    for (const char* named : all) {
      for (const char* in_golden : all) {
        for (const char* in_run : all) {
          const MetricSet golden = set_of({series("other", 50, 1), series(in_golden, 50, 2)});
          MetricSet actual = set_of({series(in_run, 50, 2)});
          const CaseVerdict same = judge(golden, actual, rules_for(named));
          EXPECT_EQ(same.verdict, Verdict::kIdentical)
              << named << ", " << in_golden << ", " << in_run << ": " << same.reason;
          ASSERT_EQ(same.metrics.size(), 1u);
          EXPECT_EQ(same.metrics[0].metric, all[0]);
          for (StepValue& value : actual.metrics[0].values) value.value = 2.5;
          EXPECT_FALSE(passes(judge(golden, actual, rules_for(named)).verdict))
              << named << ", " << in_golden << ", " << in_run;
          JudgeRules rules = rules_for(named);
          rules.tolerances[in_golden] = 0.3;
          EXPECT_EQ(judge(golden, actual, rules).verdict, Verdict::kEquivalent) << named << ", " << in_golden;
        }
      }
    }
  }
  const MetricSet golden = set_of({series("lm-loss", 5, 2), series("lm loss", 5, 2)});
  JudgeRules twice;
  twice.metrics = std::vector<std::string>{"lm-loss", "lm loss", "lm_loss"};
  EXPECT_EQ(judge(golden, golden, twice).metrics.size(), 1u);
}

TEST(Judge, MegatronsComparatorsTakeNamesAsTheyAreSpelled) {
  const MetricSet set = set_of({series("lm loss", 5, 1)});
  EXPECT_FALSE(compat_pretraining(set, set, {CompatMetrics::Form::kList, {"lm-loss"}}, false).passes());
  MetricSet idle = set_of({series("iteration-time", 50, 0)});
  EXPECT_TRUE(compat_pretraining(idle, idle, {CompatMetrics::Form::kList, {"iteration-time"}}, false).passes());
  EXPECT_TRUE(compat_rl(idle, idle, {CompatMetrics::Form::kList, {"iteration-time"}}, "1").passes());
}

TEST(Resume, ComparesTheStepsAfterTheMiddle) {
  const MetricSet first = set_of({series("lm loss", 100, 10)});
  MetricSet second = first;
  std::erase_if(second.metrics[0].values, [](const StepValue& value) { return value.step <= 50; });
  const CompatMetrics metrics{CompatMetrics::Form::kList, {"lm loss"}};
  EXPECT_EQ(judge_resume(first, second, 100, rules_for("lm loss")).verdict, Verdict::kIdentical);
  EXPECT_TRUE(compat_resume(first, second, 100, metrics, false).passes());
  second.metrics[0].values[10].value = 10.5;
  EXPECT_EQ(judge_resume(first, second, 100, rules_for("lm loss")).verdict, Verdict::kDrift);
  EXPECT_THAT(judge_resume(first, second, 100, rules_for("lm loss")).reason,
              HasSubstr("run 2 against run 1: lm loss: step 61"));
  EXPECT_FALSE(compat_resume(first, second, 100, metrics, false).passes());
}

TEST(Resume, ASecondRunThatBeganAnewDidNotResume) {
  const MetricSet first = set_of({series("lm loss", 100, 10)});
  const CaseVerdict verdict = judge_resume(first, first, 100, rules_for("lm loss"));
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("run 2 logged step 1 (lm loss): it did not resume"));
  EXPECT_TRUE(compat_resume(first, first, 100, {CompatMetrics::Form::kList, {"lm loss"}}, false).passes())
      << "their hole";
}

TEST(ReinforcementLearning, HasLimitsOfItsOwn) {
  MetricSet golden =
      set_of({series("lm loss", 20, 1), series("mem-max-allocated-bytes", 20, 1e9), series("iteration-time", 20, 10)});
  MetricSet actual = golden;
  JudgeRules rules{.rl = true,
                   .metrics = std::vector<std::string>{"lm loss", "mem-max-allocated-bytes", "iteration-time"},
                   .throughput_start = 11};
  const CompatMetrics metrics{CompatMetrics::Form::kList, *rules.metrics};
  EXPECT_EQ(judge(golden, actual, rules).verdict, Verdict::kIdentical);
  for (size_t i = 0; i < 11; ++i) actual.metrics[2].values[i].value = 99;
  EXPECT_EQ(judge(golden, actual, rules).verdict, Verdict::kIdentical) << "before THROUGHPUT_START_STEP";
  EXPECT_TRUE(compat_rl(golden, actual, metrics, "11").passes());
  EXPECT_FALSE(compat_rl(golden, actual, metrics, std::nullopt).passes());
  EXPECT_FALSE(compat_rl(golden, actual, metrics, "ten").passes());
  actual.metrics[0].values[3].value = 2;
  EXPECT_EQ(judge(golden, actual, rules).verdict, Verdict::kDrift);
  EXPECT_TRUE(compat_rl(golden, actual, metrics, "11").passes()) << "they look for lm-loss";
  actual.metrics.pop_back();
  EXPECT_EQ(judge(golden, actual, rules).verdict, Verdict::kInvalid);
  EXPECT_FALSE(compat_rl(golden, actual, metrics, "11").passes());
}

TEST(FirstDifference, LooksAtWhatIsLearntAlone) {
  const MetricSet a = set_of({series("lm loss", 5, 1), series("iteration-time", 5, 1)});
  MetricSet b = a;
  b.metrics[1].values[0].value = 2;
  EXPECT_EQ(first_difference(a, b), "");
  b.metrics[0].values[3].value = 2;
  EXPECT_EQ(first_difference(a, b), "lm loss, step 4: 1.0 and 2.0");
  b.metrics.erase(b.metrics.begin());
  EXPECT_THAT(first_difference(a, b), HasSubstr("lm loss is there in one of both alone"));
  EXPECT_THAT(first_difference(b, a), HasSubstr("lm loss is there in one of both alone"));
}

}  // namespace
}  // namespace assay::train
