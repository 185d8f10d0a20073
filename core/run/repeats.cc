#include "core/run/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::run {
namespace {

// What is known about a set of repeats at a glance.
struct Tally {
  size_t passed = 0;
  size_t infra = 0;
  size_t worst = 0;         // index of the first repeat of the worst verdict, INFRA counted last
  size_t first_failed = 0;  // index; meaningless when all passed
  std::string difference;   // "" when all that have results are bit-equal
};

// INFRA says nothing about the engine: it is the worst only where nothing else is but SKIPPED, which judged nothing.
int severity(Verdict verdict) {
  if (verdict == Verdict::kSkipped) return -2;
  return verdict == Verdict::kInfra ? -1 : static_cast<int>(verdict);
}

Tally tally_of(const std::vector<RepeatVerdict>& repeats) {
  Tally tally;
  size_t reference = repeats.size();
  for (size_t i = 0; i < repeats.size(); ++i) {
    const Verdict verdict = repeats[i].verdict.verdict;
    if (passes(verdict)) {
      ++tally.passed;
    } else if (tally.passed == i) {
      tally.first_failed = i;
    }
    if (verdict == Verdict::kInfra) ++tally.infra;
    if (severity(verdict) > severity(repeats[tally.worst].verdict.verdict)) tally.worst = i;
    if (reference == repeats.size() && repeats[i].has_results) reference = i;
    if (tally.difference.empty() && !repeats[i].difference.empty()) {
      tally.difference =
          fmt::format("repeat {} differs from repeat {} in {}", i + 1, reference + 1, repeats[i].difference);
    }
  }
  return tally;
}

std::string counts_of(const std::vector<RepeatVerdict>& repeats) {
  std::map<Verdict, size_t> counts;
  for (const RepeatVerdict& repeat : repeats) ++counts[repeat.verdict.verdict];
  std::string text;
  for (const auto& [verdict, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(verdict));
  }
  return text;
}

MetricVerdict part_of(const std::vector<RepeatVerdict>& repeats, const Tally& tally) {
  MetricVerdict part{
      std::string(kRepeatsMetric), tally.difference.empty() ? Verdict::kIdentical : Verdict::kEquivalent, {}};
  const auto note = [&part](std::string message) {
    Finding finding;
    finding.verdict = Verdict::kIdentical;
    finding.note = true;
    finding.message = std::move(message);
    part.findings.push_back(std::move(finding));
  };
  if (const size_t failed = repeats.size() - tally.passed; tally.passed > 0 && failed > 0) {
    part.verdict = failed == tally.infra ? Verdict::kInfra : Verdict::kFlaky;
  }
  note(fmt::format("{} repeats: {}", repeats.size(), counts_of(repeats)));
  if (!tally.difference.empty()) note(tally.difference);
  return part;
}

}  // namespace

std::filesystem::path folder_of_repeat(const std::filesystem::path& output, const std::string& id, int repeat) {
  const std::filesystem::path folder = output / "cases" / id;
  return repeat <= 1 ? folder : folder / fmt::format("repeat_{}", repeat);
}

std::string id_of_case(const std::string& name) {
  std::string id;
  for (const std::filesystem::path& part : std::filesystem::path(name)) {
    const std::string word = part.string();
    const bool of_repeat = !id.empty() && word.starts_with("repeat_") && word.size() > 7 &&
                           word.find_first_not_of("0123456789", 7) == std::string::npos;
    id += (id.empty() || id.ends_with('/') ? "" : "/") + word + (of_repeat ? "~" : "");
  }
  return id;
}

CombinedVerdict combine_repeats(const std::vector<RepeatVerdict>& repeats, size_t planned) {
  const Tally tally = tally_of(repeats);
  const size_t count = repeats.size();
  const size_t failed = count - tally.passed;
  const bool mixed = tally.passed > 0 && failed > 0;
  CombinedVerdict combined;
  combined.shown = mixed ? tally.first_failed : tally.worst;
  const CaseVerdict& shown = repeats[combined.shown].verdict;
  combined.verdict = shown;
  std::string& reason = combined.verdict.reason;
  MetricVerdict part = part_of(repeats, tally);
  const std::string bits = tally.difference.empty() ? "bit-equal" : "not bit-equal: " + tally.difference;
  if (mixed) {
    combined.verdict.verdict = part.verdict;
    reason = fmt::format("passed {} of {} repeats; repeat {} {}: {}", tally.passed, count, combined.shown + 1,
                         to_string(shown.verdict), shown.reason);
  } else if (failed == 0) {
    if (!tally.difference.empty()) combined.verdict.verdict = worst(shown.verdict, Verdict::kEquivalent);
    reason += fmt::format("; {} repeats, {}", count, bits);
  } else if (shown.verdict == Verdict::kSkipped) {
    reason += fmt::format("; {} repeats", count);
  } else if (count > 1) {
    reason += fmt::format("; none of {} repeats passes ({}), {}", count, counts_of(repeats), bits);
  }
  if (count < planned) reason += fmt::format("; {} of {} repeats did not run", planned - count, planned);
  combined.verdict.metrics.push_back(std::move(part));
  return combined;
}

}  // namespace assay::run
