#include "core/report/html_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/report/html_text.h"

namespace assay::report {
namespace {

constexpr size_t kSplitRows = 12;

std::string token_words(const TokenView& token) {
  const std::string id = token.id >= 0 ? fmt::format("id {}", token.id) : "id not known";
  return token.text.empty() ? id : fmt::format("\"{}\" ({})", token.text, id);
}

}  // namespace

std::string token_cell(const std::optional<TokenView>& token) {
  if (!token) return "<em>–</em>";
  return token->text.empty() ? fmt::format("{}", token->id) : html_token(token->text);
}

std::string split_text(const Split& split, std::string_view word) {
  std::string line = fmt::format("At token {} the {} has {}, the result {}", split.index, word,
                                 token_words(split.golden), token_words(split.result));
  if (split.gap) {
    line += fmt::format("; the engine puts the result's token {} nats above the {}'s", figure(*split.gap), word);
    if (split.gap_ulps) line += fmt::format(" ({} ULP of the logits' dtype)", figure(*split.gap_ulps));
  }
  if (split.golden_rank) {
    line += *split.golden_rank == 0
                ? fmt::format("; the {}'s token is the engine's first choice", word)
                : fmt::format("; the {}'s token is its choice number {}", word, *split.golden_rank + 1);
  }
  return line + (split.near_tie      ? ": a near-tie."
                 : split.routing_tie ? ": a routing tie."
                 : split.gap         ? ": no tie."
                                     : ".");
}

std::string reanchoring_text(const Reanchoring& again, std::string_view word) {
  if (again.method.empty()) {
    return fmt::format("The engine was not run again with the {}'s tokens", word) +
           (again.not_done.empty() ? "." : ": " + again.not_done);
  }
  const uint64_t splits = again.near_ties + again.routing_ties + again.true_splits;
  const uint64_t agreeing = again.positions - std::min(again.positions, splits);
  const std::string routing = again.routing_ties > 0 ? plural(again.routing_ties, "routing tie") + ", " : "";
  std::string line = fmt::format("After each {} token was fed back, {} of {} positions agree, {}, {}{}: ", word,
                                 agreeing, again.positions, plural(again.near_ties, "near-tie"), routing,
                                 plural(again.true_splits, "true split"));
  if (!again.contradiction.empty() || !again.text_contradiction.empty()) {
    line += "rounding does not explain the judged run: " +
            (again.contradiction.empty() ? again.text_contradiction : again.contradiction) + ".";
  } else if (again.explains()) {
    line += "rounding explains this.";
  } else if (again.true_splits > 0) {
    line += "rounding does not explain this.";
  } else if (again.drifts()) {
    line += "rounding may explain this, but experts were chosen otherwise.";
  } else if (!again.reproduced) {
    line += "the engine did not choose again what it chose in the judged run.";
  } else {
    line += fmt::format("the engine agrees with the {} throughout.", word);
  }
  if (again.method == "continued") {
    line += fmt::format(" (The engine cannot be fed tokens; it continued {} prefixes instead.)", word);
  }
  line += fmt::format(" A near-tie is a gap of at most {} ULP", figure(again.tie_limit_ulps));
  if (again.tie_limit_nats > 0)
    line += fmt::format(" or {} nats, the noise recorded in the golden", figure(again.tie_limit_nats));
  return line + ".";
}

std::string top_table(const Split& split, std::string_view word) {
  if (split.top.empty()) return "";
  std::string out =
      "<table class=\"top\"><caption>What the engine thought at this "
      "token</caption><tr><th>rank<th>token<th>id<th>logprob, "
      "nats<th>below the best<th>taken by";
  const std::optional<double> best = split.top.front().token.logprob;
  for (size_t rank = 0; rank < split.top.size(); ++rank) {
    const SplitCandidate& entry = split.top[rank];
    const TokenView& token = entry.token;
    std::string sides;
    if (entry.golden) sides += fmt::format("<span class=\"golden tag\">{}</span> ", word);
    if (entry.result) sides += "<span class=\"result tag\">result</span>";
    out += fmt::format(
        "<tr{}><td class=\"n\">{}<td class=\"tok\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}",
        sides.empty() ? "" : " class=\"hit\"", rank + 1, html_token(token.text),
        token.id >= 0 ? fmt::format("{}", token.id) : "?", token.logprob ? fmt::format("{:.6g}", *token.logprob) : "?",
        token.logprob && best ? figure(*best - *token.logprob) : "?", sides);
  }
  const bool listed =
      std::any_of(split.top.begin(), split.top.end(), [](const SplitCandidate& one) { return one.golden; });
  if (!listed && split.golden_rank) {
    out += fmt::format(
        "<tr class=\"hit\"><td class=\"n\">{}<td class=\"tok\">{}<td class=\"n\">{}<td class=\"n\">{}<td "
        "class=\"n\">{}<td><span "
        "class=\"golden tag\">{}</span>",
        *split.golden_rank + 1, html_token(split.golden.text), split.golden.id,
        split.golden.logprob ? fmt::format("{:.6g}", *split.golden.logprob) : "?",
        split.golden.logprob && best ? figure(*best - *split.golden.logprob) : "?", word);
  }
  return out + "</table>";
}

std::string reanchoring_html(const Reanchoring& again, std::string_view word) {
  std::string out = fmt::format("<p class=\"say\">{}</p>", html(reanchoring_text(again, word)));
  if (again.splits.empty()) return out;
  out += fmt::format(
      "<details><summary>Positions where the engine prefers another "
      "token</summary><table><tr><th>token<th>{0}<th>engine "
      "prefers<th>gap, nats<th>gap, ULPs<th>rank of the {0}'s<th>kind",
      word);
  for (size_t i = 0; i < std::min(again.splits.size(), kSplitRows); ++i) {
    const Split& split = again.splits[i];
    out += fmt::format(
        "<tr><td class=\"n\">{}<td class=\"tok\">{}<td class=\"tok\">{}<td class=\"n\">{}<td class=\"n\">{}<td "
        "class=\"n\">{}<td>{}",
        split.index, token_cell(split.golden), token_cell(split.result), split.gap ? figure(*split.gap) : "?",
        split.gap_ulps ? figure(*split.gap_ulps) : "?",
        split.golden_rank ? fmt::format("{}", *split.golden_rank + 1) : "?",
        split.near_tie      ? "near-tie"
        : split.routing_tie ? "routing tie"
                            : "true split");
  }
  out += "</table>";
  if (again.splits.size() > kSplitRows)
    out += fmt::format("<p class=\"note\">{} more</p>", again.splits.size() - kSplitRows);
  return out + "</details>";
}

}  // namespace assay::report
