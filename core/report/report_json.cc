#include "core/report/report_json.h"

#include <nlohmann/json.hpp>

#include "core/compare/render.h"
#include "core/report/diagnosis.h"
#include "core/report/write_file.h"

namespace assay::report {
namespace {

using Json = nlohmann::ordered_json;

Json figures_json(const ReportCase& report) {
  const Figures& figures = report.figures;
  Json difference;  // null: no logprobs were compared
  if (figures.max_abs_logprob_difference) difference = *figures.max_abs_logprob_difference;
  return {{"engine", figures.engine},
          {"backend", figures.backend},
          {"device", figures.device},
          {"platform", figures.platform},
          {"arithmetic", figures.arithmetic},
          {"requests", figures.requests},
          {"batch", figures.batch},
          {"prompt_tokens", figures.prompt_tokens},
          {"generated_tokens", figures.generated_tokens},
          {"peak_rss_bytes", figures.peak_rss},
          {"prefill_tokens_per_s", figures.prefill_rate},
          {"decode_tokens_per_s", figures.decode_rate},
          {"tpot_median_seconds", figures.tpot_median},
          {"load_seconds", figures.load_seconds},
          {"first_token_seconds", figures.first_token_seconds},
          {"seconds", report.seconds},
          {"max_abs_logprob_difference", difference}};
}

Json relation_json(const ReportCase& report) { return report.relation.empty() ? Json() : Json(report.relation); }

Json case_json(const ReportCase& report, const std::string& name, bool strict) {
  Json diagnoses = Json::array();
  for (const Diagnosis& one : diagnose(report)) diagnoses.push_back({{"cause", one.cause}, {"sentence", one.sentence}});
  Json json = {{"name", name}, {"path", report.path}, {"relation", relation_json(report)}};
  json.update(Json::parse(compare::verdict_json(report.verdict)));
  json["passes"] = report.verdict.verdict == Verdict::kSkipped ? Json() : Json(passes(report.verdict.verdict, strict));
  json["likely_causes"] = std::move(diagnoses);
  json["figures"] = figures_json(report);
  json["repeats"] = Json::array();
  for (const ReportRepeat& one : report.repeats) {
    json["repeats"].push_back({{"verdict", to_string(one.verdict)},
                               {"reason", one.reason},
                               {"seconds", one.seconds},
                               {"identical_to_first", one.identical_to_first},
                               {"difference", one.difference}});
  }
  json["reproduce"] = report.reproduce;
  json["results"] = report.actual;
  json["log_tail"] = report.log_tail;
  return json;
}

}  // namespace

std::string report_json(const ReportRun& run) {
  const Totals sums = totals(run.cases, run.strict);
  Json verdicts = Json::object();
  for (const auto& [verdict, count] : sums.verdicts) verdicts[std::string(to_string(verdict))] = count;
  Json json = {{"format", "assay-report"},
               {"version", kReportSchema},
               {"run",
                {{"id", run.run_id},
                 {"assay", run.version},
                 {"command", run.command},
                 {"folder", run.folder},
                 {"started", run.started},
                 {"seconds", run.seconds},
                 {"environment", run.environment},
                 {"strict", run.strict},
                 {"finished", run.finished},
                 {"cancelled", run.cancelled},
                 {"filtered", run.filtered}}},
               {"totals",
                {{"cases", sums.cases},
                 {"passed", sums.passed},
                 {"failed", sums.failed},
                 {"skipped", sums.skipped},
                 {"verdicts", std::move(verdicts)}}},
               {"cases", Json::array()}};
  const std::vector<std::string> names = unique_names(run.cases);
  for (size_t i = 0; i < run.cases.size(); ++i) json["cases"].push_back(case_json(run.cases[i], names[i], run.strict));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status write_json(const std::string& path, const ReportRun& run) {
  return write_report(path, report_json(run), "JSON report");
}

Json flat_case_json(const ReportCase& report) {
  Json json = {{"name", report.name},
               {"path", report.path},
               {"relation", relation_json(report)},
               {"verdict", to_string(report.verdict.verdict)},
               {"reason", report.verdict.reason},
               {"golden", report.verdict.golden}};
  if (!report.verdict.declared.empty()) json["declared"] = report.verdict.declared;
  if (report.verdict.judged) json["judged"] = to_string(*report.verdict.judged);
  if (report.verdict.compat) {
    json["compat"] = {{"of", "megatron"},
                      {"verdict", to_string(report.verdict.compat->outcome)},
                      {"message", report.verdict.compat->message},
                      {"disagrees", disagrees(report.verdict)}};
  }
  json.update(figures_json(report));
  json["reproduce"] = report.reproduce;
  return json;
}

}  // namespace assay::report
