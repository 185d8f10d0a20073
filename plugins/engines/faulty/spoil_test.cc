// Every fault that is put into results changes what its name says, and nothing else.
#include "plugins/engines/faulty/spoil.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "plugins/engines/faulty/edit_result.h"
#include "plugins/engines/toy_backend/engine_driver.h"

namespace assay::engines {
namespace {

using testing::ElementsAre;

constexpr size_t kRequests = 4;

class Spoiled : public testing::Test {
 protected:
  Spoiled() : codec_(*TextCodec::open(kToyTokenizer)) {
    for (uint64_t id = 0; id < kRequests; ++id) {
      asked_[id] = {.new_tokens = 8, .forced = false};
      original_.push_back(result(id));
    }
  }

  // Three prompt tokens, six generated ones (of eight asked for), routing of two layers and two experts.
  EngineResult result(uint64_t id) const {
    const auto first = static_cast<int32_t>(10 * id);
    EngineResult made;
    made.id = id;
    made.prompt_ids = {first + 1, first + 2, first + 3};
    made.tokens = {first + 4, first + 5, first + 6, first + 7, first + 8, first + 9};
    made.prompt_logprobs = {-7.77 - static_cast<double>(id), -0.25};
    made.generated_logprobs = {-0.1, -1.2, -2.3, -3.4, -4.51, -5.6};
    for (size_t i = 0; i < 6; ++i) {
      for (const int32_t n : {0, 1}) {
        const int32_t token = n == 0 ? made.tokens[i] : 60 + static_cast<int32_t>(i % 2);
        made.generated_top_n.ids.push_back(token);
        made.generated_top_n.texts.emplace_back(std::to_string(token));
        made.generated_top_n.logprobs.push_back(-0.1 - n);
      }
      made.generated_top_n.counts.push_back(2);
    }
    made.tpot = {0.5, 0.1, 0.1, 0.1, 0.1, 0.1};
    made.generated_ranks = {0, 0, 0, 0, 0, 0};
    made.generated_logits = {1, 2, 3, 4, 5, 6};
    made.moe_layers = 2;
    made.moe_topk = 2;
    made.routing_tokens = 8;
    for (uint16_t i = 0; i < 8; ++i) {
      for (const uint16_t expert : {uint16_t{0}, static_cast<uint16_t>(2 + i % 3), uint16_t{1}, uint16_t{6}}) {
        made.routing.push_back(expert);
      }
    }
    made.routing_margins.assign(16, 0.5F);
    made.prompt = *codec_.decode(made.prompt_ids);
    decode_again(&made, codec_);
    return made;
  }

  // The results by id, after the fault; `where_` says where.
  std::vector<EngineResult> spoil(Fault fault, std::optional<uint64_t> seed, uint64_t call = 1) {
    std::vector<EngineEvent> events;
    for (const EngineResult& one : original_) events.push_back(finished_event(EngineResult(one)));
    where_ = spoil_results({.fault = fault,
                            .places = Places(seed, kRequests),
                            .codec = &codec_,
                            .asked = &asked_,
                            .originals = {},
                            .call = call},
                           &events);
    std::vector<EngineResult> results;
    for (EngineEvent& event : events) {
      EXPECT_EQ(event.id, event.result->id);
      results.push_back(std::move(*event.result));
    }
    return results;
  }

  static bool same(const EngineResult& a, const EngineResult& b) {
    return a.id == b.id && a.prompt == b.prompt && a.prompt_ids == b.prompt_ids && a.text == b.text &&
           a.tokens == b.tokens && same_numbers(a, b);
  }
  static bool same_numbers(const EngineResult& a, const EngineResult& b) {
    return a.prompt_logprobs == b.prompt_logprobs && a.generated_logprobs == b.generated_logprobs &&
           a.generated_top_n.ids == b.generated_top_n.ids && a.generated_top_n.logprobs == b.generated_top_n.logprobs &&
           a.routing == b.routing;
  }

