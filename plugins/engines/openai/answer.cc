#include "plugins/engines/openai/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/golden/json_text.h"
#include "core/golden/key_scan.h"
#include "core/golden/text.h"

namespace assay::engines::openai {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json& json) {
  return text::quoted(json.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
}

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json* list(const Json& object, const char* name) {
  const Json* found = member(object, name);
  return found != nullptr && found->is_array() ? found : nullptr;
}

Status take_string(const Json& object, const char* name, std::string* value) {
  const Json* found = member(object, name);
  if (found == nullptr) return {};
  if (!found->is_string())
    return invalid(fmt::format("{} of the answer is {}, expected a string", name, shown(*found)));
  *value = found->get<std::string>();
  return {};
}

Result<double> logprob_of(const Json& json, const std::string& where) {
  const double value = json.is_number() ? json.get<double>() : std::nan("");
  if (std::isfinite(value)) return value;
  return invalid(fmt::format("logprob of {} is {}, expected a finite number", where, shown(json)));
}

std::optional<int32_t> id_of(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  const int64_t id = json.get<int64_t>();
  if (id < 0 || id > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(id);
}

// "token_id:17", as vLLM spells tokens when asked to.
std::optional<int32_t> spelled_id(std::string_view text) {
  constexpr std::string_view kPrefix = "token_id:";
  if (text.rfind(kPrefix, 0) != 0) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  int32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  return id;
}

// Text or id of a token that is spelled as a string. True: its id, of the text nothing is told.
template <class Token>
bool spell(const std::string& spelling, Token* token) {
  const std::optional<int32_t> id = spelled_id(spelling);
  if (id) {
    token->id = *id;
  } else {
    token->text = spelling;
  }
  return id.has_value();
}

// The same of an entry of a list.
bool is_spelled(const Json& entry) {
  const Json* spelling = member(entry, "token");
  return spelling != nullptr && spelling->is_string() && spelled_id(spelling->get_ref<const std::string&>());
}

// "bytes:\xe2\x80" and U+FFFD: how servers show tokens that are no UTF-8 alone.
bool is_exact(const std::string& text) {
  return text.rfind("bytes:", 0) != 0 && text.find("\xef\xbf\xbd") == std::string::npos;
}

// An entry of a list of logprobs in the chat format.
template <class Token>
Status take_entry(const Json& entry, const std::string& where, Token* token) {
  if (const Json* spelling = member(entry, "token"); spelling != nullptr && spelling->is_string()) {
    spell(spelling->get<std::string>(), token);
  } else if (spelling != nullptr) {
    return invalid(fmt::format("{} is {}, expected a string", where, shown(*spelling)));
  }
  if (const Json* bytes = list(entry, "bytes"); bytes != nullptr && token->id < 0) {
    std::string exact;
    for (const Json& byte : *bytes) {
      if (!byte.is_number_integer() || byte < 0 || byte > 255) {
        return invalid(fmt::format("bytes of {} hold {}, expected numbers from 0 to 255", where, shown(byte)));
      }
      exact += static_cast<char>(byte.get<int>());
    }
    token->text = std::move(exact);
  }
  if (const Json* id = member(entry, "id")) {
    const std::optional<int32_t> number = id_of(*id);
    if (!number) return invalid(fmt::format("id of {} is {}, expected a token id", where, shown(*id)));
    token->id = *number;
  }
  return {};
}

void sort_top(AnswerToken* token) {
  std::stable_sort(token->top.begin(), token->top.end(),
                   [](const TokenCandidate& a, const TokenCandidate& b) { return a.logprob > b.logprob; });
}

// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}
Status take_content(const Json& content, Answer* answer) {
  for (const Json& entry : content) {
    AnswerToken token;
    const std::string where = fmt::format("token {}", answer->tokens.size());
    if (!entry.is_object()) return invalid(fmt::format("{} is {}, expected an object", where, shown(entry)));
    if (Status taken = take_entry(entry, where, &token); !taken.ok()) return taken;
    const bool spelled = is_spelled(entry);
    token.exact = !spelled && (list(entry, "bytes") != nullptr || is_exact(token.text));
    answer->spelled = answer->spelled || spelled;
    const Result<double> logprob = logprob_of(entry.value("logprob", Json()), where);
    if (!logprob) return logprob.status();
    token.logprob = *logprob;
    if (const Json* top = list(entry, "top_logprobs")) {
      for (const Json& other : *top) {
        TokenCandidate candidate;
        const std::string of = fmt::format("{}, alternative {}", where, token.top.size());
        if (!other.is_object()) return invalid(fmt::format("{} is {}, expected an object", of, shown(other)));
        if (Status taken = take_entry(other, of, &candidate); !taken.ok()) return taken;
        const Result<double> value = logprob_of(other.value("logprob", Json()), of);
        if (!value) return value.status();
        candidate.logprob = *value;
        token.top.push_back(std::move(candidate));
      }
    }
    sort_top(&token);
    answer->tokens.push_back(std::move(token));
  }
  return {};
}

// {"tokens": [], "token_logprobs": [], "top_logprobs": [{}]}. The first of an echo has no logprob.
Status take_arrays(const Json& tokens, const Json& logprobs, Answer* answer) {
  const Json* values = list(logprobs, "token_logprobs");
  const Json* tops = list(logprobs, "top_logprobs");
  if (values == nullptr || values->size() != tokens.size()) {
    return invalid(fmt::format("logprobs: {} token_logprobs for {} tokens, expected one each",
                               values == nullptr ? 0 : values->size(), tokens.size()));
  }
  if (tops != nullptr && tops->size() != tokens.size()) {
    return invalid(
        fmt::format("logprobs: {} top_logprobs for {} tokens, expected one each", tops->size(), tokens.size()));
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    AnswerToken token;
    const std::string where = fmt::format("token {}", i);
    if (!tokens[i].is_string()) return invalid(fmt::format("{} is {}, expected a string", where, shown(tokens[i])));
    const bool spelled = spell(tokens[i].get<std::string>(), &token);
    token.exact = !spelled && is_exact(token.text);
    answer->spelled = answer->spelled || spelled;
    if (!(i == 0 && (*values)[i].is_null())) {
      const Result<double> logprob = logprob_of((*values)[i], where);
      if (!logprob) return logprob.status();
      token.logprob = *logprob;
    }
    if (tops != nullptr && (*tops)[i].is_object()) {
      for (const auto& [spelling, value] : (*tops)[i].items()) {
        TokenCandidate candidate;
        spell(spelling, &candidate);
        const Result<double> logprob = logprob_of(value, where + ", alternative " + text::quoted(spelling, 20));
        if (!logprob) return logprob.status();
        candidate.logprob = *logprob;
        token.top.push_back(std::move(candidate));
      }
      sort_top(&token);
    }
    answer->tokens.push_back(std::move(token));
  }
  return {};
}

Status take_logprobs(const Json& choice, Answer* answer) {
  const Json* logprobs = member(choice, "logprobs");
  if (logprobs == nullptr) return {};
  if (!logprobs->is_object()) return invalid("logprobs are " + shown(*logprobs) + ", expected an object");
  const Json* content = list(*logprobs, "content");
  const Json* tokens = list(*logprobs, "tokens");
  if (content == nullptr && tokens == nullptr) return {};
  answer->listed = answer->logprobs = true;
  return content != nullptr ? take_content(*content, answer) : take_arrays(*tokens, *logprobs, answer);
}

// SGLang: [[logprob, id, text], ...]
Status take_meta(const Json& meta, Answer* answer) {
  const Json* triples = list(meta, "output_token_logprobs");
  if (triples == nullptr || (answer->listed && triples->size() != answer->tokens.size())) return {};
  const bool fresh = !answer->listed;
  for (size_t i = 0; i < triples->size(); ++i) {
    const Json& triple = (*triples)[i];
    if (!triple.is_array() || triple.size() < 2) return invalid("output_token_logprobs hold " + shown(triple));
    if (fresh) {
      const Result<double> logprob = logprob_of(triple[0], fmt::format("token {}", i));
      if (!logprob) return logprob.status();
      AnswerToken token;
      token.logprob = *logprob;
      if (triple.size() > 2 && triple[2].is_string()) token.text = triple[2].get<std::string>();
      token.exact = is_exact(token.text);
      answer->tokens.push_back(std::move(token));
    }
    if (const std::optional<int32_t> id = id_of(triple[1])) answer->tokens[i].id = *id;
  }
  answer->listed = answer->logprobs = true;
  return {};
}

// Ids beside the list of logprobs, or instead of one.
Status take_ids(const Json& ids, const char* name, bool listed, std::vector<AnswerToken>* tokens) {
  if (listed && ids.size() != tokens->size()) {
    return invalid(
        fmt::format("{} holds {} ids for {} listed tokens, expected one each", name, ids.size(), tokens->size()));
  }
  tokens->resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::optional<int32_t> id = id_of(ids[i]);
    if (!id) return invalid(fmt::format("{}[{}] is {}, expected a token id", name, i, shown(ids[i])));
    AnswerToken& token = (*tokens)[i];
    if (token.id >= 0 && token.id != *id) {
      return invalid(fmt::format("token {} has id {} in one list and {} in {}", i, token.id, *id, name));
    }
    token.id = *id;
    if (!listed) token.exact = false;
  }
  return {};
}

// vLLM: [null, {"17": {"logprob", "rank", "decoded_token"}}, ...]; the prompt's own token stands first.
Status take_prompt_list(const Json& positions, Answer* answer) {
  answer->prompt_listed = true;
  for (size_t i = 0; i < positions.size(); ++i) {
    AnswerToken token;
    const Json& position = positions[i];
    if (position.is_null() && i == 0) {
      token.exact = false;
      answer->prompt_tokens.push_back(std::move(token));
      continue;
    }
    if (!position.is_object() || position.empty()) {
      return invalid(fmt::format("prompt_logprobs[{}] is {}, expected an object of tokens", i, shown(position)));
    }
    for (const auto& [key, value] : position.items()) {
      TokenCandidate candidate;
      int32_t id = -1;
      std::from_chars(key.data(), key.data() + key.size(), id);
      candidate.id = id;
      const Result<double> logprob =
          logprob_of(value.is_object() ? value.value("logprob", Json()) : value, fmt::format("prompt token {}", i));
      if (!logprob) return logprob.status();
      candidate.logprob = *logprob;
      if (const Json* decoded = member(value, "decoded_token"); decoded != nullptr && decoded->is_string()) {
        candidate.text = decoded->get<std::string>();
      }
      token.top.push_back(std::move(candidate));
    }
    token.id = token.top[0].id;
    token.text = token.top[0].text;
    token.exact = false;
    token.logprob = token.top[0].logprob;
    sort_top(&token);
    answer->prompt_tokens.push_back(std::move(token));
  }
  return {};
}

Status take_usage(const Json& body, Answer* answer) {
  const Json* usage = member(body, "usage");
  if (usage == nullptr) return {};
  for (const auto& [name, value] :
       {std::pair("prompt_tokens", &answer->usage_prompt), std::pair("completion_tokens", &answer->usage_completion)}) {
    const Json* count = member(*usage, name);
    if (count == nullptr) continue;
    if (!count->is_number_integer() || *count < 0) {
      return invalid(fmt::format("usage.{} is {}, expected a count", name, shown(*count)));
    }
    *value = count->get<int64_t>();
  }
  if (const Json* details = member(*usage, "prompt_tokens_details")) {
    const Json* cached = member(*details, "cached_tokens");
    if (cached != nullptr && cached->is_number_unsigned()) answer->cached = cached->get<int64_t>();
  }
  return {};
}

Status take_text(const Json& choice, bool chat, Answer* answer) {
  if (!chat) {
    if (member(choice, "text") == nullptr) return invalid("the choice has no text");
    return take_string(choice, "text", &answer->text);
  }
  const Json* message = member(choice, "message");
  if (message == nullptr || !message->is_object()) return invalid("the choice has no message");
  return take_string(*message, "content", &answer->text);  // null: nothing was said
}

Result<Answer> take(const Json& body, bool chat) {
  if (!body.is_object()) return invalid("the answer is " + shown(body) + ", expected an object");
  if (const Json* error = member(body, "error")) {
    return invalid("an error came instead of an answer: " +
                   text::quoted(error_of(Json{{"error", *error}}.dump()), 200));
  }
  const Json* choices = list(body, "choices");
  if (choices == nullptr || choices->empty()) return invalid("the answer has no choices: " + shown(body));
  if (choices->size() != 1) return invalid(fmt::format("the answer has {} choices, expected 1", choices->size()));
  const Json& choice = (*choices)[0];
  if (!choice.is_object()) return invalid("the choice is " + shown(choice) + ", expected an object");
  if (const Json* index = member(choice, "index"); index != nullptr && *index != 0) {
    return invalid("the choice has index " + shown(*index) + ", expected 0");
  }
  Answer answer;
  for (const Status& taken :
       {take_text(choice, chat, &answer), take_string(choice, "finish_reason", &answer.finish_reason),
        take_string(body, "system_fingerprint", &answer.fingerprint), take_string(body, "model", &answer.model),
        take_usage(body, &answer), take_logprobs(choice, &answer)}) {
    if (!taken.ok()) return taken;
  }
  for (const Json* place : {&choice, &body}) {
    if (const Json* meta = member(*place, "meta_info")) {
      if (Status taken = take_meta(*meta, &answer); !taken.ok()) return taken;
    }
  }
  for (const char* name : {"token_ids", "tokens"}) {
    const Json* ids = list(choice, name);
    if (ids == nullptr) ids = list(body, name);
    if (ids == nullptr || (!ids->empty() && (*ids)[0].is_string())) continue;
    if (Status taken = take_ids(*ids, name, answer.listed, &answer.tokens); !taken.ok()) return taken;
    answer.listed = true;
    break;
  }
  for (const Json* place : {&choice, &body}) {
    const Json* positions = list(*place, "prompt_logprobs");
    if (positions == nullptr || answer.prompt_listed) continue;
    if (Status taken = take_prompt_list(*positions, &answer); !taken.ok()) return taken;
  }
  for (const Json* place : {&choice, &body}) {
    const Json* ids = list(*place, "prompt_token_ids");
    if (ids == nullptr) continue;
    if (Status taken = take_ids(*ids, "prompt_token_ids", answer.prompt_listed, &answer.prompt_tokens); !taken.ok()) {
      return taken;
    }
    answer.prompt_listed = true;
    break;
  }
  return answer;
}

}  // namespace

