#include "plugins/engines/openai/testdata/test_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay::engines::openai {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLogprob = -0.25;
constexpr int kBrief = 3;  // letters

bool put(int socket, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

bool put_answer(int socket, int code, const std::string& body, const std::string& type = "application/json",
                const std::string& more = "") {
  return put(socket, "HTTP/1.1 " + std::to_string(code) + " x\r\nServer: test\r\nContent-Type: " + type +
                         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more + "\r\n" + body);
}

bool put_chunk(int socket, const std::string& data) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return put(socket, size + data + "\r\n");
}

void sleep_seconds(double seconds) {
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

char next_letter(char last, uint64_t skip) {
  const std::string letters = kLetters;
  const size_t at = letters.find(last);
  return letters[((at == std::string::npos ? 0 : at + 1) + skip) % letters.size()];
}

std::string spelled(char c) { return std::string(1, c); }

}  // namespace

struct TestServer::Ask {
  bool chat = false;
  Json body = {};
  std::string prompt = {};
  std::vector<std::string> stop = {};
  std::string text = {};  // generated
  size_t prompt_tokens = 0;
  bool ended = false;        // by a stop word or the end
  bool ends_itself = false;  // by a token that is listed and not part of the text
};

TestServer::TestServer(TestServerOptions options) : options_(std::move(options)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options_.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0) {
    std::perror("test server");
    std::abort();
  }
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

TestServer::~TestServer() {
  ending_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

std::vector<std::string> TestServer::prompts() const {
  const std::lock_guard lock(mutex_);
  return prompts_;
}

void TestServer::stall() const {
  while (!ending_) sleep_seconds(0.01);
}

void TestServer::accept_all() {
  while (!ending_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] {
      serve(socket);
      ::shutdown(socket, SHUT_RDWR);
    });
  }
}

