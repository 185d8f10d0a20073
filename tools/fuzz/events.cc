// One event of a worker, the verdicts and summaries in it, and plans of workers.
#include "core/run/events.h"

#include <nlohmann/json.hpp>

#include "core/run/worker_plan.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::run;
  const std::string_view text = assay::fuzz::text_of(data, size);
  const auto check = [](const auto& result) {
    if (!result.ok()) assay::fuzz::require_message(result.status().message());
  };
  if (const auto event = parse_line(text); event.ok()) {
    check(parse_case_verdict(*event));
    check(parse_case_summary(*event));
    check(parse_repeat(*event));
    for (const auto& [key, value] : event->items()) {
      if (const auto verdict = parse_case_verdict(value); verdict.ok()) {
        assay::fuzz::require(parse_case_verdict(to_json(*verdict)).ok(), "a verdict that was read is written and read");
      }
      if (const auto summary = parse_case_summary(value); summary.ok()) {
        assay::fuzz::require(parse_case_summary(to_json(*summary)).ok(), "a summary that was read is written and read");
      }
    }
  } else {
    check(event);
  }
  const auto plan = parse_worker_plan(std::string(text));
  check(plan);
  if (plan.ok())
    assay::fuzz::require(parse_worker_plan(to_json(*plan)).ok(), "a plan that was read is written and read");
  return 0;
}
