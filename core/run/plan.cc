#include "core/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "core/discover/list.h"
#include "core/golden/date.h"
#include "core/run/backend_choice.h"
#include "core/run/case_digest.h"
#include "core/run/case_order.h"
#include "core/run/device_slots.h"
#include "core/run/filter.h"
#include "core/run/relation_rows.h"
#include "core/run/repeats.h"
#include "core/run/reproduce.h"
#include "core/run/requirements.h"
#include "core/run/shards.h"
#include "core/run/training_order.h"

namespace assay::run {
namespace {

constexpr size_t kLeastSplit = 32;  // recorded cases of a group that are worth a worker of their own

class Planner {
 public:
  Planner(const RunOptions& options, plugin::PluginRegistry& registry)
      : options_(options), registry_(registry), backends_(registry), preparer_(options) {
    variables_ = variables_of(options);
  }

  Result<Plan> make() {
    Result<Filter> filter = Filter::parse(options_.filter);
    if (!filter) return filter.status();
    if (Status usable = check_overrides(); !usable.ok()) return usable;
    choose(*filter);
    for (size_t i = 0; i < options_.cases.size(); ++i) {
      own_ = options_.settings.empty() ? CaseSettings() : options_.settings[i];
      if (!options_.settings.empty()) variables_ = variables_of(options_, own_);
      select(options_.cases[i], *filter, wanted_[i]);
    }
    plan_.today = options_.today.empty() ? utc_today() : options_.today;
    plan_.compat = options_.compat;
    if (options_.launcher.empty()) split_recorded();
    for (Group& group : plan_.groups) {
      for (const size_t index : group.cases) group.cost += plan_.cases[index].cost;
    }
    std::stable_sort(plan_.groups.begin(), plan_.groups.end(),
                     [](const Group& a, const Group& b) { return a.cost > b.cost; });
    return std::move(plan_);
  }

 private:
  // Everything that cases of one load have in common.
  using Key =
      std::tuple<std::string, std::string, std::string, std::string, std::string, std::map<std::string, std::string>>;

  Status check_overrides() {
    if (!options_.engine.empty()) {
      if (Result<const plugin::Plugin*> found = registry_.find(plugin::Kind::kEngine, options_.engine); !found) {
        return invalid("--engine: " + found.status().message());
      }
    }
    if (!options_.backend.empty() && options_.backend != "auto" && !backends_.exists(options_.backend)) {
      return invalid(fmt::format("--backend: there is no backend '{}'; 'assay plugin list' shows those that exist",
                                 options_.backend));
    }
    return {};
  }

  // What the rows of one case, one a relation, have in common.
  struct Ready {
    bool settled = false;  // the verdict stands for all of them
    Verdict verdict = Verdict::kInvalid;
    std::string reason;
    CaseSummary summary;  // engine, backend, platform
    const plugin::Plugin* engine = nullptr;
    PreparedCase prepared;
    std::string digest;
  };

  // Which cases are planned here, and not by another shard or before this run was resumed.
  void choose(const Filter& filter) {
    wanted_.assign(options_.cases.size(), true);
    if (options_.only) {
      for (size_t i = 0; i < wanted_.size(); ++i) wanted_[i] = options_.only->count(options_.cases[i].name) > 0;
    } else if (options_.shard) {
      ShardPlan shards = plan_shards(options_, filter);
      wanted_ = std::move(shards.mine);
      plan_.shard = std::move(shards.info);
      plan_.shard_file = std::move(shards.file);
    }
  }

  void select(const TestCase& test, const Filter& filter, bool wanted) {
    size_t dropped = 0;
    const std::vector<std::string> relations = selected_relations(test, options_, own_, filter, &dropped);
    plan_.filtered += dropped;
    if (relations.empty()) return;
    const bool by_golden = relations.front().empty();
    const std::string id = by_golden ? unique_id(test.name) : test.name;
    if (!wanted) {  // takes its names all the same, so that every shard gives a case the same one
      for (const std::string& one : relations) {
        if (!by_golden) unique_id(row_name(test.name, one));
      }
      return;
    }
    Ready ready = prepare(test, id, by_golden);
    ready.digest = case_digest(test, variables_, own_);
    if (by_golden) return add(test, "", id, ready);
    if (ready.settled) {  // one line says it for all relations
      const std::string only = relations.size() == 1 && test.error.ok() ? relations.front() : "";
      return add(test, only, unique_id(row_name(test.name, only)), ready);
    }
    for (const std::string& one : relations) add(test, one, unique_id(row_name(test.name, one)), ready);
  }

