#include "core/report/html_evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/golden/text.h"
#include "core/report/html_plot.h"
#include "core/report/html_split.h"
#include "core/report/html_text.h"

namespace assay::report {
namespace {

constexpr int64_t kTokensBefore = 40;  // shown around the first divergent token
constexpr int64_t kTokensAfter = 80;
constexpr size_t kTextBefore = 160;  // code points shown around the first difference of the texts
constexpr size_t kTextAfter = 320;
constexpr size_t kRoutingRows = 12;

std::string token_title(std::string_view side, const std::optional<TokenView>& token) {
  if (!token) return fmt::format("{}: no token", side);
  std::string title = fmt::format("{}: id {}", side, token->id);
  if (token->logprob) title += fmt::format(", {} nats", figure(*token->logprob));
  return title;
}

bool differ(const AlignedToken& pair) {
  if (!pair.golden || !pair.result) return true;
  if (pair.golden->id >= 0 && pair.result->id >= 0) return pair.golden->id != pair.result->id;
  return pair.golden->text != pair.result->text;
}

// Each position is one box: the golden's token above, the result's below.
std::string aligned_html(const RequestEvidence& evidence, std::string_view word) {
  const auto count = static_cast<int64_t>(evidence.tokens.size());
  const int64_t centre = evidence.first_divergent < 0 ? 0 : evidence.first_divergent - evidence.first_shown;
  const int64_t begin = std::clamp<int64_t>(centre - kTokensBefore, 0, count);
  const int64_t end = std::clamp<int64_t>(centre + kTokensAfter, 0, count);
  std::string out = fmt::format("<div class=\"tokens\"><b class=\"side\"><u>{}</u><s>result</s></b>", word);
  if (begin > 0 || evidence.first_shown > 0) out += "<b class=\"side\"><u>…</u><s>…</s></b>";
  size_t different = 0;
  for (int64_t i = begin; i < end; ++i) {
    const AlignedToken& pair = evidence.tokens[static_cast<size_t>(i)];
    const int64_t position = evidence.first_shown + i;
    const bool other = differ(pair);
    different += other ? 1 : 0;
    std::string title =
        fmt::format("token {}; {}; {}", position, token_title(word, pair.golden), token_title("result", pair.result));
    if (pair.delta) title += fmt::format("; |Δ| {} nats", figure(*pair.delta));
    out += fmt::format("<b{} title=\"{}\"><u>{}</u><s>{}</s></b>",
                       position == evidence.first_divergent ? " class=\"x first\""
                       : other                              ? " class=\"x\""
                                                            : "",
                       html(title), token_cell(pair.golden), token_cell(pair.result));
  }
  if (end < count) out += "<b class=\"side\"><u>…</u><s>…</s></b>";
  out += fmt::format(
      "</div><p class=\"note\">Tokens {} to {}; {} of these positions differ{}. Point at a token for its id "
      "and logprob.</p>",
      evidence.first_shown + begin, evidence.first_shown + end - 1, different,
      evidence.first_divergent >= 0
          ? fmt::format("; the first divergent token, {}, is framed", evidence.first_divergent)
          : std::string());
  return out;
}

std::string strip_html(const RequestEvidence& evidence) {
  std::vector<std::optional<double>> deltas;
  size_t known = 0;
  for (const AlignedToken& pair : evidence.tokens) {
    deltas.push_back(pair.delta);
    known += pair.delta ? 1 : 0;
  }
  if (known == 0) return "";
  return "<h5>Difference of logprobs by generated position</h5>" +
         heat_strip(deltas, evidence.first_shown, evidence.first_divergent) + heat_legend();
}

std::string statistics_row(std::string_view what, const LogprobStatistics& numbers) {
  return fmt::format(
      "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td "
      "class=\"n\">{}",
      what, numbers.count, figure(numbers.max), numbers.max_index >= 0 ? fmt::format(" at {}", numbers.max_index) : "",
      figure(numbers.mean), figure(numbers.p99), figure(numbers.tolerance), numbers.over);
}

std::string statistics_html(const RequestEvidence& evidence, std::string_view word) {
  std::string rows;
  if (evidence.logprobs) rows += statistics_row("judged run, up to where the tokens part", *evidence.logprobs);
  if (evidence.reanchoring && evidence.reanchoring->logprobs) {
    rows += statistics_row(fmt::format("{} tokens fed back, full length", word), *evidence.reanchoring->logprobs);
  }
  if (rows.empty()) return "";
  return "<table><caption>|Δ logprob|, "
         "nats</caption><tr><th>over<th>values<th>max<th>mean<th>p99<th>tolerance<th>beyond "
         "it" +
         rows + "</table>";
}

std::string experts(const std::vector<uint16_t>& list) { return fmt::format("{}", fmt::join(list, " ")); }

std::string routing_html(const RoutingEvidence& routing, std::string_view word) {
  if (routing.differing == 0) return "";
  std::string out =
      fmt::format("<h5>Routing</h5><p>{} of {} sets of experts differ; the first layer that differs is {}.</p>",
                  routing.differing, routing.compared, routing.first_layer);
  std::vector<std::string> names;
  for (size_t layer = 0; layer < routing.by_layer.size(); ++layer) names.push_back(fmt::format("layer {}", layer));
  out += bars(names, routing.by_layer);
  if (routing.first.empty()) return out;
  out += fmt::format(
      "<table><caption>The first differences</caption><tr><th>position<th>layer<th>{}<th>result<th>margin at the "
      "boundary",
      word);
  for (size_t i = 0; i < std::min(routing.first.size(), kRoutingRows); ++i) {
    const RoutingDifference& one = routing.first[i];
    out += fmt::format("<tr><td class=\"n\">{}<td class=\"n\">{}<td>{}<td>{}<td class=\"n\">{}", one.token, one.layer,
                       experts(one.golden), experts(one.result), one.margin ? figure(*one.margin) : "?");
  }
  return out + "</table>";
}

std::string prompt_ids_html(const RequestEvidence& evidence, std::string_view word) {
  const std::vector<int32_t>& golden = evidence.golden_prompt_ids;
  const std::vector<int32_t>& result = evidence.result_prompt_ids;
  if (golden.empty() && result.empty()) return "";
  std::string out = fmt::format(
      "<h5>Prompt tokens</h5><p class=\"say\">The two sides answer different questions: the {0}'s "
      "prompt has {1}, the result's {2}.</p><div class=\"tokens\"><b class=\"side\"><u>{0}</u><s>"
      "result</s></b>",
      word, plural(golden.size(), "token"), plural(result.size(), "token"));
  bool seen = false;
  for (size_t i = 0; i < std::max(golden.size(), result.size()); ++i) {
    const std::string a = i < golden.size() ? fmt::format("{}", golden[i]) : "<em>–</em>";
    const std::string b = i < result.size() ? fmt::format("{}", result[i]) : "<em>–</em>";
    out += fmt::format("<b{} title=\"index {}\"><u>{}</u><s>{}</s></b>",
                       a == b ? ""
                       : seen ? " class=\"x\""
                              : " class=\"x first\"",
                       i, a, b);
    seen = seen || a != b;
  }
  return out + "</div>";
}

std::string text_side(const char* css, std::string_view side, std::string_view text, size_t common) {
  const std::string_view head = text.substr(0, common);
  const size_t from = text::count(head) > kTextBefore ? text::offset_of(head, text::count(head) - kTextBefore) : 0;
  const std::string_view tail = text::prefix(text.substr(common), kTextAfter);
  return fmt::format("<div><b class=\"{}\">{}</b><pre>{}{}<mark>{}</mark>{}</pre></div>", css, side,
                     from > 0 ? "…" : "", html_block(head.substr(from)), html_block(tail),
                     common + tail.size() < text.size() ? "…"
                     : tail.empty()                     ? "<em>∎ ends here</em>"
                                                        : "");
}

std::string texts_html(const RequestEvidence& evidence, std::string_view word) {
  if (evidence.golden_text.empty() && evidence.result_text.empty()) return "";
  if (evidence.golden_text == evidence.result_text) {
    return evidence.text_difference < 0 ? "<p class=\"note\">The texts agree where they are shown.</p>" : "";
  }
  const size_t common = text::common_prefix(evidence.golden_text, evidence.result_text);
  const auto at =
      evidence.text_difference >= 0
          ? evidence.text_difference
          : evidence.text_offset + static_cast<int64_t>(text::count(evidence.golden_text.substr(0, common)));
  return fmt::format("<h5>Text</h5><p>The texts part at code point {}.</p><div class=\"sides\">{}{}</div>", at,
                     text_side("golden", word, evidence.golden_text, common),
                     text_side("result", "result", evidence.result_text, common));
}

std::string headline(const RequestEvidence& evidence, std::string_view word) {
  std::string line = fmt::format("request {}", evidence.request);
  if (!evidence.golden_prompt_ids.empty() || !evidence.result_prompt_ids.empty())
    line += ": prompt tokens differ";
  else if (evidence.first_divergent >= 0)
    line += fmt::format(": first divergent token {}", evidence.first_divergent);
  else if (evidence.text_difference >= 0)
    line += fmt::format(": texts part at code point {}", evidence.text_difference);
  else if (evidence.routing && evidence.routing->differing > 0)
    line += ": routing differs";
  else if (evidence.logprobs)
    line += fmt::format(": max |Δ logprob| {} nats", figure(evidence.logprobs->max));
  if (evidence.golden_tokens >= 0 && evidence.result_tokens >= 0 && evidence.golden_tokens != evidence.result_tokens) {
    line += fmt::format(" ({} tokens, the {} has {})", evidence.result_tokens, word, evidence.golden_tokens);
  }
  return line;
}

}  // namespace

std::string evidence_html(const RequestEvidence& evidence, bool open, std::string_view word) {
  std::string out = fmt::format("<details class=\"request\"{}><summary>{}</summary>", open ? " open" : "",
                                html(headline(evidence, word)));
  if (!evidence.prompt.empty()) {
    out += fmt::format("<h5>End of the prompt</h5><pre class=\"short\">{}</pre>", html_block(evidence.prompt));
  }
  out += prompt_ids_html(evidence, word);
  if (evidence.split) out += fmt::format("<p class=\"say\">{}</p>", html(split_text(*evidence.split, word)));
  if (std::any_of(evidence.tokens.begin(), evidence.tokens.end(), differ)) {
    out += "<h5>Tokens, side by side</h5>" + aligned_html(evidence, word);
  } else if (!evidence.tokens.empty()) {
    out += fmt::format("<p>All {} looked at agree.</p>", plural(evidence.tokens.size(), "generated token"));
  }
  out += strip_html(evidence);
  if (evidence.split) out += top_table(*evidence.split, word);
  if (evidence.reanchoring)
    out += fmt::format("<h5>Run again with the {}'s tokens</h5>", word) + reanchoring_html(*evidence.reanchoring, word);
  out += statistics_html(evidence, word);
  if (evidence.routing) out += routing_html(*evidence.routing, word);
  out += texts_html(evidence, word);
  return out + "</details>";
}

}  // namespace assay::report
