#include "plugins/engines/openai/stream.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/golden/json_text.h"
#include "core/golden/key_scan.h"
#include "core/golden/text.h"

namespace assay::engines::openai {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kEventBytes = size_t{8} << 20;  // of one event
constexpr size_t kShownValue = 60;               // of a value in a message

// Lists grow; anything else is replaced by what comes later, but for null.
void merge_lists(const Json& from, Json* into) {
  if (!from.is_object()) return;
  if (!into->is_object()) *into = Json::object();
  for (const auto& [name, value] : from.items()) {
    Json& place = (*into)[name];
    if (value.is_array() && place.is_array()) {
      for (const Json& item : value) place.push_back(item);
    } else if (!value.is_null()) {
      place = value;
    }
  }
}

size_t size_of_list(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? found->size() : 0;
}

// What tells the chunks of one answer from those of another. Most servers give all chunks one id, some give each chunk
// one of its own; an id that comes again behind another one is of a stream that holds two answers.
class Sender {
 public:
  // What is wrong with the id, or "".
  std::string take_id(const std::string& id, const Cleaner& clean) {
    const bool again = id == last_;
    const bool known = !ids_.insert(id).second;
    const bool mixed = again ? ids_.size() > 1 : known || repeated_;
    if (mixed)
      return fmt::format("its id is {}, others have {}", text::quoted(clean(id), 60), text::quoted(clean(last_), 60));
    repeated_ = repeated_ || again;
    last_ = id;
    return "";
  }

 private:
  std::set<std::string> ids_;
  std::string last_;
  bool repeated_ = false;  // two chunks had the same one
};

}  // namespace

struct StreamReader::State {
  bool chat = false;
  int64_t most_tokens = -1;
  Cleaner clean;
  std::string line;  // that has no end yet
  std::string data;  // of the event that has no end yet
  bool done = false;
  Status failure;
  std::string text;
  Json choice = Json::object();  // further members
  Json rest = Json::object();    // members of the chunks themselves
  Sender sender;
  size_t events = 0;
  int64_t tokens = 0;

  std::string quoted(const std::string& said, size_t limit) const { return text::quoted(clean(said), limit); }
  std::string shown(const Json& value) const {
    if (value.is_string()) return quoted(value.get<std::string>(), kShownValue);
    return clean(value.dump(-1, ' ', true, Json::error_handler_t::replace)).substr(0, kShownValue);
  }

  Status fail(const std::string& why) {
    failure = invalid(fmt::format("event {} of the stream: {}", events, why));
    return failure;
  }

  Result<size_t> take_event() {
    const std::string event = std::exchange(data, {});
    if (event.empty()) return size_t{0};
    ++events;
    if (done) return fail("it comes behind [DONE]");
    if (event == "[DONE]") {
      done = true;
      return size_t{0};
    }
    if (json::deeper_than(event, json::kDeepest)) {
      return fail(fmt::format("it is nested more than {} deep", json::kDeepest));
    }
    const Json chunk = Json::parse(event, nullptr, false);
    if (chunk.is_discarded() || !chunk.is_object()) {
      return fail(fmt::format("{} is no JSON object in UTF-8", quoted(event, 80)));
    }
    if (const std::string twice = json::repeated_key(event); !twice.empty()) {
      return fail(twice + " is there more than once in one object");
    }
    const auto error = chunk.find("error");
    if (error != chunk.end() && !error->is_null()) {
      return fail("an error came: " + quoted(error_of(event), 200));
    }
    return take_chunk(chunk);
  }

  Result<size_t> take_chunk(const Json& json) {
    if (const auto model = json.find("model");
        model != json.end() && rest.contains("model") && *model != rest["model"]) {
      return fail(fmt::format("it is of model {}, those before were of {}", shown(*model), shown(rest["model"])));
    }
    for (const auto& [name, value] : json.items()) {
      if (name != "choices" && !value.is_null()) rest[name] = value;
    }
    const auto choices = json.find("choices");
    if (choices == json.end() || !choices->is_array()) return fail("there are no choices");
    if (choices->empty()) return size_t{0};
    const Json& one = (*choices)[0];
    if (choices->size() != 1 || !one.is_object()) return fail(fmt::format("{} choices, expected 1", choices->size()));
    const auto index = one.find("index");
    if (index != one.end() && *index != 0) return fail("a choice with index " + shown(*index) + ", expected 0");
    if (const auto id = json.find("id"); id != json.end() && id->is_string()) {
      if (const std::string wrong = sender.take_id(id->get<std::string>(), clean); !wrong.empty()) return fail(wrong);
    }
    return take_choice(one);
  }

