#include "plugins/engines/openai/http/client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <utility>

namespace assay::engines::openai {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeaderBytes = size_t{256} << 10;  // of one answer

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

// Seconds or an HTTP date.
std::optional<double> retry_after_of(const std::string& value) {
  char* end = nullptr;
  const double seconds = std::strtod(value.c_str(), &end);
  if (end != value.c_str() && *end == '\0' && std::isfinite(seconds) && seconds >= 0) return seconds;
  const time_t date = ::curl_getdate(value.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max(0.0, std::difftime(date, std::time(nullptr)));
}

// The connection failed, not what came over it. Where something was sent already, the other side may have begun on it.
bool is_connection_failure(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
      return true;
    default:
      return false;
  }
}

struct Transfer {
  uint64_t id = 0;
  HttpRequest request;
  const HttpLimits* limits = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  char error[CURL_ERROR_SIZE] = {};
  HttpAnswer answer;
  Status refused;  // by us, while it ran
  size_t header_bytes = 0;
  size_t body_bytes = 0;
  bool any_byte = false;
  Clock::time_point begin = Clock::now();
  Clock::time_point last = begin;

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (easy != nullptr) ::curl_easy_cleanup(easy);
    ::curl_slist_free_all(headers);
  }

  std::string what() const { return fmt::format("{} {}", request.body.empty() ? "GET" : "POST", request.url); }

  size_t refuse(std::string why) {
    if (refused.ok()) refused = invalid(fmt::format("{}: {}", what(), why));
    return 0;  // ends the transfer
  }

  void saw_byte() {
    any_byte = true;
    last = Clock::now();
  }

  size_t take_header(std::string_view line) {
    saw_byte();
    header_bytes += line.size();
    if (header_bytes > kHeaderBytes) return refuse(fmt::format("more than {} bytes of headers", kHeaderBytes));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return line.size();
    const std::string name = lower(trimmed(line.substr(0, colon)));
    const std::string value(trimmed(line.substr(colon + 1)));
    if (name == "content-type") answer.content_type = lower(trimmed(value.substr(0, value.find(';'))));
    if (name == "server") answer.server = value;
    if (name == "retry-after") {
      answer.retry_after = retry_after_of(value);
      answer.retry_after_text = value;
    }
    if (name == "content-encoding" && lower(value) != "identity") {
      return refuse(fmt::format("content-encoding '{}' was not asked for; switch compression off in the server",
                                value.substr(0, 40)));
    }
    return line.size();
  }

  size_t take_body(std::string_view data) {
    saw_byte();
    body_bytes += data.size();
    if (body_bytes > limits->body_bytes) {
      return refuse(
          fmt::format("an answer of more than {} bytes; raise most_answer_mb if that is right", limits->body_bytes));
    }
    long code = 0;
    ::curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    if (!request.sink || code != 200) {
      answer.body += data;
      return data.size();
    }
    if (request.sink(data)) return data.size();
    answer.stopped = true;
    return 0;
  }
};

size_t on_header(char* data, size_t size, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->take_header({data, size * count});
}
size_t on_body(char* data, size_t size, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->take_body({data, size * count});
}

class CurlClient final : public HttpClient {
 public:
  CurlClient(HttpLimits limits, CURLM* multi) : limits_(std::move(limits)), multi_(multi) {}
  ~CurlClient() override {
    for (auto& [id, transfer] : transfers_) ::curl_multi_remove_handle(multi_, transfer->easy);
    transfers_.clear();
    for (CURL* easy : idle_) ::curl_easy_cleanup(easy);
    ::curl_multi_cleanup(multi_);
  }

  uint64_t start(HttpRequest request) override {
    auto transfer = std::make_unique<Transfer>();
    Transfer& t = *transfer;
    t.id = ++last_id_;
    t.request = std::move(request);
    t.limits = &limits_;
    if (idle_.empty()) {
      t.easy = ::curl_easy_init();
    } else {
      t.easy = idle_.back();
      idle_.pop_back();
    }
    if (t.easy == nullptr) {
      unstarted_.push_back({.id = t.id, .transport = infra(t.what() + ": libcurl has no memory for a transfer")});
      return t.id;
    }
    set_up(&t);
    ::curl_multi_add_handle(multi_, t.easy);
    const uint64_t id = t.id;
    transfers_.emplace(id, std::move(transfer));
    return id;
  }

