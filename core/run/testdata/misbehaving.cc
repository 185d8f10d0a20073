// A test engine without a model. The first word of a prompt says what becomes of the request:
//   ok TEXT     finishes; the generated text is TEXT, the tokens are its bytes
//   fail TEXT   fails with the message TEXT                throw       throws inside step
//   break       step itself fails                          refuse      submit fails
//   segv abort exit kill                                   the process ends that way
//   lose        step fails as if the device was lost; every later step of the process does too
//   hang        step never returns; "stubborn" also ignores SIGTERM
//   eat         allocates without bound                    spawn FILE  a child lives on; its id is written to FILE
//   garbage     prints lines that look like events, then finishes
//   env NAME    finishes; the generated text is the value of that environment variable
//   slow MS     finishes after that many milliseconds
//   await FILE  finishes once FILE is there; take FILE also removes it, so that the next one waits again
//   turns FILE WORD...  finishes; the text is the first WORD the first time, the second the second time and so on, as
//               counted in FILE; the last one stays. WORD! means the text WORD with one token more; segv ends the
//               process, fail fails
//   full        finishes; from then on the process can write no file
//   time        finishes; the text is the option case_time but for its last number
//   wishes      finishes; the text says which outputs were asked for
// The option "info" says what the opened engine tells of itself: text_only, too_much, bad_facts or fails.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "assay/sdk.hpp"

namespace {

using assay::Status;

struct Request {
  uint64_t id;
  std::string prompt;
  std::string wishes;
};

struct Engine {
  std::vector<Request> queue;
  std::vector<assay_event> events;
  assay_result result{};
  std::string text;
  std::string prompt;
  std::string message;
  std::string options;
  std::vector<int32_t> tokens;
  std::vector<int32_t> prompt_ids;
  std::vector<double> tpot;
};

// From now on nothing can be written to a file.
void fill_disk() {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_FSIZE, &none);
}

std::string rest_of(const std::string& prompt) {
  const size_t blank = prompt.find(' ');
  return blank == std::string::npos ? "" : prompt.substr(blank + 1);
}

[[noreturn]] void sleep_forever() {
  while (true) ::pause();
}

[[noreturn]] void eat() {
  while (true) {
    constexpr size_t kBytes = 8u << 20;
    auto* block = static_cast<volatile char*>(std::malloc(kBytes));
    for (size_t i = 0; block != nullptr && i < kBytes; i += 4096) block[i] = 1;
    ::usleep(2000);
  }
}

void spawn(const std::string& file) {
  const pid_t child = ::fork();
  if (child == 0) sleep_forever();
  std::ofstream(file) << child << "\n";
}

// Acts on the request; returns when it is to finish normally.
Status act(const std::string& word, const std::string& rest) {
  if (word == "segv") {
    std::signal(SIGSEGV, SIG_DFL);  // sanitizers catch it and exit instead
    std::raise(SIGSEGV);
  }
  if (word == "abort") {
    std::fputs("engine: about to abort\n", stderr);
    std::abort();
  }
  if (word == "exit") std::_Exit(3);
  if (word == "full") fill_disk();
  if (word == "kill") ::kill(::getpid(), SIGKILL);
  if (word == "stubborn") std::signal(SIGTERM, SIG_IGN);
  if (word == "hang" || word == "stubborn") sleep_forever();
  if (word == "eat") eat();
  if (word == "throw") throw std::runtime_error("thrown by the engine");
  static bool lost = false;
  lost = lost || word == "lose";
  if (lost) return assay::infra("the device is lost");
  if (word == "break") return assay::internal("the engine broke");
  if (word == "spawn") spawn(rest);
  if (word == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(rest)));
  while ((word == "await" && ::access(rest.c_str(), F_OK) != 0) || (word == "take" && ::unlink(rest.c_str()) != 0)) {
    ::usleep(5000);
  }
  if (word == "garbage") {
    std::puts("{\"event\": \"case_finished\", \"case\": 7}\n{\"event\"");
    std::fputs("\x01\xff not a line", stderr);
  }
  return {};
}

std::string case_time_of(const std::string& options) {
  const size_t begin = options.find("\"case_time\"");
  const std::string last = "\"began_ns\":";
  const size_t end = options.find(last, begin);
  return begin == std::string::npos || end == std::string::npos ? "not told"
                                                                : options.substr(begin, end + last.size() - begin);
}

// The word of FILE WORD... whose turn it is.
std::string whose_turn(const std::string& rest) {
  std::istringstream words(rest);
  std::string file, word, next;
  words >> file;
  int turn = 0;
  std::ifstream(file) >> turn;
  std::ofstream(file) << turn + 1;
  for (int i = 0; i <= turn && words >> next; ++i) word = next;
  return word;
}

int32_t open(const assay_engine_config* config, void** engine, assay_error* error) {
  return assay::sdk::guarded(error, [&]() -> Status {
    const std::string options(assay::sdk::text(config->options));
    if (options.find("\"refuse_to_open\"") != std::string::npos) return assay::invalid("told to refuse");
    if (options.find("\"large_cache\"") != std::string::npos) return assay::exhausted("cache: 9 GB needed, 1 GB free");
    auto* made = new Engine;
    made->options = options;
    *engine = made;
    return {};
  });
}

