#include "tools/bench/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace assay::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string gigabytes(double bytes) { return fmt::format("{:.2f} GB", bytes * 1e-9); }

std::string shape_of(const model::ModelConfig& config) {
  std::string text =
      fmt::format("{} layers, hidden {}, {} heads in {} groups of {}", config.num_layers, config.hidden_size,
                  config.num_attention_heads, config.num_query_groups, config.kv_channels);
  if (config.any_moe()) {
    text += fmt::format(", {} experts of width {}, top {}", config.moe.experts, config.moe.ffn_hidden_size,
                        config.moe.topk);
    if (config.moe.shared_ffn_hidden_size > 0) text += fmt::format(", shared {}", config.moe.shared_ffn_hidden_size);
  } else {
    text += fmt::format(", MLP {}", config.ffn_hidden_size);
  }
  text += fmt::format(", vocabulary {}, {}: {:.2f} billion parameters", config.vocab_size,
                      config.arithmetic == model::Arithmetic::kBf16 ? "bf16" : "fp32",
                      static_cast<double>(parameters(config)) * 1e-9);
  return text;
}

std::string range(const Samples& samples) {
  return fmt::format("{:9.3f} {:9.3f} {:9.3f}", samples.median() * 1e3, samples.least() * 1e3, samples.most() * 1e3);
}

double fraction(const BenchReport& report, double bytes, double seconds) {
  return bytes / seconds / report.machine.read_bandwidth;
}

std::string decode_text(const BenchReport& report) {
  if (report.decode.empty()) return "";
  std::string text =
      fmt::format("\ndecode, ms a step{:>28} {:>9} {:>9} {:>11} {:>11} {:>13} {:>9}\n", "median", "least", "most",
                  "tokens/s", "GB a step", "of bandwidth", report.config.any_moe() ? "experts" : "");
  for (const DecodeRow& row : report.decode) {
    const double seconds = row.step.median();
    text += fmt::format("{:5} at once, context {:>6} {:>9}   {} {:11.1f} {:11.2f} {:11.1f} %{}\n", row.requests,
                        row.context, row.requests > 1 ? "engine" : "", range(row.step), row.requests / seconds,
                        row.work.bytes() * 1e-9, 100 * fraction(report, row.work.bytes(), seconds),
                        row.experts > 0 ? fmt::format(" {:9.1f}", row.experts) : "");
  }
  return text;
}

std::string prefill_text(const BenchReport& report) {
  if (report.prefill.empty()) return "";
  std::string text = fmt::format("\nprefill, ms a prompt{:>25} {:>9} {:>9} {:>11} {:>11}\n", "median", "least", "most",
                                 "tokens/s", "TFLOP/s");
  for (const PrefillRow& row : report.prefill) {
    const double seconds = row.prompt.median();
    text += fmt::format("{:>9} tokens{:20}  {} {:11.1f} {:11.2f}\n", row.tokens, "", range(row.prompt),
                        row.tokens / seconds, row.flops / seconds * 1e-12);
  }
  return text;
}

std::string kernels_text(const BenchReport& report) {
  std::string text;
  for (const KernelTable& table : report.kernels) {
    text += fmt::format("\nkernels of one {}\n{:34}{:>9} {:>9} {:>10} {:>8} {:>14} {:>9}\n", table.what, "", "launches",
                        "us each", "MB each", "GB/s", "of bandwidth", "TFLOP/s");
    for (const KernelRow& row : table.rows) {
      const auto launches = static_cast<double>(row.launches);
      text += fmt::format("  {:32}{:9} {:9.2f} {:10.3f} {:8.0f} {:12.1f} % {:9.2f}\n", row.name, row.launches,
                          row.seconds / launches * 1e6, row.bytes / launches * 1e-6, row.bytes / row.seconds * 1e-9,
                          100 * fraction(report, row.bytes, row.seconds), row.flops / row.seconds * 1e-12);
    }
  }
  return text;
}

Json samples_json(const Samples& samples) {
  return {{"ms", samples.median() * 1e3},
          {"ms_least", samples.least() * 1e3},
          {"ms_most", samples.most() * 1e3},
          {"rounds", samples.seconds.size()}};
}

void add_kernels(const BenchReport& report, const std::function<void(const Json&)>& line) {
  for (const KernelTable& table : report.kernels) {
    for (const KernelRow& row : table.rows) {
      line({{"what", "kernel"},
            {"of", table.what},
            {"kernel", row.name},
            {"launches", row.launches},
            {"seconds", row.seconds},
            {"bytes", row.bytes},
            {"flops", row.flops},
            {"gb_per_s", row.bytes / row.seconds * 1e-9},
            {"fraction", fraction(report, row.bytes, row.seconds)}});
    }
  }
}

}  // namespace

std::string to_text(const BenchReport& report) {
  std::string text = shape_of(report.config) + "\n";
  text += fmt::format("backend {} on {}: {} of weights, opened in {:.2f} s\n", report.backend, report.device,
                      gigabytes(report.weight_bytes), report.open_seconds);
  text += fmt::format("memory is read at {:.1f} GB/s, measured in this run\n", report.machine.read_bandwidth * 1e-9);
  text += decode_text(report) + prefill_text(report) + kernels_text(report);
  if (report.machine.memory_total > 0) {
    text += fmt::format("\ndevice memory in use, the most that was seen: {} of {}",
                        gigabytes(static_cast<double>(report.machine.memory_used)),
                        gigabytes(static_cast<double>(report.machine.memory_total)));
  }
  return text +
         fmt::format("\nhost memory of this process, peak: {}\n", gigabytes(static_cast<double>(report.host_peak)));
}

std::string to_json_lines(const BenchReport& report) {
  std::string text;
  const auto line = [&](const Json& json) { text += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; };
  const double bandwidth = report.machine.read_bandwidth;
  line({{"what", "model"},
        {"config", Json::parse(model::to_json(report.config))},
        {"parameters", parameters(report.config)},
        {"backend", report.backend},
        {"device", report.device},
        {"weight_bytes", report.weight_bytes},
        {"open_seconds", report.open_seconds},
        {"read_bandwidth", bandwidth}});
  for (const DecodeRow& row : report.decode) {
    const bool engine = row.requests > 1;
    Json json = {{"what", engine ? "engine" : "decode"}, {"context", row.context}};
    json[engine ? "requests" : "batch"] = row.requests;
    json.update(samples_json(row.step));
    json["tokens_per_second"] = row.requests / row.step.median();
    json["bytes"] = row.work.bytes();
    if (row.experts > 0) json["experts_chosen"] = row.experts;
    json["read_bandwidth"] = bandwidth;
    json["fraction"] = fraction(report, row.work.bytes(), row.step.median());
    line(json);
  }
  for (const PrefillRow& row : report.prefill) {
    Json json = {{"what", "prefill"}, {"tokens", row.tokens}, {"batch", 1}};
    json.update(samples_json(row.prompt));
    json["tokens_per_second"] = row.tokens / row.prompt.median();
    json["flops"] = row.flops;
    json["flops_per_second"] = row.flops / row.prompt.median();
    json["read_bandwidth"] = bandwidth;
    line(json);
  }
  add_kernels(report, line);
  Json memory = {{"what", "memory"}, {"host_peak_bytes", report.host_peak}};
  if (report.machine.memory_total > 0) {
    memory["device_bytes"] = report.machine.memory_used;
    memory["device_total_bytes"] = report.machine.memory_total;
  }
  line(memory);
  return text;
}

}  // namespace assay::bench
