// Prompts of a case: from the command line or from a file of JSON lines.
#include "backends/model/tokenizer/json_line.h"
#include "core/discover/engine_options.h"
#include "core/discover/input_path.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;

// Lines end at LF, CR LF or CR, as Python's text files read them; the last one may lack its end.
std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end);
  if (rest.starts_with("\r\n")) rest.remove_prefix(1);
  if (!rest.empty()) rest.remove_prefix(1);
  return line;
}

}  // namespace

Result<std::vector<std::string>> load_prompts(const EngineOptions& options, const std::string& case_dir) {
  if (!options.prompts.empty() && !options.prompt_file.empty())
    return invalid("--prompts and --prompt-file exclude each other");
  if (!options.prompts.empty()) return options.prompts;
  if (options.prompt_file.empty()) return invalid("there are no prompts: give --prompts or --prompt-file");
  const Result<std::string> path = find_input(options.prompt_file, case_dir);
  if (!path.ok()) return path.status().with("--prompt-file");
  const Result<std::string> text = read_file(*path, kMostBytes);
  if (!text.ok()) return text.status().with("--prompt-file");
  std::vector<std::string> prompts;
  std::string_view rest = *text;
  const auto limit = static_cast<size_t>(options.prompt_limit);
  for (int line = 1; !rest.empty() && (limit == 0 || prompts.size() < limit); ++line) {
    Result<std::string> prompt = model::json_line_text(take_line(rest), "text");
    if (!prompt.ok()) return prompt.status().with(*path + ":" + std::to_string(line));
    prompts.push_back(*std::move(prompt));
  }
  if (prompts.empty())
    return invalid(*path + ": no prompt in the file: one JSON object with the field text a line is expected");
  return prompts;
}

}  // namespace assay::discover
