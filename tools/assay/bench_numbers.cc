#include "tools/assay/bench_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr uint32_t kMostTokens = 1u << 20;
constexpr uint32_t kMostRequests = 4096;
constexpr uint64_t kMostTogether = uint64_t{1} << 24;  // tokens of all requests: their ids alone are 64 MiB
constexpr int kMostRounds = 1000;
constexpr int kMostThreads = 1024;

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// "128,1024" as numbers of 1 .. most.
Result<std::vector<uint32_t>> list_of(const char* option, const std::string& text, uint32_t most) {
  std::vector<uint32_t> values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    uint32_t value = 0;
    if (!parse_number(std::string_view(text).substr(begin, comma - begin), value) || value < 1 || value > most) {
      return invalid(fmt::format("--{} '{}': expected numbers of 1 .. {}, joined by commas", option, text, most));
    }
    values.push_back(value);
    begin = comma + 1;
  }
  return values;
}

Result<int> count_of(const po::variables_map& values, const char* name, int most) {
  const int value = values[name].as<int>();
  if (value >= 1 && value <= most) return value;
  return invalid(fmt::format("--{} {}: expected 1 .. {}", name, value, most));
}

}  // namespace

Result<BenchNumbers> read_bench_numbers(const std::string& what, const po::variables_map& values) {
  const Result<int> rounds = count_of(values, "rounds", kMostRounds);
  if (!rounds) return rounds.status();
  const Result<int> threads = count_of(values, "read-threads", kMostThreads);
  if (!threads) return threads.status();
  const Result<int> steps = count_of(values, "steps", kMostTokens);
  if (!steps) return steps.status();
  const std::string given = values["context"].as<std::string>();
  auto contexts = list_of("context", given.empty() ? (what == "decode" ? "128" : "128,1024") : given, kMostTokens);
  if (!contexts) return contexts.status();
  auto concurrency = list_of("concurrency", values["concurrency"].as<std::string>(), kMostRequests);
  if (!concurrency) return concurrency.status();
  const uint64_t requests = *std::ranges::max_element(*concurrency);
  const uint64_t longest = *std::ranges::max_element(*contexts) + static_cast<uint64_t>(*steps);
  if (requests > 1 && requests * longest > kMostTogether) {
    return invalid(fmt::format(
        "--concurrency {} with sequences of {} tokens (--context, --steps): expected {} tokens together at most",
        requests, longest, kMostTogether));
  }
  BenchNumbers numbers{.rounds = *rounds,
                       .read_threads = *threads,
                       .steps = static_cast<uint32_t>(*steps),
                       .contexts = *std::move(contexts),
                       .concurrency = *std::move(concurrency)};
  if (values.count("random-weights") == 0) return numbers;
  const std::string seed = values["random-weights"].as<std::string>();
  if (parse_number(seed, numbers.seed)) return numbers;
  return invalid(fmt::format("--random-weights={}: expected a seed of 0 .. {}", seed, UINT64_MAX));
}

Status check_positions(const std::string& what, const BenchNumbers& numbers, const model::ModelConfig& config) {
  if (what == "load" || config.positions != model::Positions::kLearnedAbsolute) return {};
  const uint64_t longest = *std::ranges::max_element(numbers.contexts) + uint64_t{what == "decode" ? numbers.steps : 0};
  const auto most = static_cast<uint64_t>(std::max(config.max_position_embeddings, 0));
  if (longest <= most) return {};
  return invalid(
      fmt::format("sequences of {} tokens (--context{}): the model has learned {} positions, expected no more", longest,
                  what == "decode" ? ", --steps" : "", most));
}

}  // namespace assay::cli
