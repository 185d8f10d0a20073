#include "plugins/engines/openai/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "assay/plugin_abi.h"
#include "core/golden/json_text.h"
#include "core/golden/text.h"

namespace assay::engines::openai {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kTokens = 12;       // of a probe
constexpr int32_t kDrawnTokens = 16;  // of one that samples
constexpr int64_t kSeed = 20240229;
constexpr size_t kServerName = 100;  // bytes of what a server calls itself

// A failure after which asking on is of no use.
bool is_final(const Status& status) {
  return status.code() == StatusCode::kInfra || status.code() == StatusCode::kCancelled;
}

bool same_logprobs(const Checked& a, const Checked& b) {
  return std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end(),
                    [](const AnswerToken& x, const AnswerToken& y) { return x.logprob == y.logprob; });
}

bool same_ids(const Checked& a, const Checked& b) {
  return std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end(),
                    [](const AnswerToken& x, const AnswerToken& y) { return x.id == y.id; });
}

// Null where it is no JSON, or too deep to be copied.
Json parsed_reply(const std::string& body) {
  return json::deeper_than(body, json::kDeepest) ? Json() : Json::parse(body, nullptr, false);
}

// An entry of /v1/models.
struct Listed {
  std::string id;
  std::string root;                  // what is loaded, which several ids may name; "": not told
  std::vector<std::string> aliases;  // further names
};

std::vector<Listed> listed_models(const std::string& body) {
  std::vector<Listed> models;
  const Json json = parsed_reply(body);
  const Json data = json.is_object() ? json.value("data", Json()) : Json();
  for (const Json& one : data.is_array() ? data : Json::array()) {
    if (!one.is_object() || !one.contains("id") || !one["id"].is_string()) continue;
    Listed listed{.id = one["id"].get<std::string>(), .root = "", .aliases = {}};
    if (one.contains("root") && one["root"].is_string()) listed.root = one["root"].get<std::string>();
    for (const Json& alias : one.contains("aliases") ? one["aliases"] : Json::array()) {
      if (alias.is_string()) listed.aliases.push_back(alias.get<std::string>());
    }
    models.push_back(std::move(listed));
  }
  return models;
}

// The model and its aliases: those listed with it, and ids with the same root.
std::vector<std::string> names_of(const std::string& model, const std::vector<Listed>& models) {
  std::vector<std::string> names = {model};
  const auto asked =
      std::find_if(models.begin(), models.end(), [&model](const Listed& one) { return one.id == model; });
  if (asked == models.end()) return names;
  names.insert(names.end(), asked->aliases.begin(), asked->aliases.end());
  for (const Listed& one : models) {
    if (!asked->root.empty() && one.root == asked->root && one.id != model) names.push_back(one.id);
  }
  return names;
}

class Prober {
 public:
  Prober(Wire& wire, const OpenaiOptions& options) : wire_(wire), options_(options) {}

  Result<Found> run() {
    for (auto step : {&Prober::model, &Prober::plain, &Prober::again, &Prober::top_n, &Prober::prompt_logprobs,
                      &Prober::beginning, &Prober::seed, &Prober::stop, &Prober::streaming}) {
      if (Status status = (this->*step)(); !status.ok()) return status;
    }
    found_.capabilities = ASSAY_CAP_TEXT | ASSAY_CAP_BATCH;
    const auto add = [this](bool has, uint64_t bit) { found_.capabilities |= has ? bit : 0; };
    add(found_.logprobs, ASSAY_CAP_LOGPROBS);
    add(found_.most_top_n > 0, ASSAY_CAP_TOP_N);
    add(found_.prompt != PromptLogprobs::kOff, ASSAY_CAP_PROMPT_LOGPROBS);
    add(found_.ids != IdForm::kNone, ASSAY_CAP_TOKENS);
    add(found_.seed, ASSAY_CAP_SEED);
    found_.answering = wire_.answering();
    if (const std::string& seen = found_.answering.seen; !seen.empty() && seen != found_.model) {
      fact("model", fmt::format("{}, which answers as {}", found_.model, seen));
    }
    return std::move(found_);
  }

 private:
  void fact(const char* name, std::string line) { found_.facts[name] = wire_.clean(std::move(line)); }

  BodyInput input(int32_t tokens) const {
    BodyInput made;
    made.model = found_.model;
    made.asked.prompt = options_.probe_prompt;
    made.asked.max_tokens = tokens;
    made.asked.logprobs = found_.logprobs;
    made.asked.keep_end_token = true;
    made.ids = found_.ids;
    return made;
  }

