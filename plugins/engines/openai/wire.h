// One server and how to ask it: bodies, headers, answers. What is secret stays here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/status.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/openai/answer.h"
#include "plugins/engines/openai/http/client.h"
#include "plugins/engines/openai/options.h"
#include "plugins/engines/openai/stream.h"

namespace assay::engines::openai {

// How token ids are asked for.
enum class IdForm : uint8_t {
  kNone,
  kMembers,  // return_token_ids (vLLM), return_tokens (llama.cpp): beside the texts
  kSpelled,  // return_tokens_as_token_ids (vLLM): instead of the texts
};

struct Drawing {
  bool greedy = true;
  double temperature = 1;
  double top_p = 0;   // 0: not sent
  int32_t top_k = 0;  // 0: not sent
  std::optional<int64_t> seed = {};
};

// Which model answers may come from.
struct Answering {
  std::vector<std::string> names = {};  // what the model that was asked for is called there; empty: anything
  std::string seen = {};                // what the first answer called it; "": nothing yet
};

// What the body of a request says.
struct BodyInput {
  std::string model = {};
  Asked asked = {};
  std::vector<int32_t> prompt_ids = {};  // instead of the text; completions alone
  IdForm ids = IdForm::kNone;
  bool stream = false;
  Drawing drawing = {};
};

// Headers of every request: those of the options and the API key, which `key` gets ("": there is none). Reads the
// variable of the key: kInvalid where it is not set or empty, or the key has a line break.
Result<std::vector<std::string>> request_headers(const OpenaiOptions& options, std::string* key);

// Knows where the server is and what every request carries. For one thread.
class Wire {
 public:
  // `options` outlives it. Fails as request_headers does.
  static Result<std::unique_ptr<Wire>> open(const OpenaiOptions& options, std::string url, const Host& host);

  HttpClient& client() { return *client_; }
  const std::string& url() const { return url_; }

  HttpRequest get(const std::string& path) const;
  HttpRequest post(const std::string& path, std::string body) const;
  // To the endpoint of the API.
  HttpRequest ask(const BodyInput& input) const;

  // Starts, waits, and tries again as often as the options say. kCancelled once the host says so; else the failure of
  // the transport.
  Result<HttpAnswer> perform(const HttpRequest& request);

  // Pause before the next try of a request that had `tries`; nullopt: it has failed for good, or the pause would last
  // to the end of limits.ends.
  std::optional<double> pause_after(const HttpAnswer& answer, int32_t tries) const;

  // Waits so many seconds, or until the host says that the run is to stop.
  void nap(double seconds) const;

  // An answer to `ask`, checked; `stream` put it together, or is null. One line where it cannot be used; kInvalid for a
  // wrong answer, kInternal for HTTP 5xx, kInfra for failures of the transport and for a server that refuses work.
  // A model other than answering() allows, or other than the one that answered before, is kInvalid.
  Result<Checked> read(const HttpAnswer& answer, const StreamReader* stream, const Asked& asked);

  const Answering& answering() const { return answering_; }
  void set_answering(Answering answering) { answering_ = std::move(answering); }

  // Asks once, whole or streamed.
  Result<Checked> ask_and_read(const BodyInput& input);

  // The text without the API key. Before a text is cut: part of a key is not found.
  std::string clean(std::string text) const;
  // clean() for others; the wire outlives it.
  Cleaner cleaner() const {
    return [this](std::string text) { return clean(std::move(text)); };
  }
  Status clean(const Status& status) const;

 private:
  Wire(const OpenaiOptions& options, std::string url, const Host& host)
      : options_(options), url_(std::move(url)), host_(host) {}

  Status check_model(const std::string& said);
  bool has_left(double seconds) const;  // before limits.ends

  const OpenaiOptions& options_;
  const std::string url_;
  const Host host_;
  std::unique_ptr<HttpClient> client_;
  std::vector<std::string> headers_;
  std::string key_;  // secret
  Answering answering_;
};

}  // namespace assay::engines::openai
