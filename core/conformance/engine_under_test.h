// An opened engine, driven as a worker drives one, with memory that is taken back after every call and with every
// promise of assay_engine_table expected on the way.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/conformance/answer.h"
#include "core/conformance/findings.h"
#include "core/conformance/toy_backend.h"

namespace assay::conformance {

inline constexpr int32_t kVocabulary = 64;     // of the toy model
inline constexpr int32_t kMaxPositions = 512;  // likewise

// A request as a check writes it down.
struct Wish {
  std::string text;
  std::vector<int32_t> ids;  // used instead of text when not empty
  std::vector<int32_t> forced;
  int32_t max_new_tokens = 6;
  int32_t top_n = 0;
  uint32_t want = 0;
  assay_sampling sampling = {.temperature = 1, .top_k = 1, .reserved = 0, .top_p = 0, .seed = 1234, .prompt_index = 0};
};

// The toy model of a check.
std::unique_ptr<engines::ToyModel> make_model();

// Opens with `options` and expects nothing of the outcome but what holds for every call; null: refused, see `called`.
struct Opening {
  void* engine = nullptr;
  Called called;
};
Opening open_engine(const Subject& subject, Findings& findings, const std::string& options, engines::ToyModel* model,
                    const assay_backend_table* backend = engines::toy_backend());

class EngineUnderTest {
 public:
  // Opens with the options of the kit. Where that is refused, notes it as not checked: see opened().
  EngineUnderTest(const Subject& subject, Findings& findings);
  // Takes over an open engine; `model` may be null.
  EngineUnderTest(const Subject& subject, Findings& findings, void* engine, std::unique_ptr<engines::ToyModel> model);
  ~EngineUnderTest();
  EngineUnderTest(const EngineUnderTest&) = delete;
  EngineUnderTest& operator=(const EngineUnderTest&) = delete;

  bool opened() const { return engine_ != nullptr; }
  void* handle() const { return engine_; }
  uint64_t capabilities() const;  // of this handle: info's, else the descriptor's
  bool can(uint64_t capability) const { return (capabilities() & capability) == capability; }

  // A small request that the engine should be able to serve; `which` picks the prompt.
  Wish wish(size_t which = 0) const;

  Called submit(uint64_t id, const Wish& wish);
  Called cancel(uint64_t id);
  Called reset();
  // One step; its events are expected to be in order, and their memory to last until the next call.
  Called step();
  // Steps until nothing is pending. False where a step fails or `most_steps` do not suffice.
  bool drain(size_t most_steps = 100000);
  void close();

  // submit and drain: the answer; one that was refused has its code.
  Answer ask(uint64_t id, const Wish& wish);

  const std::map<uint64_t, Answer>& answers() const { return answers_; }
  size_t pending() const { return pending_; }

 private:
  size_t unended() const;
  void take(const assay_event* events, size_t count);
  void take_one(const assay_event& event, Answer* answer);

  const Subject& subject_;
  Findings& findings_;
  const assay_engine_table& table_;
  std::unique_ptr<engines::ToyModel> model_;
  void* engine_ = nullptr;
  size_t pending_ = 0;
  std::set<uint64_t> cancelled_;
  std::map<uint64_t, Answer> answers_;  // of every request that was taken; those that are pending are not ended
};

}  // namespace assay::conformance