  Status model() {
    const Result<HttpAnswer> answer = wire_.perform(wire_.get("/v1/models"));
    if (!answer) return answer.status();
    if (!answer->server.empty()) fact("server", wire_.clean(answer->server).substr(0, kServerName));
    found_.model = options_.model;
    const std::vector<Listed> models = listed_models(answer->body);
    std::vector<std::string> names;
    for (const Listed& one : models) names.push_back(one.id);
    if (answer->code == 401 || answer->code == 403 || answer->code >= 500) {
      return wire_.clean(
          http_failure("GET " + wire_.url() + "/v1/models", answer->code, answer->body, wire_.cleaner()));
    }
    const bool listed = answer->code == 200 && !names.empty();
    std::string all;
    for (size_t i = 0; i < std::min<size_t>(names.size(), 10); ++i) all += (i == 0 ? "" : ", ") + names[i];
    if (found_.model.empty() && names.size() != 1) {
      return wire_.clean(invalid(fmt::format(
          "GET {}/v1/models: {} models ({}), expected one; name yours in model", wire_.url(), names.size(),
          listed ? all : fmt::format("HTTP {} {}", answer->code, text::quoted(wire_.clean(answer->body), 60)))));
    }
    if (found_.model.empty()) found_.model = names[0];
    if (listed && std::find(names.begin(), names.end(), found_.model) == names.end()) {
      return wire_.clean(
          not_found(fmt::format("model {} is not at {}, which has {}; correct model", found_.model, wire_.url(), all)));
    }
    fact("model", found_.model);
    if (!options_.model.empty()) wire_.set_answering({.names = names_of(options_.model, models), .seen = ""});
    return {};
  }

  // The richest form of a request that the server answers rightly; why it is not a richer one.
  Status plain() {
    struct Rung {
      bool logprobs;
      IdForm ids;
    };
    std::string why_no_logprobs;
    std::string why_no_ids;
    Status last;
    for (const Rung rung : {Rung{true, IdForm::kMembers}, Rung{true, IdForm::kNone}, Rung{false, IdForm::kMembers},
                            Rung{false, IdForm::kNone}}) {
      BodyInput asked = input(kTokens);
      asked.asked.logprobs = rung.logprobs;
      asked.ids = rung.ids;
      Result<Checked> answer = wire_.ask_and_read(asked);
      if (!answer) {
        last = answer.status();
        if (is_final(last)) return last;
        if (rung.logprobs && rung.ids == IdForm::kNone) why_no_logprobs = last.message();
        if (rung.ids == IdForm::kMembers) why_no_ids = last.message();
        continue;
      }
      first_ = *std::move(answer);
      found_.logprobs = rung.logprobs && !first_.tokens.empty();
      if (has_ids(first_.tokens)) found_.ids = rung.ids == IdForm::kNone ? IdForm::kMembers : rung.ids;
      if (rung.logprobs && first_.tokens.empty()) why_no_logprobs = "the text of the probe is empty";
      last = Status();
      break;
    }
    if (!last.ok()) return last;
    if (!first_.fingerprint.empty()) fact("fingerprint", first_.fingerprint);
    fact("logprobs", found_.logprobs ? fmt::format("yes: one for each of {} tokens", first_.tokens.size())
                                     : "asked for them: " + why_no_logprobs);
    return token_ids(why_no_ids);
  }

  Status token_ids(std::string why) {
    if (found_.ids == IdForm::kNone && found_.logprobs && !options_.chat) {
      BodyInput asked = input(kTokens);
      asked.ids = IdForm::kSpelled;
      const Result<Checked> answer = wire_.ask_and_read(asked);
      if (!answer && is_final(answer.status())) return answer.status();
      if (answer.ok() && has_ids(answer->tokens) && answer->text == first_.text) found_.ids = IdForm::kSpelled;
    }
    if (found_.ids == IdForm::kNone) {
      fact("tokens", why.empty() ? "no answer to a probe had token ids" : "asked for ids: " + why);
      return {};
    }
    if (found_.ids == IdForm::kSpelled) {
      fact("tokens", "yes: ids, instead of the texts of tokens");
      return {};
    }
    std::vector<int32_t> ids;
    for (const AnswerToken& token : first_.tokens) ids.push_back(token.id);
    const Json body = {{"model", found_.model}, {"tokens", ids}};
    const Result<HttpAnswer> answer = wire_.perform(wire_.post("/detokenize", body.dump()));
    if (!answer && is_final(answer.status())) return answer.status();
    const Json json = answer.ok() && answer->code == 200 ? parsed_reply(answer->body) : Json();
    for (const char* name : {"content", "prompt", "text"}) {
      if (!json.is_object() || !json.contains(name) || !json[name].is_string()) continue;
      const std::string text = json[name].get<std::string>();
      if (text.find(first_.text) == std::string::npos) {
        found_.ids = IdForm::kNone;
        fact("tokens", fmt::format("the ids that came read {} by /detokenize, the text is {}",
                                   text::quoted(wire_.clean(text), 60), text::quoted(first_.text, 60)));
        return {};
      }
      fact("tokens", "yes: ids, which /detokenize reads as the text");
      return {};
    }
    fact("tokens", "yes: ids (there is no /detokenize to check them with)");
    return {};
  }