  // Spoils at seeds 0 .. 11 and checks: the victim alone is struck, it differs, and the places are many. `check` gets
  // (bad, good).
  template <class Check>
  void at_many_places(Fault fault, size_t least_places, Check check) {
    std::set<std::string> places;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const std::vector<EngineResult> bad = spoil(fault, seed);
      ASSERT_EQ(where_.size(), 1U) << to_string(fault) << " seed " << seed;
      places.insert(where_[0]);
      ASSERT_EQ(bad.size(), kRequests);
      for (size_t i = 0; i < kRequests; ++i) {
        if (i != seed % kRequests) {
          EXPECT_TRUE(same(bad[i], original_[i])) << to_string(fault) << " seed " << seed << " request " << i;
          continue;
        }
        EXPECT_FALSE(same(bad[i], original_[i])) << to_string(fault) << " seed " << seed;
        expect_in_step(bad[i]);
        check(bad[i], original_[i]);
      }
    }
    EXPECT_GE(places.size(), least_places) << to_string(fault);
  }

  // A result is spoiled in one respect: its parts still have the sizes that the border asks for.
  static void expect_in_step(const EngineResult& result) {
    const size_t count = result.tokens.size();
    EXPECT_EQ(result.generated_logprobs.size(), count);
    EXPECT_EQ(result.generated_ranks.size(), count);
    EXPECT_EQ(result.generated_logits.size(), count);
    EXPECT_EQ(result.tpot.size(), count);
    EXPECT_EQ(result.generated_top_n.counts.size(), count);
    EXPECT_EQ(result.generated_top_n.ids.size(), 2 * count);
    EXPECT_EQ(result.routing_tokens, result.prompt_ids.size() + count - 1);
    EXPECT_EQ(result.routing.size(), result.routing_tokens * 4);
    EXPECT_EQ(result.routing_margins.size(), result.routing_tokens * 2);
  }

  static int differing(const std::vector<double>& a, const std::vector<double>& b) {
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += a[i] == b.at(i) ? 0 : 1;
    return count;
  }

  TextCodec codec_;
  std::map<uint64_t, Asked> asked_;
  std::vector<EngineResult> original_;
  std::vector<std::string> where_;
};

TEST_F(Spoiled, DroppedTokenIsMissing) {
  at_many_places(Fault::kDroppedToken, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(bad.tokens.size(), good.tokens.size() - 1);
    EXPECT_TRUE(std::includes(good.tokens.begin(), good.tokens.end(), bad.tokens.begin(), bad.tokens.end()));
    EXPECT_NE(bad.text, good.text);
  });
}

TEST_F(Spoiled, DuplicatedTokenIsThereTwice) {
  at_many_places(Fault::kDuplicatedToken, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(bad.tokens.size(), good.tokens.size() + 1);
    std::vector<int32_t> once = bad.tokens;
    once.erase(std::unique(once.begin(), once.end()), once.end());
    EXPECT_EQ(once, good.tokens);
  });
}

TEST_F(Spoiled, SwappedTokensAreNeighbours) {
  at_many_places(Fault::kSwappedTokens, 6, [](const EngineResult& bad, const EngineResult& good) {
    const auto [left, right] = std::mismatch(bad.tokens.begin(), bad.tokens.end(), good.tokens.begin());
    EXPECT_EQ(left[0], right[1]);
    EXPECT_EQ(left[1], right[0]);
    EXPECT_TRUE(std::equal(left + 2, bad.tokens.end(), right + 2));
  });
}

TEST_F(Spoiled, WrongLastTokenLeavesTheOthers) {
  at_many_places(Fault::kWrongLastToken, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_TRUE(std::equal(bad.tokens.begin(), bad.tokens.end() - 1, good.tokens.begin()));
    EXPECT_NE(bad.tokens.back(), good.tokens.back());
    EXPECT_EQ(bad.tokens.size(), good.tokens.size());
  });
}

TEST_F(Spoiled, EarlyStopLeavesABeginning) {
  at_many_places(Fault::kEarlyStop, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_GE(bad.tokens.size(), 1U);
    EXPECT_LT(bad.tokens.size(), good.tokens.size());
    EXPECT_TRUE(std::equal(bad.tokens.begin(), bad.tokens.end(), good.tokens.begin()));
    EXPECT_TRUE(good.text->starts_with(*bad.text));
  });
}

