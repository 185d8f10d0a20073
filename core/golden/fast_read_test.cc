// The fast reader against the plain one: what it accepts, it reads alike.
#include "core/golden/fast_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

#include "core/golden/file.h"
#include "core/golden/json_text.h"
#include "core/golden/plain_read.h"
#include "core/golden/stable_text.h"

namespace assay::json {
namespace {

namespace fs = std::filesystem;

// Every member that a file can fill, and every form of value.
constexpr const char* kEverything = R"({
  "0": {"input_prompt": "a \"b\"\n\u00e9\ud83d\ude00 \/ \\ \t", "generated_text": "Ünï\b\f\r\u0001",
    "generated_tokens": [1, -2, 2147483647, -2147483648, 0, -0], "prompt_tokens": [], "tpot": [0.5, 1e-3, 2E+2, 7],
    "latency": 1.25, "logprobs": [-0.3862648904323578, -12.345678329467773, NaN, -Infinity, Infinity, -0.0, -0, 5e-324],
    "prompt_logprobs": [0.1], "generated_logprobs": [1.7976931348623157e308, 123456789012345678],
    "generated_top_n_logprobs": [{"x": -1.5, " ": -2}, null, {}], "prompt_top_n_logprobs": [{"\u00e9": NaN}],
    "routing_indices": [[[0, 65535], [1, 2]], [[3, 4], [5, 6]]], "routing_indices_token_indices": [4, 9],
    "routing_margins": [[0.25, 1e-9], [Infinity, 0]],
    "step_count": 12, "events": [{"a": [1.50, -0, true, false, null, "\u00e9"]}, {}, []], "chat": "x\ny"},
  "10": {"generated_text": null, "top_n_logprobs": [], "routing_indices": []},
  "2" : { } , "name": {"generated_tokens":[1,2,3]},
  "throughput": [1.5, 2, NaN], "mem-max-allocated-bytes": 123456789, "assay": {"when": "2026", "n": [1, 2.50]}
})";

// What a set says, to the last bit of its numbers.
std::string all_of(const ResultSet& set) {
  std::string text = results_text(set);
  for (const RequestRecord& request : set.requests) {
    if (!request.routing) continue;
    const Routing& routing = *request.routing;
    for (const size_t size : {routing.tokens, routing.layers, routing.topk, routing.experts.size(),
                              routing.positions.size(), routing.margins.size()}) {
      text += std::to_string(size) + " ";
    }
  }
  for (const Quantity& quantity : set.quantities) text += quantity.scalar ? "one " : "list ";
  for (const std::string& note : set.notes) text += note;
  return text + (set.string_wrapped ? "wrapped" : "");
}

// True when the fast reader took the document; then the plain one must say the same.
bool taken_alike(const std::string& document) {
  const std::optional<ResultSet> fast = read_fast(document);
  if (!fast) return false;
  const Result<ResultSet> plain = read_plainly(document, "text");
  EXPECT_TRUE(plain.ok()) << document << "\nis refused: " << plain.status().message();
  if (!plain.ok()) return true;
  EXPECT_EQ(all_of(*fast), all_of(*plain)) << document;
  return true;
}

bool taken(const std::string& document) { return read_fast(document).has_value(); }

TEST(FastRead, TakesEveryMemberAndEveryFormOfValue) {
  ASSERT_TRUE(taken_alike(kEverything));
  const Result<ResultSet> set = read_results_text(kEverything, "text");
  ASSERT_TRUE(set.ok());
  EXPECT_TRUE(taken_alike(results_text(*set)));
  EXPECT_TRUE(taken_alike(stable_text(*set)));
  EXPECT_TRUE(taken_alike(" {\r\n\t} \n"));
}

TEST(FastRead, LeavesTheUnusualToThePlainReader) {
  for (const char* document : {"",
                               "{",
                               "}",
                               "[]",
                               "\"{}\"",
                               "{} {}",
                               "{}x",
                               "\xEF\xBB\xBF{}",
                               "{\"0\": {}, \"0\": {}}",
                               R"({"0": {"logprobs": [1], "logprobs": [2]}})",
                               R"({"0": {"a": 1, "a": 2}})",
                               R"({"x": 1, "x": 2})",
                               R"({"0": {"generated_top_n_logprobs": [], "top_n_logprobs": []}})",
                               R"({"0": {"logprobs": [1,]}})",
                               R"({"0": {"generated_top_n_logprobs": [{"a": 1, "a": 2}]}})",
                               R"({"0": {"logprobs": [01]}})",
                               R"({"0": {"logprobs": [1.]}})",
                               R"({"0": {"logprobs": [.5]}})",
                               R"({"0": {"logprobs": [1e]}})",
                               R"({"0": {"logprobs": [-]}})",
                               R"({"0": {"logprobs": [1e999]}})",
                               R"({"0": {"logprobs": [NaN1]}})",
                               R"({"0": {"logprobs": [+1]}})",
                               R"({"0": {"logprobs": [1 2]}})",
                               R"({"0": {"logprobs": {}}})",
                               R"({"0": {"generated_tokens": [1.0]}})",
                               R"({"0": {"generated_tokens": [2147483648]}})",
                               R"({"0": {"generated_tokens": [99999999999999999999]}})",
                               R"({"0": {"routing_indices": [[[65536]]]}})",
                               R"({"0": {"routing_indices": [[[1, 2], [3]]]}})",
                               R"({"0": {"routing_indices": [[[1]], [[1], [2]]]}})",
                               R"({"0": {"routing_indices": [[[1]]], "routing_indices_token_indices": [1, 2]}})",
                               R"({"0": {"routing_margins": [[1]]}})",
                               R"({"0": {"routing_indices": [[[1]]], "routing_margins": [[1, 2]]}})",
                               R"({"0": {"input_prompt": "\ud800"}})",
                               R"({"0": {"input_prompt": "\x"}})",
                               "{\"0\": {\"a\": \"\xFF\"}}",
                               "{\"0\": {\"a\": \"\n\"}}",
                               R"({"logprobs": [1]})",
                               R"({"7": 5})",
                               R"({"0": {"latency": "x"}})",
                               R"({"0": {"x": NaN}})",
                               R"({"0": {"a": "}"})",
                               R"({"0": {"a": "\)",
                               R"({"0": {"a": 1})",
                               R"({"0": nul})"}) {
    EXPECT_FALSE(taken(document)) << document;
  }
}