  // Adds a row and puts it into its group, or settles it.
  void add(const TestCase& test, const std::string& relation, const std::string& id, const Ready& ready) {
    PlannedCase planned;
    CaseOutcome& outcome = planned.outcome;
    outcome.id = id;
    outcome.name = row_name(test.name, relation);
    outcome.relation = relation;
    outcome.path = test.dir;
    outcome.model = test.model;
    if (test.metrics) outcome.metrics = *test.metrics;
    const bool usual = std::filesystem::path(test.config).filename() == "model_config.yaml";
    outcome.reproduce = reproduce_command(options_, usual ? test.dir : test.config, relation, own_);
    planned.environment = environment_name();
    outcome.summary = ready.summary;
    planned.timeout = timeout_of(test);
    if (!ready.prepared.order.training.empty()) planned.timeout += kTrainingGrace;
    planned.declarations = declarations_of(test);
    if (options_.compat) planned.compat = compat_case(test, variables_, options_.golden.string());
    planned.memory_limit = test.assay.memory_limit.value_or(0);
    planned.order = ready.prepared.order;
    planned.order.id = id;
    planned.order.name = outcome.name;
    planned.order.relation = relation;
    planned.order.metamorphic = parameters_of(test);
    planned.cost = ready.prepared.cost;
    if (!relation.empty()) planned.cost *= relation_tokens(relation, planned.order.metamorphic);
    planned.digest = ready.digest;
    planned.settled = ready.settled;
    if (ready.settled) outcome.verdict = {ready.verdict, ready.reason, "", {}};
    plan_.cases.push_back(std::move(planned));
    if (ready.settled) return;
    const Key key(ready.summary.engine, ready.summary.backend, ready.prepared.model, ready.summary.platform,
                  plan_.cases.back().environment, ready.prepared.env_vars);
    const auto [place, is_new] = groups_.try_emplace(key, plan_.groups.size());
    if (is_new) {
      plan_.groups.push_back(make_group(ready.prepared, ready.summary, ready.engine->can(ASSAY_CAP_RECORDED)));
    }
    Group& group = plan_.groups[place->second];
    const int32_t sharing = test.assay.workers_per_device.value_or(1);  // the most careful case speaks for its group
    group.device.workers = group.cases.empty() ? sharing : std::min(group.device.workers, sharing);
    group.cases.push_back(plan_.cases.size() - 1);
  }

  Ready prepare(const TestCase& test, const std::string& id, bool by_golden) {
    Ready ready;
    const auto settle = [&ready](Verdict verdict, const std::string& reason) {
      ready.settled = true;
      ready.verdict = verdict;
      ready.reason = reason;
      return std::move(ready);
    };
    if (!test.error.ok()) return settle(Verdict::kInvalid, test.error.message());
    if (own_.settled) return settle(*own_.settled, own_.reason);
    if (test.mode != "inference" && !by_golden) {
      return settle(Verdict::kSkipped, fmt::format("MODE {}: relations are between runs of inference", test.mode));
    }
    if (test.mode != "inference") return prepare_trained(test, id);
    if (const std::string absent = absent_requirement(test, variables_, backends_); !absent.empty()) {
      return settle(Verdict::kSkipped, absent);
    }
    CaseSummary& summary = ready.summary;
    summary.engine = engine_name(test, options_, own_);
    const Result<const plugin::Plugin*> engine = registry_.find(plugin::Kind::kEngine, summary.engine);
    if (!engine) return settle(verdict_of(engine.status()), engine.status().message());
    ready.engine = *engine;
    if (!by_golden && ready.engine->can(ASSAY_CAP_RECORDED)) {
      return settle(Verdict::kNotComparable,
                    fmt::format("engine {} gives recorded results and computes none: relations "
                                "between two runs of it say nothing; choose another --engine",
                                summary.engine));
    }
    CaseSettings settings = own_;
    settings.timeout = timeout_of(test);
    Result<PreparedCase> prepared = preparer_.prepare(test, id, *ready.engine, by_golden, settings);
    if (!prepared) return settle(verdict_of(prepared.status()), prepared.status().message());
    if (ready.engine->can(ASSAY_CAP_NEEDS_BACKEND)) {
      const Result<std::string> backend = choose_backend(test);
      if (!backend) return settle(verdict_of(backend.status()), backend.status().message());
      summary.backend = *backend;
    }
    summary.platform = !own_.platform.empty()       ? own_.platform
                       : !options_.platform.empty() ? options_.platform
                                                    : default_platform(summary.backend);
    ready.prepared = *std::move(prepared);
    return ready;
  }

  // A case of MODE pretraining or rl.
  Ready prepare_trained(const TestCase& test, const std::string& id) {
    Ready ready;
    const auto settle = [&ready](Verdict verdict, const std::string& reason) {
      ready.settled = true;
      ready.verdict = verdict;
      ready.reason = reason;
      return std::move(ready);
    };
    const std::string needed =
        fmt::format("MODE {} needs an engine that can train, for example --engine process", test.mode);
    CaseSummary& summary = ready.summary;
    summary.engine = !options_.engine.empty() ? options_.engine
                     : !own_.engine.empty()   ? own_.engine
                                              : test.assay.engine.value_or("");
    if (summary.engine.empty()) return settle(Verdict::kSkipped, needed);
    const Result<const plugin::Plugin*> engine = registry_.find(plugin::Kind::kEngine, summary.engine);
    if (!engine) return settle(verdict_of(engine.status()), engine.status().message());
    ready.engine = *engine;
    if (!ready.engine->can(ASSAY_CAP_TRAIN)) {
      const bool recorded = ready.engine->can(ASSAY_CAP_RECORDED);
      return settle(recorded ? Verdict::kSkipped : Verdict::kNotComparable,
                    fmt::format("{}; {} {}", needed, summary.engine,
                                recorded ? "gives recorded results of inference" : "cannot"));
    }
    if (const std::string absent = absent_requirement(test, variables_, backends_); !absent.empty()) {
      return settle(Verdict::kSkipped, absent);
    }
    Result<PreparedCase> prepared = prepare_training(test, id, options_, own_, timeout_of(test));
    if (!prepared) return settle(verdict_of(prepared.status()), prepared.status().message());
    summary.platform = !own_.platform.empty()       ? own_.platform
                       : !options_.platform.empty() ? options_.platform
                                                    : default_platform("");
    ready.prepared = *std::move(prepared);
    return ready;
  }