TEST_F(Spoiled, RunsOnKeepsTheBeginning) {
  at_many_places(Fault::kRunsOn, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_GT(bad.tokens.size(), good.tokens.size());
    EXPECT_TRUE(std::equal(good.tokens.begin(), good.tokens.end(), bad.tokens.begin()));
  });
}

TEST_F(Spoiled, EodKeptEndsWithTheEodAndLeavesFullAnswersAlone) {
  at_many_places(Fault::kEodKept, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_TRUE(std::equal(good.tokens.begin(), good.tokens.end(), bad.tokens.begin()));
    EXPECT_EQ(bad.tokens.back(), kToyEod);
    EXPECT_EQ(bad.text, good.text);
  });
  for (auto& [id, asked] : asked_) asked.new_tokens = 6;
  spoil(Fault::kEodKept, 1);
  EXPECT_TRUE(where_.empty());
}

TEST_F(Spoiled, OneCharacterAndEmptyOutputsAreWhatTheySay) {
  at_many_places(Fault::kOneCharacter, 4, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_THAT(bad.tokens, ElementsAre(good.tokens[0]));
    EXPECT_EQ(*bad.text, good.text->substr(0, 1));
  });
  at_many_places(Fault::kEmptyOutput, 4, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_TRUE(bad.tokens.empty());
    EXPECT_EQ(bad.text, "");
    EXPECT_EQ(bad.prompt_logprobs, good.prompt_logprobs);
  });
}

TEST_F(Spoiled, OtherOutputKeepsThePrompt) {
  at_many_places(Fault::kOtherOutput, 6, [this](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(bad.prompt_ids, good.prompt_ids);
    const auto other = std::find_if(original_.begin(), original_.end(),
                                    [&](const EngineResult& one) { return one.tokens == bad.tokens; });
    ASSERT_NE(other, original_.end());
    EXPECT_NE(other->id, bad.id);
    EXPECT_EQ(other->text, bad.text);
  });
}

TEST_F(Spoiled, TokensThatWereForcedStay) {
  for (auto& [id, asked] : asked_) asked.forced = true;
  for (const Fault fault : {Fault::kDroppedToken, Fault::kWrongLastToken, Fault::kEmptyOutput}) {
    spoil(fault, 2);
    EXPECT_TRUE(where_.empty()) << to_string(fault);
  }
  spoil(Fault::kWrongLogprob, 2);
  EXPECT_EQ(where_.size(), 1U) << "numbers are wrong whoever chose the tokens";
}

TEST_F(Spoiled, TextFaultsLeaveTokensAlone) {
  const auto tokens_stay = [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(bad.tokens, good.tokens);
    EXPECT_TRUE(same_numbers(bad, good));
    EXPECT_NE(bad.text, good.text);
  };
  for (EngineResult& one : original_) one.text = " Once upon a time\n\nthere was";
  at_many_places(Fault::kTruncatedText, 6, [&](const EngineResult& bad, const EngineResult& good) {
    tokens_stay(bad, good);
    EXPECT_TRUE(good.text->starts_with(*bad.text));
    EXPECT_LT(bad.text->size(), good.text->find("\n\n")) << "what is judged is shorter";
  });
  at_many_places(Fault::kLostCharacter, 6, [&](const EngineResult& bad, const EngineResult& good) {
    tokens_stay(bad, good);
    EXPECT_EQ(bad.text->size(), good.text->size() - 1);
  });
  at_many_places(Fault::kInvalidUtf8, 6, [&](const EngineResult& bad, const EngineResult& good) {
    tokens_stay(bad, good);
    EXPECT_EQ(std::count(bad.text->begin(), bad.text->end(), '\xFF'), 1);
  });
  at_many_places(Fault::kLostLeadingSpace, 4, [&](const EngineResult& bad, const EngineResult& good) {
    tokens_stay(bad, good);
    EXPECT_EQ(" " + *bad.text, *good.text);
  });
  at_many_places(Fault::kChangedWord, 6, [&](const EngineResult& bad, const EngineResult& good) {
    tokens_stay(bad, good);
    EXPECT_NE(bad.text->find("assay"), std::string::npos);
  });
}

