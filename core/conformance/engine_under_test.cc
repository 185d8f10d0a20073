#include "core/conformance/engine_under_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/conformance/lent.h"
#include "core/conformance/watch.h"

namespace assay::conformance {
namespace {

constexpr const char* kTokenizer = R"({"type": "NullTokenizer", "vocab_size": 64})";
constexpr std::array<const char*, 3> kTexts = {"The quick brown fox jumps over", "Once upon a time there was",
                                               "All human beings are born free"};
const std::array<std::vector<int32_t>, 3> kIds = {{{5, 9, 2, 7, 11}, {3, 1, 4, 1, 5, 9, 2, 6}, {20, 21, 22}}};

bool needs_backend(const Subject& subject) { return subject.plugin.can(ASSAY_CAP_NEEDS_BACKEND); }

}  // namespace

std::unique_ptr<engines::ToyModel> make_model() {
  auto model = std::make_unique<engines::ToyModel>();
  model->vocab_size = kVocabulary;
  model->moe_layers = 2;
  model->moe_topk = 2;
  model->max_positions = kMaxPositions;
  model->memory_blocks = 4096;
  return model;
}

Opening open_engine(const Subject& subject, Findings& findings, const std::string& options, engines::ToyModel* model,
                    const assay_backend_table* backend) {
  Lent lent("the config of open", options.size() + 4096);
  auto config = sdk::sized<assay_engine_config>();
  const bool computes = needs_backend(subject);
  config.backend = computes ? backend : nullptr;
  config.model = computes ? model : nullptr;
  config.model_config_json = lent.put("{}");
  config.tokenizer_json = lent.put(computes ? kTokenizer : "{}");
  config.options = lent.put(options);
  const assay_engine_config* place = lent.object(config);
  lent.lock();
  Opening opening;
  void* const untouched = &opening;
  void* engine = untouched;
  opening.called =
      call(findings, "open with options " + options.substr(0, 120), subject.plugin.engine()->open, place, &engine);
  if (opening.called.ok()) {
    findings.expect(engine != untouched && engine != nullptr, "open: succeeded without a handle");
    opening.engine = engine == untouched ? nullptr : engine;
  } else {
    findings.expect(engine == untouched, "open: failed and wrote a handle; outputs stay untouched on failure");
  }
  return opening;
}

EngineUnderTest::EngineUnderTest(const Subject& subject, Findings& findings)
    : subject_(subject), findings_(findings), table_(*subject.plugin.engine()), model_(make_model()) {
  const Opening opening = open_engine(subject, findings, subject.options.options, model_.get());
  engine_ = opening.engine;
  if (!opening.called.ok()) {
    findings.nothing_checked("open was refused with " + opening.called.text() + " (--options gives it what it needs)");
  }
}

EngineUnderTest::EngineUnderTest(const Subject& subject, Findings& findings, void* engine,
                                 std::unique_ptr<engines::ToyModel> model)
    : subject_(subject),
      findings_(findings),
      table_(*subject.plugin.engine()),
      model_(std::move(model)),
      engine_(engine) {}

EngineUnderTest::~EngineUnderTest() { close(); }

void EngineUnderTest::close() {
  if (engine_ == nullptr) return;
  watch_doing("close");
  table_.close(std::exchange(engine_, nullptr));
  if (model_ != nullptr) {
    findings_.expect(model_->caches == 0,
                     fmt::format("close: {} KV caches of the backend are not released", model_->caches));
  }
}

uint64_t EngineUnderTest::capabilities() const {
  if (engine_ == nullptr || !ASSAY_KNOWS(&table_, info) || table_.info == nullptr) return subject_.plugin.capabilities;
  auto info = sdk::sized<assay_engine_info>();
  const Called called = call(findings_, "info", table_.info, engine_, &info);
  return called.ok() ? info.capabilities : subject_.plugin.capabilities;
}

Wish EngineUnderTest::wish(size_t which) const {
  Wish made;
  if (needs_backend(subject_)) {
    made.ids = kIds[which % kIds.size()];
  } else if (!subject_.options.prompts.empty()) {
    made.text = subject_.options.prompts[which % subject_.options.prompts.size()];
  } else {
    made.text = kTexts[which % kTexts.size()];
  }
  made.sampling.prompt_index = 0;
  return made;
}

Called EngineUnderTest::submit(uint64_t id, const Wish& wish) {
  Lent lent(fmt::format("the request of submit {}", id),
            wish.text.size() + (wish.ids.size() + wish.forced.size()) * sizeof(int32_t) + 4096);
  auto request = sdk::sized<assay_request>();
  request.want = wish.want;
  request.id = id;
  request.text = lent.put(wish.text);
  if (!wish.ids.empty()) request.ids = lent.put(std::span<const int32_t>(wish.ids));
  if (!wish.forced.empty()) request.forced = lent.put(std::span<const int32_t>(wish.forced));
  request.max_new_tokens = wish.max_new_tokens;
  request.top_n = wish.top_n;
  request.sampling = wish.sampling;
  const assay_request* place = lent.object(request);
  lent.lock();
  Called called = call(findings_, fmt::format("submit of request {}", id), table_.submit, engine_, place);
  if (called.ok()) {
    answers_[id] = Answer();
    answers_[id].asked_in_utf8 = is_utf8(wish.text);
    pending_ = unended();
  }
  return called;
}

Called EngineUnderTest::cancel(uint64_t id) {
  Called called = call(findings_, fmt::format("cancel of request {}", id), table_.cancel, engine_, id);
  if (called.ok()) cancelled_.insert(id);
  return called;
}

size_t EngineUnderTest::unended() const {
  return static_cast<size_t>(
      std::count_if(answers_.begin(), answers_.end(), [](const auto& one) { return !one.second.ended; }));
}

Called EngineUnderTest::reset() {
  Called called = call(findings_, "reset", table_.reset, engine_);
  if (called.ok()) {
    answers_.clear();
    cancelled_.clear();
    pending_ = 0;
  }
  return called;
}

void EngineUnderTest::take_one(const assay_event& event, Answer* answer) {
  if (event.kind == ASSAY_EVENT_TOKEN) {
    answer->streamed.push_back(event.token);
    return;
  }
  const std::string what = fmt::format("the result of request {}", event.id);
  answer->ended = true;
  if (event.kind == ASSAY_EVENT_FAILED) {
    answer->code = event.code;
    answer->message = sdk::text(event.message);
    findings_.expect(
        event.code > 0 && event.code <= ASSAY_INTERNAL,
        fmt::format("{}: FAILED with code {}, expected one of assay_code that is no success", what, event.code));
    findings_.expect(
        !answer->message.empty() && one_line(answer->message),
        fmt::format("{}: FAILED with message '{}', expected one line that says why", what, answer->message));
    return;
  }
  if (!findings_.expect(event.result != nullptr, what + ": FINISHED without a result")) return;
  findings_.expect(event.result->id == event.id, fmt::format("{}: its result is that of {}", what, event.result->id));
  copy_result(findings_, what, *event.result, answer);
  findings_.expect(answer->streamed.empty() || answer->tokens.empty() || answer->streamed == answer->tokens,
                   fmt::format("{}: {} TOKEN events that are not the {} tokens of its result", what,
                               answer->streamed.size(), answer->tokens.size()));
}

void EngineUnderTest::take(const assay_event* events, size_t count) {
  std::map<size_t, Answer> first_read;
  for (size_t i = 0; i < count; ++i) {
    const assay_event& event = events[i];
    const bool known = event.kind >= ASSAY_EVENT_TOKEN && event.kind <= ASSAY_EVENT_FAILED;
    if (!findings_.expect(known, fmt::format("step: an event of kind {}, expected 1 to 3", event.kind))) continue;
    const auto found = answers_.find(event.id);
    if (!findings_.expect(found != answers_.end(),
                          fmt::format("step: an event of request {}, which is not pending", event.id))) {
      continue;
    }
    if (!findings_.expect(!found->second.ended, fmt::format("step: an event of request {} after its end", event.id))) {
      continue;
    }
    take_one(event, &found->second);
    if (event.kind == ASSAY_EVENT_FINISHED) first_read[i] = found->second;
  }
  if (first_read.empty()) return;
  churn_heap();
  Findings ignored;
  for (const auto& [i, answer] : first_read) {
    if (events[i].result == nullptr) continue;
    Answer again;
    again.ended = true;
    again.streamed = answer.streamed;
    copy_result(ignored, "", *events[i].result, &again);
    findings_.expect(
        first_difference(answer, again).empty(),
        fmt::format("step: the result of request {} changed before the next call ({}); it stays valid until then",
                    events[i].id, first_difference(answer, again)));
  }
}

Called EngineUnderTest::step() {
  const auto* const untouched = reinterpret_cast<const assay_event*>(this);
  const assay_event* events = untouched;
  size_t count = SIZE_MAX;
  size_t pending = SIZE_MAX;
  Called called = call(findings_, "step", table_.step, engine_, &events, &count, &pending);
  if (!called.ok()) return called;
  findings_.expect(pending != SIZE_MAX && count != SIZE_MAX && (count == 0 || events != untouched),
                   "step: succeeded without writing its outputs");
  if (count == SIZE_MAX || (count > 0 && events == untouched)) return {ASSAY_INTERNAL, "no outputs"};
  take(events, count);
  const size_t most = unended();
  size_t least = most;  // a cancelled request may be gone without an event
  for (uint64_t id : cancelled_) least -= answers_.count(id) > 0 && !answers_.at(id).ended ? 1 : 0;
  findings_.expect(pending >= least && pending <= most,
                   fmt::format("step: says that {} requests are pending, expected {}", pending, most));
  pending_ = std::min(most, pending);
  return called;
}

bool EngineUnderTest::drain(size_t most_steps) {
  for (size_t i = 0; i < most_steps && pending_ > 0; ++i) {
    const Called called = step();
    if (!findings_.expect(called.ok(), "step: failed with " + called.text())) return false;
  }
  return pending_ == 0;
}

Answer EngineUnderTest::ask(uint64_t id, const Wish& wish) {
  const Called called = submit(id, wish);
  if (!called.ok()) {
    Answer refused;
    refused.ended = true;
    refused.code = called.code;
    refused.message = called.message;
    return refused;
  }
  drain();
  findings_.expect(answers_[id].ended,
                   fmt::format("request {}: nothing is pending, and it neither finished nor failed", id));
  return answers_[id];
}

}  // namespace assay::conformance
