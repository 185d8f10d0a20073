// What a server answered, whatever dialect it speaks, and whether it can be true.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::engines::openai {

// Takes what is secret out of a text. Comes before a text is cut short: part of a secret would not be found.
using Cleaner = std::function<std::string(std::string)>;
inline std::string as_it_is(std::string text) { return text; }  // a Cleaner where nothing is secret

struct TokenCandidate {
  std::string text;  // bytes; empty: not told
  int32_t id = -1;   // -1: not told
  double logprob = 0;
};

struct AnswerToken {
  std::string text;   // bytes, which need not be UTF-8 alone; empty: not told
  bool exact = true;  // `text` holds the token's bytes; false: what the server shows for them
  int32_t id = -1;    // -1: not told
  std::optional<double> logprob;
  std::vector<TokenCandidate> top;  // descending logprob
};

// There are tokens, and each was told with its id.
bool has_ids(const std::vector<AnswerToken>& tokens);

// One choice of one answer.
struct Answer {
  std::string text;
  std::string finish_reason;               // "": none
  std::vector<AnswerToken> tokens;         // as the answer lists them: with echo, the prompt's come first
  bool listed = false;                     // there is such a list, of logprobs or of ids
  bool logprobs = false;                   // there is a list of logprobs
  bool spelled = false;                    // it names tokens by their ids, instead of their texts
  std::vector<AnswerToken> prompt_tokens;  // of a list of the prompt's own; the first has no logprob
  bool prompt_listed = false;
  std::optional<int64_t> usage_prompt;  // tokens, as the server counts them
  std::optional<int64_t> usage_completion;
  int64_t cached = 0;       // prompt tokens that the server says it had computed before
  std::string fingerprint;  // system_fingerprint
  std::string model;        // that answered, as the server names it; "": not told
};

// The answer to a request that was not streamed, or what a stream was put together to. Members of OpenAI, and those
// that vLLM, SGLang and llama.cpp put beside them. kInvalid with one line: no UTF-8, no JSON, nested more than
// json::kDeepest deep, a name twice in one object, an error object, no or several choices, a list of a wrong type, NaN
// or null where a number belongs.
Result<Answer> parse_answer(std::string_view body, bool chat);

// What was asked for.
struct Asked {
  std::string prompt;
  size_t prompt_ids = 0;  // the prompt went as so many ids; 0: as text
  int32_t max_tokens = 0;
  int32_t top_n = 0;
  bool logprobs = false;  // of generated tokens
  bool echo = false;
  bool prompt_list = false;
  std::vector<std::string> stop_words;
  bool keep_end_token = false;
};

// An answer taken apart and found to be consistent with itself and with what was asked for.
struct Checked {
  std::string text;                        // generated
  std::vector<AnswerToken> tokens;         // generated; with logprobs, or ids, or both; empty: none were listed
  std::vector<AnswerToken> prompt_tokens;  // empty: none were listed
  std::optional<int64_t> prompt_count;     // as the server counts them
  std::optional<int64_t> count;            // generated tokens, from the list or from usage
  std::string finish_reason;
  int64_t cached = 0;
  std::string fingerprint;
  std::string model;         // that answered; "": not told
  bool dropped_end = false;  // a token that ended the text was left out
  size_t replaced = 0;       // U+FFFD in the text: bytes that were no UTF-8
};

// kInvalid with one line for whatever cannot be: echo that is none or lacks logprobs of the prompt, a list that does
// not read like the text, counts that contradict each other, more tokens than asked for, fewer with finish_reason
// length, no finish_reason, missing top-n, logprobs above 0.
Result<Checked> check_answer(Answer answer, const Asked& asked);

// A server that answers with an HTTP error, or in another language than JSON. One line; codes: kInvalid for 4xx,
// kInternal for 5xx. `body` may be anything; `clean` sees it before it is cut.
Status http_failure(const std::string& what, long code, std::string_view body, const Cleaner& clean);

// The message of an error object in a JSON text; "" where there is none, or where it lies too deep.
std::string error_of(std::string_view body);

}  // namespace assay::engines::openai
