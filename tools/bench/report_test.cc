// What `assay bench` prints, from figures made by hand.
#include "tools/bench/report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace assay::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BenchReport some_report() {
  BenchReport report;
  report.config.num_layers = 2;
  report.config.hidden_size = 64;
  report.config.num_attention_heads = report.config.num_query_groups = 4;
  report.config.kv_channels = 16;
  report.config.ffn_hidden_size = 256;
  report.config.vocab_size = 128;
  report.backend = "cpu";
  report.device = "cpu avx2 x2";
  report.weight_bytes = 5e9;
  report.machine = {.read_bandwidth = 100e9, .memory_used = 0, .memory_total = 0};
  DecodeRow row{.requests = 1, .context = 128, .step = {{0.003, 0.001, 0.002}}, .work = {}};
  row.work = {.weight_bytes = 0.15e9, .cache_bytes = 0.01e9};
  report.decode.push_back(row);
  row.requests = 64;
  report.decode.push_back(row);
  report.prefill.push_back({.tokens = 100, .prompt = {{0.5, 0.25}}, .flops = 1e12});
  report.kernels.push_back({"step at context 128", {{"projection", 27, 2.7e9, 0, 0.054}}});
  return report;
}

TEST(Samples, TheMedianIsTheUpperMiddleValue) {
  const Samples samples{{4, 1, 3, 2}};
  EXPECT_EQ(samples.median(), 3);
  EXPECT_EQ(samples.least(), 1);
  EXPECT_EQ(samples.most(), 4);
}

TEST(BenchReport, JsonHasOneObjectALineWithMediansAndFractions) {
  std::istringstream lines(to_json_lines(some_report()));
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0]["what"], "model");
  EXPECT_EQ(all[1]["what"], "decode");
  EXPECT_DOUBLE_EQ(all[1]["ms"], 2);
  EXPECT_DOUBLE_EQ(all[1]["ms_least"], 1);
  EXPECT_DOUBLE_EQ(all[1]["tokens_per_second"], 500);
  EXPECT_DOUBLE_EQ(all[1]["fraction"], 0.8);  // 0.16 GB in 2 ms of 100 GB/s
  EXPECT_EQ(all[2]["what"], "engine");
  EXPECT_EQ(all[2]["requests"], 64);
  EXPECT_DOUBLE_EQ(all[2]["tokens_per_second"], 32000);
  EXPECT_EQ(all[3]["what"], "prefill");
  EXPECT_DOUBLE_EQ(all[3]["ms"], 500);
  EXPECT_DOUBLE_EQ(all[3]["flops_per_second"], 2e12);
  EXPECT_EQ(all[4]["what"], "kernel");
  EXPECT_DOUBLE_EQ(all[4]["gb_per_s"], 50);
  EXPECT_DOUBLE_EQ(all[4]["fraction"], 0.5);
  EXPECT_EQ(all[5]["what"], "memory");
  EXPECT_FALSE(all[5].contains("device_bytes"));
}

TEST(BenchReport, TextNamesModelDeviceAndEveryFigure) {
  BenchReport report = some_report();
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("2 layers, hidden 64, 4 heads in 4 groups of 16, MLP 256, vocabulary 128, fp32"));
  EXPECT_THAT(text, HasSubstr("backend cpu on cpu avx2 x2: 5.00 GB of weights"));
  EXPECT_THAT(text, HasSubstr("memory is read at 100.0 GB/s"));
  EXPECT_THAT(text, HasSubstr("80.0 %"));
  EXPECT_THAT(text, HasSubstr("projection"));
  EXPECT_THAT(text, Not(HasSubstr("device memory")));
  report.machine.memory_used = 35000000000;
  report.machine.memory_total = 143000000000;
  EXPECT_THAT(to_text(report), HasSubstr("the most that was seen: 35.00 GB of 143.00 GB"));
}

}  // namespace
}  // namespace assay::bench