  void drop(uint64_t id) override {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) return;
    ::curl_multi_remove_handle(multi_, found->second->easy);
    transfers_.erase(found);  // the connection is in an unknown state: its handle is not used again
  }

  std::vector<HttpAnswer> poll(double seconds) override {
    std::vector<HttpAnswer> ended = std::exchange(unstarted_, {});
    if (transfers_.empty()) return ended;
    int active = 0;
    ::curl_multi_perform(multi_, &active);
    gather(&ended);
    if (ended.empty() && seconds > 0) {
      seconds = std::clamp(seconds_between(Clock::now(), limits_.ends), 0.0, seconds);
      ::curl_multi_poll(multi_, nullptr, 0, std::max(1, static_cast<int>(seconds * 1000)), nullptr);
      ::curl_multi_perform(multi_, &active);
      gather(&ended);
    }
    end_late_ones(&ended);
    return ended;
  }

  size_t running() const override { return transfers_.size(); }

 private:
  void set_up(Transfer* t) const {
    CURL* easy = t->easy;
    ::curl_easy_setopt(easy, CURLOPT_URL, t->request.url.c_str());
    ::curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    ::curl_easy_setopt(easy, CURLOPT_PROXY, "");  // the environment's proxies are not used
    ::curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    ::curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    ::curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    ::curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    if (!limits_.ca_file.empty()) {
      ::curl_easy_setopt(easy, CURLOPT_CAINFO, limits_.ca_file.c_str());
      ::curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    }
    ::curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits_.connect_seconds * 1000));
    ::curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(limits_.whole_seconds * 1000));
    ::curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
    ::curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    ::curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    ::curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    ::curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    ::curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    for (const std::string& header : t->request.headers) {
      t->headers = ::curl_slist_append(t->headers, header.c_str());
    }
    if (!t->request.body.empty()) {
      t->headers = ::curl_slist_append(t->headers, "Content-Type: application/json");
      t->headers = ::curl_slist_append(t->headers, "Expect:");  // long prompts are sent at once
      ::curl_easy_setopt(easy, CURLOPT_POSTFIELDS, t->request.body.data());
      ::curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(t->request.body.size()));
    }
    ::curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
  }

  void gather(std::vector<HttpAnswer>* ended) {
    int left = 0;
    while (CURLMsg* message = ::curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      char* pointer = nullptr;
      ::curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &pointer);
      Transfer& t = *reinterpret_cast<Transfer*>(pointer);
      HttpAnswer& answer = t.answer;
      ::curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &answer.code);
      if (!t.refused.ok()) {
        answer.transport = t.refused;
      } else if (code != CURLE_OK && !answer.stopped) {
        answer.before_any_byte = !t.any_byte && is_connection_failure(code);
        answer.transport = failure_of(t, code);
      }
      ended->push_back(take(&t, code == CURLE_OK));
    }
  }

  Status failure_of(const Transfer& t, CURLcode code) const {
    const std::string_view text = t.error[0] != '\0' ? t.error : ::curl_easy_strerror(code);
    if (code == CURLE_OPERATION_TIMEDOUT) {
      return infra(fmt::format(
          "{}: {} after {:.1f} s, of at most {:g} s to connect (connect_seconds) and {:g} s in all (request_seconds)",
          t.what(), text, seconds_between(t.begin, Clock::now()), limits_.connect_seconds, limits_.whole_seconds));
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
      return invalid(fmt::format("{}: the server's certificate is not trusted: {}; name its authority in ca_file",
                                 t.what(), text));
    }
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
      return invalid(fmt::format("{}: {}; correct url", t.what(), text));
    }
    return infra(fmt::format("{}: {}{}", t.what(), text,
                             t.any_byte ? fmt::format(" ({} bytes of the answer had come)", t.body_bytes) : ""));
  }

  // Time limits that libcurl has not.
  void end_late_ones(std::vector<HttpAnswer>* ended) {
    const Clock::time_point now = Clock::now();
    std::vector<Transfer*> late;
    for (auto& [id, transfer] : transfers_) {
      Transfer& t = *transfer;
      const double most = t.any_byte ? limits_.between_seconds : limits_.first_byte_seconds;
      const double waited = seconds_between(t.last, now);
      if (waited > most) {
        t.answer.transport =
            infra(fmt::format("{}: {} for {:.1f} s, at most {:g} s are given ({})", t.what(),
                              t.any_byte ? fmt::format("silent after {} bytes", t.body_bytes) : "no byte of an answer",
                              waited, most, t.any_byte ? "between_seconds" : "first_byte_seconds"));
      } else if (now >= limits_.ends) {
        t.answer.transport =
            infra(fmt::format("{}: {} {:.1f} s{}{}", t.what(),
                              t.any_byte ? fmt::format("{} bytes had come and no end of them in", t.body_bytes)
                                         : "no byte of an answer for",
                              seconds_between(t.begin, now), limits_.ends_text.empty() ? "" : "; ", limits_.ends_text));
      } else {
        continue;
      }
      late.push_back(&t);
    }
    for (Transfer* t : late) ended->push_back(take(t, false));
  }

  HttpAnswer take(Transfer* t, bool reuse) {
    HttpAnswer answer = std::move(t->answer);
    answer.id = t->id;
    ::curl_multi_remove_handle(multi_, t->easy);
    if (reuse) {
      ::curl_easy_reset(t->easy);  // forgets what it was told of this transfer
      idle_.push_back(std::exchange(t->easy, nullptr));
    }
    transfers_.erase(answer.id);
    return answer;
  }

  const HttpLimits limits_;
  CURLM* multi_;
  std::map<uint64_t, std::unique_ptr<Transfer>> transfers_;
  std::vector<CURL*> idle_;
  std::vector<HttpAnswer> unstarted_;
  uint64_t last_id_ = 0;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::open(HttpLimits limits) {
  static const CURLcode started = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) return infra(fmt::format("libcurl does not start: {}", ::curl_easy_strerror(started)));
  if (!limits.ca_file.empty() && !std::filesystem::is_regular_file(limits.ca_file)) {
    return not_found(fmt::format("ca_file {}: there is no such file; name a PEM file of certificates", limits.ca_file));
  }
  CURLM* multi = ::curl_multi_init();
  if (multi == nullptr) return infra("libcurl has no memory for transfers");
  return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(std::move(limits), multi));
}

}  // namespace assay::engines::openai