  Status again() {
    const Result<Checked> answer = wire_.ask_and_read(input(kTokens));
    if (!answer) return answer.status();
    const bool text = answer->text == first_.text;
    fact("greedy", !text ? fmt::format("two equal requests gave {} and {}", text::quoted(first_.text, 60),
                                       text::quoted(answer->text, 60))
                   : same_logprobs(*answer, first_) ? "two equal requests gave the same"
                                                    : "two equal requests gave the same text with other logprobs");
    return {};
  }

  Status top_n() {
    if (!found_.logprobs) {
      fact("top_n", "there are no logprobs");
      return {};
    }
    std::string why;
    for (const int32_t n : {20, 5, 1}) {
      BodyInput asked = input(kTokens);
      asked.asked.top_n = n;
      const Result<Checked> answer = wire_.ask_and_read(asked);
      if (!answer) {
        if (is_final(answer.status())) return answer.status();
        why = answer.status().message();
        continue;
      }
      size_t most = static_cast<size_t>(n);
      for (const AnswerToken& token : answer->tokens) {
        most = std::min(most, token.top.size());
        if (token.top.empty() || !token.logprob) continue;
        if (answer->text == first_.text && token.top[0].logprob < *token.logprob - 1e-4) {
          fact("top_n", fmt::format("the best of a token's list has logprob {}, the greedy token itself {}",
                                    token.top[0].logprob, *token.logprob));
          return {};
        }
      }
      found_.most_top_n = static_cast<int32_t>(most);
      fact("top_n", fmt::format("yes: {} of {} asked for", most, n));
      return {};
    }
    fact("top_n", "asked for them: " + why);
    return {};
  }

  Status prompt_logprobs() {
    const PromptLogprobs wanted = options_.prompt_logprobs;
    if (wanted == PromptLogprobs::kOff || !found_.logprobs) {
      fact("prompt_logprobs", wanted == PromptLogprobs::kOff ? "switched off" : "there are no logprobs");
      return {};
    }
    std::string why;
    for (const PromptLogprobs way : {PromptLogprobs::kEcho, PromptLogprobs::kList}) {
      const bool echo = way == PromptLogprobs::kEcho;
      if ((wanted != PromptLogprobs::kFindOut && wanted != way) || (echo && options_.chat)) continue;
      BodyInput asked = input(1);
      asked.asked.echo = echo;
      asked.asked.prompt_list = !echo;
      Result<Checked> answer = wire_.ask_and_read(asked);
      if (answer.ok()) {
        found_.prompt = way;
        prompt_tokens_ = std::move(answer->prompt_tokens);
        fact("prompt_logprobs",
             fmt::format("yes: by {}, {} tokens", echo ? "echo" : "prompt_logprobs", prompt_tokens_.size()));
        return {};
      }
      if (is_final(answer.status())) return answer.status();
      why += (why.empty() ? "" : "; ") + answer.status().message();
    }
    fact("prompt_logprobs", why);
    return {};
  }

  // Whether the prompt begins as a tokenizer makes it begin, or with its first token twice.
  Status beginning() {
    if (options_.chat) return {};  // the template stands around the prompt
    if (prompt_tokens_.size() > 2) {
      const AnswerToken& a = prompt_tokens_[0];
      const AnswerToken& b = prompt_tokens_[1];
      const bool same = a.id >= 0 && b.id >= 0 ? a.id == b.id : !a.text.empty() && a.text == b.text;
      if (same && options_.probe_prompt.rfind(a.text + a.text, 0) != 0) {
        return doubled(fmt::format("its first two tokens are both {}",
                                   a.id >= 0 ? std::to_string(a.id) : text::quoted(a.text, 20)));
      }
    }
    const std::optional<size_t> with = tokenized(true);
    const std::optional<size_t> without = tokenized(false);
    if (!with || !first_.prompt_count) {
      fact("bos", prompt_tokens_.empty() ? "not told: neither /tokenize nor tokens of the prompt" : "once at most");
      return {};
    }
    const auto count = static_cast<size_t>(*first_.prompt_count);
    if (count == *with) {
      fact("bos", fmt::format("the prompt has the {} tokens of /tokenize", count));
      return {};
    }
    if (without && *with == *without + 1 && count == *with + 1) {
      return doubled(fmt::format("{} tokens by /tokenize, special ones included, {} by usage", *with, count));
    }
    fact("bos", fmt::format("the prompt has {} tokens by /tokenize, {} by usage", *with, count));
    return {};
  }

