// TLS against `openssl s_server` with a certificate that it made itself.
#include "plugins/engines/openai/http/client.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/command/command.h"
#include "tests/temporary_folder.h"

namespace assay::engines::openai {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

HttpAnswer get(const std::string& url, const std::string& ca_file) {
  Result<std::unique_ptr<HttpClient>> client =
      HttpClient::open({.connect_seconds = 5, .whole_seconds = 10, .ca_file = ca_file});
  EXPECT_TRUE(client.ok()) << client.status().message();
  (*client)->start({.url = url, .body = "", .headers = {}, .sink = {}});
  std::vector<HttpAnswer> ended;
  while (ended.empty()) ended = (*client)->poll(0.05);
  return std::move(ended.front());
}

// The port that the system gave to s_server, from the line that it prints once it listens; "" where it ended instead.
std::string port_in(const fs::path& log, command::Command* server) {
  const std::string begin = "ACCEPT 127.0.0.1:";
  while (true) {
    const bool ended = server->poll().has_value();
    std::ifstream in(log);
    for (std::string line; std::getline(in, line) && !in.eof();) {
      if (line.starts_with(begin)) return line.substr(begin.size());
    }
    if (ended) return "";
    ::usleep(10000);
  }
}

TEST(HttpClient, TrustsACertificateOfItsOwnOnlyWhereItIsNamed) {
  const tests::TemporaryFolder folder;
  const fs::path& dir = folder.path();
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
  Result<command::Command> server =
      openssl({"s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem", "-WWW"});
  ASSERT_TRUE(server.ok()) << server.status().message();
  const std::string port = port_in(dir / "log", &*server);
  ASSERT_NE(port, "") << "s_server ended";
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
}

TEST(HttpClient, NamesAFileOfCertificatesThatIsMissing) {
  EXPECT_THAT(HttpClient::open({.ca_file = "/no/such.pem"}).status().message(), HasSubstr("/no/such.pem"));
}

}  // namespace
}  // namespace assay::engines::openai
