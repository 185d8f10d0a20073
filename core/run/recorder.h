// Where everything that happens in a run is noted: journal, outcomes and observer, in this order.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/command/redact.h"
#include "core/run/journal.h"
#include "core/run/plan.h"
#include "core/run/run.h"

namespace assay::run {

// For one thread. Every case gets one verdict: later ones are dropped. Here, and nowhere else, waivers are applied, so
// that journal, outcomes and observer have the same, final verdict, whoever found it.
class Recorder {
 public:
  // Plan, journal and observer outlive the recorder. What `redactor` knows is in nothing that is noted, nor in the logs
  // of cases that have ended.
  Recorder(Plan& plan, Journal& journal, RunObserver& observer, command::Redactor redactor = {});

  // Notes an event of the runner itself.
  void note(const nlohmann::ordered_json& event);

  // Notes events of the runner that are no news to the observer, with one write: of a planned run.
  void note_all(std::vector<nlohmann::ordered_json> events);

  // Notes a line that a worker wrote, except the end of a case: finish() notes that one. Returns the event, or null (a
  // JSON null) when the line is none.
  nlohmann::ordered_json note_line(const std::string& line);

  // The verdict of a case, told by its worker in `event`, or by the runner (`log`: path of engine.log, if there is
  // one).
  void finish(size_t index, const nlohmann::ordered_json& event);
  void finish(size_t index, CaseVerdict verdict, const std::string& log = "");

  // The end of one repeat, told by its worker.
  void finish_repeat(size_t index, const nlohmann::ordered_json& event);

  // The worker died of a running case. True: the case is to go on with next_repeat(); false: it has its verdict.
  bool died(size_t index, CaseVerdict verdict, const std::string& log);

  // The repeat to run next, from 1.
  int next_repeat(size_t index) const { return static_cast<int>(ended_[index].size()) + 1; }

  bool finished(size_t index) const { return done_[index]; }

  const command::Redactor& redactor() const { return redactor_; }

  // First failure of the journal (disk full ...); the run goes on, and says so at its end.
  const Status& journal_status() const { return journal_status_; }
  uint64_t loads() const { return loads_; }
  Status flush() { return journal_.sync(); }

 private:
  void append(const std::string& line);
  // What a case, or a repeat of it, came to.
  struct Ended {
    CaseVerdict verdict = {};
    CaseSummary summary = {};
    std::optional<Provenance> provenance = {};
    std::string actual = {};
    std::string log = {};
    std::string difference = {};  // from the first repeat
    bool engine_failed = false;
  };
  Ended read(size_t index, const nlohmann::ordered_json& event) const;
  Ended ended_by_runner(size_t index, CaseVerdict verdict, const std::string& log) const;
  nlohmann::ordered_json case_event(std::string_view name, size_t index) const;
  Ended combined(size_t index);
  void complete(size_t index, Ended ended, nlohmann::ordered_json event);
  void clean(const std::string& log);
  void complete_repeated(size_t index, nlohmann::ordered_json event);

  Plan& plan_;
  Journal& journal_;
  RunObserver& observer_;
  const command::Redactor redactor_;
  std::vector<bool> done_;
  std::vector<std::vector<Ended>> ended_;  // (cases) repeats so far, of cases that are run more than once
  Status journal_status_;
  uint64_t loads_ = 0;
};

}  // namespace assay::run
