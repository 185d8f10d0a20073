#include "plugins/engines/openai/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/command/redact.h"
#include "plugins/engines/common/options_json.h"

namespace assay::engines::openai {

const char* const kOpenaiOptionsSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "url": {"type": "string", "minLength": 1, "description": "of the server, http://HOST:PORT; not needed with server.command"},
    "model": {"type": "string", "description": "as the server names it; default: the only one of /v1/models"},
    "api": {"enum": ["completions", "chat"], "default": "completions"},
    "stream": {"type": "boolean", "default": true, "description": "tokens come as they are made: tpot is measured"},
    "prompt_logprobs": {"enum": ["auto", "echo", "list", "off"], "default": "auto",
      "description": "how logprobs of the prompt are asked for: by echo, by the list of vLLM, not at all, or what a probe finds to work"},
    "stop_words": {"type": "array", "items": {"type": "string"}, "default": [], "description": "end a text and are not part of it (--stop-words)"},
    "keep_end_token": {"type": "boolean", "default": false, "description": "the token that ended the text stays among the generated tokens"},
    "messages": {"type": "array", "items": {"type": "object"}, "default": [], "description": "chat: messages before the prompt's own"},
    "extra_body": {"type": "object", "default": {}, "description": "further members of every request; none that the engine sets itself"},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}, "description": "further headers; none that holds a secret"},
    "api_key_variable": {"type": "string", "description": "environment variable that holds the API key"},
    "api_key_header": {"type": "string", "default": "Authorization: Bearer ", "description": "what the key is put behind"},
    "tokenizer": {"type": "object", "description": "where the server gives no token ids: the tokenizer that encodes the text, {\"type\", \"model\", \"pattern\", ...}; the ids are marked as derived"},
    "probe_prompt": {"type": "string", "minLength": 1, "description": "prompt of the probes at open"},
    "concurrency": {"type": "integer", "minimum": 1, "maximum": 4096, "default": 1, "description": "requests at the server at once"},
    "order": {"enum": ["as_given", "reversed", "shuffled"], "default": "as_given", "description": "in which requests are sent"},
    "requests_per_second": {"type": "number", "minimum": 0, "maximum": 1e6, "default": 0, "description": "mean rate of arrivals, a Poisson process; 0: all at once"},
    "seed": {"type": "integer", "minimum": 0, "default": 1234, "description": "of arrivals and of shuffling"},
    "retries": {"type": "integer", "minimum": 0, "maximum": 100, "default": 2, "description": "of a request, for connections that failed before any byte of an answer, and for 429 and 503 with Retry-After"},
    "backoff_seconds": {"type": "number", "minimum": 0, "maximum": 3600, "default": 0.25, "description": "before the first retry; doubled for each further one"},
    "most_retry_after_seconds": {"type": "number", "minimum": 0, "maximum": 3600, "default": 60, "description": "longest pause that a server may ask for"},
    "connect_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "default": 10},
    "first_byte_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "default": 300},
    "between_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "default": 60, "description": "longest silence inside an answer"},
    "request_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "default": 600, "description": "a request in all"},
    "most_answer_mb": {"type": "integer", "minimum": 1, "maximum": 4096, "default": 64, "description": "MiB of one answer"},
    "case_time": {"type": "object", "description": "how long the case may take and when it began; assay fills it in"},
    "ca_file": {"type": "string", "description": "PEM file of certificates that are trusted; default: the system's"},
    "server": {"type": "object", "additionalProperties": false, "required": ["command"],
      "description": "a server that the engine starts and ends",
      "properties": {
        "command": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "words; {host} and {port} are replaced"},
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "folder": {"type": "string", "description": "working folder"},
        "ready": {"type": "string", "description": "path that answers 200 once the server is ready; default: /health, else /v1/models"},
        "ready_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "default": 300},
        "stop_seconds": {"type": "number", "minimum": 0, "maximum": 3600, "default": 5, "description": "from SIGTERM to SIGKILL at the end"},
        "log": {"type": "string", "description": "file of its output; default: server.log beside engine.log"}
      }}
  }
})json";

