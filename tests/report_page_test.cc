// The page in a real browser: planted failures as a reader sees them, light and dark, and a page of 1,000 cases.
// Pictures go to build/.../tests/report_page.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/report/sample_run.h"
#include "core/run/events.h"
#include "tests/png.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
namespace sample = report::sample;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

const fs::path kPictures = fs::path(ASSAY_BINARY_DIR) / "tests/report_page";
constexpr const char* kCase = "testcases/moe/moe_10m_licences_fp32_b1";

// Runs headless Chromium on a page; empty words of the command line are left out.
Output browse(const fs::path& chromium, const fs::path& page, const std::vector<std::string>& words) {
  const TemporaryFolder profile;
  std::vector<std::string> all = {"--headless",
                                  "--no-sandbox",
                                  "--disable-gpu",
                                  "--disable-dev-shm-usage",  // /dev/shm may be small
                                  "--hide-scrollbars",
                                  "--no-first-run",
                                  "--disable-extensions",
                                  "--enable-logging=stderr",
                                  "--user-data-dir=" + profile.path().string()};
  all.insert(all.end(), words.begin(), words.end());
  all.push_back("file://" + page.string());
  return run_file(chromium, all);
}

struct View {
  const char* name;
  bool dark;
  int width;
};

Picture shoot(const fs::path& chromium, const fs::path& page, const View& view) {
  const fs::path picture = kPictures / (std::string(view.name) + ".png");
  fs::create_directories(kPictures);
  fs::remove(picture);
  const Output seen = browse(chromium, page,
                             {"--screenshot=" + picture.string(), fmt::format("--window-size={},3000", view.width),
                              fmt::format("--blink-settings=preferredColorScheme={}", view.dark ? 0 : 1)});
  EXPECT_THAT(seen.err, Not(HasSubstr("CONSOLE"))) << "the browser complains about the page";
  return read_png(picture);
}

// A tree of cases whose golden is a true result and whose recorded result, or golden, was altered.
class Planted {
 public:
  explicit Planted(const fs::path& folder) : folder_(folder) {
    config_ = read_file(fs::path(ASSAY_SOURCE_DIR) / kCase / "model_config.yaml");
    config_.erase(config_.find("METRICS:"));
    config_ += "METRICS: [generated_text, generated_tokens, logprobs]\n";
    const Output clean = run_program("assay", {"run", kCase, "--output", (folder_ / "clean").string()});
    EXPECT_EQ(clean.code, 0) << clean.out << clean.err;
    clean_ = Json::parse(read_file(folder_ / "clean/cases/moe_10m_licences_fp32_b1/actual.json"));
  }

  const Json& clean() const { return clean_; }
  fs::path cases() const { return folder_ / "cases"; }

  void add(const std::string& name, const Json& golden, const Json& recorded, const std::string& engine = "replay") {
    write_file(cases() / name / "model_config.yaml", config_ + "ASSAY:\n  engine: " + engine + "\n");
    write_file(cases() / name / "golden_values_dev_any.json", golden.dump());
    write_file(cases() / name / "recorded.json", recorded.dump());
  }

 private:
  fs::path folder_;
  std::string config_;
  Json clean_;
};

void plant_failures(Planted& planted) {
  const Json& clean = planted.clean();
  Json altered = clean;
  altered["0"]["generated_tokens"][20] = 17;
  planted.add("altered_golden", altered, clean, "static_legacy");
  Json swapped = clean;
  for (const char* field : {"generated_text", "generated_tokens", "logprobs"}) {
    std::swap(swapped["0"][field], swapped["1"][field]);
  }
  planted.add("swapped_requests", clean, swapped);
  Json dropped = clean;
  dropped["1"]["generated_tokens"].erase(12);
  planted.add("dropped_token", clean, dropped);
  Json scaled = clean;
  for (Json& value : scaled["0"]["logprobs"]) value = value.get<double>() * 0.4342944819;
  planted.add("log10", clean, scaled);
  Json doubled = clean;
  Json& ids = doubled["0"]["prompt_tokens"];
  ids.insert(ids.begin(), ids[0]);
  planted.add("doubled_bos", clean, doubled);
  planted.add("unharmed", clean, clean);
}