TEST_F(Spoiled, OneLogprobIsWrongNanOrInfinite) {
  at_many_places(Fault::kWrongLogprob, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(differing(bad.generated_logprobs, good.generated_logprobs), 1);
    EXPECT_EQ(bad.prompt_logprobs, good.prompt_logprobs);
  });
  at_many_places(Fault::kNanLogprob, 6, [](const EngineResult& bad, const EngineResult&) {
    EXPECT_EQ(std::count_if(bad.generated_logprobs.begin(), bad.generated_logprobs.end(),
                            [](double x) { return std::isnan(x); }),
              1);
  });
  at_many_places(Fault::kInfLogprob, 6, [](const EngineResult& bad, const EngineResult&) {
    EXPECT_EQ(std::count(bad.generated_logprobs.begin(), bad.generated_logprobs.end(), INFINITY), 1);
  });
}

TEST_F(Spoiled, ShiftedLogprobsAreTheSameValuesElsewhere) {
  at_many_places(Fault::kShiftedLogprobs, 6, [](const EngineResult& bad, const EngineResult& good) {
    std::vector<double> before = good.prompt_logprobs;
    before.insert(before.end(), good.generated_logprobs.begin(), good.generated_logprobs.end());
    std::vector<double> after = bad.prompt_logprobs;
    after.insert(after.end(), bad.generated_logprobs.begin(), bad.generated_logprobs.end());
    EXPECT_TRUE(std::equal(before.begin() + 1, before.end(), after.begin()) ||
                std::equal(after.begin() + 1, after.end(), before.begin()));
  });
}

TEST_F(Spoiled, PromptLogprobsCanBeMissing) {
  at_many_places(Fault::kDroppedPromptLogprobs, 4, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_TRUE(bad.prompt_logprobs.empty());
    EXPECT_EQ(bad.generated_logprobs, good.generated_logprobs);
  });
}

TEST_F(Spoiled, RoundedLogprobsMoveByMoreThanTheToleranceAndNoFurtherThanTheType) {
  for (const auto& [fault, most] :
       std::vector<std::pair<Fault, double>>{{Fault::kFp16Logprobs, 0x1p-10}, {Fault::kBf16Logprobs, 0x1p-7}}) {
    at_many_places(fault, 4, [most = most](const EngineResult& bad, const EngineResult& good) {
      double largest = 0;
      for (size_t i = 0; i < good.generated_logprobs.size(); ++i) {
        const double moved = std::fabs(bad.generated_logprobs[i] - good.generated_logprobs[i]);
        EXPECT_LE(moved, std::fabs(good.generated_logprobs[i]) * most);
        largest = std::max(largest, moved);
      }
      for (size_t i = 0; i < good.prompt_logprobs.size(); ++i) {
        largest = std::max(largest, std::fabs(bad.prompt_logprobs[i] - good.prompt_logprobs[i]));
      }
      EXPECT_GT(largest, 1e-3);
    });
  }
  at_many_places(Fault::kBf16Probabilities, 4, [](const EngineResult& bad, const EngineResult& good) {
    for (size_t i = 0; i < good.generated_logprobs.size(); ++i) {
      EXPECT_NEAR(std::exp(bad.generated_logprobs[i]), std::exp(good.generated_logprobs[i]), 0x1p-8);
    }
  });
  for (EngineResult& one : original_) {
    one.prompt_logprobs = {-0.5, -0.25};
    one.generated_logprobs.assign(6, -1.0);
  }
  spoil(Fault::kFp16Logprobs, 1);
  EXPECT_TRUE(where_.empty()) << "numbers that the type holds show nothing";
}

