#include "backends/model/tokenizer/tokenize_lines.h"

#include <nlohmann/json.hpp>
#include <string>

#include "backends/model/tokenizer/json_line.h"

namespace assay::model {
namespace {

Result<std::string> ids_line(const std::string& line, const Tokenizer& tokenizer) {
  const Result<std::string> text = json_line_text(line, "text");
  if (!text) return text.status();
  const Result<std::vector<int32_t>> ids = tokenizer.encode(*text);
  if (!ids) return ids.status();
  std::string out = "{\"ids\": [";
  for (size_t i = 0; i < ids->size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string((*ids)[i]);
  }
  return out + "]}\n";
}

Result<std::string> text_line(const std::string& line, const Tokenizer& tokenizer) {
  const Result<std::vector<int32_t>> ids = json_line_ids(line, "ids");
  if (!ids) return ids.status();
  const Result<std::string> text = tokenizer.decode(*ids, SpecialTokens::kKeep);
  if (!text) return text.status();
  return "{\"text\": " + nlohmann::json(*text).dump() + "}\n";
}

}  // namespace

Status tokenize_lines(std::istream& in, std::ostream& out, const Tokenizer& tokenizer, bool decode) {
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    const Result<std::string> result = decode ? text_line(line, tokenizer) : ids_line(line, tokenizer);
    if (!result) return result.status().with("line " + std::to_string(number));
    out << *result;
  }
  out.flush();
  if (in.bad()) return infra("tokenize: the input cannot be read");
  if (!out) return infra("tokenize: the output cannot be written");
  return {};
}

}  // namespace assay::model
