#include "plugins/engines/faulty/faulty.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plugins/engines/faulty/process_faults.h"
#include "plugins/engines/toy_backend/engine_driver.h"

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Faulty : public testing::Test {
 protected:
  static std::string options(std::string_view fault, int max_requests) {
    return nlohmann::json({{"fault", fault}, {"max_requests", max_requests}}).dump();
  }

  Outcome run(Fault fault, const std::vector<ToyRequest>& requests, int max_requests = 1) {
    engine_.reset();
    Result<std::unique_ptr<FaultyEngine>> engine =
        open_on_toy<FaultyEngine>(&model_, host_, options(to_string(fault), max_requests));
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_TRUE(submit(engine_.get(), i, requests[i]).ok());
    Outcome outcome;
    const Status status = drain(engine_.get(), &outcome);
    EXPECT_TRUE(status.ok()) << status.message();
    return outcome;
  }

  // Requests whose results differ between the two orders of submission. The state test of static_legacy asserts that
  // there are none: this is its detector.
  std::vector<size_t> changed_by_order(Fault fault, const std::vector<ToyRequest>& requests, int max_requests) {
    const Outcome forwards = run(fault, requests, max_requests);
    const Outcome backwards = run(fault, {requests.rbegin(), requests.rend()}, max_requests);
    std::vector<size_t> changed;
    for (size_t i = 0; i < requests.size(); ++i) {
      const EngineResult& a = forwards.finished.at(i);
      const EngineResult& b = backwards.finished.at(requests.size() - 1 - i);
      if (a.tokens != b.tokens || a.generated_logprobs != b.generated_logprobs) changed.push_back(i);
    }
    return changed;
  }

  ToyModel model_;
  ToyHost host_{&model_};
  std::unique_ptr<FaultyEngine> engine_;
  const std::vector<ToyRequest> requests_ = {{.text = "1 2 3"}, {.text = "4 5 6 7"}, {.text = "8 9"}};
};

