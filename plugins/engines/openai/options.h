// What engine openai is told.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "plugins/engines/common/case_time.h"
#include "plugins/engines/openai/http/client.h"

namespace assay::engines::openai {

// A server that the engine starts itself.
struct ServerOptions {
  std::vector<std::string> command = {};  // words, {host} and {port} in them replaced; empty: none is started
  std::map<std::string, std::string> environment = {};  // over that of the worker
  std::string folder = {};                              // working folder; empty: the worker's
  std::string ready = {};                               // path that answers 200 once it is ready; empty: found out
  double ready_seconds = 300;
  double stop_seconds = 5;  // from SIGTERM to SIGKILL at the end
  std::string log = {};     // file; empty: server.log beside engine.log
};

enum class PromptLogprobs : uint8_t { kFindOut, kEcho, kList, kOff };

struct OpenaiOptions {
  std::string url = {};    // without a slash at the end, and without the "/v1" that the API begins with
  std::string model = {};  // empty: the only one that the server has
  bool chat = false;
  bool stream = true;
  PromptLogprobs prompt_logprobs = PromptLogprobs::kFindOut;
  std::vector<std::string> stop_words = {};
  bool keep_end_token = false;  // the token that ended the text, which is not part of it, stays among the tokens
  std::string messages = "[]";  // JSON list, before the prompt's own message
  std::string extra_body = "{}";
  std::map<std::string, std::string> headers = {};
  std::string api_key_variable = {};  // environment variable; empty: no key
  std::string api_key_header = "Authorization: Bearer ";
  std::string tokenizer = {};  // JSON, assay::model::TokenizerSpec; empty: ids come from the server or not at all
  std::string probe_prompt = "The quick brown fox jumps over the lazy dog. The quick brown fox";

  int32_t concurrency = 1;         // requests at the server at once
  std::string order = "as_given";  // or reversed, shuffled
  double requests_per_second = 0;  // mean of a Poisson process of arrivals; 0: all at once
  int64_t seed = 1234;             // of arrivals and of shuffling

  int32_t retries = 2;
  double backoff_seconds = 0.25;         // before the first retry; twice as long before each further one
  double most_retry_after_seconds = 60;  // a server that wants a longer pause fails the request
  HttpLimits limits = {};                // `ends` is that of case_time
  CaseTime case_time = {};               // none where it was not given
  ServerOptions server = {};
};

// JSON schema of the options.
extern const char* const kOpenaiOptionsSchema;

// kInvalid naming the member, its value and what is expected.
Result<OpenaiOptions> parse_openai_options(std::string_view json);

}  // namespace assay::engines::openai
