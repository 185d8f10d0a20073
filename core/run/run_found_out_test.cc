// Cases of an engine that finds out what it can do once it is open.
#include <gmock/gmock.h>

#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

TEST_F(Run, AMetricThatTheOpenedEngineCannotSupplyIsNotComparableAndSaysHowThatWasFoundOut) {
  options_.engine_options = R"({"info": "text_only"})";
  add_golden(add_case("tokens", {"ok abc"}, "METRICS: [generated_text, generated_tokens]\n"), "ok abc", "abc");
  run();
  EXPECT_EQ(verdict("tokens"), "NOT_COMPARABLE");
  EXPECT_THAT(reason("tokens"), HasSubstr("the engine cannot supply generated_tokens: no answer to a probe had ids"));
}

TEST_F(Run, FactsOfTheOpenedEngineAreInTheProvenanceOfItsResults) {
  options_.engine_options = R"({"info": "text_only"})";
  add_golden(add_case("text", {"ok abc"}), "ok abc", "abc");
  run();
  EXPECT_EQ(verdict("text"), "IDENTICAL") << reason("text");
  size_t seen = 0;
  const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
  for (const std::string& line : *lines) {
    const Json event = *parse_line(line);
    if (event["event"] != "case_finished") continue;
    EXPECT_EQ(event["provenance"]["facts"]["server"], "toy 1.0");
    ++seen;
  }
  EXPECT_EQ(seen, 1U);
}

TEST_F(Run, OutputsThatTheOpenedEngineCannotGiveAreNotAskedFor) {
  const std::string more = "  --return-log-probs: true\n  --top-n-logprobs: 5\n";
  add_golden(add_case("wishes", {"wishes"}, more), "wishes", "want 0 top_n 0");
  run();
  EXPECT_EQ(verdict("wishes"), "IDENTICAL") << reason("wishes");
}

TEST_F(Run, AnEngineThatClaimsMoreThanItsDescriptorIsInvalid) {
  options_.engine_options = R"({"info": "too_much"})";
  add_golden(add_case("liar", {"ok abc"}), "ok abc", "abc");
  run();
  EXPECT_EQ(verdict("liar"), "INVALID");
  EXPECT_THAT(reason("liar"), HasSubstr("engine misbehaving: info claims routing, which its descriptor has not"));
}

TEST_F(Run, FactsThatAreNoStringsAreInvalid) {
  options_.engine_options = R"({"info": "bad_facts"})";
  add_golden(add_case("facts", {"ok abc"}), "ok abc", "abc");
  run();
  EXPECT_EQ(verdict("facts"), "INVALID");
  EXPECT_THAT(reason("facts"), HasSubstr("expected a JSON object of strings"));
}

TEST_F(Run, AnEngineThatCannotSayWhatItCanDoGivesItsOwnVerdict) {
  options_.engine_options = R"({"info": "fails"})";
  add_golden(add_case("gone", {"ok abc"}), "ok abc", "abc");
  run();
  EXPECT_EQ(verdict("gone"), "INFRA");
  EXPECT_THAT(reason("gone"), HasSubstr("the server went away"));
}

}  // namespace
}  // namespace assay::run
