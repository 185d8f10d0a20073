// One mebibyte of text of kinds that are hard on a pre-tokenizer or on byte-pair merges.
// Prints bytes per second; the aim is under one second each.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "backends/model/tokenizer/tokenizer.h"
#include "backends/model/tokenizer/utf8.h"

namespace {

using namespace assay::model;  // NOLINT: a program, not a header

constexpr size_t kBytes = 1 << 20;

std::string repeated(const std::string& part) {
  std::string text;
  while (text.size() < kBytes) text += part;
  return text;
}

std::string random_of(const std::string& alphabet) {
  std::mt19937 random(1);
  std::string text(kBytes, ' ');
  for (char& c : text) c = alphabet[random() % alphabet.size()];
  return text;
}

std::string random_unicode() {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < kBytes) {
    const auto c = static_cast<char32_t>(random() % 0x110000);
    if (c < 0xD800 || c >= 0xE000) assay::utf8::append(text, c);
  }
  return text;
}

std::unique_ptr<Tokenizer> open(const std::string& pattern) {
  TokenizerSpec spec;
  spec.type = "TikTokenizer";
  spec.model = ASSAY_SOURCE_DIR "/backends/model/tokenizer/testdata/vocab.json";
  spec.pattern = pattern;
  spec.vocab_size = 1772;
  spec.num_special = 16;
  assay::Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(spec);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.status().message().c_str());
    std::exit(1);
  }
  return *std::move(tokenizer);
}

void encode(benchmark::State& state, const std::string& pattern, const std::string& text) {
  const std::unique_ptr<Tokenizer> tokenizer = open(pattern);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->encode(text));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<const char*, std::string> texts[] = {
      {"lower_case", random_of("abcdefghijklmnopqrstuvwxyz")},
      {"one_letter", repeated("a")},
      {"one_capital", repeated("A")},
      {"blanks", repeated(" ")},
      {"newlines", repeated("\n")},
      {"digits", random_of("0123456789")},
      {"marks", repeated("\u0301")},
      {"special_token_starts", repeated("<SPECIAL_")},
      {"unicode", random_unicode()},
      {"prose", repeated("This program is free software: you can redistribute it and/or modify it. ")},
  };
  for (const auto& [name, text] : texts) {
    for (const char* pattern : {"v1", "v2"}) {
      benchmark::RegisterBenchmark((std::string("encode/") + name + "/" + pattern).c_str(), encode, pattern, text)
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
