#include "core/run/secrets.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "core/train/case_plan.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

const command::Redactor& redactor() {
  static const command::Redactor known(
      std::map<std::string, std::string>{{"API_KEY", "abcd1234"}, {"QUOTED_TOKEN", "a\"b\\c"}, {"PIN_SECRET", "1234"}});
  return known;
}

TEST(Secrets, OfARunComeFromItsEnvironmentItsVariablesItsCasesAndItsOptions) {
  RunOptions options;
  options.environment = {{"A_KEY", "from-environment"}, {"HOME", "/root"}};
  options.variables = {{"B_TOKEN", "from-set"}};
  options.engine_options = R"({"environment": {"C_SECRET": "from-options"}, "tokenizer": "no-secret"})";
  Plan plan;
  plan.groups.emplace_back();
  plan.groups[0].environment = {{"D_PASSWORD", "from-case"}};
  const command::Redactor known = secrets_of(options, plan);
  EXPECT_EQ(known.text("from-environment from-set from-options from-case no-secret /root"),
            "*** *** *** *** no-secret /root");
}

TEST(Secrets, OfARunLieAnywhereInOptionsOfAnyPlugin) {
  RunOptions options;
  options.engine_options = R"({"server": {"command": ["x"], "environment": {"A_KEY": "from-server"}},
                               "environment": {"B_KEY": "from-engine", "nested": {"environment": {"C_KEY": "deeper"}}}})";
  options.backend_options = R"({"remote": [{"variables": {"D_KEY": "from-backend"}}]})";
  options.launcher_options = R"({"pod": {"environment": {"E_KEY": "from-launcher", "PLAIN": "visible"}}})";
  Plan plan;
  plan.cases.emplace_back();
  plan.cases[0].order.engine_options = R"({"server": {"environment": {"F_KEY": "from-case"}}})";
  const command::Redactor known = secrets_of(options, plan);
  EXPECT_EQ(known.text("from-server from-engine deeper from-backend from-launcher visible from-case"),
            "*** *** *** *** *** visible ***");
}

// Whatever an engine then says to such options: refused or taken, they are written in many places.
TEST(Secrets, LieInMembersHeadersUrlsAndWordsOfOptions) {
  RunOptions options;
  options.engine_options = R"({"url": "http://bob:sesame-1@host", "api": "chat-no-secret",
      "headers": {"Authorization": "Bearer sesame-2", "X-Foo": "sesame-3", "Accept": "application/json"},
      "extra_body": {"deep": [{"api_key": "sesame-4", "stop": "visible-1"}], "tokens": ["visible-2"]},
      "server": {"command": ["x", "--api-key", "sesame-5", "--hf-token=sesame-6", "--port", "visible-3"]},
      "api_key_variable": "visible_4", "tokenizer": {"type": "visible-5"}, "passwords": ["sesame-7", {"a": "sesame-8"}]})";
  options.launcher_options = R"({"command": "ssh host --password sesame-9 https://h/x?api_key=pw"})";
  Plan plan;
  plan.cases.emplace_back();
  plan.cases[0].order.engine_options = R"({"ready": "https://h/?token=sesame-0"})";
  const command::Redactor known = secrets_of(options, plan);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(known.text("sesame-" + std::to_string(i)), "***") << i;
  EXPECT_EQ(known.text("visible_4"), "visible_4");
  for (int i = 1; i < 6; ++i) EXPECT_NE(known.text("visible-" + std::to_string(i)), "***") << i;
  EXPECT_EQ(known.text("application/json chat-no-secret"), "application/json chat-no-secret");
  EXPECT_EQ(known.text("http://bob:sesame-1@host https://h/x?api_key=pw"), "http://***host https://h/x?***");
  WorkerPlan worker;
  worker.cases.push_back(plan.cases[0].order);
  EXPECT_EQ(secrets_of_worker(worker, "").text("sesame-0"), "***");
}

TEST(Secrets, AKeyWhereTheNameOfItsVariableBelongsIsOne) {
  RunOptions options;
  options.engine_options = R"({"url": "http://h", "api_key_variable": "sk-sesame-11"})";
  EXPECT_EQ(secrets_of(options, {}).text("is sk-sesame-11 set?"), "is *** set?");
}

TEST(Secrets, OfATrainingProgramAreFoundInItsWordsAndVariables) {
  train::CasePlan training;
  training.runs.resize(1);
  training.runs[0].run = 1;
  training.runs[0].script = "pretrain_gpt.py";
  training.runs[0].arguments = {"--hf-token", "sesame-1", "--tokenizer-type", "TikTokenizer"};
  training.runs[0].environment = {{"WANDB_API_KEY", "sesame-2"}};
  training.runs[0].before_script = "export HF_TOKEN=sesame-3; true";
  training.runs[0].after_script = "check --password 'sesame 4'";
  Plan plan;
  plan.cases.emplace_back();
  plan.cases[0].order.training = {train::to_json(training)};
  const command::Redactor known = secrets_of({}, plan);
  EXPECT_EQ(known.text("sesame-1 sesame-2 TikTokenizer"), "*** *** TikTokenizer");
  EXPECT_EQ(known.text("sesame-3, sesame 4, check"), "***, ***, check");
}

