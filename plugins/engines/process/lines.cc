// The lines format: one JSON object a request, with short names.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/golden/json_reason.h"
#include "core/golden/json_text.h"
#include "core/golden/key_scan.h"
#include "core/golden/text.h"
#include "plugins/engines/process/output.h"

namespace assay::engines {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 60;  // code points of a line in a message

// Short names of the lines format; the golden schema's own names are taken as well.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kNames = {
    {{"prompt", "input_prompt"},
     {"text", "generated_text"},
     {"tokens", "generated_tokens"},
     {"prompt_ids", "prompt_tokens"},
     {"top_n", "top_n_logprobs"},
     {"prompt_top_n", "prompt_top_n_logprobs"},
     {"routing", "routing_indices"},
     {"routing_positions", "routing_indices_token_indices"}}};

struct Member {
  std::string name;   // raw, without quotes
  std::string value;  // JSON text
};

// Members of the outermost object of valid JSON text, as they are written.
std::vector<Member> members_of(std::string_view text) {
  std::vector<Member> members;
  int depth = 0;
  bool in_string = false;
  bool before_value = true;  // of the current member
  size_t begin = 0;
  const auto trimmed = [](std::string_view part) {
    const size_t first = part.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return std::string();
    return std::string(part.substr(first, part.find_last_not_of(" \t\r\n") - first + 1));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (depth++ == 0) begin = i + 1;
    }
    const bool closes = c == '}' || c == ']';
    if (closes) --depth;
    if (c == ':' && depth == 1 && before_value) {
      const std::string name = trimmed(text.substr(begin, i - begin));
      members.push_back({name.size() >= 2 ? name.substr(1, name.size() - 2) : "", ""});
      begin = i + 1;
      before_value = false;
    } else if ((c == ',' && depth == 1) || (closes && depth == 0)) {
      if (!before_value) members.back().value = trimmed(text.substr(begin, i - begin));
      begin = i + 1;
      before_value = true;
    }
  }
  return members;
}

std::string shown(const std::string& line) { return text::quoted(line, kShown); }

// The logprobs of a line may be those of the generated tokens alone, beside prompt_logprobs.
void part_logprobs(RequestRecord* record) {
  if (!record->logprobs || !record->tokens || record->generated_logprobs) return;
  if (record->logprobs->size() != record->tokens->size()) return;
  record->generated_logprobs = std::move(record->logprobs);
  record->logprobs.reset();
}

}  // namespace

Result<LineRecord> read_line_record(const std::string& line, const std::string& place) {
  const json::Blanked blanked = json::blank_nonfinite(line);
  const std::string_view plain = blanked.text(line);
  if (json::deeper_than(plain, json::kDeepest)) {
    return invalid(fmt::format("{}: it is nested more than {} deep: {}", place, json::kDeepest, shown(line)));
  }
  try {
    const Json parsed = Json::parse(plain);
    if (!parsed.is_object()) {
      return invalid(fmt::format("{}: {} is no JSON object; expected one a request", place, shown(line)));
    }
  } catch (const Json::parse_error& failure) {
    const std::string what = failure.what();
    const bool utf8 = what.find("UTF-8") != std::string::npos;
    return invalid(fmt::format("{}, character {}: {}: {}", place, failure.byte,
                               utf8 ? "invalid UTF-8" : "no valid JSON", shown(line)));
  } catch (const Json::exception& failure) {  // a number beyond every double
    return invalid(fmt::format("{}: {}: {}", place, json::reason_of(failure.what()), shown(line)));
  }
  if (const std::string twice = json::repeated_key(plain); !twice.empty()) {
    return invalid(fmt::format("{}: {} occurs more than once in one object: {}", place, twice, shown(line)));
  }
  LineRecord result;
  std::string object;
  std::string named;  // which member gave the id
  for (const Member& member : members_of(line)) {
    if (member.name == "id" || member.name == "request_id") {
      const Json value = Json::parse(member.value, nullptr, false);
      std::string id;
      if (value.is_number_integer()) {
        id = value.dump();
      } else if (value.is_string() && !value.get<std::string>().empty()) {
        id = value.get<std::string>();
      } else if (!value.is_null()) {
        return invalid(fmt::format("{}: {} is {}, expected a whole number or a text", place, member.name,
                                   member.value.substr(0, kShown)));
      }
      if (id.empty()) continue;
      if (!named.empty() && id != result.id) {
        return invalid(
            fmt::format("{}: {} is {}, but {} is {}; leave one out", place, named, result.id, member.name, id));
      }
      result.id = id;
      named = member.name;
      continue;
    }
    if (member.name == "error") {
      const Json error = Json::parse(member.value, nullptr, false);
      if (error.is_string()) result.error = error.get<std::string>();
      if (error.is_object()) result.error = error.dump(-1, ' ', false, Json::error_handler_t::replace);
      if (!error.is_null() && result.error.empty()) result.error = "no message";
      continue;
    }
    std::string_view name = member.name;
    for (const auto& [own, golden] : kNames) {
      if (name == own) name = golden;
    }
    object += fmt::format("{}\"{}\": {}", object.empty() ? "" : ", ", name, member.value);
  }
  Result<ResultSet> set = read_results_text("{\"0\": {" + object + "}}", place);
  if (!set) return invalid(set.status().message());
  for (const std::string& note : set->notes) {
    if (note.find("more than once") != std::string::npos) return invalid(fmt::format("{}: {}", place, note));
  }
  if (set->requests.size() != 1) return invalid(fmt::format("{}: {} holds no request", place, shown(line)));
  result.record = std::move(set->requests.front());
  part_logprobs(&result.record);
  return result;
}

}  // namespace assay::engines
