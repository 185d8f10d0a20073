#include <iostream>

#include "backends/model/tokenizer/tokenize_lines.h"
#include "backends/model/tokenizer/tokenizer.h"
#include "tools/assay/command.h"

namespace assay::cli {

namespace po = boost::program_options;

int tokenize_command(const Words& words) {
  constexpr const char* kUsage = "assay tokenize --tokenizer-type TYPE [--tokenizer-model FILE] [options] < lines";
  model::TokenizerSpec spec;
  std::string model_file;
  int64_t vocab_size = 0;
  int64_t null_eod_id = 0;
  po::options_description options(
      "Reads JSON lines {\"text\": ...} and writes {\"ids\": [...]}; with --decode the way back.\noptions");
  options.add_options()("tokenizer-type", po::value(&spec.type)->required(), "TikTokenizer or NullTokenizer")(
      "tokenizer-model", po::value(&model_file), "vocabulary file of TikTokenizer")(
      "tiktoken-pattern", po::value(&spec.pattern)->default_value("v2"), "v1 or v2")(
      "vocab-size", po::value(&vocab_size), "ids in all; TikTokenizer: 131072 when not given")(
      "tiktoken-num-special-tokens", po::value(&spec.num_special)->default_value(1000), "ids below are special")(
      "tiktoken-special-tokens", po::value<Words>(), "name of the next special token; repeatable")(
      "null-tokenizer-eod-id", po::value(&null_eod_id), "end of document of NullTokenizer")("decode", "ids to text");
  po::variables_map values;
  if (const auto code = parse(kUsage, options, "", words, &values)) return *code;
  spec.model = model_file;
  spec.special_tokens = all(values, "tiktoken-special-tokens");
  if (values.count("vocab-size") != 0) spec.vocab_size = vocab_size;
  if (values.count("null-tokenizer-eod-id") != 0) spec.null_eod_id = null_eod_id;

  const auto tokenizer = model::open_tokenizer(spec);
  if (!tokenizer) return fail(tokenizer.status());
  std::ios::sync_with_stdio(false);
  const Status status = model::tokenize_lines(std::cin, std::cout, **tokenizer, values.count("decode") != 0);
  std::cout.flush();
  if (!status.ok()) {
    return fail(status.with("tokenize")) == kExitInfra ? kExitInfra : kExitFailed;
  }
  return kExitOk;
}

}  // namespace assay::cli
