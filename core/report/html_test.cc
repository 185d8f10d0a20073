#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/report/html_evidence.h"
#include "core/report/html_page.h"
#include "core/report/html_plot.h"
#include "core/report/html_split.h"
#include "core/report/html_text.h"
#include "core/report/sample_run.h"

namespace assay::report {
namespace {

using sample::evidence;
using sample::ids;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "</pre><script>alert(1)</script>\" onload='x' &amp; \x1b[31m\xff \xE2\x80\xAE\x01";

TEST(HtmlText, MarkupIsTextAndWhatCannotBeSeenIsSpelledOut) {
  EXPECT_EQ(html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(html("a\nb\tc\r"), "a\\nb\\tc\\r");
  EXPECT_EQ(html(std::string_view("\0\x1b\x7f", 3)), "\\x00\\x1b\\u007f");
  EXPECT_EQ(html("\xff\xC3"), "\\xff\\xc3");
  EXPECT_EQ(html("\xE2\x80\xAE\xE2\x81\xA6\xE2\x80\x8B\xEF\xBB\xBF"), "\\u202e\\u2066\\u200b\\ufeff");
  EXPECT_EQ(html("\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x8E\x89"), "\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x8E\x89");
  EXPECT_EQ(html_block("a\n\tb\r"), "a\n\tb\\r");
  EXPECT_EQ(html_token(" a\n"), "<em>·</em>a<em>↵</em>");
  EXPECT_EQ(html_token(""), "<em>∅</em>");
  EXPECT_EQ(url_path("a b/\"é"), "a%20b/%22%C3%A9");
}

// Every place that a case, an engine or a log can fill.
ReportRun hostile_run() {
  ReportCase bad = sample::one_case(kHostile, Verdict::kDiverged, kHostile);
  bad.path = bad.summary = bad.reproduce = bad.log_tail = bad.actual = kHostile;
  bad.figures.engine = kHostile;
  CaseVerdict& verdict = bad.verdict;
  verdict.golden = verdict.declared = kHostile;
  verdict.environment = {kHostile};
  verdict.metrics = {
      sample::metric(kHostile, Verdict::kDiverged, {sample::finding(Verdict::kDiverged, kHostile, 1, kHostile)})};
  RequestEvidence one = evidence(kHostile, ids(1, 10), ids(1, 10));
  one.tokens[4].result = TokenView{77, kHostile, -1.0};
  one.first_divergent = 4;
  one.prompt = one.golden_text = kHostile;
  one.result_text = std::string("other ") + kHostile;
  one.split = Split();
  one.split->index = 4;
  one.split->golden = {5, kHostile, -1.0};
  one.split->result = {77, kHostile, -0.5};
  one.split->top = {{{77, kHostile, -0.5}, false, true}};
  one.reanchoring = sample::again(10, 0, 1, true);
  one.reanchoring->not_done = kHostile;
  one.reanchoring->splits = {*one.split};
  verdict.evidence = {one};
  ReportCase passing = sample::one_case(kHostile, Verdict::kIdentical);
  passing.summary = kHostile;
  ReportRun run{
      .run_id = kHostile, .version = kHostile, .command = kHostile, .folder = kHostile, .environment = kHostile};
  run.cases = {bad, passing, sample::one_case(kHostile, Verdict::kSkipped, kHostile)};
  HistoryRun earlier{.folder = kHostile, .started = 1e9, .has_page = true};
  earlier.cases[kHostile] = {Verdict::kIdentical, 0.001};
  run.history = {earlier};
  run.history_notes = {kHostile};
  return run;
}

TEST(HtmlPage, NothingACaseSaysBecomesMarkup) {
  const std::string page = html_page(hostile_run());
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("onload='")));
  EXPECT_THAT(page, Not(HasSubstr("\" onload")));
  for (const char forbidden : {'\x1b', '\xff', '\x01'}) EXPECT_EQ(page.find(forbidden), std::string::npos);
  EXPECT_THAT(page, Not(HasSubstr("\xE2\x80\xAE")));
  EXPECT_THAT(page, HasSubstr("\\u202e"));
}

TEST(HtmlPage, StandsAloneWithoutScriptOrOutsideReference) {
  const std::string page = html_page(hostile_run());
  for (const char* outside : {"http:", "https:", "src=", "@import", "url(", "<link", "<script"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
}

TEST(HtmlPage, FailuresComeFirstTheMostSevereFirst) {
  ReportRun run;
  run.cases = {sample::one_case("quiet", Verdict::kIdentical), sample::one_case("drifts", Verdict::kDrift, "d"),
               sample::one_case("dies", Verdict::kCrashed, "c"), sample::one_case("left", Verdict::kSkipped, "s")};
  const std::string page = html_page(run);
  EXPECT_LT(page.find("<h3>dies"), page.find("<h3>drifts"));
  EXPECT_LT(page.find("<h3>drifts"), page.find("<h3>quiet"));
  EXPECT_THAT(page, HasSubstr("<h1>2 of 4 cases failed</h1>"));
  EXPECT_LT(page.find("quiet"), page.find("<td>left"));
}

TEST(HtmlPage, EquivalentFailsUnderStrictAlone) {
  ReportRun run;
  run.cases = {sample::one_case("a", Verdict::kEquivalent)};
  EXPECT_THAT(html_page(run), HasSubstr("<h1>1 case passed</h1>"));
  run.strict = true;
  EXPECT_THAT(html_page(run), HasSubstr("<h1>1 of 1 case failed</h1>"));
}

TEST(HtmlPage, AKilledRunSaysSo) {
  ReportRun run;
  run.finished = false;
  run.unfinished = 1;
  run.never_started = 2;
  EXPECT_THAT(html_page(run), HasSubstr("1 case did not finish, 2 cases never started"));
}

TEST(HtmlPage, AThousandFailuresStayBelowTwentyMegabytes) {
  ReportRun run;
  ReportCase bad = sample::one_case("a", Verdict::kDiverged, "why");
  for (int i = 0; i < 16; ++i) bad.verdict.evidence.push_back(evidence(std::to_string(i), ids(1, 512), ids(2, 512)));
  run.cases.assign(1000, bad);
  const std::string page = html_page(run);
  EXPECT_LT(page.size(), 20'000'000u);
  EXPECT_THAT(page, HasSubstr("The page is full"));
  EXPECT_THAT(page, HasSubstr("a (1000)"));
}

TEST(HtmlPage, HugeTextsAndManyCasesStayBelowTwentyMegabytes) {
  ReportRun run;
  ReportCase bad = sample::one_case("a", Verdict::kDiverged, std::string(1'000'000, '<'));
  bad.verdict.metrics = {
      sample::metric("m", Verdict::kDiverged, {12, sample::finding(Verdict::kDiverged, "0", 0, bad.verdict.reason)})};
  run.cases.assign(60, bad);
  const std::string page = html_page(run);
  EXPECT_LT(page.size(), 20'000'000u);
  EXPECT_THAT(page, HasSubstr("(992000 bytes more)"));
  run.cases.assign(60'000, sample::one_case("b", Verdict::kCrashed, std::string(300, 'w')));
  run.cases.resize(120'000, sample::one_case("c", Verdict::kIdentical));
  const std::string many = html_page(run);
  EXPECT_LT(many.size(), 20'000'000u);
  EXPECT_THAT(many, HasSubstr("The page is full: "));
}

TEST(HtmlEvidence, TheSplitIsToldInPlainWords) {
  Split split{.index = 37,
              .golden = {5, " the", -1.5},
              .result = {9, " a", -1.0},
              .gap = 0.5,
              .gap_ulps = 16,
              .golden_rank = 1,
              .top = {}};
  EXPECT_EQ(
      split_text(split),
      "At token 37 the golden has \" the\" (id 5), the result \" a\" (id 9); the engine puts the result's token 0.5 "
      "nats above the golden's (16 ULP of the logits' dtype); the golden's token is its choice number 2: no tie.");
}

TEST(HtmlEvidence, ReanchoringIsToldInPlainWords) {
  EXPECT_THAT(reanchoring_text(sample::again(80, 2, 0, true)),
              HasSubstr("78 of 80 positions agree, 2 near-ties, 0 true splits: rounding explains this."));
  EXPECT_THAT(reanchoring_text(sample::again(80, 0, 3, true)),
              HasSubstr("3 true splits: rounding does not explain this."));
  EXPECT_THAT(reanchoring_text(sample::again(80, 0, 0, false)), HasSubstr("did not choose again"));
  Reanchoring experts = sample::again(80, 1, 0, true);
  experts.routing_ties = 2;
  EXPECT_THAT(reanchoring_text(experts), HasSubstr("77 of 80 positions agree, 1 near-tie, 2 routing ties, 0 true "
                                                   "splits: rounding may explain this, but experts were chosen "
                                                   "otherwise."));
  Reanchoring none;
  none.not_done = "the engine is gone";
  EXPECT_THAT(reanchoring_text(none), HasSubstr("not run again with the golden's tokens: the engine is gone"));
}

TEST(HtmlPage, UnusedWaiversAreNamedAtTheTop) {
  ReportRun run;
  run.cases = {sample::one_case("a", Verdict::kIdentical), sample::one_case("b", Verdict::kIdentical),
               sample::one_case("c", Verdict::kXpass)};
  run.cases[2].verdict.declared = "declared to fail: why";
  EXPECT_THAT(html_page(run), HasSubstr("<dt>unused waivers<dd>c<"));
  run.cases[1].verdict.declared = "waiver unused, the case passes: why";
  EXPECT_THAT(html_page(run), HasSubstr("<dt>unused waivers<dd>b, c<"));
}

TEST(HtmlEvidence, TheFirstDivergentTokenIsFramedAndPromptIdsStandSideBySide) {
  RequestEvidence one = evidence("0", ids(1, 10), ids(1, 10));
  one.tokens[4].result->id = 77;
  one.first_divergent = 4;
  one.golden_prompt_ids = {1, 2};
  one.result_prompt_ids = {1, 1, 2};
  const std::string out = evidence_html(one, true);
  EXPECT_THAT(out, HasSubstr("class=\"x first\" title=\"token 4; golden: id 5, -1 nats; result: id 77, -1 nats\""));
  EXPECT_THAT(out, HasSubstr("class=\"x first\" title=\"index 1\"><u>2</u><s>1</s>"));
}

TEST(HtmlPlot, AStripHasAStepForEveryMagnitude) {
  const std::string strip =
      heat_strip({0.0, 1e-6, std::nullopt, 0.5, 0.5, std::numeric_limits<double>::infinity()}, 10, 13);
  EXPECT_THAT(strip, HasSubstr("class=\"h0\" d=\"M0 0h1v10h-1z\""));
  EXPECT_THAT(strip, HasSubstr("class=\"h1\" d=\"M1 0h1v10h-1z\""));
  EXPECT_THAT(strip, HasSubstr("class=\"h6\" d=\"M3 0h3v10h-3z\""));
  EXPECT_THAT(strip, HasSubstr("<span>15</span>"));
  EXPECT_THAT(strip, HasSubstr("left:58.33%"));
}

TEST(HtmlPlot, DownsamplingKeepsTheExtremes) {
  std::vector<double> values(10'000, 1.0);
  values[4321] = 9;
  values[77] = -5;
  values[5000] = std::nan("");
  const auto points = downsample(values, kMaxPlotPoints);
  EXPECT_LE(points.size(), kMaxPlotPoints);
  EXPECT_THAT(points, testing::Contains(std::pair(4321.0, 9.0)));
  EXPECT_THAT(points, testing::Contains(std::pair(77.0, -5.0)));
  EXPECT_EQ(
      line_plot({{{std::nan(""), std::nan("")}, "result"}}, {.title = "t", .x_axis = "x", .y_axis = "y", .scale = 1}),
      "");
}

}  // namespace
}  // namespace assay::report
