#include "core/report/curves.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "assay/golden.h"

namespace assay::report {
namespace {

ResultSet read(const std::string& path) {
  std::error_code code;
  if (path.empty() || !std::filesystem::is_regular_file(path, code)) return {};
  if (std::filesystem::file_size(path, code) > kMaxCurveFile || code) return {};
  Result<ResultSet> set = read_results(path);
  return set ? *std::move(set) : ResultSet();
}

void take(const RequestRecord* record, std::vector<double>& tpot, std::vector<double>& logprobs) {
  if (record == nullptr) return;
  if (record->tpot) tpot = *record->tpot;
  if (record->logprobs) {
    logprobs = *record->logprobs;
  } else if (record->generated_logprobs) {
    if (record->prompt_logprobs) logprobs = *record->prompt_logprobs;
    logprobs.insert(logprobs.end(), record->generated_logprobs->begin(), record->generated_logprobs->end());
  }
}

}  // namespace

std::vector<RequestCurves> read_curves(const ReportCase& report, size_t limit) {
  std::vector<RequestCurves> curves;
  const ResultSet actual = read(report.actual);
  if (actual.requests.empty()) return curves;
  const ResultSet golden = read(report.verdict.golden);
  for (const RequestRecord& record : actual.requests) {
    if (curves.size() == limit) break;
    RequestCurves one{
        .request = record.id, .golden_tpot = {}, .result_tpot = {}, .golden_logprobs = {}, .result_logprobs = {}};
    take(&record, one.result_tpot, one.result_logprobs);
    take(golden.find(record.id), one.golden_tpot, one.golden_logprobs);
    curves.push_back(std::move(one));
  }
  return curves;
}

}  // namespace assay::report
