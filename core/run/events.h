// The protocol between workers and the runner, and the schema of results.jsonl: one JSON object a line.
//
// Every line has "event" (a name below), "t" (seconds since 1970, UTC) and, when a worker wrote it, "worker". Lines
// about a case have "case", its id within the run. The first line of a file carries "schema". A torn last line is no
// line. Readers ignore events and members that they do not know.
//
//   run_started      schema run_id version command directory options environment platform cases filtered groups
//                    shard {index count cases rows cases_here loads estimated predicted case_list partition}
//                    merged [{run folder shard cases}] run_command   (of a run that assay merge made of others)
//   run_resumed      run_id version command kept rerun [case ...] changed [case ...] dropped [case ...]
//                    repeats {case: n} earlier_seconds   (the journal goes on: the cases of "rerun" are as if they had
//                    never run, but for their first n repeats; those of "dropped" are no longer part of the run)
//   case_planned     case name path model metrics relation digest missing reproduce   (one for each selected case,
//   before any
//                    of them runs; after run_resumed again for those that are run again)
//   worker_started   schema pid host device  (device: "CUDA_VISIBLE_DEVICES=1", where the runner chose one)
//   load_started     engine backend checkpoint
//   load_finished    seconds bytes device arithmetic platform
//   load_failed      code message            (the cases of the group get their verdicts in lines of their own)
//   case_started     name
//   request_finished request tokens seconds
//   request_failed   request code message
//   judging_started                          (all requests are over)
//   digest_started                           (of weights: takes as long as reading them)
//   repeat_started   repeat                  (from 1; only of cases that are run more than once)
//   repeat_finished  repeat verdict {...} summary {...} provenance {...} actual log difference
//   case_finished    verdict {...} summary {...} provenance {...} actual log engine_failed repeats [{...}]
//                    (in the worker's own file, of a case that is run more than once, without all of these)
//   worker_finished  cases
//   worker_orphaned  message                 (the runner gave no sign of life, or another worker has taken over)
//   worker_crashed   group death case request restarts
//   note             message
//   run_finished     seconds counts {VERDICT: n} exit_code loads crashes cancelled unused_waivers [case ...]
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "assay/status.h"
#include "core/run/run.h"

namespace assay::run {

inline constexpr int kEventSchema = 1;

namespace event {
inline constexpr std::string_view kRunStarted = "run_started";
inline constexpr std::string_view kRunResumed = "run_resumed";
inline constexpr std::string_view kCasePlanned = "case_planned";
inline constexpr std::string_view kWorkerStarted = "worker_started";
inline constexpr std::string_view kLoadStarted = "load_started";
inline constexpr std::string_view kLoadFinished = "load_finished";
inline constexpr std::string_view kLoadFailed = "load_failed";
inline constexpr std::string_view kCaseStarted = "case_started";
inline constexpr std::string_view kRequestFinished = "request_finished";
inline constexpr std::string_view kRequestFailed = "request_failed";
inline constexpr std::string_view kJudgingStarted = "judging_started";
inline constexpr std::string_view kDigestStarted = "digest_started";
inline constexpr std::string_view kRepeatStarted = "repeat_started";
inline constexpr std::string_view kRepeatFinished = "repeat_finished";
inline constexpr std::string_view kCaseFinished = "case_finished";
inline constexpr std::string_view kWorkerFinished = "worker_finished";
inline constexpr std::string_view kWorkerOrphaned = "worker_orphaned";
inline constexpr std::string_view kWorkerCrashed = "worker_crashed";
inline constexpr std::string_view kNote = "note";
inline constexpr std::string_view kRunFinished = "run_finished";
}  // namespace event

// A new event of this name, with "event" and "t" set.
nlohmann::ordered_json make_event(std::string_view name);

// The line of an event, newline included. Ill-formed UTF-8 becomes U+FFFD; NaN and infinities become strings.
std::string to_line(const nlohmann::ordered_json& event);

// Parses one line; kInvalid when it is not an object with a string "event".
Result<nlohmann::ordered_json> parse_line(std::string_view line);

// NaN and infinities become strings.
nlohmann::ordered_json to_json(const CaseVerdict& verdict);
nlohmann::ordered_json to_json(const CaseSummary& summary);
nlohmann::ordered_json to_json(const Repeat& repeat);

// Inverse; missing members keep their defaults, a wrong type or an unknown verdict is kInvalid.
Result<CaseVerdict> parse_case_verdict(const nlohmann::ordered_json& json);
Result<CaseSummary> parse_case_summary(const nlohmann::ordered_json& json);
Result<Repeat> parse_repeat(const nlohmann::ordered_json& json);

}  // namespace assay::run
