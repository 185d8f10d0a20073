// Our CPU backend as one of the programs that compare.py measures in turn; the others are Python beside this file.
//   own_worker dense-bf16|dense-fp32|moe-bf16 [options of the backend, as JSON]
// Writes the model's checkpoint when it is not there, says {"checkpoint": folder, "config": {...}, ...} on one line,
// then answers each line of the standard input with one of its own:
//   prefill N      seconds for a prompt of N tokens and its next token
//   decode P N     seconds for N tokens, one by one, behind P others (which are not timed)
//   score I...     at each position of the ids I: likeliest next id, its logprob, logprob of the next of I (behind the
//                  last, of the first)
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "bench/bench_model.h"
#include "bench/statistics.h"

namespace assay::bench {
namespace {

constexpr uint32_t kMostTokens = 1024;

// The ids that every worker computes with: 17, 30, 43 ...
std::vector<int32_t> ids_of(uint32_t count, int32_t vocab) {
  std::vector<int32_t> ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((17 + 13 * i) % static_cast<uint32_t>(vocab));
  return ids;
}

std::string answer(OpenModel& open, const std::string& line) {
  std::istringstream in(line);
  std::string word;
  in >> word;
  std::vector<int32_t> numbers;
  for (int32_t number = 0; in >> number;) numbers.push_back(number);
  const int32_t vocab = open.model().config().vocab_size;
  int64_t sum = 0;
  bool valid = in.eof() && !numbers.empty() && numbers.size() <= kMostTokens;
  for (const int32_t number : numbers) valid = valid && number >= 0 && number < vocab && (sum += number) > 0;
  char text[64];
  if (valid && word == "score") {
    const Scores scores = open.score(numbers);
    std::string all;
    for (size_t i = 0; i < scores.argmax.size(); ++i) {
      std::snprintf(text, sizeof(text), "%s%d %.6f %.6f", i == 0 ? "" : " ", scores.argmax[i],
                    static_cast<double>(scores.argmax_logprobs[i]), static_cast<double>(scores.next_logprobs[i]));
      all += text;
    }
    return all;
  }
  valid = valid && sum <= kMostTokens;
  if (valid && word == "prefill" && numbers.size() == 1 && sum > 0) {
    const std::vector<int32_t> ids = ids_of(static_cast<uint32_t>(numbers[0]), vocab);
    std::snprintf(text, sizeof(text), "%.6f", seconds_of([&] { open.forward(ids, 1, 0); }));
    return text;
  }
  if (valid && word == "decode" && numbers.size() == 2 && numbers[0] > 0) {
    const auto past = static_cast<uint32_t>(numbers[0]);
    std::vector<int32_t> ids = open.forward(ids_of(past, vocab), 1, 0);
    std::snprintf(text, sizeof(text), "%.6f", seconds_of([&] {
                    for (int32_t i = 0; i < numbers[1]; ++i)
                      ids = open.forward(ids, 1, past + static_cast<uint32_t>(i));
                  }));
    return text;
  }
  return "error: '" + line + "' is no request of own_worker; at most " + std::to_string(kMostTokens) + " tokens";
}

int run(const std::string& name, const std::string& options) {
  const model::Dtype dtype = name == "dense-fp32" ? model::Dtype::kFloat32 : model::Dtype::kBfloat16;
  const bool moe = name == "moe-bf16";
  if (!moe && name != "dense-bf16" && name != "dense-fp32") {
    std::fprintf(stderr, "own_worker: model '%s', expected dense-bf16, dense-fp32 or moe-bf16\n", name.c_str());
    return 2;
  }
  const model::ModelConfig config = moe ? moe_config(dtype) : dense_config(dtype);
  const std::string folder = checkpoint_of(moe ? "moe_" : "", config, dtype);
  OpenModel open(config, folder, options, 1, kMostTokens);
  std::printf(
      "{\"checkpoint\": \"%s\", \"device\": \"%s\", \"bytes_read\": %.0f, \"multiply_adds\": %.0f, \"config\": %s}\n",
      folder.c_str(), open.model().device().c_str(), bytes_read(open.model(), dtype),
      multiply_adds_a_token(open.model(), dtype), model::to_json(config).c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%s\n", answer(open, line).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: own_worker dense-bf16|dense-fp32|moe-bf16 [options of the backend, as JSON]\n");
    return 2;
  }
  return assay::bench::run(argv[1], argc > 2 ? argv[2] : "{}");
}