// The article of a case, as text of the page.
std::string article(const std::string& page, const std::string& name) {
  const size_t title = page.find("<h3>" + name + "</h3>");
  if (title == std::string::npos) return "";
  return page.substr(title, page.find("</article>", title) - title);
}

TEST(ReportPage, NamesTheCauseOfEveryPlantedFailureAndLooksRightLightAndDark) {
  const TemporaryFolder folder;
  Planted planted(folder.path());
  plant_failures(planted);
  const fs::path out = folder.path() / "out";
  const Output run = run_program("assay", {"run", planted.cases().string(), "--output", out.string()});
  EXPECT_EQ(run.code, 1) << run.out << run.err;
  const std::string page = read_file(out / "report.html");
  EXPECT_THAT(page, HasSubstr("5 of 6 cases failed"));
  for (const auto& [name, cause] :
       {std::pair("altered_golden", "an altered golden"), std::pair("swapped_requests", "output of another request"),
        std::pair("dropped_token", "a token dropped"), std::pair("log10", "logprobs off by a factor"),
        std::pair("doubled_bos", "prompt processing")}) {
    EXPECT_THAT(article(page, name), HasSubstr(std::string("Likely cause: ") + cause)) << name;
  }
  for (const char* outside : {"http:", "https:", "src=", "url(", "<script"}) EXPECT_THAT(page, Not(HasSubstr(outside)));

  const Output again = run_program("assay", {"report", out.string(), "--output", folder / "again.html"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(folder / "again.html"), page) << "the journal holds what the page shows";

  const fs::path chromium = find_executable("chromium");
  if (chromium.empty()) GTEST_SKIP() << "chromium is not installed: the page was made but not looked at";
  const Output dom = browse(chromium, out / "report.html", {"--dump-dom"});
  EXPECT_LT(dom.out.find("<h2>Failures"), dom.out.find("<h2>Passing"));
  EXPECT_THAT(article(dom.out, "swapped_requests"), HasSubstr("<mark>"));
  const Picture light = shoot(chromium, out / "report.html", {"light", false, 1280});
  const Picture dark = shoot(chromium, out / "report.html", {"dark", true, 1280});
  const Picture phone = shoot(chromium, out / "report.html", {"phone", false, 500});
  for (const Picture& picture : {light, dark, phone}) {
    EXPECT_EQ(picture.height, 3000u);
    EXPECT_GT(picture.deviation(), 10) << "an empty page";
  }
  EXPECT_GT(light.mean(), 180);
  EXPECT_LT(dark.mean(), 80);
  fs::copy_file(out / "report.html", kPictures / "report.html", fs::copy_options::overwrite_existing);
}

// A journal of `count` cases of which each 50th failed, with as much evidence as there can be.
void write_journal(const fs::path& folder, size_t count) {
  CaseVerdict good{.verdict = Verdict::kIdentical,
                   .reason = "generated_tokens: 160 values of 2 requests equal",
                   .golden = "golden_values_dev_any.json",
                   .metrics = {}};
  good.metrics = {sample::metric("generated_tokens", Verdict::kIdentical,
                                 {sample::finding(Verdict::kIdentical, "0", -1, "80 tokens equal")})};
  CaseVerdict bad{.verdict = Verdict::kDiverged,
                  .reason = "generated_tokens: request 0: first divergent token 3",
                  .golden = "g",
                  .metrics = {sample::metric("generated_tokens", Verdict::kDiverged,
                                             {sample::finding(Verdict::kDiverged, "0", 3)})}};
  for (size_t i = 0; i < kMaxEvidenceRequests; ++i) {
    bad.evidence.push_back(sample::evidence(std::to_string(i), sample::ids(1, 512), sample::ids(2, 512)));
    for (AlignedToken& token : bad.evidence.back().tokens) token.delta = 0.001 * static_cast<double>(i + 1);
    bad.evidence.back().golden_text = std::string(4000, 'a');
    bad.evidence.back().result_text = std::string(3000, 'a') + std::string(1000, 'b');
  }
  std::string text =
      Json{{"event", "run_started"}, {"t", 1e9}, {"schema", run::kEventSchema}, {"run_id", "r"}, {"cases", count}}
          .dump() +
      "\n";
  for (size_t i = 0; i < count; ++i) {
    Json line = {{"event", "case_finished"},
                 {"t", 1e9},
                 {"case", fmt::format("c{}", i)},
                 {"name", fmt::format("moe/case_{}", i)}};
    line["verdict"] = run::to_json(i % 50 == 0 ? bad : good);
    line["summary"] = {{"engine", "static_legacy"}, {"backend", "cpu"}, {"requests", 2}, {"seconds", 0.5}};
    text += line.dump() + "\n";
  }
  write_file(folder / "results.jsonl",
             text + Json{{"event", "run_finished"}, {"t", 1e9}, {"seconds", 60}}.dump() + "\n");
}

// Milliseconds from the start of the navigation until the page is loaded and laid out, told by the browser itself.
double load_milliseconds(const fs::path& chromium, const fs::path& page, const fs::path& copy) {
  std::string text = read_file(page);
  const size_t policy = text.find("<meta http-equiv");
  text.erase(policy, text.find('>', policy) + 1 - policy);  // it forbids the stop watch
  text +=
      "<script>addEventListener('load',()=>{document.body.offsetHeight;"
      "document.title='loaded in '+Math.ceil(performance.now())+' ms'})</script>";
  write_file(copy, text);
  const Output seen = browse(chromium, copy, {"--dump-dom", "--window-size=1280,1000"});
  const size_t at = seen.out.find("loaded in ");
  if (at == std::string::npos) return std::numeric_limits<double>::infinity();
  return std::stod(seen.out.substr(at + 10));
}

TEST(ReportPage, AThousandCasesOpenWithinTwoSecondsAndTwentyMegabytes) {
  const TemporaryFolder folder;
  write_journal(folder.path() / "run", 1000);
  const Output made = run_program("assay", {"report", folder / "run"});
  ASSERT_EQ(made.code, 0) << made.err;
  const fs::path page = folder.path() / "run/report.html";
  EXPECT_LE(fs::file_size(page), 20'000'000u);
  EXPECT_THAT(read_file(page), HasSubstr("20 of 1000 cases failed"));
  const fs::path chromium = find_executable("chromium");
  if (chromium.empty()) GTEST_SKIP() << "chromium is not installed: the page was made but not opened";
  double best = std::numeric_limits<double>::infinity();  // of three: other work on the machine is not the page's fault
  for (int i = 0; i < 3 && best > 2000; ++i)
    best = std::min(best, load_milliseconds(chromium, page, folder.path() / "timed.html"));
  if (best > 2000) {  // a slower machine than the two seconds are meant for: what takes a hundred cases' time there
    write_journal(folder.path() / "small", 100);
    ASSERT_EQ(run_program("assay", {"report", folder / "small"}).code, 0);
    double small = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      small = std::min(small, load_milliseconds(chromium, folder.path() / "small/report.html", folder / "timed.html"));
    }
    EXPECT_LE(best, 20 * small) << "in ms; ten times the cases";
  }
  RecordProperty("load_milliseconds", std::to_string(best));
  RecordProperty("bytes", std::to_string(fs::file_size(page)));
  std::printf("1,000 cases: %.1f MB, loaded and laid out in %.0f ms\n", static_cast<double>(fs::file_size(page)) / 1e6,
              best);
}

}  // namespace
}  // namespace assay::tests
