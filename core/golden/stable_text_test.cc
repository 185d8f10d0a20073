#include "core/golden/stable_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace assay {
namespace {

TEST(StableText, KeysAscendAndLongListsHaveOneValueALine) {
  RequestRecord request;
  request.id = "0";
  request.prompt = "a, \"b\": [1]";
  request.text = "{}";
  request.tokens = {1, 2, 3};
  request.logprobs = {-1, -2, -3, -4, -5, -6, -7, -8, -0.5};
  request.top_n = TopLists{{{" x", -0.5}, {"a", -1}, {"z", -2}}, {2, 1}};
  request.routing = Routing{{1, 2, 3, 4}, 2, 1, 2, {}};
  request.extra = {{"zeta", R"({"b": [], "a": {"d": NaN, "c": {}}})"}};
  ResultSet set;
  set.requests = {request};
  set.quantities = {{"throughput", {1.5}, false}, {"mem-max-allocated-bytes", {7}, true}};
  set.extra = R"({"provenance": {"engine": "x"}, "accepted": [{"metric": "m", "who": "w"}]})";
  EXPECT_EQ(stable_text(set), R"({
  "0": {
    "generated_text": "{}",
    "generated_tokens": [1, 2, 3],
    "generated_top_n_logprobs": [
      {" x": -0.5, "a": -1.0},
      {"z": -2.0}
    ],
    "input_prompt": "a, \"b\": [1]",
    "logprobs": [
      -1.0,
      -2.0,
      -3.0,
      -4.0,
      -5.0,
      -6.0,
      -7.0,
      -8.0,
      -0.5
    ],
    "routing_indices": [
      [
        [1, 2]
      ],
      [
        [3, 4]
      ]
    ],
    "zeta": {
      "a": {
        "c": {},
        "d": NaN
      },
      "b": []
    }
  },
  "mem-max-allocated-bytes": 7,
  "throughput": [1.5],
  "assay": {
    "accepted": [
      {"metric": "m", "who": "w"}
    ],
    "provenance": {
      "engine": "x"
    }
  }
}
)");
}

// Random sets of every field, with the values that writers get wrong.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  size_t below(size_t limit) { return limit == 0 ? 0 : engine_() % limit; }
  bool often() { return below(4) != 0; }
  double number() {
    switch (below(12)) {
      case 0:
        return std::nan("");
      case 1:
        return -std::numeric_limits<double>::infinity();
      case 2:
        return -0.0;
      case 3:
        return 5e-324;
      case 4:
        return 1.7976931348623157e308;
      default:
        return std::ldexp(static_cast<double>(engine_()), -static_cast<int>(below(80)));
    }
  }
  std::string text() {
    static const std::vector<std::string> kParts = {"a",      "\"",         "\\", "\n",  "{",      "}",
                                                    "[",      "]",          ",",  ": ",  "\t",     "\x01",
                                                    "\u201c", "\U0001F600", "/",  "NaN", "\\u0041"};
    std::string made;
    for (size_t i = below(12); i > 0; --i) made += kParts[below(kParts.size())];
    return made;
  }
  std::vector<double> numbers() {
    std::vector<double> made(below(20));
    for (double& value : made) value = number();
    return made;
  }
  std::vector<int32_t> ids() {
    std::vector<int32_t> made(below(20));
    for (int32_t& value : made) value = static_cast<int32_t>(engine_());
    return made;
  }
  TopLists lists() {
    TopLists made;
    made.counts.resize(below(5));
    for (uint32_t& count : made.counts) {
      count = static_cast<uint32_t>(below(4));
      for (uint32_t i = 0; i < count; ++i) made.entries.push_back({std::to_string(i) + text(), number()});
    }
    return made;
  }

 private:
  std::mt19937 engine_;
};

RequestRecord random_request(Random& random, size_t id) {
  RequestRecord request;
  request.id = std::to_string(id);
  if (random.often()) request.prompt = random.text();
  if (random.often()) request.text = random.text();
  if (random.often()) request.tokens = random.ids();
  if (random.often()) request.prompt_ids = random.ids();
  if (random.often()) request.logprobs = random.numbers();
  if (random.often()) request.generated_logprobs = random.numbers();
  if (random.often()) request.tpot = random.numbers();
  if (random.often()) request.latency = 0.25;
  if (random.often()) request.top_n = random.lists();
  if (random.often()) request.prompt_top_n = random.lists();
  if (random.often()) {
    Routing routing{{}, 1 + random.below(12), 1 + random.below(3), 1 + random.below(12), {}};
    for (size_t i = 0; i < routing.tokens * routing.layers * routing.topk; ++i) {
      routing.experts.push_back(static_cast<uint16_t>(random.below(65536)));
    }
    request.routing = routing;
  }
  if (random.often()) request.extra.emplace_back("a_count", "30");
  if (random.often()) request.extra.emplace_back("z_map", R"({"1": [1, [2]], "k": "}]\"", "m": 1.250e2})");
  return request;
}

TEST(StableText, ReadsBackAsTheSameSet) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    ResultSet set;
    for (size_t id = 0, count = 1 + random.below(3); id < count; ++id) {
      set.requests.push_back(random_request(random, id));
      if (!set.requests.back().text) set.requests.back().text = "";  // without any field it is no request
    }
    if (random.often()) set.quantities.push_back({"throughput", random.numbers(), false});
    if (random.often()) set.quantities.push_back({"zz", {12}, true});
    if (random.often()) set.extra = R"({"accepted": [], "further": {"x": [1, 2]}})";
    const std::string text = stable_text(set);
    const auto back = read_results_text(text, "x");
    ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << text;
    EXPECT_EQ(results_text(*back), results_text(set)) << "seed " << seed;
    EXPECT_EQ(stable_text(*back), text) << "seed " << seed;
  }
}

}  // namespace
}  // namespace assay