TEST_F(Spoiled, TopNListsHaveWrongOrderOrEntry) {
  at_many_places(Fault::kTopNOrder, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(bad.generated_top_n.ids, good.generated_top_n.ids);
    EXPECT_EQ(differing(bad.generated_top_n.logprobs, good.generated_top_n.logprobs), 2);
  });
  at_many_places(Fault::kTopNEntry, 6, [](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(bad.generated_top_n.logprobs, good.generated_top_n.logprobs);
    int changed = 0;
    for (size_t i = 0; i < good.generated_top_n.ids.size(); ++i) {
      if (bad.generated_top_n.ids[i] == good.generated_top_n.ids[i]) continue;
      ++changed;
      EXPECT_EQ(i % 2, 0U) << "the best entry of its list";
      EXPECT_EQ(*bad.generated_top_n.texts[i], std::to_string(bad.generated_top_n.ids[i]));
    }
    EXPECT_EQ(changed, 1);
  });
}

TEST_F(Spoiled, RoutingReportsDifferInOneSetOrTwoLayers) {
  const auto sets_changed = [](const EngineResult& bad, const EngineResult& good) {
    std::vector<size_t> changed;
    for (size_t set = 0; set < 16; ++set) {
      const auto begin = static_cast<ptrdiff_t>(2 * set);
      EXPECT_LT(bad.routing[2 * set], bad.routing[2 * set + 1]) << "ascending, no expert twice";
      if (!std::equal(bad.routing.begin() + begin, bad.routing.begin() + begin + 2, good.routing.begin() + begin)) {
        changed.push_back(set);
      }
    }
    return changed;
  };
  at_many_places(Fault::kRoutingReport, 6, [&](const EngineResult& bad, const EngineResult& good) {
    EXPECT_EQ(sets_changed(bad, good).size(), 1U);
  });
  at_many_places(Fault::kRoutingLayers, 6, [&](const EngineResult& bad, const EngineResult& good) {
    const std::vector<size_t> changed = sets_changed(bad, good);
    ASSERT_EQ(changed.size(), 2U);
    EXPECT_EQ(changed[0] / 2, changed[1] / 2) << "two layers of one position";
  });
}

TEST_F(Spoiled, SetsOfResultsLackRepeatAddOrSwapOne) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<EngineResult> fewer = spoil(Fault::kDroppedRequest, seed);
    ASSERT_EQ(fewer.size(), kRequests - 1);
    for (const EngineResult& one : fewer) EXPECT_NE(one.id, seed % kRequests);
    EXPECT_EQ(spoil(Fault::kExtraRequest, seed).back().id, kRequests - 1 + 1000);
    const std::vector<EngineResult> twice = spoil(Fault::kRepeatedRequest, seed);
    EXPECT_EQ(twice.back().id, seed % kRequests);
    EXPECT_EQ(twice.size(), kRequests + 1);
    const std::vector<EngineResult> swapped = spoil(Fault::kSwappedRequests, seed);
    size_t wrong = 0;
    for (const EngineResult& one : swapped) wrong += one.tokens == original_[one.id].tokens ? 0 : 1;
    EXPECT_EQ(wrong, 2U);
    EXPECT_EQ(where_.size(), 1U);
  }
}

TEST_F(Spoiled, UnstableFaultsStrikeEverySecondCall) {
  for (const Fault fault : {Fault::kUnstableLogprob, Fault::kUnstableToken}) {
    const std::vector<EngineResult> odd = spoil(fault, 1, 1);
    EXPECT_FALSE(same(odd[1], original_[1]));
    EXPECT_EQ(where_.size(), 1U);
    const std::vector<EngineResult> even = spoil(fault, 1, 2);
    EXPECT_TRUE(same(even[1], original_[1]));
    EXPECT_TRUE(where_.empty());
  }
}

TEST_F(Spoiled, OnlyResultsThatOfferAPlaceAreChosenFrom) {
  original_[1].text = "no space";
  std::set<std::string> places;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    EXPECT_EQ(spoil(Fault::kLostLeadingSpace, seed)[1].text, "no space");
    ASSERT_EQ(where_.size(), 1U);
    places.insert(where_[0]);
  }
  EXPECT_EQ(places.size(), 3U) << "the other three";
}

}  // namespace
}  // namespace assay::engines