void TestServer::serve(int socket) {
  std::string data;
  char buffer[16384];
  while (!ending_) {
    size_t end = data.find("\r\n\r\n");
    size_t length = 0;
    if (end != std::string::npos) {
      const size_t at = data.find("Content-Length: ");
      if (at != std::string::npos && at < end) length = std::strtoul(data.c_str() + at + 16, nullptr, 10);
    }
    if (end == std::string::npos || data.size() < end + 4 + length) {
      const ssize_t n = ::recv(socket, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      data.append(buffer, static_cast<size_t>(n));
      continue;
    }
    const std::string head = data.substr(0, end + 2);
    const std::string body = data.substr(end + 4, length);
    data.erase(0, end + 4 + length);
    const size_t blank = head.find(' ');
    const std::string path = head.substr(blank + 1, head.find(' ', blank + 1) - blank - 1);
    if (!answer(socket, head.substr(0, blank), path, head, body)) return;
  }
}

bool TestServer::answer(int socket, const std::string& method, const std::string& path, const std::string& headers,
                        const std::string& body) {
  if (options_.fault == "never_ready") return put_answer(socket, 503, R"({"error": "loading"})");
  if (path == "/health" && options_.fault == "no_health")
    return put_answer(socket, 404, R"({"error": "no such path"})");
  if (path == "/health") return put_answer(socket, 200, R"({"status": "ok"})");
  if (!options_.key.empty() && headers.find("Authorization: Bearer " + options_.key + "\r\n") == std::string::npos) {
    return put_answer(socket, 401, R"({"error": {"message": "who is there?"}})");
  }
  if (path == "/v1/models") {
    if (options_.fault == "half_dead") stall();
    if (options_.fault == "models_tell_key") return put_answer(socket, 404, std::string(30, 'x') + options_.key);
    std::string more = options_.fault == "two_models" ? R"(, {"id": "other"})" : "";
    if (options_.fault == "alias_by_root") more = R"(, {"id": "other", "root": "/m"})";
    const std::string aliases = options_.fault == "alias_listed" ? R"(, "aliases": ["other"])" : "";
    return put_answer(socket, 200,
                      R"({"object": "list", "data": [{"id": "letters", "root": "/m")" + aliases + "}" + more + "]}");
  }
  const Json json = method == "POST" ? Json::parse(body, nullptr, false) : Json();
  if (path == "/tokenize" && options_.dialect == "llama") {
    Json tokens = Json::array();
    if (json.value("add_special", false)) tokens.push_back(1);
    for (const char c : json.value("content", "")) tokens.push_back(static_cast<int>(c));
    return put_answer(socket, 200, Json{{"tokens", tokens}}.dump());
  }
  if (path == "/detokenize" && options_.dialect != "openai") {
    std::string text;
    for (const Json& id : json.value("tokens", Json::array())) text += static_cast<char>(id.get<int>());
    return put_answer(socket, 200, Json{{"content", text}}.dump());
  }
  const bool chat = path == "/v1/chat/completions";
  if (!chat && path != "/v1/completions") return put_answer(socket, 404, R"({"error": "no such path"})");
  if (options_.model) {
    const std::lock_guard lock(mutex_);
    return put_answer(socket, 200, options_.model(body));
  }
  Ask ask{.chat = chat, .body = json};
  if (chat) {
    ask.prompt = json["messages"].back()["content"].get<std::string>();
  } else if (json["prompt"].is_array()) {
    for (const Json& id : json["prompt"]) ask.prompt += static_cast<char>(id.get<int>());
  } else {
    ask.prompt = json["prompt"].get<std::string>();
  }
  ++asked_;
  most_at_once_ = std::max<int>(most_at_once_, ++at_once_);
  {
    const std::lock_guard lock(mutex_);
    prompts_.push_back(ask.prompt);
  }
  sleep_seconds(options_.delay);
  while (ask.prompt.starts_with("held") && most_at_once_ < options_.held && !ending_) sleep_seconds(0.001);
  const bool open = complete(socket, ask);
  --at_once_;
  return open;
}

bool TestServer::complete(int socket, const Ask& given) {
  Ask ask = given;
  std::string fault = options_.fault;
  if (fault.rfind("late_", 0) == 0) fault = ask.prompt.rfind("late", 0) == 0 ? fault.substr(5) : "";
  if (!fault.empty() && options_.fail_first > 0 && ++faults_done_ > options_.fail_first) fault.clear();
  const Json& body = ask.body;
  const int most = body.value("max_tokens", 16) + (fault == "more_tokens" ? 3 : 0);
  const bool draws = body.value("temperature", 1.0) > 0;
  static std::atomic<uint64_t> dice{1};
  const uint64_t seed = fault == "random" ? dice += 7 : body.value("seed", uint64_t{0});
  char last = ask.prompt.empty() ? 'z' : ask.prompt.back();
  const Json stop = body.value("stop", Json::array());
  for (int i = 0; i < most && !ask.ended; ++i) {
    const uint64_t skip = draws ? (seed * 2654435761U + static_cast<uint64_t>(i) * 40503U * (seed % 7 + 1)) % 3 : 0;
    last = next_letter(last, skip);
    ask.text += last;
    for (const Json& word : fault == "ignores_stop" ? Json::array() : stop) {
      const std::string text = word.get<std::string>();
      if (text.empty() || !ask.text.ends_with(text)) continue;
      ask.text.resize(ask.text.size() - text.size());
      ask.ended = true;
    }
  }
  if (options_.dialect == "spelled" && ask.prompt.starts_with("brief") && most > kBrief && !ask.ended) {
    ask.text.resize(kBrief);
    ask.ended = ask.ends_itself = true;
  }
  ask.prompt_tokens = ask.prompt.size() + (body.contains("prompt") && body["prompt"].is_array() ? 0 : 1) +
                      (fault == "double_bos" ? 1 : 0);
  return misbehave(socket, ask, fault);
}

bool TestServer::misbehave(int socket, const Ask& ask, const std::string& fault) {
  const Json& body = ask.body;
  if (fault == "stalls") stall();
  if (fault == "500s") return put_answer(socket, 500, R"({"error": {"message": "CUDA error: out of luck"}})");
  if (fault == "tells_key") {
    const std::string said = std::string(150, 'x') + " Authorization: Bearer " + options_.key;
    return put_answer(socket, 401, Json{{"error", {{"message", said}}}}.dump());
  }
  if (fault == "400s") return put_answer(socket, 400, R"({"error": {"message": "no"}})");
  if (fault == "busy") return put_answer(socket, 429, R"({"error": "busy"})", "application/json", "Retry-After: 0\r\n");
  if (fault == "busy_1s") {
    return put_answer(socket, 429, R"({"error": "busy"})", "application/json", "Retry-After: 1\r\n");
  }
  if (fault == "long_busy") {
    return put_answer(socket, 503, R"({"error": "busy"})", "application/json", "Retry-After: 3000\r\n");
  }
  if (fault == "busy_forever") return put_answer(socket, 503, R"({"error": "busy"})");
  if (fault == "busy_before") {
    return put_answer(socket, 503, R"({"error": "busy"})", "application/json", "Retry-After: -1\r\n");
  }
  if (fault == "closes") return false;
  if (fault == "dies") std::_Exit(7);
  if (fault == "redirects") {
    return put_answer(socket, 307, "", "application/json", "Location: http://127.0.0.1:1/\r\n");
  }
  if (fault == "error_in_200") return put_answer(socket, 200, R"({"error": {"message": "the engine is dead"}})");
  if (fault == "html") return put_answer(socket, 200, "<html>hello</html>", "text/html");
  if (fault == "gzip") {
    return put_answer(socket, 200, "\x1f\x8b\x08\x01\x02", "application/json", "Content-Encoding: gzip\r\n");
  }
  if (fault == "no_json") return put_answer(socket, 200, R"({"choices": [{"text": "a)");
  if (fault == "no_choices") return put_answer(socket, 200, R"({"choices": []})");

  Json choice = {{"index", fault == "wrong_index" ? 1 : 0}};
  std::string text = ask.text;
  if (fault == "truncates") text.resize(text.size() / 2);
  if (fault == "drops_text") text.resize(text.size() - 2);
  const bool echo = body.value("echo", false) && options_.dialect != "llama" && fault != "ignores_echo";
  const std::string shown = (echo ? ask.prompt : "") + text;
  const int top =
      ask.chat ? (body.value("logprobs", false) ? body.value("top_logprobs", 0) : 0) : body.value("logprobs", 0);
  const bool logprobs = top > 0 && options_.dialect != "text" && fault != "drops_logprobs";
  const bool ids = body.value("return_token_ids", false) && options_.dialect == "vllm";
  const std::string listed = (fault == "drops_text" ? ask.text : text) + (ask.ends_itself ? std::string(1, kEnd) : "");
  const bool by_ids = options_.dialect == "spelled" && body.value("return_tokens_as_token_ids", false);
  const auto told = [by_ids](char c) {
    return by_ids ? "token_id:" + std::to_string(static_cast<int>(c)) : spelled(c);
  };

  Json entries = Json::array();
  const auto entry_of = [&](char c) {
    Json entry = {{"token", spelled(c)}, {"logprob", kLogprob}, {"bytes", {static_cast<int>(c)}}};
    if (options_.dialect == "llama") entry["id"] = static_cast<int>(c);
    Json others = Json::array();
    for (int n = 0; n < std::min(top, 10); ++n) {
      const char other = n == 0 ? c : next_letter(c, static_cast<uint64_t>(n - 1));
      others.push_back({{"token", spelled(other)}, {"logprob", kLogprob - n}, {"bytes", {static_cast<int>(other)}}});
      if (options_.dialect == "llama") others.back()["id"] = static_cast<int>(other);
    }
    entry["top_logprobs"] = std::move(others);
    return entry;
  };
  const auto arrays_of = [&](const std::string& letters, bool first_is_null) {
    Json tokens = Json::array(), values = Json::array(), tops = Json::array();
    for (size_t i = 0; i < letters.size(); ++i) {
      const bool none = first_is_null && i == 0;
      tokens.push_back(told(letters[i]));
      values.push_back(none ? Json() : Json(kLogprob));
      Json others = Json::object();
      for (int n = 0; n < std::min(top, 10) && !none; ++n) {
        others[told(n == 0 ? letters[i] : next_letter(letters[i], static_cast<uint64_t>(n - 1)))] = kLogprob - n;
      }
      tops.push_back(none ? Json() : others);
    }
    if (fault == "null_logprob" && values.size() > 1) values.back() = nullptr;
    if (fault == "positive_logprob" && values.size() > 1) values.back() = 3.5;
    return Json{{"tokens", tokens}, {"token_logprobs", values}, {"top_logprobs", tops}};
  };
  const bool as_entries = ask.chat || options_.dialect == "llama";
  const auto logprobs_of = [&](const std::string& letters, bool first_is_null) {
    if (!as_entries) return arrays_of(letters, first_is_null);
    Json list = Json::array();
    for (const char c : letters) list.push_back(entry_of(c));
    return Json{{"content", list}};
  };

  const std::string finish = ask.ended ? "stop" : "length";
  Json usage = {{"prompt_tokens", ask.prompt_tokens},
                {"completion_tokens", listed.size() + (fault == "wrong_usage" ? 4 : 0)}};
  const auto to_ids = [](const std::string& letters) {
    Json list = Json::array();
    for (const char c : letters) list.push_back(static_cast<int>(c));
    return list;
  };
  if (body.value("stream", false)) {
    const std::string type = fault == "stream_as_json" ? "application/json" : "text/event-stream";
    put(socket, "HTTP/1.1 200 x\r\nContent-Type: " + type + "\r\nTransfer-Encoding: chunked\r\n\r\n");
    if (fault == "garbage_chunks") {
      put(socket, "zz\r\nnot a chunk");
      return false;
    }
    for (size_t i = 0; i < listed.size() || fault == "endless"; ++i) {
      const std::string letter = i < listed.size() ? listed.substr(i, 1) : "x";
      Json one = {{"index", fault == "wrong_index" ? 1 : 0}, {"finish_reason", nullptr}};
      const std::string part = i < text.size() || fault == "endless" ? letter : "";
      if (ask.chat) {
        one["delta"] = {{"content", part}};
      } else {
        one["text"] = part;
      }
      if (logprobs) one["logprobs"] = logprobs_of(letter, false);
      if (ids) one["token_ids"] = to_ids(letter);
      const bool foreign = i == 2;
      std::string id = "cmpl-" + ask.prompt;
      if (fault == "foreign_chunk" && foreign) id = "cmpl-of-others";
      if (fault == "an_id_each") id += std::to_string(i);
      const std::string of = fault == "other_model" || fault == "alias_listed" || fault == "alias_by_root" ||
                                     (fault == "chunk_of_other" && foreign)
                                 ? "other"
                                 : "letters";
      std::string event = "data: " + Json{{"id", id}, {"model", of}, {"choices", Json::array({one})}}.dump() + "\n\n";
      if (fault == "goes_on" && foreign)
        put_chunk(socket, "data: {\"choices\": [{\"text\": \"\", \"finish_reason\": \"length\"}]}\n\n");
      if (fault == "invalid_utf8") event.insert(event.find("index"), "\xff");
      if (fault == "garbage_lines") event = "hello\n\n";
      if (!put_chunk(socket, event)) return false;
      if (fault == "stalls_midway" && i == 2) stall();
      if (fault == "cuts" && i == 2) return false;
      if (fault == "error_midway" && i == 2) put_chunk(socket, "data: {\"error\": {\"message\": \"lost\"}}\n\n");
      sleep_seconds(options_.token_delay);
    }
    Json one = {{"index", 0}, {"finish_reason", finish}};
    if (ask.chat) {
      one["delta"] = Json::object();
    } else {
      one["text"] = "";
    }
    put_chunk(socket, "data: " + Json{{"choices", Json::array({one})}, {"usage", usage}}.dump() + "\n\n");
    if (fault != "no_done") put_chunk(socket, "data: [DONE]\n\n");
    return put(socket, "0\r\n\r\n");
  }
  if (ask.chat) {
    choice["message"] = {{"role", "assistant"}, {"content", text}};
  } else {
    choice["text"] = shown;
  }
  choice["finish_reason"] = fault == "no_finish" ? Json() : Json(finish);
  if (logprobs) {
    const bool with_prompt = echo && fault != "echo_without_logprobs";
    const std::string begin = fault == "double_bos" ? "\1\1" : "\1";
    choice["logprobs"] = logprobs_of((with_prompt ? begin + ask.prompt : "") + listed, with_prompt);
  }
  if (ids) {
    const std::string before = echo && fault != "echo_without_logprobs" ? "\1" + ask.prompt : "";
    choice["token_ids"] = to_ids(fault == "wrong_ids" ? std::string(listed.size(), '!') : before + listed);
    choice["prompt_token_ids"] = to_ids((fault == "double_bos" ? "\1\1" : "\1") + ask.prompt);
  }
  if (body.contains("prompt_logprobs") && options_.dialect == "vllm") {
    Json list = Json::array({nullptr});
    if (fault == "double_bos") list.push_back({{"1", {{"logprob", -1.0}, {"decoded_token", "<s>"}}}});
    for (const char c : ask.prompt) {
      list.push_back({{std::to_string(static_cast<int>(c)), {{"logprob", kLogprob}, {"decoded_token", spelled(c)}}}});
    }
    choice["prompt_logprobs"] = list;
  }
  const bool alias = fault == "other_model" || fault == "alias_listed" || fault == "alias_by_root";
  const std::string named = alias ? "other" : "letters";
  Json whole = {{"object", "text_completion"}, {"model", named}, {"choices", Json::array({choice})}, {"usage", usage}};
  if (fault == "two_choices") whole["choices"].push_back(choice);
  std::string json = whole.dump();
  if (fault == "invalid_utf8") json.insert(json.find("letters"), "\xff");
  if (fault == "nan_logprob") {
    for (size_t at = json.find("-0.25"); at != std::string::npos; at = json.find("-0.25")) json.replace(at, 5, "NaN");
  }
  if (fault == "echoes_key") json.insert(json.find("letters"), options_.key);
  if (fault == "cuts") {
    put(socket,
        "HTTP/1.1 200 x\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n" + json.substr(0, 40));
    return false;
  }
  if (fault == "huge") {
    put(socket, "HTTP/1.1 200 x\r\nContent-Type: application/json\r\nContent-Length: 50000000\r\n\r\n");
    while (put(socket, std::string(65536, ' '))) continue;
    return false;
  }
  return put_answer(socket, 200, json);
}

}  // namespace assay::engines::openai
