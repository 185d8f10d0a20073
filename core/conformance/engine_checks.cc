#include "core/conformance/engine_checks.h"

#include <dirent.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "core/conformance/engine_under_test.h"
#include "core/conformance/lent.h"
#include "core/conformance/watch.h"

namespace assay::conformance {
namespace {

size_t entries(const char* folder) {
  size_t count = 0;
  DIR* dir = ::opendir(folder);
  while (dir != nullptr && ::readdir(dir) != nullptr) ++count;
  if (dir != nullptr) ::closedir(dir);
  return count;
}

size_t heap_in_use() { return ::mallinfo2().uordblks; }

// One small request has a result that is in order.
void request(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!engine.opened()) return;
  findings.expect(engine.step().ok() && engine.answers().empty(),
                  "step without requests: expected no event and no failure");
  const Wish wish = engine.wish();
  const Answer answer = engine.ask(0, wish);
  if (!findings.expect(answer.finished(), "a small request: " + code_name(answer.code) + ": " + answer.message +
                                              "; expected a result (--prompt gives the kit prompts that it takes)")) {
    return;
  }
  if (subject.plugin.can(ASSAY_CAP_RECORDED)) {
    findings.not_checked("max_new_tokens: recorded results are as long as they are");
    return;
  }
  const auto most = static_cast<size_t>(wish.max_new_tokens);
  findings.expect(answer.tokens.size() <= most, fmt::format("{} tokens for max_new_tokens {}, expected no more",
                                                            answer.tokens.size(), wish.max_new_tokens));
}

// Opened and closed again and again: nothing stays behind.
void lifecycle(const Subject& subject, Findings& findings) {
  constexpr int kWarmUp = 5;
  constexpr int kRounds = 25;
  std::array<size_t, 2> heap{};
  std::array<size_t, 2> files{};
  std::array<size_t, 2> threads{};
  for (int round = 0; round <= kWarmUp + kRounds; ++round) {
    if (round == kWarmUp || round == kWarmUp + kRounds) {
      const size_t at = round == kWarmUp ? 0 : 1;
      ::malloc_trim(0);
      heap[at] = heap_in_use();
      files[at] = entries("/proc/self/fd");
      threads[at] = entries("/proc/self/task");
    }
    EngineUnderTest engine(subject, findings);
    if (!engine.opened()) return;
    if (round % 2 == 1) engine.submit(0, engine.wish());  // closed with pending work
    if (round % 4 == 3) engine.step();
    if (round % 5 == 0 && round % 2 == 0) engine.ask(1, engine.wish());
  }
  findings.expect(files[1] <= files[0],
                  fmt::format("{} more open files after {} rounds of open and close", files[1] - files[0], kRounds));
  findings.expect(threads[1] <= threads[0],
                  fmt::format("{} more threads after {} rounds of open and close", threads[1] - threads[0], kRounds));
  if (heap[0] == 0) {
    findings.not_checked("memory that close does not free: this build counts no heap");
  } else {
    const size_t grown = heap[1] > heap[0] ? heap[1] - heap[0] : 0;
    findings.expect(grown < size_t{kRounds} * 32,
                    fmt::format("{} bytes more in use after {} rounds of open and close; close "
                                "frees what open and submit allocated",
                                grown, kRounds));
  }
  findings.expect(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD, "close leaves child processes behind");
}

void cancel_and_reset(const Subject& subject, Findings& findings) {
  EngineUnderTest engine(subject, findings);
  if (!engine.opened()) return;
  const Called unknown = engine.cancel(4711);
  findings.expect(unknown.code == ASSAY_NOT_FOUND,
                  "cancel of a request that never was: " + unknown.text() + ", expected NOT_FOUND");
  if (!engine.submit(0, engine.wish(0)).ok()) {
    findings.not_checked("cancel: the engine refuses a small request");
    return;
  }
  const Called cancelled = engine.cancel(0);
  findings.expect(cancelled.ok() || cancelled.code == ASSAY_NOT_FOUND || cancelled.code == ASSAY_UNSUPPORTED,
                  "cancel of a pending request: " + cancelled.text());
  if (findings.expect(engine.drain(), "after cancel: requests stay pending") && cancelled.ok()) {
    const Answer& answer = engine.answers().at(0);
    findings.expect(!answer.ended || answer.code == ASSAY_CANCELLED,
                    "a cancelled request ended with " + code_name(answer.code) + ", expected CANCELLED, or no event");
  }
  const Called over = engine.cancel(0);
  findings.expect(over.code == ASSAY_NOT_FOUND,
                  "cancel of a request that is over: " + over.text() + ", expected NOT_FOUND");
  const Answer before = engine.ask(1, engine.wish(0));
  for (uint64_t id = 2; id < 5; ++id) engine.submit(id, engine.wish(id));
  engine.step();
  if (!findings.expect(engine.reset().ok(), "reset: failed")) return;
  findings.expect(engine.step().ok() && engine.answers().empty(), "step after reset: expected nothing to be pending");
  const Answer after = engine.ask(subject.plugin.can(ASSAY_CAP_RECORDED) ? 1 : 5, engine.wish(0));
  findings.expect(before.finished() == after.finished(),
                  "after reset a request that was served is refused: " + after.message);
  if (!before.finished() || !after.finished()) return;
  if (!engine.can(ASSAY_CAP_L1)) {
    findings.not_checked("that a reset clears all state: without L1 a result need not come again");
    return;
  }
  findings.expect(first_difference(before, after).empty(),
                  "the same request before and after reset differs: " + first_difference(before, after));
}

// Inputs are taken back after every call by EngineUnderTest itself; here two handles get in each other's way.
void ownership(const Subject& subject, Findings& findings) {
  EngineUnderTest alone(subject, findings);
  if (!alone.opened()) return;
  const Answer expected = alone.ask(0, alone.wish(0));
  EngineUnderTest one(subject, findings);
  EngineUnderTest two(subject, findings);
  if (!one.opened() || !two.opened()) {
    findings.fail("two handles at once: the second open is refused");
    return;
  }
  if (!one.submit(0, one.wish(0)).ok()) {
    findings.not_checked("requests: the engine refuses a small one");
    return;
  }
  two.submit(0, two.wish(1));
  churn_heap();
  for (int i = 0; i < 100000 && (one.pending() > 0 || two.pending() > 0); ++i) {
    if (one.pending() > 0 && !one.step().ok()) break;
    if (two.pending() > 0 && !two.step().ok()) break;
    if (i == 2) two.reset();
  }
  two.close();
  const Answer& seen = one.answers().at(0);
  findings.expect(seen.ended, "two handles at once: a request of the first one never ended");
  findings.expect(seen.finished() == expected.finished(), "two handles at once: " + seen.message);
  if (!alone.can(ASSAY_CAP_L1) && !subject.plugin.can(ASSAY_CAP_RECORDED)) {
    findings.not_checked("that handles share nothing: without L1 a result need not come again");
    return;
  }
  findings.expect(first_difference(expected, seen).empty(),
                  "a second handle changes the results of the first: " + first_difference(expected, seen));
}

// Different handles on different threads at once; and one handle that wanders from thread to thread.
void handles_on_threads(const Subject& subject, Findings& findings) {
  constexpr size_t kThreads = 4;
  EngineUnderTest alone(subject, findings);
  if (!alone.opened()) return;
  std::vector<Answer> expected;
  for (size_t i = 0; i < kThreads; ++i) {
    alone.reset();
    expected.push_back(alone.ask(0, alone.wish(i)));
  }
  std::array<Findings, kThreads> own;
  std::array<std::vector<Answer>, kThreads> seen;
  std::vector<std::thread> running;
  for (size_t i = 0; i < kThreads; ++i) {
    running.emplace_back([&, i] {
      for (int round = 0; round < 4; ++round) {
        EngineUnderTest engine(subject, own[i]);
        if (engine.opened()) seen[i].push_back(engine.ask(0, engine.wish(i)));
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    for (const std::string& failure : own[i].failures()) findings.fail("with handles on four threads: " + failure);
    findings.expect(own[i].left_out().empty(),
                    "with handles on four threads: " + (own[i].left_out().empty() ? "" : own[i].left_out()[0]));
    for (const Answer& answer : seen[i]) {
      findings.expect(answer.finished() == expected[i].finished(), "with handles on four threads: " + answer.message);
      if (!alone.can(ASSAY_CAP_L1)) continue;
      findings.expect(first_difference(expected[i], answer).empty(),
                      "with handles on four threads a result differs: " + first_difference(expected[i], answer));
    }
  }
  if (!alone.can(ASSAY_CAP_L1))
    findings.not_checked("equal results on every thread: without L1 they need not come again");
  Findings wandering;
  std::unique_ptr<EngineUnderTest> engine;
  const auto elsewhere = [](const auto& work) { std::thread(work).join(); };
  elsewhere([&] { engine = std::make_unique<EngineUnderTest>(subject, wandering); });
  elsewhere([&] { engine->submit(0, engine->wish(0)); });
  elsewhere([&] { engine->drain(); });
  elsewhere([&] { engine.reset(); });
  for (const std::string& failure : wandering.failures())
    findings.fail("with a handle that changes threads: " + failure);
}

}  // namespace

std::vector<Check> engine_checks() {
  return {{"options", check_engine_options},
          {"request", request},
          {"lifecycle", lifecycle},
          {"cancel and reset", cancel_and_reset},
          {"ownership", ownership},
          {"threads", handles_on_threads},
          {"capabilities", check_capabilities},
          {"info", check_info},
          {"L1", check_l1},
          {"L2", check_l2},
          {"L3", check_l3},
          {"seed", check_seed},
          {"bad requests", check_bad_requests},
          {"long request", check_long_request},
          {"sizes", check_engine_sizes},
          {"training", check_training}};
}

}  // namespace assay::conformance