bool has_ids(const std::vector<AnswerToken>& tokens) {
  return !tokens.empty() &&
         std::all_of(tokens.begin(), tokens.end(), [](const AnswerToken& token) { return token.id >= 0; });
}

Result<Answer> parse_answer(std::string_view body, bool chat) {
  if (const std::optional<size_t> wrong = text::ill_formed(body)) {
    return invalid(fmt::format("the answer is no UTF-8 at byte {} of {}", *wrong, body.size()));
  }
  if (json::deeper_than(body, json::kDeepest)) {
    return invalid(fmt::format("the answer is nested more than {} deep", json::kDeepest));
  }
  if (const std::string twice = json::repeated_key(body); !twice.empty()) {
    return invalid(fmt::format("the answer has {} more than once in one object", twice));
  }
  try {
    return take(Json::parse(body), chat);
  } catch (const Json::exception& failure) {
    return invalid(fmt::format("the answer is no JSON: {}: {}", failure.what(), text::quoted(std::string(body), 80)));
  }
}

std::string error_of(std::string_view body) {
  if (json::deeper_than(body, json::kDeepest)) return "";
  const Json json = Json::parse(body, nullptr, false);
  const Json* error = member(json, "error");
  if (error == nullptr) error = member(json, "detail");
  if (error == nullptr) error = member(json, "message");
  if (error == nullptr) return "";
  if (error->is_string()) return error->get<std::string>();
  const Json* message = member(*error, "message");
  return message != nullptr && message->is_string() ? message->get<std::string>()
                                                    : error->dump(-1, ' ', true, Json::error_handler_t::replace);
}

Status http_failure(const std::string& what, long code, std::string_view body, const Cleaner& clean) {
  std::string said = clean(error_of(body));
  if (said.empty()) said = clean(std::string(body)).substr(0, 300);
  const std::string line = fmt::format("{}: HTTP {}{}", what, code, said.empty() ? "" : ": " + text::quoted(said, 200));
  if (code >= 500) return internal(line);
  if (code == 401 || code == 403) return invalid(line + "; name the variable of a key that may, in api_key_variable");
  if (code >= 300 && code < 400) return invalid(line + "; redirects are not followed, give the url it leads to");
  return invalid(line);
}

}  // namespace assay::engines::openai