  Result<size_t> take_choice(const Json& one) {
    const Json* said = &one;
    if (chat) {
      const auto delta = one.find("delta");
      if (delta == one.end() || !delta->is_object()) return fail("the choice has no delta");
      said = &*delta;
    }
    const auto part = said->find(chat ? "content" : "text");
    std::string more;
    if (part != said->end() && !part->is_null()) {
      if (!part->is_string()) return fail("the text is " + shown(*part) + ", expected a string");
      more = part->get<std::string>();
    }
    const bool finished = choice.contains("finish_reason");
    const auto reason = one.find("finish_reason");
    if (finished && reason != one.end() && !reason->is_null() && *reason != choice["finish_reason"]) {
      return fail(fmt::format("finish_reason is {}, it was {}", shown(*reason), shown(choice["finish_reason"])));
    }
    text += more;
    size_t fresh = 0;
    for (const auto& [name, value] : one.items()) {
      if (name == "text" || name == "delta" || value.is_null()) continue;
      if (name == "logprobs") {
        merge_lists(value, &choice["logprobs"]);
        if (value.is_object()) fresh = std::max(size_of_list(value, "content"), size_of_list(value, "tokens"));
      } else if (value.is_array() && name != "prompt_logprobs" && name != "prompt_token_ids") {
        Json& place = choice[name];
        if (!place.is_array()) place = Json::array();
        for (const Json& item : value) place.push_back(item);
        if (name == "token_ids") fresh = std::max(fresh, value.size());
      } else {
        choice[name] = value;
      }
    }
    if (fresh == 0 && !more.empty()) fresh = 1;
    if (finished && fresh > 0) return fail("it goes on with " + quoted(more, 40) + " behind a finish_reason");
    tokens += static_cast<int64_t>(fresh);
    if (most_tokens >= 0 && tokens > most_tokens) {
      return fail(fmt::format("{} tokens have come, asked for were at most {}", tokens, most_tokens));
    }
    return fresh;
  }
};

StreamReader::StreamReader(bool chat, int64_t most_tokens, Cleaner clean) : state_(std::make_unique<State>()) {
  state_->chat = chat;
  state_->most_tokens = most_tokens;
  state_->clean = std::move(clean);
}
StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;

Result<size_t> StreamReader::take(std::string_view bytes) {
  State& s = *state_;
  size_t fresh = 0;
  while (s.failure.ok() && !bytes.empty()) {
    const size_t end = bytes.find('\n');
    s.line += bytes.substr(0, end);
    if (s.line.size() + s.data.size() > kEventBytes)
      return s.fail(fmt::format("it has more than {} bytes", kEventBytes));
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    std::string line = std::exchange(s.line, {});
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) {
      Result<size_t> taken = s.take_event();
      if (!taken) return taken;
      fresh += *taken;
    } else if (line.rfind("data:", 0) == 0) {
      if (!s.data.empty()) s.data += '\n';
      s.data += line.substr(line.size() > 5 && line[5] == ' ' ? 6 : 5);
    } else if (line[0] != ':' && line.rfind("event:", 0) != 0 && line.rfind("id:", 0) != 0 &&
               line.rfind("retry:", 0) != 0) {
      return s.fail(fmt::format("{} is no line of server-sent events", s.quoted(line, 60)));
    }
  }
  if (!s.failure.ok()) return s.failure;
  return fresh;
}

Result<std::string> StreamReader::body() const {
  const State& s = *state_;
  if (!s.failure.ok()) return s.failure;
  if (!s.done && s.data != "[DONE]") {
    return invalid(fmt::format("the stream ended after {} events without [DONE]: the answer is cut", s.events));
  }
  Json choice = s.choice;
  if (s.chat) {
    choice["message"] = {{"content", s.text}};
  } else {
    choice["text"] = s.text;
  }
  Json body = s.rest;
  body["choices"] = Json::array({choice});
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::engines::openai
