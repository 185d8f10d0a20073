// What engine openai costs over a bare loop of libcurl: the same requests to the same server, in turns.
// openai_overhead_bench [REQUESTS [ROUNDS]]. One line a server: medians of a request in microseconds.
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/engines/openai/testdata/driver.h"
#include "plugins/engines/openai/testdata/test_server.h"

namespace assay::engines::openai {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kTokens = 32;
constexpr const char* kPrompt = "the quick brown fox";

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "openai_overhead_bench: %s\n", why.c_str());
  std::exit(1);
}

size_t keep(char* data, size_t size, size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

// One handle, one kept connection, the body that the engine sends.
class BareLoop {
 public:
  BareLoop(const std::string& url, std::string body) : url_(url + "/v1/completions"), body_(std::move(body)) {
    ::curl_easy_setopt(easy_, CURLOPT_URL, url_.c_str());
    ::curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, body_.c_str());
    ::curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
    ::curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, keep);
    ::curl_easy_setopt(easy_, CURLOPT_WRITEDATA, &answer_);
  }
  ~BareLoop() {
    ::curl_easy_cleanup(easy_);
    ::curl_slist_free_all(headers_);
  }
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  double seconds() {
    answer_.clear();
    const Clock::time_point begin = Clock::now();
    if (::curl_easy_perform(easy_) != CURLE_OK || answer_.empty()) fail("the bare loop got no answer");
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  const std::string url_;
  const std::string body_;
  std::string answer_;
  CURL* easy_ = ::curl_easy_init();
  curl_slist* headers_ = ::curl_slist_append(nullptr, "Content-Type: application/json");
};

// submit() to the event that ends the request.
double seconds_of(Driver* driver, uint64_t id) {
  const Clock::time_point begin = Clock::now();
  if (Status sent = driver->submit(id, kPrompt, kTokens); !sent.ok()) fail(sent.message());
  const Ending ending = driver->drain();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (ending.finished.count(id) == 0) fail(ending.failed.empty() ? "no end" : ending.failed.begin()->second.message());
  return seconds;
}

void compare(const std::string& name, const TestServerOptions& how, bool stream, int requests, int rounds) {
  const TestServer server(how);
  Driver driver;
  const nlohmann::json options = {{"url", server.url()}, {"stream", stream}, {"prompt_logprobs", "off"}};
  if (Status opened = driver.open(options); !opened.ok()) fail(opened.message());
  nlohmann::json body = {{"model", "letters"},   {"prompt", kPrompt}, {"max_tokens", kTokens},
                         {"temperature", 0.0},   {"logprobs", 1},     {"return_token_ids", true},
                         {"return_tokens", true}};
  if (stream) body.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  BareLoop bare(server.url(), body.dump());
  std::vector<double> engine_times;
  std::vector<double> bare_times;
  uint64_t id = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < requests; ++i) {
      bare_times.push_back(bare.seconds());
      engine_times.push_back(seconds_of(&driver, id++));
    }
  }
  const double engine = median(engine_times) * 1e6;
  const double base = median(bare_times) * 1e6;
  fmt::print("{:<34} bare {:9.1f} us, engine {:9.1f} us, +{:6.1f} us, {:+.2f} %\n", name, base, engine, engine - base,
             (engine / base - 1) * 100);
}

int run(int requests, int rounds) {
  TestServerOptions slow{.dialect = "vllm", .delay = 0.02};
  TestServerOptions streaming{.dialect = "vllm", .token_delay = 0.001};
  compare("20 ms, in one piece", slow, false, requests, rounds);
  compare("1 ms a token, streamed", streaming, true, requests, rounds);
  compare("at once, in one piece", {.dialect = "vllm"}, false, requests * 5, rounds);
  compare("at once, streamed", {.dialect = "vllm"}, true, requests * 5, rounds);
  return 0;
}

}  // namespace
}  // namespace assay::engines::openai

int main(int count, char** words) {
  return assay::engines::openai::run(count > 1 ? std::atoi(words[1]) : 50, count > 2 ? std::atoi(words[2]) : 3);
}