namespace {

constexpr const char* kWhat = "options of engine openai";
constexpr double kDay = 86400;
constexpr size_t kShownName = 40;  // bytes of a header's name in a message

// Members of a request that the engine sets, and what to use instead of setting them.
struct OwnMember {
  const char* name;
  const char* instead;
};
constexpr const char* kOfCase = "MODEL_ARGS of the case";
constexpr const char* kWantedMetrics = "METRICS and --top-n-logprobs of the case";
constexpr const char* kDecided = "nothing: what is asked for follows from the case and the probes";
constexpr std::array<OwnMember, 26> kOwnMembers = {{{"model", "the option model"},
                                                    {"prompt", "the prompts of the case"},
                                                    {"messages", "the option messages"},
                                                    {"stream", "the option stream"},
                                                    {"stream_options", "the option stream"},
                                                    {"stop", "the option stop_words"},
                                                    {"prompt_logprobs", "the option prompt_logprobs"},
                                                    {"echo", "the option prompt_logprobs"},
                                                    {"max_tokens", kOfCase},
                                                    {"max_completion_tokens", kOfCase},
                                                    {"n_predict", kOfCase},
                                                    {"temperature", kOfCase},
                                                    {"top_p", kOfCase},
                                                    {"top_k", kOfCase},
                                                    {"seed", kOfCase},
                                                    {"logprobs", kWantedMetrics},
                                                    {"top_logprobs", kWantedMetrics},
                                                    {"n_probs", kWantedMetrics},
                                                    {"n", kDecided},
                                                    {"best_of", kDecided},
                                                    {"suffix", kDecided},
                                                    {"prompt_embeds", kDecided},
                                                    {"use_beam_search", kDecided},
                                                    {"return_token_ids", kDecided},
                                                    {"return_tokens", kDecided},
                                                    {"return_tokens_as_token_ids", kDecided}}};

Status read_server(const std::string& json, ServerOptions* s) {
  OptionsReader reader(json, std::string(kWhat) + ": server");
  reader.strings("command", &s->command);
  reader.string_map("environment", &s->environment);
  reader.string("folder", &s->folder);
  reader.string("ready", &s->ready);
  reader.number("ready_seconds", {.above = 0, .most = kDay}, &s->ready_seconds);
  reader.number("stop_seconds", {.least = 0, .most = 3600}, &s->stop_seconds);
  reader.string("log", &s->log);
  if (Status status = reader.finish(); !status.ok()) return status;
  if (s->command.empty()) return invalid(std::string(kWhat) + ": server.command is empty, expected words to start");
  if (!s->ready.empty() && s->ready[0] != '/') {
    return invalid(std::string(kWhat) + ": server.ready is '" + s->ready + "', expected a path that begins with '/'");
  }
  return {};
}

// A URL as messages show it: without user and password, and without its query.
std::string shown(std::string url) {
  if (const size_t query = url.find_first_of("?#"); query != std::string::npos) url.resize(query);
  const size_t scheme = url.find("://");
  const size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  if (const size_t at = url.substr(0, url.find('/', begin)).rfind('@'); at != std::string::npos) {
    url.erase(begin, at + 1 - begin);
  }
  return url.substr(0, 60);
}

Status check_url(OpenaiOptions* o) {
  std::string& url = o->url;
  if (!o->server.command.empty()) {
    const auto has_port = [](const std::string& word) { return word.find("{port}") != std::string::npos; };
    if (!url.empty()) return invalid(std::string(kWhat) + ": url and server.command are both given; keep one");
    if (std::none_of(o->server.command.begin(), o->server.command.end(), has_port)) {
      return invalid(std::string(kWhat) + ": server.command has no {port}, so that nothing tells where it listens");
    }
    return {};
  }
  if (url.empty()) return invalid(std::string(kWhat) + ": url is not set; give http://HOST:PORT, or server.command");
  if (url.rfind("http://", 0) != 0 && url.rfind("https://", 0) != 0) {
    return invalid(std::string(kWhat) + ": url is '" + shown(url) + "', expected http:// or https://");
  }
  if (url.find('@') != std::string::npos) {
    return invalid(std::string(kWhat) + ": url names a user or a password; name the variable of a key instead");
  }
  if (url.find_first_of("?# \t\r\n") != std::string::npos) {
    return invalid(std::string(kWhat) + ": url '" + shown(url) +
                   "' goes on with a query, a fragment or a blank; give it without");
  }
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  return {};
}

std::string upper_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// Headers are written to results; what is secret goes through a variable.
Status check_headers(const OpenaiOptions& o) {
  const auto broken = [](const std::string& text) { return text.find_first_of("\r\n") != std::string::npos; };
  for (const auto& [name, value] : o.headers) {
    if (name.empty() || name.find_first_of(": \t") != std::string::npos || broken(name) || broken(value)) {
      const bool plain =
          std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isgraph(c) && c != ':'; });
      const std::string seen =
          plain && name.size() <= kShownName ? "'" + name + "'" : fmt::format("a name of {} bytes", name.size());
      return invalid(std::string(kWhat) + ": headers has " + seen + ", which is no header");
    }
    if (command::is_secret_name(name) || upper_of(name).find("COOKIE") != std::string::npos) {
      return invalid(std::string(kWhat) + ": headers has " + name +
                     ", which looks like a secret and would be written to results; set api_key_variable (and "
                     "api_key_header) instead");
    }
  }
  if (!o.api_key_variable.empty() && !command::is_variable_name(o.api_key_variable)) {
    return invalid(std::string(kWhat) +
                   ": api_key_variable is no name of a variable (letters, digits and _); give the name of the variable "
                   "that holds the key, not the key");
  }
  if (broken(o.api_key_header) || o.api_key_header.find(':') == std::string::npos) {
    return invalid(std::string(kWhat) + ": api_key_header is no 'Name: ' that a key can stand behind");
  }
  return {};
}

