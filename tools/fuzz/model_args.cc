// MODEL_ARGS: substitution, words of the command line, values.
#include "core/discover/arguments.h"
#include "core/discover/case_reader.h"
#include "core/discover/shell_words.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::discover;
  const std::string_view text = assay::fuzz::text_of(data, size);
  const auto check = [](const auto& result) {
    if (!result.ok()) assay::fuzz::require_message(result.status().message());
  };
  check(xargs_unquote(text));
  check(split_shell_words(text));
  check(parse_layer_pattern(text));
  check(parse_int(text));
  check(parse_float(text));
  Variables variables;
  variables.set["A"] = "value with 'quotes'";
  variables.environment["B"] = "b";
  const auto once = substitute(text, variables);
  check(once);
  if (text.find('$') == std::string_view::npos) {
    assay::fuzz::require(once.ok() && *once == text, "a text without dollars stays as it is");
  }
  if (once.ok()) assay::fuzz::require(substitute_known(text, variables) == *once, "both substitute alike");
  referenced_variables(text);
  assay::TestCase whole;
  whole.name = whole.dir = whole.config = "f";
  read_config(std::string(text), whole);
  check(read_arguments(whole, variables));
  assay::ModelArgs args;
  args.present = true;
  const size_t half = text.find('\n') == std::string_view::npos ? text.size() / 2 : text.find('\n');
  args.entries.push_back({.key = "--prompts", .text = std::string(text.substr(0, half)), .items = {}, .place = {}});
  args.entries.push_back({.key = "--num-layers", .text = std::string(text.substr(half)), .items = {}, .place = {}});
  check(expand_arguments(args, "f", true));
  const auto words = expand_arguments(args, "f");
  check(words);
  if (words.ok()) check(parse_arguments(*words, args, "f"));
  return 0;
}
