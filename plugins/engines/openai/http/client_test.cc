// TLS against `openssl s_server` with a certificate that it made itself.
#include "plugins/engines/openai/http/client.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/command/command.h"

namespace assay::engines::openai {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

HttpAnswer get(const std::string& url, const std::string& ca_file) {
  Result<std::unique_ptr<HttpClient>> client =
      HttpClient::open({.connect_seconds = 5, .whole_seconds = 10, .ca_file = ca_file});
  EXPECT_TRUE(client.ok()) << client.status().message();
  HttpAnswer answer;
  for (int i = 0; i < 100; ++i) {  // until the server listens
    (*client)->start({.url = url, .body = "", .headers = {}, .sink = {}});
    std::vector<HttpAnswer> ended;
    while (ended.empty()) ended = (*client)->poll(0.05);
    answer = std::move(ended.front());
    if (!answer.before_any_byte) return answer;
    ::usleep(50000);
  }
  return answer;
}

TEST(HttpClient, TrustsACertificateOfItsOwnOnlyWhereItIsNamed) {
  const fs::path dir = fs::path(testing::TempDir()) / ("openai_tls_test." + std::to_string(::getpid()));
  fs::create_directories(dir / "v1");
  std::ofstream(dir / "v1/models") << "hello";
  const auto openssl = [&](const std::vector<std::string>& words) {
    command::CommandOptions options;
    options.argv = {"openssl"};
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    options.folder = dir;
    options.errors = dir / "log";
    options.output = dir / "log";
    return command::Command::start(std::move(options));
  };
  Result<command::Command> made = openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                                           "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj",
                                           "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"});
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(made->wait().ok());
  const std::string port = std::to_string(20000 + ::getpid() % 20000);
  Result<command::Command> server =
      openssl({"s_server", "-quiet", "-accept", "127.0.0.1:" + port, "-cert", "cert.pem", "-key", "key.pem", "-WWW"});
  ASSERT_TRUE(server.ok()) << server.status().message();
  const std::string url = "https://localhost:" + port + "/v1/models";
  const HttpAnswer refused = get(url, "");
  EXPECT_EQ(refused.transport.code(), StatusCode::kInvalid);
  EXPECT_THAT(refused.transport.message(), HasSubstr("certificate is not trusted"));
  EXPECT_THAT(refused.transport.message(), HasSubstr("ca_file"));
  const HttpAnswer accepted = get(url, (dir / "cert.pem").string());
  EXPECT_TRUE(accepted.transport.ok()) << accepted.transport.message();
  EXPECT_EQ(accepted.code, 200);
  EXPECT_EQ(accepted.body, "hello");
  const HttpAnswer other_name = get("https://127.0.0.1:" + port + "/v1/models", (dir / "cert.pem").string());
  EXPECT_THAT(other_name.transport.message(), HasSubstr("certificate is not trusted")) << "the name counts";
  fs::remove_all(dir);
}

TEST(HttpClient, NamesAFileOfCertificatesThatIsMissing) {
  EXPECT_THAT(HttpClient::open({.ca_file = "/no/such.pem"}).status().message(), HasSubstr("/no/such.pem"));
}

}  // namespace
}  // namespace assay::engines::openai
