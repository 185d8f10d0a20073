#include "core/report/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/report/xml_text.h"

namespace assay::report {
namespace {

using testing::HasSubstr;
using testing::Not;

ReportCase report(const std::string& name, Verdict verdict, const std::string& reason = "") {
  ReportCase made;
  made.name = name;
  made.verdict.verdict = verdict;
  made.verdict.reason = reason;
  return made;
}

std::string junit(std::vector<ReportCase> cases, bool strict) {
  return junit_xml({.strict = strict, .cases = std::move(cases)});
}

TEST(XmlText, ForbiddenCharactersAndBrokenUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(xml_escape(std::string("a\0b\x1b", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(xml_escape("\xff\xC3\xA9\xC3"), "\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD");
  EXPECT_EQ(xml_escape("\xEF\xBF\xBE"), "\xEF\xBF\xBD");                          // U+FFFE
  EXPECT_EQ(xml_escape("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(xml_escape("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // an overlong slash
}

TEST(XmlText, MarkupAndLineBreaksAreEscaped) {
  EXPECT_EQ(xml_escape("<a b=\"c\">&'\n"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;&#10;");
}

TEST(Junit, EveryVerdictLandsInItsElement) {
  const std::string xml = junit({report("a", Verdict::kIdentical), report("b", Verdict::kDiverged, "token 3"),
                                 report("c", Verdict::kCrashed, "SIGSEGV"), report("d", Verdict::kSkipped, "no GPU"),
                                 report("e", Verdict::kInvalid, "line 3")},
                                false);
  EXPECT_THAT(xml, HasSubstr("tests=\"5\" failures=\"1\" errors=\"2\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"token 3\" type=\"DIVERGED\">"));
  EXPECT_THAT(xml, HasSubstr("<error message=\"SIGSEGV\" type=\"CRASHED\">"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"no GPU\"/>"));
}

TEST(Junit, EquivalentFailsOnlyUnderStrict) {
  EXPECT_THAT(junit({report("a", Verdict::kEquivalent)}, false), Not(HasSubstr("<failure")));
  EXPECT_THAT(junit({report("a", Verdict::kEquivalent)}, true), HasSubstr("<failure"));
}

TEST(Junit, ANotDeterministicCaseNamesTheRepeatsThatFail) {
  ReportCase flaky = report("a", Verdict::kFlaky, "passed 1 of 2 repeats");
  flaky.repeats = {{.verdict = Verdict::kIdentical}, {.verdict = Verdict::kDiverged, .reason = "token 3"}};
  EXPECT_THAT(junit({flaky}, false),
              HasSubstr("<rerunFailure message=\"token 3\" type=\"DIVERGED\">repeat 2: token 3<"));
  flaky.verdict.judged = Verdict::kFlaky;
  flaky.verdict.verdict = Verdict::kWaived;
  const std::string waived = junit({flaky}, false);
  EXPECT_THAT(waived, HasSubstr("<flakyFailure message=\"token 3\""));
  EXPECT_THAT(waived, Not(HasSubstr("<failure")));
}

TEST(Junit, NamesAreUniqueAndGroupedByFolder) {
  const std::string xml = junit({report("m/n/x", Verdict::kIdentical), report("m/n/x", Verdict::kIdentical)}, false);
  EXPECT_THAT(xml, HasSubstr("name=\"m/n/x\" classname=\"m.n\""));
  EXPECT_THAT(xml, HasSubstr("name=\"m/n/x (2)\""));
}

TEST(Junit, WritingIntoAMissingFolderNamesThePath) {
  const Status status = write_junit("/nonexistent/junit.xml", {});
  EXPECT_EQ(status.code(), StatusCode::kInfra);
  EXPECT_THAT(status.message(), HasSubstr("/nonexistent/junit.xml"));
}

TEST(Junit, TheFileHoldsTheXml) {
  const std::string path = testing::TempDir() + "/junit_" + std::to_string(::getpid()) + ".xml";
  ASSERT_TRUE(write_junit(path, {.cases = {report("a", Verdict::kIdentical)}}).ok());
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, junit({report("a", Verdict::kIdentical)}, false));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace assay::report
