// One run: cases in, verdicts out, everything written to one output folder on the way.
//
//   OUTPUT/results.jsonl             every event of the run, appended and flushed one by one (schema in events.h)
//   OUTPUT/workers/wNNN.plan.json    what a worker was told to do
//   OUTPUT/workers/wNNN.events.jsonl what it reported; wNNN.log: its output outside of cases
//   OUTPUT/launcher/                 scripts and logs of the launcher, where there is one
//   OUTPUT/cases/<case>/actual.json  results, in the schema of golden files
//   OUTPUT/cases/<case>/engine.log   output of engine and backend while the case ran
//   OUTPUT/cases/<case>/repeat_2/... both, of the second repeat, and so on
// A case that is judged by relations has a folder <case>@<relation> for each.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/provenance.h"
#include "assay/status.h"
#include "assay/verdict.h"
#include "core/plugin/search_path.h"
#include "core/run/shard_options.h"

namespace assay::run {

inline constexpr int kMostRepeats = 1000;  // of one case

// What one case of a run asks for itself. Empty members, 0 and nullopt: as the run says.
struct CaseSettings {
  std::string environment_name = {};
  std::string platform = {};
  std::string engine = {};                            // below --engine, above the case's own
  int repeat = 0;                                     // below --repeat and ENV_VARS.N_REPEAT
  std::chrono::milliseconds timeout{0};               // above ASSAY.timeout
  std::optional<Verdict> settled = {};                // it is not run, but has this verdict
  std::string reason = {};                            // of `settled`
  std::map<std::string, std::string> variables = {};  // for ${VAR}, below --set and the environment
};

struct RunOptions {
  std::vector<TestCase> cases;                   // as discovered; broken ones too: they get INVALID
  std::vector<CaseSettings> settings;            // one a case; empty: no case has its own
  std::map<std::string, std::string> variables;  // --set, for ${VAR} in MODEL_ARGS* and ENV_VARS
  std::map<std::string, std::string>
      environment;                       // of the calling process: ${VAR} after --set, and inherited by workers
  std::string environment_name = "dev";  // --environment
  std::string platform;                  // --platform; empty: told by the backend
  std::string engine;                    // --engine; empty: each case's own
  std::string backend;                   // --backend; empty: each case's own
  std::string engine_options;            // JSON object over what cases say to the engine; empty: nothing
  std::string backend_options;           // JSON object for the backend; empty: its defaults
  std::filesystem::path recorded;  // for engines that replay: an earlier run's output folder, a folder of NAME.json
                                   // files, or one file; empty: recorded.json in the case's folder, else
                                   // the golden file that judges, so that a tree of goldens can be checked without
                                   // any engine
  std::string filter;              // --filter, see filter.h; empty: all
  std::optional<ShardOptions> shard = {};          // run this part of the cases alone
  bool resume = false;                             // go on with the run in `output`; resume.h says what is run again
  std::vector<Verdict> rerun = {};                 // verdicts that are run again besides INFRA; resume only
  std::optional<std::set<std::string>> only = {};  // names of the cases to plan; set by resume alone
  int jobs = 1;                                    // workers at once; with a launcher 0: any number
  std::string launcher;          // plugin that has the workers run somewhere; empty: they are children of this process
  std::string launcher_options;  // JSON object: see launch_options.h and the launcher's schema
  bool strict = false;           // EQUIVALENT does not pass
  bool allow_scripts = false;    // admits BEFORE_SCRIPT, AFTER_SCRIPT and LD_* in ENV_VARS
  std::filesystem::path output;  // made if missing; refused where it holds a run (journal.h)
  plugin::SearchOptions plugins;
  std::filesystem::path worker;                     // the assay-worker executable
  std::chrono::milliseconds case_timeout{600'000};  // for cases without ASSAY.timeout
  std::chrono::milliseconds load_timeout{600'000};  // start of a worker to the end of its load
  std::chrono::milliseconds kill_grace{2'000};      // between SIGTERM and SIGKILL
  uint64_t memory_limit = 0;         // bytes of anonymous resident memory a worker; 0: 9/10 of the machine's
  int repeat = 0;                    // --repeat: how often each case is run; 0: once, or ENV_VARS.N_REPEAT
  bool metamorphic = false;          // --metamorphic: every inference case is judged by relations, its goldens are not
                                     // looked at; else those alone that have ASSAY.metamorphic
  std::filesystem::path golden;      // the file that judges every case, wherever it lies; empty: that of its folder
  std::filesystem::path results;     // training cases: where their values go besides actual.json; empty: nowhere
  bool record_quantities = false;    // throughput, memory and prefill counts in actual.json, whatever METRICS says
  bool compat = false;               // --compat megatron: the verdict of Megatron-LM's comparator beside ours
  bool digest_weights = false;       // provenance gets the sha256 of weights and tokenizer, whatever the verdict
  std::string today;                 // UTC, "2026-11-29", for waivers; empty: that of the clock
  std::string assay_version;         // for provenance; empty: not known
  std::vector<std::string> command;  // recorded in results.jsonl
  const std::atomic<bool>* cancel = nullptr;  // becomes true when the run shall stop (signal handlers set it)
};

// What there is to say about a case that ran, apart from its verdict. Zero and empty: not known.
struct CaseSummary {
  std::string engine;
  std::string backend;
  std::string device;
  std::string platform;
  std::string arithmetic;  // "fp32", "bf16"
  uint64_t requests = 0;
  uint64_t batch = 0;  // requests that one step may hold
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t weight_bytes = 0;
  uint64_t peak_rss = 0;           // bytes, of the worker while the case ran
  double prefill_rate = 0;         // tokens / second
  double decode_rate = 0;          // tokens / second, over all requests
  double tpot_median = 0;          // seconds / token: median over all requests, the first token of each dropped
  double first_token_seconds = 0;  // case start to the end of the first request's prefill
  double load_seconds = 0;         // of the load that this case shares with its group
  double seconds = 0;              // case start to verdict
  double max_abs_difference = 0;   // largest |delta| of the logprobs metric
  bool has_difference = false;
};

// One of several runs of a case.
struct Repeat {
  Verdict verdict = Verdict::kNotComparable;
  std::string reason = {};
  double seconds = 0;
  bool identical_to_first = false;  // to the results of the earliest repeat that has all, bit by bit
  std::string difference = {};      // the first value that is not; empty also where results are missing
  std::string actual = {};          // path; empty: no results
};

struct CaseOutcome {
  std::string id;        // unique within the run: folder below cases/
  std::string name;      // with "@relation" where one judged
  std::string relation;  // metamorphic::RelationInfo::name; empty: a golden judged
  std::string path;      // of the case folder
  std::string model;     // parent folder's name
  std::vector<std::string> metrics;
  CaseVerdict verdict;
  CaseSummary summary;
  std::optional<Provenance> provenance;  // what made its results; absent where none were made
  std::vector<Repeat> repeats;           // in order; empty: the case was to run once
  std::string actual;                    // path of actual.json, of the first repeat that has one; empty: none written
  std::string log;                       // path of engine.log; empty: none
  std::string reproduce;                 // one command that runs this case, or this relation of it, alone
};

struct RunInfo {
  std::string run_id;
  std::filesystem::path output;
  size_t cases = 0;     // selected; each relation of a case counts
  size_t filtered = 0;  // left out by the filter
  size_t groups = 0;    // loads planned
  int jobs = 1;
  ShardInfo shard = {};
  size_t kept = 0;           // of `cases`, finished before the run was resumed
  double started = 0;        // seconds since 1970, UTC, of a resumed run; 0: now
  std::string resumed = {};  // what a resumed run does, one line for people; empty: it was not resumed
};

struct RunSummary {
  std::string run_id;
  std::vector<CaseOutcome> outcomes;  // every selected case, in the order of RunOptions::cases; a case that is judged
                                      // by relations has one a relation
  double seconds = 0;
  uint64_t loads = 0;    // loads that finished
  uint64_t crashes = 0;  // workers that died
  bool cancelled = false;

  std::vector<Verdict> verdicts() const;
};

// Listens to a run. Called from the thread that called run(), one call at a time, in the order of the journal.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void run_started(const RunInfo& info) = 0;
  virtual void case_started(const std::string& name, const std::string& worker) = 0;
  virtual void case_finished(const CaseOutcome& outcome) = 0;  // exactly once a selected case, but for those kept
  virtual void case_kept(const CaseOutcome& /*outcome*/) {}    // of a resumed run: finished before, not run again
  // Anything else a person may want to know: a load and its duration, a worker that died. `event` is the event's name.
  virtual void note(const std::string& event, const std::string& line) = 0;
  virtual void run_finished(const RunSummary& summary) = 0;
};

// Runs the cases. A failure of one case is its verdict; the call fails only when the run as a whole cannot be done:
// kInvalid (filter syntax, unknown engine or backend named for the run, output folder in use by another run), kInfra
// (output folder not writable, worker executable missing). Not thread-safe with regard to one output folder; starts
// child processes, which do not outlive the thread that calls it.
Result<RunSummary> run(const RunOptions& options, RunObserver& observer);

}  // namespace assay::run
