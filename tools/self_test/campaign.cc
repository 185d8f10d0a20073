#include "tools/self_test/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "assay/golden.h"
#include "core/discover/input_path.h"
#include "core/golden/file.h"

namespace assay::self_test {
namespace {

using Clock = std::chrono::steady_clock;

// Faults that cost seconds a place get fewer.
constexpr uint64_t kHangSeeds = 3;
constexpr double kHangTimeout = 2;                      // seconds; a case takes a tenth
constexpr uint64_t kMemoryLimit = uint64_t{240} << 20;  // bytes; a worker needs a third
constexpr uint64_t kRelationSeeds = 3;
constexpr int kRepeats = 2;
constexpr int kTimings = 3;  // golden times are the best of so many: the machine may be busy with other things

const std::vector<std::string> kDataMetrics(std::begin(kOwnMetrics), std::end(kOwnMetrics));
const std::vector<std::string> kCostMetrics = {"tpot", "latency", "throughput", "mem-max-allocated-bytes"};

// What every case asks for, whatever it is judged by.
const std::map<std::string, std::string> kArguments = {{"--return-log-probs", "true"}, {"--top-n-logprobs", "3"}};

// A metamorphic relation has to notice: "@NAME".
bool needs_relation(const FaultRow& fault) { return fault.metric.starts_with("@"); }

// As much of the relation as its faults need.
MetamorphicBlock relation_of(const FaultRow& fault) {
  MetamorphicBlock block;
  block.relations = {fault.metric.substr(1)};
  block.batches = {7, 33};
  block.chunks = {7, 255, 256};
  block.threads = {3};
  return block;
}

// Faults of these families change what the result says; those of the others kill, delay or answer too often.
bool shows_in_result(const FaultRow& fault) {
  return !needs_relation(fault) && fault.family != "set" && fault.family != "cost" && fault.family != "process";
}

class Campaign {
 public:
  Campaign(const CampaignOptions& options, Workshop& workshop) : options_(options), workshop_(workshop) {}

  Result<SelfTestReport> run() {
    const Clock::time_point begin = Clock::now();
    if (Status made = make_bases(); !made.ok()) return made;
    SelfTestReport report;
    for (const FaultRow& fault : options_.faults) {
      Result<FaultReport> one = try_fault(fault);
      if (!one) return one.status();
      say(fmt::format("{}: {} of {} killed", fault.name, one->count(Fate::kKilled), one->trials.size()));
      report.faults.push_back(*std::move(one));
    }
    Result<std::vector<ControlReport>> controls =
        run_controls(base_, {.metrics = served(kDataMetrics), .arguments = kArguments}, workshop_);
    if (!controls) return controls.status();
    report.controls = *std::move(controls);
    report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return report;
  }

 private:
  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  std::vector<std::string> served(const std::vector<std::string>& metrics) const {
    std::vector<std::string> kept;
    std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(kept),
                 [&](const std::string& metric) { return options_.served.count(metric) > 0; });
    return kept;
  }

  Status make_bases() {
    for (const bool known : {false, true}) {
      const auto test = std::find_if(options_.cases.begin(), options_.cases.end(), [&](const TestCase& one) {
        return one.error.ok() && (one.assay.golden == GoldenKind::kKnownCompletion) == known;
      });
      if (test == options_.cases.end()) {
        if (known) continue;
        return invalid("self-test: no case with characteristic golden values is given; name one with --cases");
      }
      Result<Base> base =
          workshop_.record(known ? "known" : "base", *test, {.metrics = kDataMetrics, .arguments = kArguments}, {});
      if (!base) return base.status();
      (known ? known_ : base_) = *std::move(base);
    }
    const bool timed = std::any_of(options_.faults.begin(), options_.faults.end(), is_timed);
    return timed ? make_timed_base() : Status();
  }

  static bool is_timed(const FaultRow& fault) { return fault.family == "cost" && fault.metric != "repeat"; }

  Status make_timed_base() {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTimings; ++i) {
      Result<Base> base = workshop_.record(fmt::format("timed_{}", i), base_.test,
                                           {.metrics = served(kCostMetrics), .arguments = kArguments}, {});
      if (!base) return base.status();
      const Result<ResultSet> golden = read_results(base->golden.string());
      if (!golden) return golden.status();
      double latest = 0;
      for (const RequestRecord& record : golden->requests) latest = std::max(latest, record.latency.value_or(0));
      if (latest >= best) continue;
      best = latest;
      timed_ = *std::move(base);
    }
    return {};
  }

  // METRICS of the cases of a fault; empty: nothing in this build serves its claiming metric.
  std::vector<std::string> metrics_of(const FaultRow& fault) const {
    if (fault.metric == "requests" || fault.metric == "process" || needs_relation(fault)) return {"generated_tokens"};
    if (fault.metric == "repeat") return served({"generated_tokens", "logprobs"});
    if (fault.metric == "known_completion" && options_.served.count(fault.metric) == 0) return {"generated_text"};
    return served({fault.metric});
  }