  static Status doubled(const std::string& seen) {
    return invalid("the server puts the first token of a prompt (BOS) there twice: " + seen +
                   "; correct the server's tokenizer or template");
  }

  std::optional<size_t> tokenized(bool special) {
    const Json body = {{"model", found_.model},
                       {"prompt", options_.probe_prompt},
                       {"content", options_.probe_prompt},
                       {"add_special", special},
                       {"add_special_tokens", special}};
    const Result<HttpAnswer> answer = wire_.perform(wire_.post("/tokenize", body.dump()));
    if (!answer || answer->code != 200) return std::nullopt;
    const Json json = parsed_reply(answer->body);
    if (!json.is_object() || !json.contains("tokens") || !json["tokens"].is_array()) return std::nullopt;
    return json["tokens"].size();
  }

  Result<std::string> drawn(int64_t seed_value) {
    BodyInput asked = input(kDrawnTokens);
    asked.asked.logprobs = false;
    asked.ids = IdForm::kNone;
    asked.drawing = {.greedy = false, .temperature = 1.5, .top_p = 0, .top_k = 0, .seed = seed_value};
    const Result<Checked> answer = wire_.ask_and_read(asked);
    if (!answer) return answer.status();
    return answer->text;
  }

  // Equal seeds have to give equal texts, and of several others one has to differ: else nothing was drawn at all.
  Status seed() {
    const Result<std::string> one = drawn(kSeed);
    const Result<std::string> same = one.ok() ? drawn(kSeed) : one;
    if (!same) {
      if (is_final(same.status())) return same.status();
      fact("seed", "asked for a drawn text: " + same.status().message());
      return {};
    }
    if (*one != *same) {
      found_.seed_broken = fmt::format("one seed gave {} and {}", text::quoted(*one, 40), text::quoted(*same, 40));
      fact("seed", found_.seed_broken);
      return {};
    }
    for (int64_t other = 1; other <= 3; ++other) {
      const Result<std::string> text = drawn(kSeed + other);
      if (!text && is_final(text.status())) return text.status();
      if (!text || *text == *one) continue;
      found_.seed = true;
      fact("seed", "yes: equal seeds gave equal texts, another one another text");
      return {};
    }
    fact("seed", "not told: four seeds gave the same text");
    return {};
  }

  Status stop() {
    const size_t length = text::count(first_.text);
    if (length < 6) {
      fact("stop", "not told: the text of the probe is too short");
      return {};
    }
    const size_t begin = text::offset_of(first_.text, length / 2);
    const std::string word = first_.text.substr(begin, text::offset_of(first_.text, length / 2 + 3) - begin);
    BodyInput asked = input(kTokens);
    asked.asked.stop_words = {word};
    const Result<Checked> answer = wire_.ask_and_read(asked);
    if (!answer && is_final(answer.status())) return answer.status();
    const std::string expected = first_.text.substr(0, first_.text.find(word));
    if (!answer) {
      found_.stop_broken = answer.status().message();
    } else if (answer->text != expected) {
      found_.stop_broken = fmt::format("with the stop word {} the text is {}, expected {}", text::quoted(word, 20),
                                       text::quoted(answer->text, 60), text::quoted(expected, 60));
    }
    fact("stop", found_.stop_broken.empty() ? "yes" : found_.stop_broken);
    return {};
  }

  Status streaming() {
    BodyInput asked = input(kTokens);
    asked.stream = true;
    const Result<Checked> answer = wire_.ask_and_read(asked);
    if (!answer && (is_final(answer.status()) || options_.stream)) return answer.status();
    std::string line = "as in one piece";
    if (!answer) {
      line = answer.status().message();
    } else if (answer->text != first_.text) {
      line = fmt::format("{}, in one piece {}", text::quoted(answer->text, 60), text::quoted(first_.text, 60));
    } else if (answer->tokens.size() != first_.tokens.size() || !same_ids(*answer, first_)) {
      line =
          fmt::format("the same text, but other tokens: {} instead of {}", answer->tokens.size(), first_.tokens.size());
    }
    fact("stream", line);
    return {};
  }

  Wire& wire_;
  const OpenaiOptions& options_;
  Found found_;
  Checked first_;                           // greedy, whole
  std::vector<AnswerToken> prompt_tokens_;  // of the probe's prompt; empty: not told
};

}  // namespace

Result<Found> probe(Wire& wire, const OpenaiOptions& options) { return Prober(wire, options).run(); }

}  // namespace assay::engines::openai
