#include "plugins/engines/openai/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/golden/text.h"

namespace assay::engines::openai {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPollSeconds = 0.05;
constexpr std::chrono::milliseconds kNap{10};
constexpr const char* kRedacted = "***";

void add_logprobs(const BodyInput& input, bool chat, Json* body) {
  const Asked& asked = input.asked;
  const int32_t top = std::max(asked.top_n, 1);  // 0 means none at all to some servers
  if (asked.logprobs || asked.echo) {
    if (chat) {
      (*body)["logprobs"] = true;
      (*body)["top_logprobs"] = top;
    } else {
      (*body)["logprobs"] = top;
    }
  }
  if (asked.echo) (*body)["echo"] = true;
  if (asked.prompt_list) (*body)["prompt_logprobs"] = asked.top_n;
  if (input.ids == IdForm::kMembers) (*body)["return_token_ids"] = (*body)["return_tokens"] = true;
  if (input.ids == IdForm::kSpelled) (*body)["return_tokens_as_token_ids"] = true;
}

std::string body_of(const BodyInput& input, const OpenaiOptions& options) {
  Json body = Json::object();
  if (!input.model.empty()) body["model"] = input.model;
  if (options.chat) {
    Json messages = Json::parse(options.messages);
    messages.push_back({{"role", "user"}, {"content", input.asked.prompt}});
    body["messages"] = std::move(messages);
  } else if (!input.prompt_ids.empty()) {
    body["prompt"] = input.prompt_ids;
  } else {
    body["prompt"] = input.asked.prompt;
  }
  body["max_tokens"] = input.asked.max_tokens;
  const Drawing& drawing = input.drawing;
  body["temperature"] = drawing.greedy ? 0.0 : drawing.temperature;
  if (!drawing.greedy) {
    if (drawing.top_p > 0) body["top_p"] = drawing.top_p;
    if (drawing.top_k > 0) body["top_k"] = drawing.top_k;
    if (drawing.seed) body["seed"] = *drawing.seed;
  }
  if (!input.asked.stop_words.empty()) body["stop"] = input.asked.stop_words;
  add_logprobs(input, options.chat, &body);
  if (input.stream) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
  }
  const Json extra = Json::parse(options.extra_body);
  for (const auto& [name, value] : extra.items()) body[name] = value;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<std::vector<std::string>> request_headers(const OpenaiOptions& options, std::string* key) {
  std::vector<std::string> headers;
  for (const auto& [name, value] : options.headers) headers.push_back(name + ": " + value);
  if (options.api_key_variable.empty()) return headers;
  const char* held = std::getenv(options.api_key_variable.c_str());
  if (held == nullptr || *held == '\0') {
    return invalid(fmt::format("api_key_variable is {}, which is {}; set it for the run", options.api_key_variable,
                               held == nullptr ? "not set" : "empty"));
  }
  *key = held;
  if (key->find_first_of("\r\n") != std::string::npos) {
    return invalid(fmt::format("the API key in {} has a line break; set it without", options.api_key_variable));
  }
  headers.push_back(options.api_key_header + *key);
  return headers;
}

Result<std::unique_ptr<Wire>> Wire::open(const OpenaiOptions& options, std::string url, const Host& host) {
  std::unique_ptr<Wire> wire(new Wire(options, std::move(url), host));
  Result<std::unique_ptr<HttpClient>> client = HttpClient::open(options.limits);
  if (!client) return client.status();
  wire->client_ = *std::move(client);
  Result<std::vector<std::string>> headers = request_headers(options, &wire->key_);
  if (!headers) return headers.status();
  wire->headers_ = *std::move(headers);
  return wire;
}

HttpRequest Wire::get(const std::string& path) const {
  return {.url = url_ + path, .body = "", .headers = headers_, .sink = {}};
}

HttpRequest Wire::post(const std::string& path, std::string body) const {
  return {.url = url_ + path, .body = std::move(body), .headers = headers_, .sink = {}};
}

HttpRequest Wire::ask(const BodyInput& input) const {
  return post(options_.chat ? "/v1/chat/completions" : "/v1/completions", body_of(input, options_));
}

Result<HttpAnswer> Wire::perform(const HttpRequest& request) {
  for (int32_t tries = 1;; ++tries) {
    const uint64_t id = client_->start(request);
    std::vector<HttpAnswer> ended;
    while (ended.empty()) {
      if (host_.cancelled()) {
        client_->drop(id);
        return Status(StatusCode::kCancelled, "the run is to stop");
      }
      ended = client_->poll(kPollSeconds);
    }
    HttpAnswer& answer = ended.front();
    const std::optional<double> pause = pause_after(answer, tries);
    if (!pause) {
      if (!answer.transport.ok()) return clean(answer.transport);
      return std::move(answer);
    }
    nap(*pause);
  }
}

void Wire::nap(double seconds) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!host_.cancelled()) {
    const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return;
    std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(left, kNap));
  }
}

