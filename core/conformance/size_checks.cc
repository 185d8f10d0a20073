#include <fmt/format.h>

#include "core/conformance/engine_checks.h"
#include "core/conformance/engine_under_test.h"
#include "core/conformance/lent.h"
#include "core/conformance/watch.h"

namespace assay::conformance {
namespace {

// The toy backend as one of ABI 1.0: its table ends where that of 1.0 ended, and it knows nothing of later members.
const assay_backend_table* old_backend() {
  static Lent lent("the backend table of an older backend");
  static const assay_backend_table* table = [] {
    assay_backend_table old = *engines::toy_backend();
    old.size = offsetof(assay_backend_table, device_facts);
    old.model_info = [](void* model, assay_model_info* info, assay_error* error) -> int32_t {
      assay_model_info full = {};
      const int32_t code = engines::toy_backend()->model_info(model, &full, error);
      full.size = info->size;
      if (code == ASSAY_OK) std::memcpy(info, &full, offsetof(assay_model_info, determinism));
      return code;
    };
    const assay_backend_table* place = lent.cut(old, old.size);
    lent.lock();
    return place;
  }();
  return table;
}

void expect_answer(const Subject& subject, Findings& findings, const Opening& opening,
                   std::unique_ptr<engines::ToyModel> model, const std::string& what) {
  if (!findings.expect(opening.called.ok(), what + ": open: " + opening.called.text())) return;
  EngineUnderTest engine(subject, findings, opening.engine, std::move(model));
  const Answer answer = engine.ask(0, engine.wish());
  findings.expect(answer.finished(), what + ": a small request: " + answer.message);
}

// Config and request followed by members that this plugin cannot know.
void newer_host(const Subject& subject, Findings& findings) {
  auto model = make_model();
  const bool computes = subject.plugin.can(ASSAY_CAP_NEEDS_BACKEND);
  Lent lent("the config of a newer host");
  auto config = sdk::sized<assay_engine_config>();
  if (computes) {
    config.backend = engines::toy_backend();
    config.model = model.get();
  }
  config.model_config_json = lent.put("{}");
  config.tokenizer_json = lent.put(computes ? R"({"type": "NullTokenizer", "vocab_size": 64})" : "{}");
  config.options = lent.put(subject.options.options);
  const assay_engine_config* grown = lent.grown(config, 64);
  lent.lock();
  Opening opening;
  opening.called = call(findings, "open with a longer config", subject.plugin.engine()->open, grown, &opening.engine);
  if (!findings.expect(opening.called.ok(), "a longer config, as a newer host sends it: " + opening.called.text()))
    return;
  EngineUnderTest engine(subject, findings, opening.engine, std::move(model));
  const Wish wish = engine.wish();
  Lent lent_request("the request of a newer host");
  auto request = sdk::sized<assay_request>();
  request.text = lent_request.put(wish.text);
  if (!wish.ids.empty()) request.ids = lent_request.put(std::span<const int32_t>(wish.ids));
  request.max_new_tokens = wish.max_new_tokens;
  request.sampling = wish.sampling;
  const assay_request* longer = lent_request.grown(request, 64);
  lent_request.lock();
  const Called called =
      call(findings, "submit of a longer request", subject.plugin.engine()->submit, opening.engine, longer);
  findings.expect(called.ok(), "a longer request, as a newer host sends it: " + called.text());
}

}  // namespace

void check_query(const Subject& subject, Findings& findings) {
  // This process has loaded the plugin already: loading it again asks the same object, with another host.
  static assay_host old_host = *subject.host;
  old_host.abi_minor = 0;
  plugin::Plugin again;
  watch_doing("assay_plugin_query of a host of ABI 1.0");
  const auto broken = plugin::load_for(subject.plugin.file, {ASSAY_ABI_MAJOR, 0}, &old_host, &again);
  findings.expect(!broken.has_value(), "a host of ABI 1.0 is refused: " + (broken ? broken->message : "") +
                                           "; serve every minor of your major");
  watch_doing("assay_plugin_query of a host of the next major ABI");
  const auto newer = plugin::load_for(subject.plugin.file, {ASSAY_ABI_MAJOR + 1, 0}, subject.host, &again);
  findings.expect(newer.has_value(), fmt::format("a host of ABI {}.0 is served, expected null: its structs are others",
                                                 ASSAY_ABI_MAJOR + 1));
  watch_doing("assay_plugin_query of a host of a later minor ABI");
  const auto later =
      plugin::load_for(subject.plugin.file, {ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR + 9}, subject.host, &again);
  findings.expect(!later.has_value(), "a host of a later minor ABI is refused: " + (later ? later->message : ""));
}

void check_engine_sizes(const Subject& subject, Findings& findings) {
  {
    EngineUnderTest probe(subject, findings);
    if (!probe.opened()) return;
    if (!probe.ask(0, probe.wish()).finished()) {
      findings.nothing_checked("structs of other sizes: a small request is not served");
      return;
    }
  }
  newer_host(subject, findings);
  if (!subject.plugin.can(ASSAY_CAP_NEEDS_BACKEND)) return;
  auto model = make_model();
  const Opening opening = open_engine(subject, findings, subject.options.options, model.get(), old_backend());
  expect_answer(subject, findings, opening, std::move(model), "a backend of ABI 1.0");
}

}  // namespace assay::conformance
