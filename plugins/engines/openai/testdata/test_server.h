// A small server that speaks the API of OpenAI, honestly or not. For tests; plain sockets, a thread a connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace assay::engines::openai {

// The model: tokens are bytes, ids the bytes' values, id 1 begins a prompt. After a letter comes the next one of
// kLetters with logprob -0.25; "." ends a text. A drawn text skips letters by seed and position.
inline constexpr char kEnd = 2;
inline constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz ,";

struct TestServerOptions {
  // How it speaks: "openai" (arrays of logprobs, echo), "vllm" (the same with ids and prompt_logprobs), "llama" (lists
  // of entries with ids, no echo), "text" (neither logprobs nor ids), "spelled" (as openai, with
  // return_tokens_as_token_ids; prompts that begin with "brief" get three letters and a listed token kEnd).
  std::string dialect = "openai";
  // What it does wrong, a word of test_server.cc; "": nothing. "late_WORD": only with prompts that begin with "late".
  std::string fault = {};
  int port = 0;      // 0: a free one
  double delay = 0;  // seconds before each answer
  double token_delay = 0;
  int held = 0;          // prompts that begin with "held" are answered once so many requests have been there at once
  std::string key = {};  // requests without "Authorization: Bearer KEY" get 401; "": none is needed
  std::function<std::string(const std::string& body)> model = {};  // answers completions, one at a time, instead
  int fail_first = 0;  // so many requests of completions fail by `fault`, later ones do not; 0: all
};

class TestServer {
 public:
  explicit TestServer(TestServerOptions options);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int asked() const { return asked_; }  // requests of completions
  int most_at_once() const { return most_at_once_; }
  std::vector<std::string> prompts() const;  // of the requests of completions, in their order

 private:
  struct Ask;
  void accept_all();
  void serve(int socket);
  void stall() const;  // until the end
  bool answer(int socket, const std::string& method, const std::string& path, const std::string& headers,
              const std::string& body);
  bool complete(int socket, const Ask& ask);
  bool misbehave(int socket, const Ask& ask, const std::string& fault);

  TestServerOptions options_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_{false};
  std::atomic<int> asked_{0};
  std::atomic<int> at_once_{0};
  std::atomic<int> most_at_once_{0};
  std::atomic<int> faults_done_{0};
  std::thread acceptor_;
  mutable std::mutex mutex_;
  std::vector<std::string> prompts_;
  std::vector<std::thread> threads_;
  std::vector<int> sockets_;
};

}  // namespace assay::engines::openai
