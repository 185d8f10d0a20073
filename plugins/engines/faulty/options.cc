#include "plugins/engines/faulty/options.h"

#include <nlohmann/json.hpp>

#include "plugins/engines/buffered/options.h"
#include "plugins/engines/static_legacy/options.h"

namespace assay::engines {
namespace {

using Json = nlohmann::ordered_json;

std::string fault_names() {
  std::string names;
  for (const Fault fault : all_faults()) names += (names.empty() ? "" : ", ") + std::string(to_string(fault));
  return names;
}

Status wrong(const std::string& what) { return invalid("options of engine faulty: " + what); }

// Takes a member out of `json`; null where it is absent.
Json take(Json* json, const char* name) {
  Json value = json->value(name, Json());
  json->erase(name);
  return value;
}

Json table() {
  Json rows = Json::array();
  for (const FaultInfo& info : fault_table()) {
    rows.push_back({{"name", info.name},
                    {"family", to_string(info.family)},
                    {"metric", info.metric},
                    {"verdicts", info.verdicts},
                    {"places", info.places},
                    {"what", info.what}});
  }
  return rows;
}

Json properties_of(Inner engine) {
  return Json::parse(engine == Inner::kBuffered ? kBufferedOptionsSchema : kStaticOptionsSchema)["properties"];
}

// What the engine inside is to know of the members of both.
void leave_out_foreign(Inner engine, Json* members) {
  const Json own = properties_of(engine);
  const Json foreign = properties_of(engine == Inner::kBuffered ? Inner::kStatic : Inner::kBuffered);
  for (const auto& [name, schema] : foreign.items()) {
    if (!own.contains(name)) members->erase(name);
  }
  const bool no_limit = members->value("max_sequence_length", Json()) == Json(0);
  if (engine == Inner::kStatic && no_limit) members->erase("max_sequence_length");
}

}  // namespace

const std::string& faulty_options_schema() {
  static const std::string text = [] {
    Json schema = Json::parse(kBufferedOptionsSchema);
    Json& properties = schema["properties"];
    properties.erase("seed");
    properties.update(properties_of(Inner::kStatic));
    properties["max_sequence_length"]["minimum"] = 0;
    properties["engine"] = {{"enum", {"static_legacy", "buffered"}},
                            {"default", "static_legacy"},
                            {"description", "the correct engine inside; members that it does not know do nothing"}};
    for (const Fault fault : all_faults()) properties["fault"]["enum"].push_back(to_string(fault));
    properties["seed_of_request"] = {
        {"type", "boolean"}, {"default", false}, {"description", "the seed is that of the first request (--seed)"}};
    properties["checkpoint"] = {{"type", "string"},
                                {"description", "checkpoint of the case; faults of a wrong model need it"}};
    properties["backend_options"] = {{"type", "object"}, {"description", "of the backend, for the wrong model"}};
    schema["patternProperties"]["^seed$"] = {
        {"type", "integer"},
        {"minimum", 0},
        {"description", "chooses the places; without one every request is struck"}};
    schema["required"] = {"fault"};
    schema["faults"] = table();
    return schema.dump();
  }();
  return text;
}

std::string without_option(const std::string& options, std::string_view name) {
  Json json = Json::parse(options);
  json.erase(std::string(name));
  if (name == "max_requests") json["max_requests"] = 1;
  if (name == "chunked_prefill") json.erase("max_chunk");
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

bool is_set(const std::string& options, const char* name) { return Json::parse(options).value(name, Json()) == true; }

Result<FaultyOptions> parse_faulty_options(std::string_view text) {
  Json json = Json::parse(text.empty() ? std::string_view("{}") : text, nullptr, false);
  if (!json.is_object()) return wrong("not a JSON object");
  FaultyOptions options;
  const Json named = take(&json, "fault");
  if (!named.is_string()) return wrong("fault is not set, expected one of " + fault_names());
  const std::optional<Fault> fault = parse_fault(named.get<std::string>());
  if (!fault) return wrong("fault is " + named.get<std::string>() + ", expected one of " + fault_names());
  options.fault = *fault;
  const Json engine = take(&json, "engine");
  if (engine == Json("buffered")) {
    options.engine = Inner::kBuffered;
  } else if (!engine.is_null() && engine != Json("static_legacy")) {
    return wrong("engine is " + engine.dump(-1, ' ', true, Json::error_handler_t::replace) +
                 ", expected \"static_legacy\" or \"buffered\"");
  }
  const Json seed = take(&json, "seed");
  if (!seed.is_null()) {
    if (!seed.is_number_unsigned()) return wrong("seed is " + seed.dump() + ", expected an integer >= 0");
    options.seed = seed.get<uint64_t>();
  }
  const Json of_request = take(&json, "seed_of_request");
  if (!of_request.is_null() && !of_request.is_boolean()) {
    return wrong("seed_of_request is " + of_request.dump() + ", expected true or false");
  }
  options.seed_of_request = of_request.is_boolean() && of_request.get<bool>();
  const Json checkpoint = take(&json, "checkpoint");
  if (!checkpoint.is_null() && !checkpoint.is_string()) return wrong("checkpoint is no text");
  if (checkpoint.is_string()) options.checkpoint = checkpoint.get<std::string>();
  const Json backend = take(&json, "backend_options");
  if (!backend.is_null() && !backend.is_object()) return wrong("backend_options is no JSON object");
  options.backend_options = backend.is_object() ? backend.dump() : "{}";
  leave_out_foreign(options.engine, &json);
  options.rest = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return options;
}

}  // namespace assay::engines
