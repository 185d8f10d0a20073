// What a server answers: taken apart, checked against what was asked for, or refused in one line.
#include "plugins/engines/openai/answer.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::engines::openai;
  if (size == 0) return 0;
  const std::string_view body = assay::fuzz::text_of(data, size).substr(1);
  const bool chat = (data[0] & 1) != 0;
  const std::string error = http_failure("f", (data[0] & 2) != 0 ? 404 : 500, body, as_it_is).message();
  assay::fuzz::require(!error.empty() && error.find('\n') == std::string::npos, "a failure is one line");
  error_of(body);
  auto answer = parse_answer(body, chat);
  if (!answer) {
    assay::fuzz::require_message(answer.status().message());
    return 0;
  }
  constexpr int32_t most = 4;
  Asked asked{.prompt = "a b", .prompt_ids = 0, .max_tokens = most, .top_n = (data[0] >> 4) & 3};
  asked.logprobs = (data[0] & 4) != 0;
  asked.echo = (data[0] & 8) != 0;
  asked.prompt_list = (data[0] & 64) != 0;
  const auto checked = check_answer(std::move(*answer), asked);
  if (!checked) {
    assay::fuzz::require_message(checked.status().message());
    return 0;
  }
  assay::fuzz::require(checked->tokens.size() <= static_cast<size_t>(most), "no more tokens than were asked for");
  for (const AnswerToken& token : checked->tokens) {
    assay::fuzz::require(!asked.logprobs || token.logprob.has_value(), "logprobs that were asked for are there");
  }
  return 0;
}
