#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/golden/text.h"
#include "plugins/engines/openai/answer.h"

namespace assay::engines::openai {
namespace {

constexpr double kAboveZero = 1e-3;  // what rounding may put on top of a logprob of 0
constexpr std::string_view kReplacement = "\xef\xbf\xbd";
using Tokens = std::vector<AnswerToken>;

std::string joined(const Tokens& tokens) {
  std::string text;
  for (const AnswerToken& token : tokens) text += token.text;
  return text;
}

bool all_exact(const Tokens& tokens) {
  return std::all_of(tokens.begin(), tokens.end(), [](const AnswerToken& token) { return token.exact; });
}

// One answer on its way to be taken apart.
class Check {
 public:
  Check(Answer answer, const Asked& asked) : answer_(std::move(answer)), asked_(asked) {}

  Result<Checked> run() {
    for (auto step : {&Check::ending, &Check::echo, &Check::prompt_list, &Check::logprobs, &Check::counts,
                      &Check::reading, &Check::finish}) {
      if (Status status = (this->*step)(); !status.ok()) return status;
    }
    return std::move(checked_);
  }

 private:
  Status ending() {
    const std::string& reason = answer_.finish_reason;
    checked_.finish_reason = reason;
    checked_.cached = answer_.cached;
    checked_.fingerprint = answer_.fingerprint;
    checked_.model = answer_.model;
    if (reason == "stop" || reason == "length") return {};
    if (reason.empty()) return invalid("the answer has no finish_reason: it is not complete");
    return invalid(fmt::format("finish_reason is {}, expected stop or length", text::quoted(reason, 40)));
  }

  // The prompt's part of text and list.
  Status echo() {
    checked_.text = std::move(answer_.text);
    checked_.prompt_count = answer_.usage_prompt;
    if (!asked_.echo) return {};
    const std::string& prompt = asked_.prompt;
    if (checked_.text.rfind(prompt, 0) != 0) {
      return invalid(
          fmt::format("echo was asked for, but the text begins {}, not with the prompt: the server ignores "
                      "echo",
                      text::quoted(checked_.text, 40)));
    }
    checked_.text.erase(0, prompt.size());
    Tokens& all = answer_.tokens;
    size_t count = 0;
    if (answer_.usage_prompt) {
      count = static_cast<size_t>(*answer_.usage_prompt);
    } else if (answer_.spelled) {
      return invalid("echo gave tokens without their texts and without usage: nothing tells which are the prompt's");
    } else {
      for (size_t bytes = 0; count < all.size() && bytes < prompt.size(); ++count) bytes += all[count].text.size();
    }
    const bool has_first = !all.empty() && !all[0].logprob.has_value();
    if (count == 0 || all.size() < count || !has_first) {
      return invalid(
          fmt::format("echo gave the prompt's text without its logprobs: {} tokens are listed for {} of the "
                      "prompt, the first {} a logprob",
                      all.size(), count, has_first ? "without" : "with"));
    }
    const auto middle = all.begin() + static_cast<ptrdiff_t>(count);
    checked_.prompt_tokens.assign(std::make_move_iterator(all.begin()), std::make_move_iterator(middle));
    all.erase(all.begin(), middle);
    if (all_exact(checked_.prompt_tokens) && !joined(checked_.prompt_tokens).ends_with(prompt)) {
      return invalid(fmt::format("the first {} echoed tokens read {}, which is not the prompt", count,
                                 text::quoted(joined(checked_.prompt_tokens), 60)));
    }
    return check_prompt_logprobs();
  }

  Status prompt_list() {
    if (asked_.echo) return {};
    checked_.prompt_tokens = std::move(answer_.prompt_tokens);
    if (!asked_.prompt_list) return {};
    if (!answer_.prompt_listed || checked_.prompt_tokens.empty()) {
      return invalid("prompt_logprobs was asked for, but no list came: the server ignores it");
    }
    return check_prompt_logprobs();
  }

  Status check_prompt_logprobs() const {
    const Tokens& tokens = checked_.prompt_tokens;
    for (size_t i = 1; i < tokens.size(); ++i) {
      if (!tokens[i].logprob) return invalid(fmt::format("prompt token {} has no logprob", i));
      if (*tokens[i].logprob > kAboveZero) {
        return invalid(fmt::format("logprob of prompt token {} is {}, expected at most 0", i, *tokens[i].logprob));
      }
    }
    return {};
  }

  Status logprobs() {
    if (asked_.logprobs && !answer_.logprobs) return invalid("logprobs were asked for, but none came");
    for (size_t i = 0; i < answer_.tokens.size(); ++i) {
      AnswerToken& token = answer_.tokens[i];
      if (!token.logprob) {
        if (answer_.logprobs) return invalid(fmt::format("generated token {} has no logprob", i));
        continue;
      }
      if (*token.logprob > kAboveZero) {
        return invalid(fmt::format("logprob of generated token {} is {}, expected at most 0", i, *token.logprob));
      }
      if (asked_.top_n > 0 && token.top.empty()) {
        return invalid(fmt::format("top {} logprobs were asked for, but generated token {} has none", asked_.top_n, i));
      }
      trim(&token);
    }
    for (AnswerToken& token : checked_.prompt_tokens) trim(&token);
    return {};
  }

  void trim(AnswerToken* token) const {
    if (token->top.size() > static_cast<size_t>(asked_.top_n)) token->top.resize(static_cast<size_t>(asked_.top_n));
  }

