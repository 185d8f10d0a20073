#include "core/command/redact.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "core/command/environment.h"
#include "core/command/log_tail.h"

namespace assay::command {
namespace {

using testing::ElementsAre;
using Environment = std::map<std::string, std::string>;

TEST(Redact, KnowsSecretNames) {
  for (const char* name : {"KEY",           "OPENAI_API_KEY",
                           "hf_token",      "My_Password",
                           "client_secret", "apis",
                           "AWS_SECRET",    "MONKEY",
                           "DB_PASSWD",     "GPG_PASSPHRASE",
                           "DB_PWD",        "MYSQLPWD",
                           "GITHUB_PAT",    "pat",
                           "PAT_2",         "X-Pat",
                           "CREDENTIAL",    "Credentials",
                           "BASIC_AUTH",    "X-Auth",
                           "Authorization", "PROXY_AUTHENTICATION",
                           "PASS",          "DB_PASS",
                           "SSHPASS",       "PASS_2"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const char* name :
       {"PATH", "LD_LIBRARY_PATH", "HOME", "NCCL_ALGO", "", "PWD", "OLDPWD", "AUTHOR", "GIT_AUTHOR_NAME", "XAUTHORITY",
        "PATTERN", "PATCH", "COMPAT", "PASSAGE", "PASSES", "PASSTHROUGH", "NUM_PASSED"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

TEST(Redact, KnowsSecretOptionsFromThoseOfModels) {
  for (const char* name : {"api_key", "api-key", "apiKey", "api_keys", "hf-token", "accessToken", "auth_token",
                           "password", "db-password-2", "key", "token", "client-secret", "credentials",
                           "tokenizer-api-key", "authorization", "pat", "db-pass"}) {
    EXPECT_TRUE(is_secret_option(name)) << name;
  }
  for (const char* name :
       {"api", "tokenizer", "tokenizer-model", "tiktoken-pattern", "max_tokens", "num-tokens-to-generate",
        "keep_tokens", "return_tokens_as_token_ids", "moe-token-dispatcher-type", "calculate-per-token-loss",
        "linear-num-key-heads", "json-keys", "api_key_variable", "api_key_header", "model", "author", "path", ""}) {
    EXPECT_FALSE(is_secret_option(name)) << name;
  }
}

TEST(Redact, FindsTheSecretsOfACommandsWords) {
  Redactor redactor;
  redactor.add_words({"serve", "--api-key", "sesame-1", "--auth-token=sesame-2", "--tokenizer-model", "words-1", "-c",
                      "run --password 'sesame-3' --token=\"sesame-4\" --port 80", "HF_TOKEN=sesame-5", "MODE=plain-1",
                      "http://me:sesame-6@host/x?k=sesame-7&api_key=s#part-1", "--key", "--port", "--secret"});
  EXPECT_EQ(
      redactor.text("sesame-1 sesame-2 words-1 sesame-3 sesame-4 sesame-5 plain-1 sesame-6 sesame-7 part-1 --port"),
      "*** *** words-1 *** *** *** plain-1 *** *** part-1 --port");
  EXPECT_EQ(redactor.text("host/x?k=sesame-7&api_key=s#part-1"), "host/x?***&***#part-1") << "however short";
  EXPECT_EQ(redactor.text("ftp://me:sesame-6@host"), "ftp://***host");
}

TEST(Redact, FindsTheSecretsOfScriptsAsAShellReadsThem) {
  Redactor redactor;
  redactor.add_words(
      {"export A_TOKEN=sesame-1; (B_KEY=\"sesame two\" run --password 'sesame three'|cat)\n"
       "C_TOKEN=sesame-4&& D_KEY=sesame\\ 5 go;E_TOKEN=$(cat file)\nF_KEY=\"a\\\"sesame-6\" it's",
       "G_TOKEN=sesame-7\n", "H_TOKEN=sesame-8;"});
  for (const char* secret :
       {"sesame-1", "sesame two", "sesame three", "sesame-4", "sesame 5", "a\"sesame-6", "sesame-7", "sesame-8"}) {
    EXPECT_EQ(redactor.text(secret), "***") << secret;
  }
  EXPECT_EQ(redactor.text("export run cat file go"), "export run cat file go");
}

TEST(Redact, FindsTheSecretsOfUrls) {
  Redactor redactor;
  redactor.add_urls("see http://a:b@h and ftp://name-only@h, http://h/p?x=yyyy //no:url@h, http:// , http://@h?");
  EXPECT_EQ(redactor.text("a:b@h name-only yyyy no:url@h"), "***h *** *** no:url@h");
  EXPECT_EQ(redactor.text("http://h/p"), "http://h/p");
}

TEST(Redact, ShowsNoValueOfAnOptionWithASecretName) {
  EXPECT_THAT(Redactor().words({"--api-key", "pw", "--api-key=pw", "--token", "--port", "1", "--max-tokens", "8",
                                "--password=", "--api-key"}),
              ElementsAre("--api-key", "***", "--api-key=***", "--token", "--port", "1", "--max-tokens", "8",
                          "--password=", "--api-key"));
}

TEST(Redact, ReplacesEveryEchoOfAValue) {
  Redactor redactor(Environment{{"API_KEY", "abcd1234"}, {"HOME", "/root"}, {"MY_TOKEN", "abcd"}});
  EXPECT_EQ(redactor.text("x abcd1234 y abcd z /root"), "x *** y *** z /root");
  EXPECT_EQ(redactor.text("abcd1234abcd1234"), "******");
  EXPECT_EQ(redactor.text(""), "");
  EXPECT_EQ(redactor.spellings().size(), 2U);
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
  EXPECT_EQ(Redactor(Environment{{"API_KEY", "ab\b\fcd"}}).text(R"({"k": "ab\b\fcd"})"), R"({"k": "***"})");
}

TEST(OwnEnvironment, IsThatOfGetenv) {
  ::setenv("REDACT_TEST_A", "x=y", 1);
  ::setenv("REDACT_TEST_EMPTY", "", 1);
  const std::map<std::string, std::string> own = own_environment();
  EXPECT_EQ(own.at("REDACT_TEST_A"), "x=y");
  EXPECT_EQ(own.at("REDACT_TEST_EMPTY"), "");
  EXPECT_EQ(own.count("REDACT_TEST_ABSENT"), 0U);
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

TEST_F(RedactFile, TakesOutTheLongerOfTwoValuesThatBeginAlike) {
  const Redactor redactor(Environment{{"API_KEY", "abcdefgh"}, {"MY_TOKEN", "abcd"}, {"B_TOKEN", "ghij"}});
  for (size_t before = (1U << 20) - 12; before <= (1U << 20) + 1; ++before) {
    const std::string filler(before, '.');
    EXPECT_TRUE(after(filler + "abcdefgh" + filler, redactor) == filler + "***" + filler) << before;
    EXPECT_TRUE(after(filler + "abcdefghij" + filler, redactor) == filler + "***ij" + filler) << before;
  }
}

TEST_F(RedactFile, AFolderIsCleanedWithAllThatLiesBelow) {
  namespace fs = std::filesystem;
  const fs::path folder = file_.string() + ".d";
  fs::create_directories(folder / "attempt_0/1");
  for (const char* name : {"a.log", "attempt_0/1/stderr.log"}) std::ofstream(folder / name) << "key abcdefgh";
  std::ofstream(file_) << "of somebody else: abcdefgh";
  fs::create_symlink(file_, folder / "link");
  EXPECT_TRUE(Redactor(Environment{{"API_KEY", "abcdefgh"}}).folder(folder).ok());
  const auto text = [](const fs::path& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(text(folder / "a.log"), "key ***");
  EXPECT_EQ(text(folder / "attempt_0/1/stderr.log"), "key ***");
  EXPECT_EQ(text(file_), "of somebody else: abcdefgh");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  fs::remove_all(folder);
  EXPECT_TRUE(Redactor(Environment{{"API_KEY", "abcdefgh"}}).folder(folder).ok()) << "nothing is there";
}

// A tail that begins or ends anywhere in a value shows no part of it that could be used.
TEST_F(RedactFile, NoCutLeavesAPartOfAValue) {
  const Redactor redactor(Environment{{"API_KEY", "k1k2k3k4k5k6"}});
  std::ofstream(file_) << "before k1k2k3k4k5k6 after\nmore\n";
  for (size_t bytes = 1; bytes < 40; ++bytes) {
    const std::string tail = last_lines(file_, redactor, 3, bytes);
    EXPECT_LE(tail.size(), bytes + 3);  // " | " for a line's end
    EXPECT_EQ(tail.find_first_of("k123456"), std::string::npos) << bytes << ": " << tail;
  }
  EXPECT_EQ(last_lines(file_, redactor), "before *** after | more");
  std::ofstream(file_) << "still written: k1k2k3";
  EXPECT_EQ(last_lines(file_, redactor), "still written: ");
  std::ofstream(file_) << "one\ntwo\nthree\n\nfour\x01\n";
  EXPECT_EQ(last_lines(file_, Redactor(), 2), "three | four?");
  EXPECT_EQ(last_lines(file_.string() + ".absent", redactor), "");
}

TEST_F(RedactFile, AFileThatCannotBeReadToItsEndIsAFailure) {
  const Redactor redactor(Environment{{"API_KEY", "abcdefgh"}});
  const Status unreadable = redactor.file("/proc/self/mem");  // reading its first page is an error
  EXPECT_EQ(unreadable.code(), StatusCode::kInfra);
  EXPECT_THAT(unreadable.message(), testing::HasSubstr("/proc/self/mem: secrets cannot be taken out"));
}

TEST_F(RedactFile, WhatCannotBeLookedAtIsAFailureAndNotAnAbsence) {
  namespace fs = std::filesystem;
  const Redactor redactor(Environment{{"API_KEY", "abcdefgh"}});
  const fs::path loop = file_.string() + ".loop";
  fs::create_symlink(loop, loop);
  EXPECT_EQ(redactor.file(loop).code(), StatusCode::kInfra);
  EXPECT_EQ(redactor.folder(loop).code(), StatusCode::kInfra);
  EXPECT_THAT(redactor.folder(loop).message(), testing::HasSubstr("cannot be read to its end"));
  fs::remove(loop);
}

TEST_F(RedactFile, IsQuietAboutAFileThatIsNotThere) {
  EXPECT_TRUE(Redactor(Environment{{"API_KEY", "abcdefgh"}}).file("/no/such/file").ok());
  EXPECT_EQ(after("abcdefgh", Redactor()), "abcdefgh");
}

}  // namespace
}  // namespace assay::command