std::optional<double> Wire::pause_after(const HttpAnswer& answer, int32_t tries) const {
  if (tries > options_.retries) return std::nullopt;
  std::optional<double> pause;
  const bool busy = answer.transport.ok() && (answer.code == 429 || answer.code == 503);
  if (answer.before_any_byte) {
    pause = options_.backoff_seconds * static_cast<double>(uint64_t{1} << std::min(tries - 1, 20));
  } else if (busy && answer.retry_after && *answer.retry_after <= options_.most_retry_after_seconds) {
    pause = answer.retry_after;
  }
  return pause && has_left(*pause) ? pause : std::nullopt;
}

bool Wire::has_left(double seconds) const {
  const std::chrono::duration<double> left = options_.limits.ends - std::chrono::steady_clock::now();
  return seconds < left.count();
}

Result<Checked> Wire::read(const HttpAnswer& answer, const StreamReader* stream, const Asked& asked) {
  if (!answer.transport.ok()) return clean(answer.transport);
  const std::string what = "POST " + url_ + (options_.chat ? "/v1/chat/completions" : "/v1/completions");
  if (answer.code == 429 || answer.code == 503) {
    const Status busy = http_failure(what, answer.code, answer.body, cleaner());
    std::string wait = "; it sent no Retry-After";
    if (const std::string& sent = answer.retry_after_text; !sent.empty()) {
      wait = fmt::format("; its Retry-After is {}, which is no time to wait", text::quoted(clean(sent), 40));
    }
    if (answer.retry_after) {
      wait = fmt::format("; it asks to wait {:g} s{}", *answer.retry_after,
                         has_left(*answer.retry_after) ? "" : ", which is more than is left of the case's time");
    }
    return clean(infra(busy.message() + wait));
  }
  if (answer.code != 200) return clean(http_failure(what, answer.code, answer.body, cleaner()));
  const char* expected = stream != nullptr ? "text/event-stream" : "application/json";
  if (answer.content_type != expected && !(stream == nullptr && answer.content_type.ends_with("+json"))) {
    return clean(invalid(fmt::format("{}: content-type is '{}', expected {}", what,
                                     clean(answer.content_type).substr(0, 60), expected)));
  }
  std::string streamed;
  if (stream != nullptr) {
    Result<std::string> body = stream->body();
    if (!body) return clean(body.status().with(what));
    streamed = *std::move(body);
  }
  const std::string& body = stream != nullptr ? streamed : answer.body;
  if (!key_.empty() && body.find(key_) != std::string::npos) {
    return invalid(what + ": the answer holds the API key and is not kept");
  }
  Result<Answer> parsed = parse_answer(body, options_.chat);
  if (!parsed) return parsed.status().with(what);
  Result<Checked> checked = check_answer(*std::move(parsed), asked);
  if (!checked) return checked.status().with(what);
  if (Status fits = check_model(checked->model); !fits.ok()) return clean(fits.with(what));
  return checked;
}

Status Wire::check_model(const std::string& said) {
  if (said.empty()) return {};
  const std::vector<std::string>& names = answering_.names;
  if (!names.empty() && std::find(names.begin(), names.end(), said) == names.end()) {
    return invalid(fmt::format("the answer is of model {}, asked for was {}; name the one that is meant in model",
                               text::quoted(said, 60), text::quoted(names.front(), 60)));
  }
  if (!answering_.seen.empty() && said != answering_.seen) {
    return invalid(fmt::format("the answer is of model {}, those before were of {}", text::quoted(said, 60),
                               text::quoted(answering_.seen, 60)));
  }
  answering_.seen = said;
  return {};
}

Result<Checked> Wire::ask_and_read(const BodyInput& input) {
  HttpRequest request = ask(input);
  StreamReader stream(options_.chat, input.asked.max_tokens, cleaner());
  if (input.stream) {
    request.sink = [this, &stream](std::string_view bytes) { return stream.take(bytes).ok() && !host_.cancelled(); };
  }
  const Result<HttpAnswer> answer = perform(request);
  if (!answer) return answer.status();
  return read(*answer, input.stream ? &stream : nullptr, input.asked);
}

std::string Wire::clean(std::string text) const {
  for (size_t at = key_.empty() ? std::string::npos : text.find(key_); at != std::string::npos;
       at = text.find(key_, at)) {
    text.replace(at, key_.size(), kRedacted);
  }
  return text;
}

Status Wire::clean(const Status& status) const { return Status(status.code(), clean(status.message())); }

}  // namespace assay::engines::openai