TEST(Secrets, OptionsThatAreNestedTooDeepAreNotGoneDown) {
  RunOptions options;
  options.engine_options = R"({"a": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_TRUE(secrets_of(options, {}).empty()) << "who parses them refuses them";
}

TEST(Secrets, AreTakenOutOfStringsAndOutOfNothingElse) {
  Json tree = {{"seconds", 1234.5},
               {"reason", "key abcd1234 was refused"},
               {"list", {"1234", 1234}},
               {"options", {{"variables", {{"X_KEY", "ab"}, {"PLAIN", "abcd1234"}, {"PATH", "/bin"}}}}}};
  redact(redactor(), &tree);
  EXPECT_EQ(tree.dump(), R"({"seconds":1234.5,"reason":"key *** was refused","list":["***",1234],)"
                         R"("options":{"variables":{"X_KEY":"***","PLAIN":"***","PATH":"/bin"}}})");
}

TEST(Secrets, AreTakenOutOfWhatLiesBelowAListingToo) {
  Json tree = {{"environment", {{"nested", {{"reason", "abcd1234"}, {"environment", {{"X_KEY", "ab"}}}}}}}};
  redact(redactor(), &tree);
  EXPECT_EQ(tree.dump(), R"({"environment":{"nested":{"reason":"***","environment":{"X_KEY":"***"}}}})");
}

TEST(Secrets, OfAPlanTravelBesideIt) {
  const Json inner = {{"environment", {{"API_KEY", "abcd1234"}, {"QUOTED_TOKEN", "a\"b\\c"}}}};
  const Json plan = {{"engine_options", inner.dump()}, {"prompts", {"say abcd1234", "plain"}}, {"seed", 1234}};
  const HiddenSecrets hidden = hide_secrets(redactor(), plan.dump());
  EXPECT_THAT(hidden.text, Not(HasSubstr("abcd1234")));
  EXPECT_THAT(hidden.text, Not(HasSubstr("b\\\\\\\\c")));
  const Result<std::string> back = reveal_secrets(hidden.text, hidden.secrets);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(Json::parse(*back), plan);
  EXPECT_EQ(reveal_secrets(hidden.text, "").status().code(), StatusCode::kInvalid);
}

TEST(Secrets, ThatArePartsOfEachOtherOrOfAPlaceholderComeBackAsTheyWere) {
  const std::vector<std::string> values = {
      "secret", "assay", "${assay-secret:", "assay-secret:0}", "secretsecret", "cretas", "0000", "${as"};
  command::Redactor known;
  for (const std::string& value : values) known.add("A_KEY", value);
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t part = random() % 8; part > 0; --part) {
      text +=
          random() % 3 == 0 ? std::string("${assay-secret:0}").substr(random() % 17) : values[random() % values.size()];
    }
    const std::string plan = Json{{"prompts", {text}}}.dump() + "\n";
    const HiddenSecrets hidden = hide_secrets(known, plan);
    const Result<std::string> back = reveal_secrets(hidden.text, hidden.secrets);
    ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << hidden.text;
    ASSERT_EQ(*back, plan) << hidden.text;
  }
}

TEST(Secrets, ALongerOneIsHiddenWholeWhereAShorterOneOverlapsIt) {
  command::Redactor known;
  known.add("A_KEY", "xxab");
  known.add("B_KEY", "abcdefgh");
  EXPECT_THAT(hide_secrets(known, R"({"a":"xxabcdefgh"})").text, Not(HasSubstr("cdefgh")));
}

TEST(Secrets, ATextThatLooksLikeAPlaceholderIsKeptWithAndWithoutSecrets) {
  const std::string plan = R"({"prompts":["${assay-secret:0}","${assay-secret:x","abcd1234"]})"
                           "\n";
  const std::vector<command::Redactor> all = {redactor(), command::Redactor()};
  for (const command::Redactor& known : all) {
    const HiddenSecrets hidden = hide_secrets(known, plan);
    const Result<std::string> back = reveal_secrets(hidden.text, hidden.secrets);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, plan);
  }
}

TEST(Secrets, APlaceholderWithoutItsValueIsRefused) {
  for (const char* text : {"${assay-secret:7}", "${assay-secret:}", "${assay-secret:-1}", "${assay-secret:0"}) {
    const Result<std::string> plan = reveal_secrets(Json{{"a", text}}.dump(), R"(["abcd1234"])");
    ASSERT_FALSE(plan.ok()) << *plan;
    EXPECT_THAT(plan.status().message(), HasSubstr("ASSAY_SECRETS does not hold (1 value(s))"));
  }
  EXPECT_FALSE(reveal_secrets(R"({"a":"${assay-secret:0}"})", R"([7])").ok());
}

TEST(Secrets, APlanWithoutAnyStaysAsItIs) {
  const std::string plan = "{\"prompts\":[\"plain\"]}\n";
  const HiddenSecrets hidden = hide_secrets(redactor(), plan);
  EXPECT_EQ(hidden.text, plan);
  EXPECT_EQ(hidden.secrets, "");
  EXPECT_EQ(*reveal_secrets(plan, ""), plan);
}

}  // namespace
}  // namespace assay::run
