// A stream of server-sent events put together to the answer that would have come in one piece.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "assay/status.h"
#include "plugins/engines/openai/answer.h"

namespace assay::engines::openai {

// For one thread.
class StreamReader {
 public:
  // A stream of more than `most_tokens` listed tokens or chunks of text ends with a failure; < 0: no limit. `clean`
  // sees what a message shows of the stream before it is cut.
  StreamReader(bool chat, int64_t most_tokens, Cleaner clean);
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  // Takes what came. How many tokens that brought: entries of lists, else chunks with text. kInvalid with one line: an
  // event that is no JSON, an error event, another choice, a chunk of another answer (id) or another model, tokens
  // behind a finish_reason or another one, too many tokens, text behind [DONE]. After a failure nothing is taken any
  // more.
  Result<size_t> take(std::string_view bytes);

  // The answer as one JSON text for parse_answer. kInvalid where the stream ended without [DONE].
  Result<std::string> body() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::engines::openai
