// Benign changes: what may not change what an engine says.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "assay/golden.h"
#include "core/discover/input_path.h"
#include "core/golden/file.h"
#include "tools/self_test/campaign.h"

namespace assay::self_test {
namespace {

namespace fs = std::filesystem;

struct Control {
  std::string name;
  std::string what;
  std::map<std::string, std::string> arguments = {};
  GroupRun how = {};
  bool may_be_absent = false;  // the processor may lack it
  bool slow = false;           // four requests of eight tokens are enough
};

const GroupRun kReference = {.backend = "reference", .backend_options = ""};
const std::map<std::string, std::string> kShort = {{"--prompt-file-num-truncate", "4"},
                                                   {"--num-tokens-to-generate", "8"}};

std::vector<Control> all_controls() {
  std::vector<Control> controls = {
      {"same_again", "the same case again"},
      {"fault_none",
       "engine faulty without a fault",
       {},
       {.engine = "faulty", .engine_options = R"({"fault":"none"})"}},
      {"threads_2", "two threads", {}, {.backend_options = R"({"threads":2,"parallel_from":0})"}},
      {"batch_1", "batches of 1", {{"--inference-max-requests", "1"}}},
      {"batch_2", "batches of 2", {{"--inference-max-requests", "2"}}},
      {"batch_5", "batches of 5, the last one not full", {{"--inference-max-requests", "5"}}},
      {"reference", "the reference backend", {}, kReference, false, true},
      {"reference_bf16", "the reference backend in bf16", {{"--bf16", "true"}}, kReference, false, true},
      {"block_size_16", "KV blocks of 16 tokens", {}, {.engine_options = R"({"block_size":16})"}},
  };
  for (const char* isa : {"scalar", "avx2", "avx512"}) {
    controls.push_back({std::string("isa_") + isa,
                        std::string("kernels for ") + isa,
                        {},
                        {.backend_options = fmt::format(R"({{"threads":1,"isa":"{}"}})", isa)},
                        true,
                        std::string(isa) == "scalar"});
  }
  return controls;
}

class Controls {
 public:
  Controls(const Base& base, const CaseChange& common, Workshop& workshop)
      : base_(base), common_(common), workshop_(workshop) {}

  Result<std::vector<ControlReport>> run() {
    for (const Control& control : all_controls()) {
      if (Status status = control.slow ? add_short(control) : add(control, base_, with(control.arguments));
          !status.ok()) {
        return status;
      }
    }
    for (const auto part :
         {&Controls::add_repeated, &Controls::add_reversed, &Controls::add_bf16, &Controls::add_relations}) {
      if (Status status = (this->*part)(); !status.ok()) return status;
    }
    return std::move(reports_);
  }

 private:
  CaseChange with(const std::map<std::string, std::string>& arguments) const {
    CaseChange change = common_;
    for (const auto& [name, value] : arguments) change.arguments[name] = value;
    return change;
  }

  Status add(const Control& control, const Base& base, const CaseChange& change, int cases = 1) {
    const std::string group = "control_" + control.name;
    for (int i = 0; i < cases; ++i) {
      if (Status added = workshop_.add_case(group, fmt::format("call_{}", i), base, change); !added.ok()) return added;
    }
    Result<run::RunSummary> summary = workshop_.run(group, control.how);
    if (!summary) return summary.status();
    ControlReport report{.name = control.name, .what = control.what, .verdict = Verdict::kIdentical};
    for (const run::CaseOutcome& outcome : summary->outcomes) {
      if (report.verdict != Verdict::kIdentical && worst(report.verdict, outcome.verdict.verdict) == report.verdict) {
        continue;
      }
      report.verdict = outcome.verdict.verdict;
      report.reason = outcome.verdict.reason;
      report.reproduce =
          fmt::format("assay run {} --engine {} --backend {}", outcome.path, control.how.engine, control.how.backend);
      if (!control.how.engine_options.empty()) {
        report.reproduce += fmt::format(" --engine-options '{}'", control.how.engine_options);
      }
      if (!control.how.backend_options.empty()) {
        report.reproduce += fmt::format(" --backend-options '{}'", control.how.backend_options);
      }
    }
    report.absent = control.may_be_absent && report.verdict == Verdict::kInvalid &&
                    (report.reason.find("this processor lacks it") != std::string::npos ||
                     report.reason.find("is unknown; known here are") != std::string::npos);
    reports_.push_back(std::move(report));
    return {};
  }