// What the engine says in requests itself would be another request than the one that results speak of.
Status check_extra_body(const OpenaiOptions& o) {
  const nlohmann::json extra = nlohmann::json::parse(o.extra_body);
  for (const auto& [name, value] : extra.items()) {
    const auto* const own = std::find_if(kOwnMembers.begin(), kOwnMembers.end(),
                                         [&key = name](const OwnMember& member) { return key == member.name; });
    if (own == kOwnMembers.end()) continue;
    return invalid(std::string(kWhat) + ": extra_body has " + name +
                   ", which the engine sets itself; leave it out and use " + own->instead);
  }
  return {};
}

}  // namespace

Result<OpenaiOptions> parse_openai_options(std::string_view json) {
  OpenaiOptions o;
  std::string api = "completions";
  std::string prompt_logprobs = "auto";
  std::string server;
  std::string case_time;
  std::optional<int64_t> seed;
  int32_t most_answer_mb = 64;
  OptionsReader reader(json, kWhat);
  reader.string("url", &o.url);
  reader.string("model", &o.model);
  reader.choice("api", {"completions", "chat"}, &api);
  reader.boolean("stream", &o.stream);
  reader.choice("prompt_logprobs", {"auto", "echo", "list", "off"}, &prompt_logprobs);
  reader.strings("stop_words", &o.stop_words);
  reader.boolean("keep_end_token", &o.keep_end_token);
  reader.objects("messages", &o.messages);
  reader.object("extra_body", &o.extra_body);
  reader.string_map("headers", &o.headers);
  reader.string("api_key_variable", &o.api_key_variable);
  reader.string("api_key_header", &o.api_key_header);
  reader.object("tokenizer", &o.tokenizer);
  reader.string("probe_prompt", &o.probe_prompt);
  reader.integer("concurrency", 1, 4096, &o.concurrency);
  reader.choice("order", {"as_given", "reversed", "shuffled"}, &o.order);
  reader.number("requests_per_second", {.least = 0, .most = 1e6}, &o.requests_per_second);
  reader.integer("seed", 0, INT64_MAX, &seed);
  reader.integer("retries", 0, 100, &o.retries);
  reader.number("backoff_seconds", {.least = 0, .most = 3600}, &o.backoff_seconds);
  reader.number("most_retry_after_seconds", {.least = 0, .most = 3600}, &o.most_retry_after_seconds);
  reader.number("connect_seconds", {.above = 0, .most = kDay}, &o.limits.connect_seconds);
  reader.number("first_byte_seconds", {.above = 0, .most = kDay}, &o.limits.first_byte_seconds);
  reader.number("between_seconds", {.above = 0, .most = kDay}, &o.limits.between_seconds);
  reader.number("request_seconds", {.above = 0, .most = kDay}, &o.limits.whole_seconds);
  reader.integer("most_answer_mb", 1, 4096, &most_answer_mb);
  reader.string("ca_file", &o.limits.ca_file);
  reader.object("server", &server);
  reader.object("case_time", &case_time);
  if (Status status = reader.finish(); !status.ok()) return status;
  o.chat = api == "chat";
  o.prompt_logprobs = prompt_logprobs == "echo"   ? PromptLogprobs::kEcho
                      : prompt_logprobs == "list" ? PromptLogprobs::kList
                      : prompt_logprobs == "off"  ? PromptLogprobs::kOff
                                                  : PromptLogprobs::kFindOut;
  if (seed) o.seed = *seed;
  o.limits.body_bytes = static_cast<size_t>(most_answer_mb) << 20;
  if (!server.empty()) {
    if (Status status = read_server(server, &o.server); !status.ok()) return status;
  }
  if (!case_time.empty()) {
    Result<CaseTime> time = read_case_time(case_time, std::string(kWhat) + ": case_time");
    if (!time) return time.status();
    o.case_time = *time;
    o.limits.ends = time->ends();
    o.limits.ends_text = time->text();
  }
  if (Status status = check_url(&o); !status.ok()) return status;
  if (Status status = check_headers(o); !status.ok()) return status;
  if (Status status = check_extra_body(o); !status.ok()) return status;
  if (o.chat && o.prompt_logprobs == PromptLogprobs::kEcho) {
    return invalid(std::string(kWhat) + ": prompt_logprobs is echo, which the chat API has not; use auto, list or off");
  }
  if (o.probe_prompt.empty()) return invalid(std::string(kWhat) + ": probe_prompt is empty");
  return o;
}

}  // namespace assay::engines::openai
