#include "core/conformance/judge_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <tuple>

#include "core/conformance/lent.h"

namespace assay::conformance {
namespace {

constexpr std::array kKinds = {"", "EQUAL", "WITHIN", "BEYOND", "DIFFERS", "BROKEN", "MISSING", "NOTE"};

struct Collector {
  Findings* findings;
  const std::vector<std::string>* ids;
  Judged* judged;
  std::atomic<bool> open = true;
};

void take(void* context, const assay_finding* finding) {
  auto& collector = *static_cast<Collector*>(context);
  Findings& findings = *collector.findings;
  if (!findings.expect(collector.open, "judge: a finding after it returned; `sink` is borrowed for the call")) return;
  if (!findings.expect(finding != nullptr && finding->size >= sizeof(assay_finding),
                       "judge: a finding whose `size` is not set"))
    return;
  if (!findings.expect(finding->kind >= ASSAY_FINDING_EQUAL && finding->kind <= ASSAY_FINDING_NOTE,
                       fmt::format("judge: a finding of kind {}, expected 1 to 7", finding->kind))) {
    return;
  }
  const std::string id(sdk::text(finding->id));
  const std::string message(sdk::text(finding->message));
  findings.expect(id.empty() || std::find(collector.ids->begin(), collector.ids->end(), id) != collector.ids->end(),
                  "judge: a finding of request '" + id + "', which is none of the pairs");
  findings.expect(one_line(message), "judge: the message of a finding is not one line of UTF-8: " + message);
  findings.expect(!message.empty() || finding->kind == ASSAY_FINDING_EQUAL,
                  "judge: a finding that is not EQUAL says nothing");
  findings.expect(finding->index >= -1,
                  fmt::format("judge: a finding has index {}, expected -1 or a position", finding->index));
  collector.judged->kinds |= 1U << finding->kind;
  collector.judged->findings.push_back(fmt::format("{} {} {} {}", kKinds[finding->kind], id, finding->index, message));
}

std::pair<const assay_quantity*, size_t> put_quantities(Lent& lent, const std::vector<QuantityData>& from) {
  std::vector<assay_quantity> quantities;
  for (const QuantityData& one : from)
    quantities.push_back({lent.put(one.name), lent.put(std::span<const double>(one.values))});
  return {lent.array(std::span<const assay_quantity>(quantities)), quantities.size()};
}

}  // namespace

JudgeInput equal_input(const std::string& metric) {
  JudgeInput input;
  input.metric = metric;
  for (size_t i = 0; i < 2; ++i) input.pairs.emplace_back(whole_record(i), whole_record(i));
  for (const std::string& name : {metric, std::string("throughput"), std::string("mem-max-allocated-bytes")}) {
    input.reference_quantities.push_back({name, {100, 101, 99}});
  }
  input.candidate_quantities = input.reference_quantities;
  return input;
}

bool Judged::passes() const {
  return called.ok() && (has(ASSAY_FINDING_EQUAL) || has(ASSAY_FINDING_WITHIN)) && !has(ASSAY_FINDING_BEYOND) &&
         !has(ASSAY_FINDING_DIFFERS) && !has(ASSAY_FINDING_BROKEN) && !has(ASSAY_FINDING_MISSING);
}

std::string Judged::text() const {
  if (!called.ok()) return called.text();
  for (const std::string& finding : findings) {
    if (!finding.starts_with("EQUAL") && !finding.starts_with("WITHIN") && !finding.starts_with("NOTE")) return finding;
  }
  return findings.empty() ? "no finding" : findings.front();
}

Judged judge(const Subject& subject, Findings& findings, const JudgeInput& input) {
  Lent lent("the judgement of judge", 16384 + input.pairs.size() * 8192);
  std::vector<std::string> ids;
  std::vector<assay_pair> pairs;
  std::vector<std::unique_ptr<Lent>> records;  // a struct that was cut needs pages of its own
  const auto put = [&](const RecordData& data) {
    if (input.record_size >= sizeof(assay_record)) return put_record(lent, data, input.record_size);
    records.push_back(std::make_unique<Lent>("a record of judge", 8192));
    const assay_record* place = put_record(*records.back(), data, input.record_size);
    records.back()->lock();
    return place;
  };
  for (size_t i = 0; i < input.pairs.size(); ++i) {
    ids.push_back(std::to_string(i));
    pairs.push_back({lent.put(ids.back()), put(input.pairs[i].first), put(input.pairs[i].second)});
  }
  auto judgement = sdk::sized<assay_judgement>();
  judgement.known_completion = input.known_completion ? 1 : 0;
  judgement.metric = lent.put(input.metric);
  judgement.pairs = lent.array(std::span<const assay_pair>(pairs));
  judgement.pair_count = pairs.size();
  std::tie(judgement.reference_quantities, judgement.reference_quantity_count) =
      put_quantities(lent, input.reference_quantities);
  std::tie(judgement.candidate_quantities, judgement.candidate_quantity_count) =
      put_quantities(lent, input.candidate_quantities);
  judgement.options = lent.put(input.options);
  const bool newer = input.record_size > sizeof(assay_record);
  const assay_judgement* place = newer ? lent.grown(judgement, 48) : lent.object(judgement);
  Judged judged;
  auto& collector = *new Collector{&findings, &ids, &judged, true};  // never deleted: a late finding still finds it
  const assay_sink* sink = lent.object(assay_sink{&collector, take});
  lent.lock();
  judged.called = call(findings, "judge of metric " + input.metric, subject.plugin.comparator()->judge, place, sink);
  collector.open = false;
  return judged;
}

}  // namespace assay::conformance
