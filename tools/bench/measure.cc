#include "tools/bench/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/cpu_kernels.h"
#include "tools/bench/engine_bench.h"

namespace assay::bench {
namespace {

// What is known without a measurement.
BenchReport begin(const Opened& opened) {
  BenchReport report;
  report.config = opened.config();
  report.backend = opened.backend();
  report.device = opened.model().device();
  report.weight_bytes = static_cast<double>(opened.model().weight_bytes());
  report.open_seconds = opened.seconds();
  return report;
}

// Looks at the machine; the best and the most that was seen stay. The host's own memory is measured at the end alone:
// that takes a gigabyte of it.
Status look(const Opened& opened, BenchReport* report, bool end = false) {
  if (end || opened.measures_device()) report->host_peak = host_peak();
  if (!end && !opened.measures_device()) return {};
  const Result<MachineFacts> now = opened.machine();
  if (!now) return now.status();
  report->machine.read_bandwidth = std::max(report->machine.read_bandwidth, now->read_bandwidth);
  report->machine.memory_used = std::max(report->machine.memory_used, now->memory_used);
  report->machine.memory_total = now->memory_total;
  return {};
}

Status add_kernels(const Opened& opened, Sequence& sequence, uint32_t tokens, uint32_t start, const std::string& what,
                   BenchReport* report) {
  Result<std::vector<KernelRow>> rows = sequence.profile(tokens, start);
  if (!rows) return rows.status();
  if (rows->empty() && opened.backend() == "cpu") {
    report->kernels.push_back(
        {what + ", each alone on one thread", measure_cpu_kernels(opened.config(), opened.number(), tokens, start)});
    return {};
  }
  if (!rows->empty()) report->kernels.push_back({what + ", one after the other", *std::move(rows)});
  return {};
}

Result<DecodeRow> decode_alone(const Opened& opened, uint32_t context, const DecodePlan& plan, BenchReport* report) {
  DecodeRow row{.requests = 1, .context = context, .step = {}, .work = {}};
  Result<Sequence> sequence = Sequence::open(opened.model(), context + plan.steps);
  if (!sequence) return sequence.status();
  if (const Result<double> filled = sequence->prefill(context); !filled) return filled.status();
  for (int round = 0; round <= plan.rounds; ++round) {
    const Result<double> seconds = sequence->decode(context, plan.steps);
    if (!seconds) return seconds.status();
    if (round > 0) row.step.seconds.push_back(*seconds);
  }
  if (!plan.kernels) return row;
  const Status added = add_kernels(opened, *sequence, 1, context, fmt::format("step at context {}", context), report);
  if (!added.ok()) return added;
  return row;
}

}  // namespace

Result<BenchReport> measure_decode(const Opened& opened, plugin::PluginRegistry& registry, const DecodePlan& plan) {
  BenchReport report = begin(opened);
  if (Status looked = look(opened, &report); !looked.ok()) return looked;
  for (const uint32_t requests : plan.concurrency) {
    for (const uint32_t context : plan.contexts) {
      Result<DecodeRow> row = DecodeRow{.requests = requests, .context = context, .step = {}, .work = {}};
      if (requests == 1) {
        row = decode_alone(opened, context, plan, &report);
        if (!row) return row.status();
      } else {
        Result<EngineFigures> figures =
            measure_engine(opened.model(), registry,
                           {.requests = requests, .context = context, .steps = plan.steps, .rounds = plan.rounds});
        if (!figures) return figures.status();
        row->step = std::move(figures->step);
        row->experts = figures->experts_chosen;
      }
      if (Status looked = look(opened, &report); !looked.ok()) return looked;
      if (requests == 1 && opened.config().any_moe()) row->experts = opened.config().moe.topk;
      row->work = decode_work(opened.config(), opened.number(), requests, context + plan.steps / 2.0, row->experts);
      report.decode.push_back(*std::move(row));
    }
  }
  if (Status looked = look(opened, &report, true); !looked.ok()) return looked;
  return report;
}

Result<BenchReport> measure_prefill(const Opened& opened, const PrefillPlan& plan) {
  BenchReport report = begin(opened);
  if (Status looked = look(opened, &report); !looked.ok()) return looked;
  for (const uint32_t tokens : plan.tokens) {
    PrefillRow row{.tokens = tokens, .prompt = {}, .flops = prefill_flops(opened.config(), tokens)};
    Result<Sequence> sequence = Sequence::open(opened.model(), tokens);
    if (!sequence) return sequence.status();
    for (int round = 0; round <= plan.rounds; ++round) {
      const Result<double> seconds = sequence->prefill(tokens);
      if (!seconds) return seconds.status();
      if (round > 0) row.prompt.seconds.push_back(*seconds);
    }
    report.prefill.push_back(std::move(row));
    if (plan.kernels) {
      const Status added =
          add_kernels(opened, *sequence, tokens, 0, fmt::format("prompt of {} tokens", tokens), &report);
      if (!added.ok()) return added;
    }
    if (Status looked = look(opened, &report); !looked.ok()) return looked;
  }
  if (Status looked = look(opened, &report, true); !looked.ok()) return looked;
  return report;
}

}  // namespace assay::bench