  Status counts() {
    const std::optional<int64_t> usage = answer_.usage_completion;
    const auto listed = static_cast<int64_t>(answer_.tokens.size());
    const bool stopped = checked_.finish_reason == "stop";
    int64_t unlisted = stopped ? 1 : 0;  // what ended the text may be counted without being listed
    for (const std::string& word : asked_.stop_words) {
      if (stopped) unlisted = std::max(unlisted, static_cast<int64_t>(word.size()));
    }
    if (answer_.listed && usage && (*usage > listed + unlisted || *usage < listed - (stopped ? 1 : 0))) {
      return invalid(fmt::format("usage says {} generated tokens, {} are listed", *usage, listed));
    }
    if (answer_.usage_prompt && !checked_.prompt_tokens.empty() &&
        *answer_.usage_prompt != static_cast<int64_t>(checked_.prompt_tokens.size())) {
      return invalid(fmt::format("usage says {} prompt tokens, {} are listed", *answer_.usage_prompt,
                                 checked_.prompt_tokens.size()));
    }
    if (answer_.usage_prompt && asked_.prompt_ids > 0 &&
        *answer_.usage_prompt != static_cast<int64_t>(asked_.prompt_ids)) {
      return invalid(
          fmt::format("a prompt of {} ids was taken for {} tokens", asked_.prompt_ids, *answer_.usage_prompt));
    }
    if (answer_.listed) {
      checked_.count = listed;
    } else {
      checked_.count = usage;
    }
    if (!checked_.count) return {};
    if (*checked_.count > asked_.max_tokens) {
      return invalid(
          fmt::format("{} tokens were generated, asked for were at most {}", *checked_.count, asked_.max_tokens));
    }
    if (!stopped && *checked_.count < asked_.max_tokens) {
      return invalid(
          fmt::format("truncated: {} of {} tokens, finish_reason length", *checked_.count, asked_.max_tokens));
    }
    return {};
  }

  // The list against the text.
  Status reading() {
    const std::string& text = checked_.text;
    for (size_t at = text.find(kReplacement); at != std::string::npos; at = text.find(kReplacement, at + 1)) {
      ++checked_.replaced;
    }
    Tokens& tokens = answer_.tokens;
    if (answer_.spelled) {
      drop_untold_end();
      return {};
    }
    if (tokens.empty() || !all_exact(tokens) || checked_.replaced > 0) return {};
    const std::string all = joined(tokens);
    // The token that a stop word cut may be left out of the list, with what of its text stands before the word.
    const bool at_word = checked_.finish_reason == "stop" && !asked_.stop_words.empty();
    if (at_word && text.rfind(all, 0) == 0) return {};
    if (all.rfind(text, 0) != 0) return differs(all);
    const std::string_view rest = std::string_view(all).substr(text.size());
    if (checked_.finish_reason == "length") return rest.empty() || is_part_of_character(rest) ? Status() : differs(all);
    const bool at_stop_word =
        std::any_of(asked_.stop_words.begin(), asked_.stop_words.end(),
                    [rest](const std::string& word) { return !word.empty() && rest.rfind(word, 0) == 0; });
    if (!rest.empty() && !at_stop_word && tokens.back().text != rest && !is_part_of_character(rest))
      return differs(all);
    const size_t kept = tokens_inside(text.size());
    if (kept == tokens.size()) return {};
    checked_.dropped_end = !asked_.keep_end_token;
    if (checked_.dropped_end) tokens.resize(kept);
    return {};
  }

  // Tokens without texts cannot be held against the text. One that ended it comes last, if it is listed at all; where
  // stop words may have ended it, nothing tells.
  void drop_untold_end() {
    const auto listed = static_cast<int64_t>(answer_.tokens.size());
    const bool unlisted = answer_.usage_completion.value_or(listed) > listed;
    const bool ended = checked_.finish_reason == "stop" && asked_.stop_words.empty() && listed > 0 && !unlisted;
    checked_.dropped_end = ended && !asked_.keep_end_token;
    if (checked_.dropped_end) answer_.tokens.pop_back();
  }

  // Leading tokens that lie within so many bytes; a last one without any text is the end itself.
  size_t tokens_inside(size_t bytes) const {
    size_t count = 0;
    for (size_t end = 0; count < answer_.tokens.size(); ++count) {
      end += answer_.tokens[count].text.size();
      if (end > bytes) break;
    }
    while (count > 0 && answer_.tokens[count - 1].text.empty()) --count;
    return count;
  }

  // Bytes that a server holds back because more would have to follow.
  static bool is_part_of_character(std::string_view rest) {
    return rest.size() <= 3 && std::all_of(rest.begin(), rest.end(), [](char c) { return (c & 0x80) != 0; });
  }

  Status differs(const std::string& all) const {
    const size_t at = text::common_prefix(all, checked_.text);
    return invalid(fmt::format("the listed tokens do not read like the text, from byte {} on: tokens {}, text {}", at,
                               text::around(all, at, 10, 20), text::around(checked_.text, at, 10, 20)));
  }

  Status finish() {
    if (answer_.listed) {
      checked_.tokens = std::move(answer_.tokens);
      checked_.count = static_cast<int64_t>(checked_.tokens.size());
    }
    if (checked_.text.empty() && checked_.finish_reason == "length" && asked_.max_tokens > 0 &&
        checked_.count.value_or(0) == 0) {
      return invalid("the text is empty, with finish_reason length");
    }
    return {};
  }

  Answer answer_;
  const Asked& asked_;
  Checked checked_;
};

}  // namespace

Result<Checked> check_answer(Answer answer, const Asked& asked) { return Check(std::move(answer), asked).run(); }

}  // namespace assay::engines::openai