  Result<FaultReport> try_fault(const FaultRow& fault) {
    FaultReport report{.fault = fault, .metrics = "", .trials = {}};
    const std::vector<std::string> metrics = metrics_of(fault);
    for (const std::string& metric : metrics) report.metrics += (report.metrics.empty() ? "" : " ") + metric;
    const Base& base = fault.metric == "known_completion" ? known_ : is_timed(fault) ? timed_ : base_;
    uint64_t seeds = options_.seeds;
    if (fault.name == "hang") seeds = std::min(seeds, kHangSeeds);
    if (needs_relation(fault)) seeds = std::min(seeds, kRelationSeeds);
    if (metrics.empty() || base.golden.empty()) {
      report.trials.push_back({.fault = fault.name,
                               .seed = 0,
                               .fate = Fate::kNotRun,
                               .verdict = Verdict::kNotComparable,
                               .place = "",
                               .reason = metrics.empty() ? "nothing here serves metric " + fault.metric
                                                         : "no case with a known completion is given",
                               .reproduce = ""});
      return report;
    }
    CaseChange change{.metrics = metrics, .arguments = kArguments};
    if (fault.name == "hang") change.timeout_s = kHangTimeout;
    if (fault.metric == "process") change.memory_limit = kMemoryLimit;
    if (needs_relation(fault)) change.metamorphic = relation_of(fault);
    if (fault.name.starts_with("draw_")) change.arguments.insert(kSampled.begin(), kSampled.end());
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      change.arguments["--seed"] = std::to_string(seed);
      // Two loads, so that two workers share the seeds.
      change.env_vars["ASSAY_SELF_TEST_HALF"] = std::to_string(seed % 2);
      if (Status added = workshop_.add_case(fault.name, case_name(seed), base, change); !added.ok()) return added;
    }
    nlohmann::ordered_json engine = {{"fault", fault.name}, {"seed_of_request", true}};
    if (needs_relation(fault)) engine["engine"] = "buffered";
    if (fault.family == "arithmetic") engine["checkpoint"] = checkpoint_of(base.test);
    const GroupRun how{
        .engine = "faulty", .engine_options = engine.dump(), .repeat = fault.metric == "repeat" ? kRepeats : 1};
    const Result<run::RunSummary> summary = workshop_.run(fault.name, how);
    if (!summary) return summary.status();
    for (const run::CaseOutcome& outcome : summary->outcomes) {
      report.trials.push_back(judge(fault, how, base, outcome));
    }
    return report;
  }

  // Sorts as a number.
  static std::string case_name(uint64_t seed) { return fmt::format("seed_{:04}", seed); }

  static std::string checkpoint_of(const TestCase& test) {
    for (const ModelArg& argument : test.model_args.entries) {
      if (argument.key != "--load") continue;
      const Result<std::string> found = discover::find_input(argument.text, test.dir);
      if (found) return *found;
    }
    return "";
  }

  static Trial judge(const FaultRow& fault, const GroupRun& how, const Base& base, const run::CaseOutcome& outcome) {
    const Result<std::string> log = read_file(outcome.log);
    Observation seen{.verdict = outcome.verdict.verdict,
                     .place = log ? place_in_log(*log, fault.name) : "",
                     .same_as_golden = !outcome.actual.empty() && same_results(outcome.actual, base.content),
                     .shows_in_result = shows_in_result(fault)};
    const std::string name = std::filesystem::path(outcome.path).filename();
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    return {.fault = fault.name,
            .seed = std::stoull(name.substr(digits)),
            .fate = fate_of(fault, seen),
            .verdict = seen.verdict,
            .place = seen.place,
            .reason = outcome.verdict.reason,
            .reproduce = fmt::format("assay run {} --engine {} --engine-options '{}'", outcome.path, how.engine,
                                     how.engine_options)};
  }

  const CampaignOptions& options_;
  Workshop& workshop_;
  Base base_;
  Base known_;
  Base timed_;
};

}  // namespace

size_t FaultReport::count(Fate fate) const {
  return static_cast<size_t>(
      std::count_if(trials.begin(), trials.end(), [&](const Trial& trial) { return trial.fate == fate; }));
}

size_t FaultReport::places() const {
  std::set<std::string> distinct;
  for (const Trial& trial : trials) {
    if (!trial.place.empty()) distinct.insert(trial.place);
  }
  return distinct.size();
}

size_t SelfTestReport::trials() const {
  return std::accumulate(faults.begin(), faults.end(), size_t{0},
                         [](size_t sum, const FaultReport& fault) { return sum + fault.trials.size(); });
}

size_t SelfTestReport::killed() const {
  return std::accumulate(faults.begin(), faults.end(), size_t{0},
                         [](size_t sum, const FaultReport& fault) { return sum + fault.count(Fate::kKilled); });
}

size_t SelfTestReport::alarms() const {
  return static_cast<size_t>(
      std::count_if(controls.begin(), controls.end(), [](const ControlReport& control) { return control.alarm(); }));
}

Result<SelfTestReport> run_campaign(const CampaignOptions& options, Workshop& workshop) {
  return Campaign(options, workshop).run();
}

}  // namespace assay::self_test
