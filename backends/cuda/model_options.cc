#include "backends/cuda/model_options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <thread>

#include "backends/reference/border/model.h"

namespace assay::cuda {
namespace {

constexpr int64_t kMostThreads = 16;
constexpr int64_t kMostSlice = 4096;
constexpr uint64_t kSeed = 1;  // of weights=random

Status wrong(const std::string& name, const std::string& value, const std::string& expected) {
  return invalid("backend option '" + name + "': " + value + ", expected " + expected);
}

// Whether the option `name` has the second of two words; the first is the default.
Result<bool> second_of(const backend::Options& options, const std::string& name, const std::string& first,
                       const std::string& second) {
  const Result<std::string> word = options.text(name, first);
  if (!word) return word.status();
  if (*word == first || *word == second) return *word == second;
  return wrong(name, *word, first + " or " + second);
}

Result<std::optional<uint64_t>> random_seed(const backend::Options& options) {
  const Result<std::string> word = options.text("weights", "checkpoint");
  if (!word) return word.status();
  if (*word == "checkpoint") return std::optional<uint64_t>();
  if (*word == "random") return std::optional(kSeed);
  constexpr std::string_view kPrefix = "random:";
  uint64_t seed = 0;
  const bool prefixed = word->starts_with(kPrefix);
  const char* const begin = word->data() + (prefixed ? kPrefix.size() : 0);
  const char* const end = word->data() + word->size();
  const auto [stop, code] = std::from_chars(begin, end, seed);
  if (prefixed && code == std::errc() && stop == end) return std::optional(seed);
  return wrong("weights", *word, "checkpoint, random, or random:SEED with a seed of 0 .. 18446744073709551615");
}

}  // namespace

Result<ModelOptions> parse_model_options(std::string_view json) {
  constexpr std::string_view kKnown[] = {"threads", "slice", "decode", "prefill", "weights"};
  const Result<backend::Options> options = backend::Options::parse(json, kKnown);
  if (!options) return options.status();
  const Result<int64_t> threads = options->number("threads", 0);
  if (!threads) return threads.status();
  if (*threads < 0 || *threads > kMostThreads) {
    return wrong("threads", std::to_string(*threads), "1 .. 16, or 0 for one a core");
  }
  constexpr int64_t kUnset = std::numeric_limits<int64_t>::min();
  const Result<int64_t> slice = options->number("slice", kUnset);
  if (!slice) return slice.status();
  if (*slice != kUnset && (*slice < 1 || *slice > kMostSlice)) {
    return wrong("slice", std::to_string(*slice), "1 .. 4096 tokens");
  }
  const Result<bool> plain = second_of(*options, "decode", "auto", "plain");
  if (!plain) return plain.status();
  const Result<bool> fast = second_of(*options, "prefill", "exact", "fast");
  if (!fast) return fast.status();
  const Result<std::optional<uint64_t>> seed = random_seed(*options);
  if (!seed) return seed.status();
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  return ModelOptions{
      .threads = static_cast<int>(*threads != 0 ? *threads : std::clamp<int64_t>(cores, 1, kMostThreads)),
      .slice = *slice == kUnset ? 0 : static_cast<size_t>(*slice),
      .plain_decode = *plain,
      .fast_prefill = *fast,
      .random = *seed};
}

}  // namespace assay::cuda
