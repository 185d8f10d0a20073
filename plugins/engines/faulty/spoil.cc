#include "plugins/engines/faulty/spoil.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace assay::engines {
namespace {

Spoiler spoiler_of(Fault fault) {
  for (const auto find : {token_spoiler, text_spoiler, number_spoiler}) {
    if (const Spoiler spoiler = find(fault)) return spoiler;
  }
  return nullptr;
}

std::string name_of(const EngineEvent& event) { return "request " + std::to_string(event.id); }

void exchange(EngineEvent* a, EngineEvent* b) {
  std::swap(a->id, b->id);
  std::swap(a->result->id, b->result->id);
}

// finished: FINISHED events by ascending id; at least one. May add to or take from `events`, which holds them.
std::vector<std::string> spoil_set(const Spoil& spoil, const std::vector<EngineEvent*>& finished,
                                   std::vector<EngineEvent>* events) {
  const size_t count = finished.size();
  const bool seeded = spoil.places.seeded();
  EngineEvent& victim = *finished[spoil.places.victim() % count];
  switch (spoil.fault) {
    case Fault::kDroppedRequest: {
      const uint64_t id = seeded ? victim.id : finished.back()->id;
      std::erase_if(*events, [id](const EngineEvent& event) { return event.result && event.id == id; });
      return {"request " + std::to_string(id)};
    }
    case Fault::kExtraRequest: {
      EngineResult extra = *victim.result;
      extra.id = finished.back()->id + 1000;
      const std::string where = name_of(victim) + " again as " + std::to_string(extra.id);
      events->push_back(finished_event(std::move(extra)));
      return {where};
    }
    case Fault::kRepeatedRequest: {
      const std::string where = name_of(victim);
      events->push_back(finished_event(EngineResult(*victim.result)));
      return {where};
    }
    default: {
      if (count < 2) return {};
      const size_t first = seeded ? spoil.places.victim() % count : 0;
      const size_t second = (first + 1 + (seeded ? spoil.places.pick(count - 1) : 0)) % count;
      exchange(finished[first], finished[second]);
      return {name_of(*finished[first]) + " and " + std::to_string(finished[second]->id)};
    }
  }
}

}  // namespace

bool spoils_results(Fault fault) { return info_of(fault).family == Family::kSet || spoiler_of(fault) != nullptr; }

std::vector<std::string> spoil_results(const Spoil& spoil, std::vector<EngineEvent>* events) {
  std::vector<EngineEvent*> finished;
  for (EngineEvent& event : *events) {
    if (event.result) finished.push_back(&event);
  }
  if (finished.empty()) return {};
  std::sort(finished.begin(), finished.end(), [](const EngineEvent* a, const EngineEvent* b) { return a->id < b->id; });
  if (info_of(spoil.fault).family == Family::kSet) return spoil_set(spoil, finished, events);

  const Spoiler spoiler = spoiler_of(spoil.fault);
  std::vector<EngineResult> originals;  // spoilers look at other requests as they were
  for (const EngineEvent* event : finished) originals.push_back(*event->result);
  Spoil whole = spoil;
  for (const EngineResult& original : originals) whole.originals.push_back(&original);
  std::vector<size_t> good;  // that offer a place
  for (size_t i = 0; i < finished.size(); ++i) {
    const auto asked = spoil.asked->find(finished[i]->id);
    const bool forced = asked != spoil.asked->end() && asked->second.forced;
    EngineResult copy = originals[i];
    if (!(forced && token_spoiler(spoil.fault) != nullptr) && spoiler(&copy, whole)) good.push_back(i);
  }
  if (good.empty()) return {};
  if (spoil.places.seeded()) {
    whole.places = spoil.places.among(good.size());
    good = {good[whole.places.victim()]};
  }
  std::vector<std::string> where;
  for (const size_t i : good) {
    const std::optional<std::string> place = spoiler(finished[i]->result.get(), whole);
    if (place) where.push_back(name_of(*finished[i]) + (place->empty() ? "" : ", ") + *place);
  }
  return where;
}

}  // namespace assay::engines