TEST_F(Faulty, StaleKvIsSeenWhenRequestsArePermuted) {
  EXPECT_THAT(changed_by_order(Fault::kNone, requests_, 1), ElementsAre());
  EXPECT_THAT(changed_by_order(Fault::kStaleKv, requests_, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(changed_by_order(Fault::kNone, requests_, 2), ElementsAre());
  EXPECT_FALSE(changed_by_order(Fault::kStaleKv, requests_, 2).empty());
}

TEST_F(Faulty, StaleKvLeavesTheFirstUserOfARowAlone) {
  const Outcome good = run(Fault::kNone, requests_);
  const Outcome bad = run(Fault::kStaleKv, requests_);
  EXPECT_EQ(bad.finished.at(0).tokens, good.finished.at(0).tokens);
  EXPECT_EQ(bad.finished.at(1).tokens[0], good.finished.at(1).tokens[0]) << "prefill is right, decode reads old KV";
  EXPECT_NE(bad.finished.at(1).tokens, good.finished.at(1).tokens);
}

TEST_F(Faulty, OffByOnePositionChangesTokensFromTheSecondOn) {
  const Outcome good = run(Fault::kNone, requests_);
  const Outcome bad = run(Fault::kOffByOnePosition, requests_);
  for (size_t i = 0; i < requests_.size(); ++i) {
    EXPECT_EQ(bad.finished.at(i).tokens[0], good.finished.at(i).tokens[0]);
    EXPECT_NE(bad.finished.at(i).tokens, good.finished.at(i).tokens);
  }
}

TEST_F(Faulty, EodKeptAddsTheEodOfARequestThatEndedEarly) {
  model_.prefers = [](std::span<const int32_t> s) { return s[0] == 1 && s.size() == 5 ? kToyEod : 10; };
  const Outcome bad = run(Fault::kEodKept, requests_);
  EXPECT_THAT(bad.finished.at(0).tokens, ElementsAre(10, 10, kToyEod));
  EXPECT_EQ(bad.finished.at(0).generated_logprobs.size(), 3U);
  EXPECT_EQ(bad.finished.at(1).tokens.size(), 8U);
}

TEST_F(Faulty, LogprobFaultsTouchOneValueOfEachResult) {
  const Outcome good = run(Fault::kNone, requests_);
  for (const Fault fault : {Fault::kWrongLogprob, Fault::kNanLogprob}) {
    const Outcome bad = run(fault, requests_);
    for (size_t i = 0; i < requests_.size(); ++i) {
      int differing = 0;
      for (size_t k = 0; k < 8; ++k) {
        const double delta = bad.finished.at(i).generated_logprobs[k] - good.finished.at(i).generated_logprobs[k];
        if (delta == 0) continue;
        ++differing;
        EXPECT_EQ(std::isnan(delta), fault == Fault::kNanLogprob);
      }
      EXPECT_EQ(differing, 1);
      EXPECT_EQ(bad.finished.at(i).tokens, good.finished.at(i).tokens);
    }
  }
}

TEST_F(Faulty, TruncatedTextIsAProperPrefix) {
  const Outcome good = run(Fault::kNone, requests_);
  const Outcome bad = run(Fault::kTruncatedText, requests_);
  EXPECT_EQ(*bad.finished.at(0).text, good.finished.at(0).text->substr(0, good.finished.at(0).text->size() / 2));
  EXPECT_EQ(bad.finished.at(0).tokens, good.finished.at(0).tokens);
}

TEST_F(Faulty, DroppedRequestIsTheLastOne) {
  for (const int max_requests : {1, 4}) {
    const Outcome bad = run(Fault::kDroppedRequest, requests_, max_requests);
    EXPECT_THAT(bad.order, ElementsAre(0, 1));
  }
}

TEST_F(Faulty, SwappedRequestsCarryEachOthersResult) {
  const Outcome good = run(Fault::kNone, requests_);
  for (const int max_requests : {1, 4}) {
    const Outcome bad = run(Fault::kSwappedRequests, requests_, max_requests);
    EXPECT_EQ(bad.finished.at(0).tokens, good.finished.at(1).tokens);
    EXPECT_EQ(bad.finished.at(1).prompt, good.finished.at(0).prompt);
    EXPECT_EQ(bad.finished.at(2).tokens, good.finished.at(2).tokens);
  }
}

using FaultyDeathTest = Faulty;

TEST_F(FaultyDeathTest, CrashDiesExitLeavesQuietlyAndHangStays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(Fault::kCrash, requests_), "");
  EXPECT_EXIT(run(Fault::kExit, requests_), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        ::alarm(1);
        run(Fault::kHang, requests_);
      },
      testing::KilledBySignal(SIGALRM), "");
}

TEST_F(FaultyDeathTest, LeakedMemoryStaysResident) {
  EXPECT_EXIT(
      {
        rusage before{};
        rusage after{};
        ::getrusage(RUSAGE_SELF, &before);
        leak_memory(size_t{128} << 20);
        ::getrusage(RUSAGE_SELF, &after);
        ::_exit(after.ru_maxrss - before.ru_maxrss > 100 * 1024 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Faulty, EveryFaultHasAName) {
  for (const Fault fault : all_faults()) EXPECT_EQ(parse_fault(to_string(fault)), fault);
  EXPECT_EQ(parse_fault("no_such_fault"), std::nullopt);
  const nlohmann::json schema = nlohmann::json::parse(faulty_options_schema());
  EXPECT_EQ(schema["properties"]["fault"]["enum"].size(), all_faults().size());
  EXPECT_TRUE(schema["properties"].contains("max_requests"));
}

TEST_F(Faulty, AsksForAFaultThatItKnows) {
  const auto failure = [&](const std::string& given) {
    return open_on_toy<FaultyEngine>(&model_, host_, given).status().message();
  };
  EXPECT_THAT(failure("{}"),
              HasSubstr("fault is not set, expected one of none, doubled_first_token, prompt_head_truncated"));
  EXPECT_THAT(failure(R"({"fault": "stale"})"), HasSubstr("fault is stale, expected one of"));
  EXPECT_THAT(failure(R"({"fault": "none", "max_request": 1})"), HasSubstr("unknown member max_request"));
  EXPECT_THAT(failure("["), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace assay::engines
