#include "core/command/redact.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

namespace assay::command {
namespace {

using testing::ElementsAre;
using Environment = std::map<std::string, std::string>;

TEST(Redact, KnowsSecretNames) {
  for (const char* name : {"KEY", "OPENAI_API_KEY", "hf_token", "My_Password", "client_secret", "apis", "AWS_SECRET"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const char* name : {"PATH", "HOME", "PASS", "NCCL_ALGO", ""}) EXPECT_FALSE(is_secret_name(name)) << name;
}

TEST(Redact, ReplacesEveryEchoOfAValue) {
  Redactor redactor(Environment{{"API_KEY", "abcd1234"}, {"HOME", "/root"}, {"MY_TOKEN", "abcd"}});
  EXPECT_EQ(redactor.text("x abcd1234 y abcd z /root"), "x *** y *** z /root");
  EXPECT_EQ(redactor.text("abcd1234abcd1234"), "******");
  EXPECT_EQ(redactor.text(""), "");
  EXPECT_EQ(redactor.secrets().size(), 2U);
}

TEST(Redact, LeavesAloneWhatIsNoSecret) {
  Redactor redactor(Environment{{"TOKENIZERS_PARALLELISM", "false"}, {"SHORT_KEY", "abc"}, {"SSH_KEY_DIR", "/usr"}});
  EXPECT_TRUE(redactor.empty());
  EXPECT_EQ(redactor.text("false abc /usr"), "false abc /usr");
  EXPECT_EQ(redactor.value("SHORT_KEY", "abc"), "***") << "in a listing the name decides";
  EXPECT_EQ(redactor.value("HOME", "/root"), "/root");
  EXPECT_EQ(redactor.value("API_KEY", ""), "") << "unset is worth knowing";
}

TEST(Redact, ReadsWordsOfACommandLine) {
  Redactor redactor(Environment{{"API_KEY", "abcd1234"}});
  EXPECT_THAT(
      redactor.words({"--set", "API_KEY=x", "HOME=/root", "--header=abcd1234", "a b=c", "abcd1234", "--set=API_KEY=x"}),
      ElementsAre("--set", "API_KEY=***", "HOME=/root", "--header=***", "a b=c", "***", "--set=API_KEY=***"));
}

TEST(Redact, KnowsAValueAsJsonWritesIt) {
  Redactor redactor(Environment{{"API_KEY", "a\"b\\c\nd"}});
  EXPECT_EQ(redactor.text(R"({"k": "a\"b\\c\nd"} )"), R"({"k": "***"} )");
}

class RedactFile : public testing::Test {
 protected:
  ~RedactFile() override { std::filesystem::remove(file_); }
  std::string after(const std::string& content, const Redactor& redactor) const {
    std::ofstream(file_, std::ios::binary) << content;
    EXPECT_TRUE(redactor.file(file_).ok());
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("redact_test." + std::to_string(::getpid()));
};

TEST_F(RedactFile, TakesOutValuesWhereverTheyLie) {
  const Redactor redactor(Environment{{"API_KEY", "abcdefgh"}});
  EXPECT_EQ(after("", redactor), "");
  EXPECT_EQ(after("nothing\n", redactor), "nothing\n");
  EXPECT_EQ(after("abcdefgh", redactor), "***");
  for (const size_t before :
       {(1U << 20) - 9, (1U << 20) - 8, (1U << 20) - 4, (1U << 20) - 1, 1U << 20, (3U << 20) - 3}) {
    const std::string filler(before, '.');
    EXPECT_TRUE(after(filler + "abcdefgh" + filler + "abcdefg", redactor) == filler + "***" + filler + "abcdefg")
        << before;
  }
}

TEST_F(RedactFile, IsQuietAboutAFileThatIsNotThere) {
  EXPECT_TRUE(Redactor(Environment{{"API_KEY", "abcdefgh"}}).file("/no/such/file").ok());
  EXPECT_EQ(after("abcdefgh", Redactor()), "abcdefgh");
}

}  // namespace
}  // namespace assay::command
