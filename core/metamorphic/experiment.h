// A relation as ways to run: references and what is changed against them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "assay/golden.h"
#include "core/metamorphic/mechanism.h"
#include "core/metamorphic/relation.h"
#include "core/metamorphic/way.h"
#include "core/metamorphic/workload.h"

namespace assay::metamorphic {

// Records of both sides that are judged against each other, ascending id.
struct Sides {
  std::vector<RequestRecord> reference;
  std::vector<RequestRecord> changed;
};

struct Changed {
  Way way;
  // The way's calls, made from the results of the reference; empty: `way` has its calls.
  std::function<std::vector<Call>(const WayResult& reference)> follow = {};
  // Did it happen?
  Check mechanism;
  // What is judged; empty: the asks of `way` that are to be judged, as they are.
  std::function<Sides(const WayResult& reference, const WayResult& changed)> assemble = {};
};

// One reference and what is judged against it.
struct Trial {
  Way reference;
  Check untouched =
      {};  // that the mechanism did not happen in the reference, given as both arguments; empty: no matter
  std::vector<Changed> changed = {};
};

struct Experiment {
  std::string missing = {};  // why it cannot be done with this engine, one line; empty: it can
  std::vector<Trial> trials = {};
  bool tokens = true;  // generated tokens are judged; false: they are the question, not the answer
  bool texts = true;   // generated texts are judged; false: those of parts do not add up to that of the whole
};

// For requests of `workload`. `laboratory` tells which options there are.
struct Setting {
  const Workload& workload;
  const Parameters& parameters;
  const Laboratory& laboratory;
  std::string engine;   // of the case, by name
  bool greedy = false;  // the case's tokens are the likeliest: those that are drawn need a trial of their own
};
Experiment make_experiment(Relation relation, const Setting& setting);

// Where they are made. Batches: who else is there.
Experiment solo_vs_batch(const Setting& setting);
Experiment shuffled_order(const Setting& setting);
Experiment changed_neighbours(const Setting& setting);
Experiment repeated_call(const Setting& setting);
// How a prompt gets through.
Experiment prefix_cache(const Setting& setting);
Experiment chunked_prefill(const Setting& setting);
Experiment preempt_resume(const Setting& setting);
// Continuations: tokens of one way become the prompt of another.
Experiment stop_continue(const Setting& setting);
Experiment prefill_vs_decode(const Setting& setting);
// Surroundings: another engine, device, file.
Experiment static_vs_buffered(const Setting& setting);
Experiment thread_count(const Setting& setting);
Experiment save_load(const Setting& setting);

inline constexpr size_t kBlock = 256;  // tokens of a block of the cache, unless a way asks for others
// Of `block` tokens each, that hold `tokens`.
inline size_t blocks_of(size_t tokens, size_t block) { return (tokens + block - 1) / block; }

// A request whose new tokens begin another block of the cache half way: as long a prompt as a long one
// allows. One that is too short for that is as it is.
Ask over_a_block(const Workload& workload, size_t index);

// Options that keep everything else from happening: all requests of a call at once and in one step, their prompts in
// one piece, no prefix cache, room for all, nobody suspended. Those alone that the way's engine has; what the way sets
// itself stays.
void settle_options(const Setting& setting, Way* way);

// The trial once more with tokens that are drawn, where the case is greedy and the engine can draw with a seed: how a
// random number is keyed shows in these alone.
void add_drawn(const Setting& setting, const Trial& trial, Experiment* made);

std::vector<std::string> ids_of(const std::vector<Ask>& asks);

// "options of engine x lack chunked_prefill, max_chunk"; empty: it has them.
std::string missing_options(const Setting& setting, const std::vector<std::string>& members);

}  // namespace assay::metamorphic
