#include "assay/provenance.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GoldenMeta full() {
  GoldenMeta meta;
  meta.provenance = Provenance{.run_id = "r1", .engine = "static_legacy", .dtype = "bf16", .device = "cpu avx512 x2"};
  meta.noise =
      NoiseModel{.repeats = 5, .device = "cpu", .shapes = {"batch 1"}, .metrics = {{"logprobs", {.max = 1e-6}}}};
  meta.accepted.push_back({"*", "ann", "2026-11-29T00:00:00Z", "first import", "r1"});
  meta.further.emplace_back("note", "[1, 2]");
  return meta;
}

TEST(GoldenMeta, ComesBackAsItWasWritten) {
  const std::string text = to_json(full());
  const Result<GoldenMeta> read = parse_golden_meta(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(to_json(*read), text);
  EXPECT_EQ(read->provenance->dtype, "bf16");
  EXPECT_EQ(read->noise->metrics.at("logprobs").max, 1e-6);
  EXPECT_EQ(read->accepted.at(0).who, "ann");
  EXPECT_EQ(read->further.at(0).second, "[1,2]");
}

TEST(GoldenMeta, NothingToSayIsAnEmptyText) {
  EXPECT_EQ(to_json(GoldenMeta()), "");
  EXPECT_TRUE(parse_golden_meta("").ok());
}

TEST(GoldenMeta, AMemberOfTheWrongTypeIsInvalid) {
  for (const char* text : {"[]", "{\"provenance\": 3}", "{\"provenance\": {\"engine\": 3}}", "{\"accepted\": [3]}",
                           "{\"noise\": {\"metrics\": {\"logprobs\": 1}}}", "{"}) {
    const Result<GoldenMeta> read = parse_golden_meta(text);
    EXPECT_FALSE(read.ok()) << text;
  }
}

TEST(GoldenMeta, NoiseThatNoMeasurementGivesIsInvalid) {
  const auto line = [](const std::string& metric, const std::string& noise) {
    const auto read = parse_golden_meta(R"({"noise": {"metrics": {")" + metric + R"(": )" + noise + "}}}");
    return read.ok() ? std::string() : read.status().message();
  };
  EXPECT_EQ(line("logprobs", R"({"max": 0.8, "p99": 0.1})"), "");
  EXPECT_THAT(line("logprobs", R"({"max": -5})"), HasSubstr("noise of logprobs: max is -5, expected a finite number"));
  EXPECT_THAT(line("tpot", R"({"relative": -0.1})"), HasSubstr("noise of tpot: relative is -0.1"));
  EXPECT_THAT(line("logprobs", R"({"max": 1e9})"),
              HasSubstr("max is 1000000000, more than 2: nothing could be told from anything"));
  EXPECT_THAT(line("routing_indices", R"({"max": 0.6})"), HasSubstr("more than 0.5"));
  EXPECT_THAT(line("tpot", R"({"relative": 15})"), HasSubstr("relative is 15, more than 10"));
}

TEST(Provenance, DifferencesNameWhatBothSidesKnow) {
  const Provenance golden{.run_id = "r1", .engine = "static_legacy", .dtype = "bf16", .device = "NVIDIA H200"};
  const Provenance result{.run_id = "r2", .engine = "static_legacy", .device = "cpu", .driver = "6.1"};
  EXPECT_THAT(provenance_differences(golden, result), ElementsAre("device: golden NVIDIA H200, result cpu"));
}

}  // namespace
}  // namespace assay