  Status add_repeated() { return add({"repeated_call", "the case three times in one worker"}, base_, common_, 3); }

  // The golden's requests under the ids that they have in the opposite order.
  Status add_reversed() {
    Result<ResultSet> golden = read_results(base_.golden.string());
    if (!golden) return golden.status();
    std::vector<std::string> ids;
    std::string prompts;
    for (const RequestRecord& record : golden->requests) ids.push_back(record.id);
    std::reverse(golden->requests.begin(), golden->requests.end());
    for (size_t i = 0; i < ids.size(); ++i) {
      golden->requests[i].id = ids[i];
      const nlohmann::json line = {{"text", golden->requests[i].prompt.value_or("")}};
      prompts += line.dump() + "\n";
    }
    const fs::path prompt_file = workshop_.folder() / "golden" / "reversed.jsonl";
    std::ofstream(prompt_file) << prompts;
    const Base reversed{base_.test, workshop_.folder() / "golden" / "reversed.json", ""};
    if (Status written = write_results(reversed.golden.string(), *golden); !written.ok()) return written;
    return add({"request_order", "the requests in the opposite order"}, reversed,
               with({{"--prompt-file", prompt_file.string()}}));
  }

  // Logits rounded to bf16 are what a bf16 model has anyhow.
  Status add_bf16() {
    const CaseChange change = with({{"--bf16", "true"}});
    Result<Base> base = workshop_.record("bf16", base_.test, change, {});
    if (!base) return base.status();
    const Control control{"bf16_logits",
                          "bf16 logits where bf16 is declared",
                          {},
                          {.engine = "faulty", .engine_options = R"({"fault":"bf16_logits"})"}};
    return add(control, *base, change);
  }

  // What every correct engine holds.
  Status add_relations() {
    const MetamorphicBlock all;
    MetamorphicBlock of_static;  // those whose mechanism it has; short prompts, as it takes long ones token by token
    of_static.relations = {"solo_vs_batch",      "shuffled_order",    "changed_neighbours",
                           "repeated_call",      "stop_continue",     "thread_count",
                           "static_vs_buffered", "prefill_vs_decode", "save_load"};
    of_static.batches = {1, 2, 7};
    of_static.prompt_tokens = 129;
    MetamorphicBlock sampled;
    sampled.relations = {"shuffled_order", "preempt_resume"};
    const auto control = [](const char* name, const char* what, const char* inside) {
      return Control{
          name,
          what,
          {},
          {.engine = "faulty", .engine_options = fmt::format(R"({{"fault":"none","engine":"{}"}})", inside)}};
    };
    const auto add_one = [&](const Control& one, const std::map<std::string, std::string>& arguments,
                             const MetamorphicBlock& block) {
      CaseChange change = with(arguments);
      change.metamorphic = block;
      return add(one, base_, change);
    };
    if (Status status = add_one(control("relations_buffered", "all relations, engine buffered", "buffered"), {}, all);
        !status.ok()) {
      return status;
    }
    if (Status status =
            add_one(control("relations_static", "those that engine static_legacy has", "static_legacy"), {}, of_static);
        !status.ok()) {
      return status;
    }
    return add_one(control("relations_sampled", "order and preemption of drawn tokens", "buffered"), kSampled, sampled);
  }

  // Against a golden of its own, by the correct engine with the same arguments.
  Status add_short(const Control& control) {
    CaseChange change = with(kShort);
    for (const auto& [name, value] : control.arguments) change.arguments[name] = value;
    Result<Base> base = workshop_.record("short_" + control.name, base_.test, change, {});
    if (!base) return base.status();
    return add(control, *base, change);
  }

  const Base& base_;
  const CaseChange& common_;
  Workshop& workshop_;
  std::vector<ControlReport> reports_;
};

}  // namespace

Result<std::vector<ControlReport>> run_controls(const Base& base, const CaseChange& common, Workshop& workshop) {
  return Controls(base, common, workshop).run();
}

}  // namespace assay::self_test