  std::chrono::milliseconds timeout_of(const TestCase& test) const {
    if (own_.timeout.count() > 0) return own_.timeout;
    if (!test.assay.timeout_s) return options_.case_timeout;
    return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(*test.assay.timeout_s * 1000)));
  }

  static Verdict verdict_of(const Status& status) {
    return status.code() == StatusCode::kInfra ? Verdict::kInfra : Verdict::kInvalid;
  }

  Result<std::string> choose_backend(const TestCase& test) {
    const std::string name = !options_.backend.empty() ? options_.backend : test.assay.backend.value_or("auto");
    if (name == "auto") return backends_.best();
    if (backends_.exists(name)) return name;
    return invalid(
        fmt::format("{}: there is no backend '{}'; 'assay plugin list' shows those that exist", test.config, name));
  }

  Group make_group(const PreparedCase& prepared, const CaseSummary& summary, bool recorded) {
    Group group;
    group.head.assay_version = options_.assay_version;
    group.head.digest_weights = options_.digest_weights;
    group.head.output = options_.output.string();
    group.head.engine = summary.engine;
    group.head.backend = summary.backend;
    group.head.backend_options = options_.backend_options.empty() ? "{}" : options_.backend_options;
    group.head.model = prepared.model;
    group.head.environment_name = environment_name();
    group.head.platform = summary.platform;
    group.head.plugins = options_.plugins;
    group.environment = options_.environment;
    for (const auto& [name, value] : prepared.env_vars) group.environment[name] = group.env_vars[name] = value;
    group.recorded = recorded;
    bind_to_device(prepared, summary.backend, group.device);
    return group;
  }

  // A case whose ENV_VARS show devices to its worker has chosen for itself.
  void bind_to_device(const PreparedCase& prepared, const std::string& backend, DeviceUse& use) {
    if (backend.empty()) return;
    const BackendState& state = backends_.state(backend);
    if (state.device_variable.empty() || prepared.env_vars.count(state.device_variable) > 0) return;
    const auto shown = options_.environment.find(state.device_variable);
    use.devices = visible_devices(state.device_indices, shown == options_.environment.end() ? nullptr : &shown->second);
    if (!use.devices.empty()) use.variable = state.device_variable;
  }

  // Recorded groups load nothing, so that their cases may be spread over all jobs.
  void split_recorded() {
    const size_t jobs = static_cast<size_t>(std::max(options_.jobs, 1));
    for (size_t g = 0, count = plan_.groups.size(); g < count; ++g) {
      if (!plan_.groups[g].recorded) continue;
      const std::vector<size_t> cases = std::move(plan_.groups[g].cases);
      const size_t parts = std::clamp<size_t>(cases.size() / kLeastSplit, 1, jobs);
      for (size_t part = 0; part < parts; ++part) {
        const size_t begin = cases.size() * part / parts;
        const size_t end = cases.size() * (part + 1) / parts;
        if (part > 0) plan_.groups.push_back(plan_.groups[g]);
        Group& target = part == 0 ? plan_.groups[g] : plan_.groups.back();
        target.cases.assign(cases.begin() + static_cast<ptrdiff_t>(begin), cases.begin() + static_cast<ptrdiff_t>(end));
      }
    }
  }

  const std::string& environment_name() const {
    return own_.environment_name.empty() ? options_.environment_name : own_.environment_name;
  }

  // Folder below cases/: the name, with a number where two cases of the run have the same one.
  std::string unique_id(const std::string& name) {
    const std::string folder = id_of_case(name);
    std::string id = folder;
    for (int i = 2; !ids_.insert(id).second; ++i) id = fmt::format("{}~{}", folder, i);
    return id;
  }

  const RunOptions& options_;
  CaseSettings own_;  // of the case that is being planned
  plugin::PluginRegistry& registry_;
  BackendChoice backends_;
  CasePreparer preparer_;
  discover::Variables variables_;  // of the case that is being planned
  std::map<Key, size_t> groups_;
  std::set<std::string> ids_;
  std::vector<bool> wanted_;  // parallel to RunOptions::cases
  Plan plan_;
};

}  // namespace

Result<Plan> make_plan(const RunOptions& options, plugin::PluginRegistry& registry) {
  return Planner(options, registry).make();
}

}  // namespace assay::run
