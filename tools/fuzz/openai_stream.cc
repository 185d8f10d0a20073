// A stream of server-sent events: the same answer however the network cuts it.
#include "plugins/engines/openai/answer.h"
#include "plugins/engines/openai/stream.h"
#include "tools/fuzz/fuzz.h"

namespace {

constexpr int64_t kMostTokens = 64;

std::string outcome(std::string_view bytes, bool chat, size_t piece) {
  assay::engines::openai::StreamReader reader(chat, kMostTokens, assay::engines::openai::as_it_is);
  while (!bytes.empty()) {
    const std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    const auto taken = reader.take(next);
    if (taken) continue;
    assay::fuzz::require_message(taken.status().message());
    return "failed: " + taken.status().message();
  }
  const auto body = reader.body();
  return body ? *body : "failed: " + body.status().message();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = assay::fuzz::text_of(data, size).substr(1);
  const bool chat = (data[0] & 1) != 0;
  const std::string whole = outcome(bytes, chat, bytes.size() + 1);
  assay::fuzz::require(whole == outcome(bytes, chat, 1 + (data[0] >> 1)), "the pieces do not matter");
  if (whole.starts_with("failed: ")) return 0;
  const auto answer = assay::engines::openai::parse_answer(whole, chat);
  if (!answer) assay::fuzz::require_message(answer.status().message());
  return 0;
}