int32_t submit(void* handle, const assay_request* request, assay_error* error) {
  return assay::sdk::guarded(error, [&]() -> Status {
    const std::string prompt(assay::sdk::text(request->text));
    if (prompt.rfind("refuse", 0) == 0) return assay::exhausted("prompt refused");
    static_cast<Engine*>(handle)->queue.push_back(
        {request->id, prompt, "want " + std::to_string(request->want) + " top_n " + std::to_string(request->top_n)});
    return {};
  });
}

int32_t cancel(void*, uint64_t, assay_error*) { return ASSAY_OK; }

int32_t step(void* handle, const assay_event** events, size_t* count, size_t* pending, assay_error* error) {
  return assay::sdk::guarded(error, [&]() -> Status {
    Engine& engine = *static_cast<Engine*>(handle);
    engine.events.clear();
    if (!engine.queue.empty()) {
      const Request request = engine.queue.front();
      engine.queue.erase(engine.queue.begin());
      const std::string asked = request.prompt.substr(0, request.prompt.find(' '));
      engine.text = rest_of(request.prompt);
      if (asked == "turns") engine.text = whose_turn(engine.text);
      const std::string word =
          asked == "turns" && (engine.text == "segv" || engine.text == "fail") ? engine.text : asked;
      if (Status acted = act(word, engine.text); !acted.ok()) return acted;
      auto event = assay::sdk::sized<assay_event>();
      event.id = request.id;
      if (word == "fail") {
        event.kind = ASSAY_EVENT_FAILED;
        event.code = ASSAY_EXHAUSTED;
        engine.message = engine.text;
        event.message = assay::sdk::view(engine.message);
      } else {
        if (word == "env") {
          const char* value = std::getenv(engine.text.c_str());
          engine.text = value == nullptr ? "(unset)" : value;
        }
        if (word == "wishes") engine.text = request.wishes;
        if (word == "time") engine.text = case_time_of(engine.options);
        engine.prompt = request.prompt;
        engine.tokens.assign(engine.text.begin(), engine.text.end());
        if (word == "turns" && engine.text.ends_with('!')) engine.text.pop_back();
        engine.prompt_ids = {1};
        engine.tpot.assign(engine.tokens.size(), 0.001);
        engine.result = assay::sdk::sized<assay_result>();
        engine.result.id = request.id;
        engine.result.prompt = assay::sdk::view(engine.prompt);
        engine.result.text = assay::sdk::view(engine.text);
        engine.result.tokens = assay::sdk::view(engine.tokens);
        engine.result.prompt_ids = assay::sdk::view(engine.prompt_ids);
        engine.result.tpot = assay::sdk::view(engine.tpot);
        engine.result.latency = 0.001;
        event.kind = ASSAY_EVENT_FINISHED;
        event.result = &engine.result;
      }
      engine.events.push_back(event);
    }
    *events = engine.events.data();
    *count = engine.events.size();
    *pending = engine.queue.size();
    return {};
  });
}

int32_t reset(void* handle, assay_error*) {
  static_cast<Engine*>(handle)->queue.clear();
  return ASSAY_OK;
}

void close(void* handle) { delete static_cast<Engine*>(handle); }

int32_t info(void* handle, assay_engine_info* about, assay_error* error) {
  return assay::sdk::guarded(error, [&]() -> Status {
    const std::string& options = static_cast<Engine*>(handle)->options;
    const auto told = [&options](const char* word) { return options.find(word) != std::string::npos; };
    about->facts = assay::sdk::view(told("bad_facts") ? R"({"server": 7})" : "");
    if (told("fails")) return assay::infra("the server went away");
    if (told("too_much")) about->capabilities |= ASSAY_CAP_ROUTING;
    if (told("text_only")) {
      about->capabilities = ASSAY_CAP_TEXT;
      about->facts = assay::sdk::view(R"({"server": "toy 1.0", "tokens": "no answer to a probe had ids"})");
    }
    return {};
  });
}

const assay_engine_table kTable = {
    sizeof(assay_engine_table), 0, open, submit, cancel, step, reset, close, info, nullptr};

const assay_plugin kPlugin = {.magic = ASSAY_PLUGIN_MAGIC,
                              .size = sizeof(assay_plugin),
                              .abi_major = ASSAY_ABI_MAJOR,
                              .abi_minor = ASSAY_ABI_MINOR,
                              .kind = ASSAY_ENGINE,
                              .reserved = 0,
                              .capabilities = ASSAY_CAP_TEXT | ASSAY_CAP_TOKENS | ASSAY_CAP_BATCH,
                              .name = "misbehaving",
                              .version = "1",
                              .description = "test engine: does what each prompt says",
                              .options_schema = R"({"properties": {"case_time": {"type": "object"}}})",
                              .table = &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t, uint32_t, const assay_host*) { return &kPlugin; }
