#include "plugins/engines/process/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/golden/json_text.h"
#include "core/golden/text.h"

namespace assay::engines {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownGarbage = 60;  // code points of garbage in a message
constexpr size_t kNamed = 5;          // ids listed in a message

std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

constexpr std::array<std::string_view, 10> kLineNames = {
    "id",    "request_id", "text",     "tokens", "generated_text", "generated_tokens",
    "error", "prompt",     "logprobs", "latency"};

bool is_line_name(std::string_view name) {
  return std::find(kLineNames.begin(), kLineNames.end(), name) != kLineNames.end();
}

// A line that is an object with members of a request is of the lines format, and so is what is no JSON object at all;
// else it is (the beginning of) the other. Broken JSON is told by its first name.
bool looks_like_lines(std::string_view text) {
  const std::string_view line = first_line(text);
  const json::Blanked blanked = json::blank_nonfinite(line);
  const std::string_view plain = blanked.text(line);
  const Json object = Json::parse(plain.begin(), plain.end(), nullptr, false);
  if (object.is_object()) {
    return std::any_of(kLineNames.begin(), kLineNames.end(), [&](std::string_view name) {
      const auto member = object.find(std::string(name));
      return member != object.end() && !member->is_object();
    });
  }
  const char begin = line[line.find_first_not_of(" \t\r")];
  if (begin != '{') return begin != '"';
  const size_t open = line.find('"');
  const size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
  return close != std::string_view::npos && is_line_name(line.substr(open + 1, close - open - 1));
}

std::string joined(const std::vector<std::string>& ids) {
  std::string list;
  for (size_t i = 0; i < ids.size() && i < kNamed; ++i) list += (i == 0 ? "" : ", ") + ids[i];
  if (ids.size() > kNamed) list += fmt::format(" and {} more", ids.size() - kNamed);
  return list;
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& name, const Expected& expected)
      : text_(text), name_(name), expected_(expected) {
    for (size_t i = 0; i < expected.ids.size(); ++i) places_[expected.ids[i]] = i;
    answers_.records.resize(expected.ids.size());
    answers_.failures.resize(expected.ids.size());
  }

  Result<Answers> read(OutputFormat format) {
    if (text_.find_first_not_of(" \t\r\n") == std::string::npos) {
      return invalid(fmt::format("{} is empty; expected results of {} request{}", name_, expected_.ids.size(),
                                 expected_.ids.size() == 1 ? "" : "s"));
    }
    const bool lines = format == OutputFormat::kLines || (format == OutputFormat::kAuto && looks_like_lines(text_));
    const Status done = lines ? read_lines() : read_golden();
    if (!done.ok()) return done;
    return std::move(answers_);
  }

 private:
  Status read_golden() {
    Result<ResultSet> set = read_results_text(text_, name_);
    if (!set) {
      return invalid(fmt::format("{}; the output begins {}", set.status().message(),
                                 text::quoted(std::string(first_line(text_)), kShownGarbage)));
    }
    for (const std::string& note : set->notes) {
      // Python's dict would drop one of the two without a word.
      if (note.find("more than once") != std::string::npos) return invalid(fmt::format("{}: {}", name_, note));
      answers_.notes.push_back(note);
    }
    answers_.quantities = std::move(set->quantities);
    std::vector<std::string> strangers;
    for (RequestRecord& record : set->requests) {
      const auto place = places_.find(record.id);
      if (place == places_.end()) {
        strangers.push_back(record.id);
      } else {
        answers_.records[place->second] = std::move(record);
      }
    }
    return strangers.empty() ? Status() : refuse(strangers);
  }

  Status refuse(const std::vector<std::string>& strangers) const {
    return invalid(fmt::format("{}: holds request{} {} that {} not asked for; asked for: {}", name_,
                               strangers.size() == 1 ? "" : "s", joined(strangers),
                               strangers.size() == 1 ? "was" : "were", joined(expected_.ids)));
  }

  Status read_lines() {
    size_t number = 0;
    std::vector<size_t> said_at(expected_.ids.size(), 0);  // line
    size_t next = 0;                                       // request of a line without an id
    int with_id = -1;                                      // -1: no line yet
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      const std::string line = text_.substr(begin, end - begin);
      begin = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = fmt::format("{}, line {}", name_, number);
      Result<LineRecord> record = read_line_record(line, place);
      if (!record) return record.status();
      const bool has_id = !record->id.empty();
      if (with_id >= 0 && has_id != (with_id == 1)) {
        return invalid(fmt::format("{}: {} an id, those before it {}; give one to all lines or to none", place,
                                   has_id ? "has" : "has not", has_id ? "have not" : "have"));
      }
      with_id = has_id ? 1 : 0;
      size_t request = next;
      if (has_id) {
        const auto known = places_.find(record->id);
        if (known == places_.end()) {
          return invalid(fmt::format("{}: request {} was not asked for; asked for: {}", place,
                                     text::quoted(record->id, kShownGarbage), joined(expected_.ids)));
        }
        request = known->second;
      } else if (next >= expected_.ids.size()) {
        return invalid(
            fmt::format("{}: is one more than the {} requests that were asked for", place, expected_.ids.size()));
      } else {
        ++next;
      }
      if (said_at[request] != 0) {
        return invalid(fmt::format("{}: request {} was answered before, on line {}", place, expected_.ids[request],
                                   said_at[request]));
      }
      said_at[request] = number;
      answers_.failures[request] = std::move(record->error);
      answers_.records[request] = std::move(record->record);
      answers_.records[request].id = expected_.ids[request];
    }
    return {};
  }

  const std::string& text_;
  const std::string& name_;
  const Expected& expected_;
  std::map<std::string, size_t> places_;
  Answers answers_;
};

}  // namespace

Result<Answers> read_answers(const std::string& text, const std::string& name, OutputFormat format,
                             const Expected& expected) {
  return Reader(text, name, expected).read(format);
}

}  // namespace assay::engines
