#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <thread>

#include "core/conformance/findings.h"
#include "core/conformance/judge_call.h"

namespace assay::conformance {
namespace {

// Of metrics that judge against source texts, which the kit does not have.
bool needs_sources(const std::string& metric) { return metric == "known_completion"; }

template <class Body>
void for_each_metric(const Subject& subject, const Body& body) {
  for (const std::string& metric : subject.plugin.metrics) body(metric);
}

void slow_down(JudgeInput& input) {
  for (QuantityData& one : input.candidate_quantities) {
    for (double& value : one.values) value *= one.name.starts_with("mem") ? 100 : 0.01;
  }
}

constexpr const char* kQuantitiesName = "quantities";

// Names of what the comparator looks at: contents whose change makes it say no, and quantities.
std::set<std::string> sensitive(const Subject& subject, Findings& findings, const std::string& metric) {
  std::set<std::string> looks;
  for (const Content& content : contents()) {
    JudgeInput input = equal_input(metric);
    for (auto& pair : input.pairs) content.change(pair.second);
    if (!judge(subject, findings, input).passes()) looks.insert(content.name);
  }
  JudgeInput input = equal_input(metric);
  slow_down(input);
  if (!judge(subject, findings, input).passes()) looks.insert(kQuantitiesName);
  return looks;
}

bool is_time(const Content& content) { return (content.has & (ASSAY_HAS_TPOT | ASSAY_HAS_LATENCY)) != 0; }

// It looks at what stands position by position, or character by character: not at times alone.
bool looks_at_sequences(const std::set<std::string>& looks) {
  return std::any_of(contents().begin(), contents().end(),
                     [&](const Content& content) { return !is_time(content) && looks.contains(content.name); });
}

void equal(const Subject& subject, Findings& findings) {
  for_each_metric(subject, [&](const std::string& metric) {
    const Judged judged = judge(subject, findings, equal_input(metric));
    findings.expect(judged.called.ok(), metric + ": two equal records: " + judged.text());
    if (needs_sources(metric)) {
      findings.not_checked(metric + ": it judges against source texts, which the kit does not have");
      return;
    }
    findings.expect(judged.passes(), metric + ": two equal records get " + judged.text());
    const JudgeInput none = [&] {
      JudgeInput input = equal_input(metric);
      input.pairs.clear();
      return input;
    }();
    judge(subject, findings, none);  // no pair: any answer that is one
  });
}

void missing(const Subject& subject, Findings& findings) {
  for_each_metric(subject, [&](const std::string& metric) {
    JudgeInput input = equal_input(metric);
    for (auto& pair : input.pairs) pair.second = RecordData();
    input.candidate_quantities.clear();
    Judged judged = judge(subject, findings, input);
    findings.expect(!judged.passes(),
                    metric + ": a result without any data gets " + judged.text() + "; nothing missing ever passes");
    for (auto& pair : input.pairs) pair.first = RecordData();
    input.reference_quantities.clear();
    judged = judge(subject, findings, input);
    findings.expect(!judged.passes(),
                    metric + ": no data on either side gets " + judged.text() + "; nothing missing ever passes");
    const std::set<std::string> looks = sensitive(subject, findings, metric);
    for (size_t i = 0; i < contents().size(); ++i) {
      if (!looks.contains(contents()[i].name)) continue;
      JudgeInput lacking = equal_input(metric);
      for (auto& pair : lacking.pairs) pair.second.has &= ~contents()[i].has;
      judged = judge(subject, findings, lacking);
      const bool alternative = judged.passes() && looks.size() > 1;
      findings.expect(!judged.passes() || alternative,
                      fmt::format("{}: a result without {} gets {}", metric, contents()[i].name, judged.text()));
    }
  });
}

void differing(const Subject& subject, Findings& findings) {
  for_each_metric(subject, [&](const std::string& metric) {
    JudgeInput input = equal_input(metric);
    for (auto& pair : input.pairs) {
      for (const Content& content : contents()) content.change(pair.second);
    }
    slow_down(input);
    const Judged judged = judge(subject, findings, input);
    findings.expect(!judged.passes(), metric + ": a result that differs in everything gets " + judged.text());
    const std::set<std::string> looks = sensitive(subject, findings, metric);
    // One bad pair among good ones.
    for (size_t i = 0; i < contents().size(); ++i) {
      if (!looks.contains(contents()[i].name)) continue;
      JudgeInput one = equal_input(metric);
      for (size_t k = 2; k < 6; ++k) one.pairs.emplace_back(whole_record(k), whole_record(k));
      contents()[i].change(one.pairs[3].second);
      const Judged seen = judge(subject, findings, one);
      if (is_time(contents()[i])) continue;  // judged over the whole case
      findings.expect(!seen.passes(), fmt::format("{}: one request of six with other {} gets {}", metric,
                                                  contents()[i].name, seen.text()));
    }
  });
}

void broken(const Subject& subject, Findings& findings) {
  for_each_metric(subject, [&](const std::string& metric) {
    const std::set<std::string> looks = sensitive(subject, findings, metric);
    for (size_t i = 0; i < contents().size(); ++i) {
      const Content& content = contents()[i];
      if (content.spoil == nullptr) continue;
      for (const bool golden : {false, true}) {
        JudgeInput input = equal_input(metric);
        for (auto& pair : input.pairs) content.spoil(golden ? pair.first : pair.second);
        const Judged judged = judge(subject, findings, input);
        findings.expect(!looks.contains(content.name) || !judged.passes(),
                        fmt::format("{}: {} that are no numbers, in the {}, get {}", metric, content.name,
                                    golden ? "golden" : "result", judged.text()));
      }
    }
    // Lengths that do not fit: never a crash.
    for (const size_t keep : {size_t{0}, size_t{1}}) {
      JudgeInput input = equal_input(metric);
      for (auto& pair : input.pairs) {
        RecordData& r = pair.second;
        r.tokens.resize(std::min(r.tokens.size(), keep));
        r.logprobs.resize(std::min(r.logprobs.size(), keep));
        r.top_ids.resize(keep * 2);
        r.top_logprobs.resize(keep * 2);
        r.routing.resize(keep * 4);
        r.margins.resize(keep * 2);
        r.tpot.resize(keep);
        r.text.resize(keep);
      }
      const Judged judged = judge(subject, findings, input);
      findings.expect(!looks_at_sequences(looks) || !judged.passes(),
                      fmt::format("{}: a result cut to {} values gets {}", metric, keep, judged.text()));
    }
  });
}

void options(const Subject& subject, Findings& findings) {
  for_each_metric(subject, [&](const std::string& metric) {
    JudgeInput input = equal_input(metric);
    for (const char* text : {"", "{}", R"({"dtype": "bf16", "logit": 30.0, "sources": []})",
                             R"({"noise": {"max": 0.01, "p99": 0.005, "relative": 0.1}, "dtype": "fp32"})",
                             R"({"a_member_of_a_later_version": [1]})"}) {
      input.options = text;
      const Judged judged = judge(subject, findings, input);
      findings.expect(judged.called.ok(),
                      fmt::format("{}: options {}: {}; every member that assay_judgement documents is accepted", metric,
                                  text, judged.text()));
    }
    input.options = R"({"tolerance": 0.5, "dtype": "fp32"})";
    const Judged tolerant = judge(subject, findings, input);
    if (tolerant.called.code == ASSAY_INVALID) {
      findings.not_checked(fmt::format("{}: a tolerance: it takes none ({})", metric, tolerant.called.message));
    } else {
      findings.expect(tolerant.called.ok(), fmt::format("{}: a tolerance: {}", metric, tolerant.text()));
    }
    for (const char* text : {"no JSON", "[", "[]", R"({"tolerance": "much"})"}) {
      input.options = text;
      judge(subject, findings, input);  // refused or not: an answer
    }
  });
}

void older_and_newer(const Subject& subject, Findings& findings) {
  for_each_metric(subject, [&](const std::string& metric) {
    const bool passes = judge(subject, findings, equal_input(metric)).passes();
    JudgeInput newer = equal_input(metric);
    newer.record_size = sizeof(assay_record) + 64;
    const Judged longer = judge(subject, findings, newer);
    findings.expect(longer.passes() == passes,
                    metric + ": longer structs, as a newer host has them, get " + longer.text());
    JudgeInput older = equal_input(metric);
    older.record_size = offsetof(assay_record, tpot);        // ABI 1.0
    const Judged shorter = judge(subject, findings, older);  // reading beyond `size` ends the process
    findings.expect(shorter.called.ok(),
                    metric + ": shorter structs, as a host of ABI 1.0 has them, get " + shorter.called.text());
  });
}

void judging_on_threads(const Subject& subject, Findings& findings) {
  for_each_metric(subject, [&](const std::string& metric) {
    JudgeInput input = equal_input(metric);
    for (size_t k = 2; k < 40; ++k) input.pairs.emplace_back(whole_record(k), whole_record(k));
    for (const Content& content : contents()) content.change(input.pairs[7].second);
    const Judged alone = judge(subject, findings, input);
    constexpr size_t kThreads = 4;
    std::array<Findings, kThreads> own;
    std::array<int, kThreads> differing{};  // rounds
    std::vector<std::thread> running;
    for (size_t i = 0; i < kThreads; ++i) {
      running.emplace_back([&, i] {
        for (int round = 0; round < 20; ++round)
          differing[i] += judge(subject, own[i], input).findings != alone.findings;
      });
    }
    for (std::thread& thread : running) thread.join();
    for (size_t i = 0; i < kThreads; ++i) {
      for (const std::string& failure : own[i].failures()) findings.fail("on four threads: " + failure);
      findings.expect(differing[i] == 0, metric + ": four threads at once get other findings than one");
    }
  });
}

}  // namespace

std::vector<Check> comparator_checks() {
  return {{"equal records", equal},       {"missing data", missing}, {"differing records", differing},
          {"broken records", broken},     {"options", options},      {"sizes", older_and_newer},
          {"threads", judging_on_threads}};
}

}  // namespace assay::conformance