TEST(FastRead, NumbersHaveTheBitsOfThePlainReader) {
  std::mt19937_64 random(5);
  size_t count = 0;
  for (int round = 0; round < 300; ++round) {
    std::string document = R"({"0": {"logprobs": [)";
    for (int i = 0; i < 100; ++i) {
      document += i > 0 ? ", " : "";
      const auto size = static_cast<size_t>(1 + random() % 20);
      std::string digits = std::to_string(random()) + std::to_string(random());
      digits = digits.substr(0, size);
      digits[0] = digits[0] == '0' ? '1' : digits[0];
      const size_t point = std::min<size_t>(random() % (size + 1), 18);
      if (random() % 3 == 0) document += '-';
      if (point == 0) {
        document += "0." + digits;
      } else {
        document += digits.substr(0, point);
        if (point < size) document += "." + digits.substr(point);
      }
      if (random() % 3 == 0) document += (random() % 2 == 0 ? "e-" : "E") + std::to_string(random() % 40);
    }
    count += taken_alike(document + "]}}");
  }
  EXPECT_EQ(count, 300U);
}

TEST(FastRead, DoublesComeBackAsTheyWereWritten) {
  std::mt19937_64 random(6);
  std::vector<double> values;
  while (values.size() < 50000) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) values.push_back(value);
    values.push_back(static_cast<float>(-std::log(static_cast<double>(random() % 1000000 + 1) * 1e-6)));
  }
  std::string document = R"({"0": {"logprobs": [)";
  for (size_t i = 0; i < values.size(); ++i) {
    document += i > 0 ? ",\n" : "";
    append_double(document, values[i]);
  }
  const std::optional<ResultSet> set = read_fast(document + "]}}");
  ASSERT_TRUE(set.has_value());
  const std::vector<double>& read = *set->requests.at(0).logprobs;
  ASSERT_EQ(read.size(), values.size());
  EXPECT_EQ(std::memcmp(read.data(), values.data(), values.size() * sizeof(double)), 0);
}

// Bytes are taken out, put in, changed, moved and cut off.
TEST(FastRead, DamagedDocumentsAreRefusedOrReadAlike) {
  const std::string alphabet = "{}[]\",:0123456789.-+eE \n\\untfalsNI\x01\xC3\xA9";
  std::mt19937 random(11);
  const auto pick = [&](size_t below) { return static_cast<size_t>(random() % below); };
  const Result<ResultSet> set = read_results_text(kEverything, "text");
  ASSERT_TRUE(set.ok());
  const std::string originals[] = {kEverything, results_text(*set), stable_text(*set),
                                   R"({"0": {"logprobs": [-0.5, 1], "a": [1]}, "t": 4})"};
  size_t accepted = 0;
  size_t refused = 0;
  for (int round = 0; round < 12000; ++round) {
    std::string document = originals[round % 4];
    for (size_t change = 0; change <= pick(3); ++change) {
      const size_t at = pick(document.size());
      switch (pick(5)) {
        case 0:
          document.erase(at, 1 + pick(3));
          break;
        case 1:
          document.insert(at, 1, alphabet[pick(alphabet.size())]);
          break;
        case 2:
          document[at] = alphabet[pick(alphabet.size())];
          break;
        case 3:
          document.insert(pick(document.size()), document.substr(at, pick(12)));
          break;
        default:
          if (pick(4) == 0) document.resize(at);
          break;
      }
      if (document.empty()) document = "{}";
    }
    (taken_alike(document) ? accepted : refused) += 1;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(accepted, 1500U);
  EXPECT_GT(refused, 1500U);
}

TEST(FastRead, RealFilesAreTakenAndReadAlike) {
  size_t files = 0;
  for (const fs::path folder : {ASSAY_SOURCE_DIR "/testcases", ASSAY_SOURCE_DIR "/../shared/gold/cases",
                                ASSAY_SOURCE_DIR "/../shared/vectors/cases"}) {
    if (!fs::is_directory(folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.path().filename().string().starts_with("golden_values_")) continue;
      const Result<std::string> content = read_file(entry.path().string());
      ASSERT_TRUE(content.ok()) << content.status().message();
      EXPECT_TRUE(taken_alike(*content)) << entry.path();
      ++files;
    }
  }
  EXPECT_GT(files, 0U);
}

}  // namespace
}  // namespace assay::json
