#include <filesystem>
#include <iostream>

#include "tools/assay/command.h"
#include "tools/assay/version.h"
#include "tools/doctor/doctor.h"

namespace assay::cli {

namespace po = boost::program_options;

int doctor_command(const Words& words) {
  po::options_description options("options");
  options.add_options()("plugin-path", po::value<Words>(), "folder to look in first; repeatable")(
      "output", po::value<std::string>()->default_value("."), "folder that runs would write to")("json", "print JSON");
  po::variables_map values;
  if (const auto code =
          parse("assay doctor [--output DIR] [--plugin-path DIR]... [--json]", options, "", words, &values, true))
    return *code;
  doctor::DoctorInput input;
  input.version = kVersion;
  input.plugins = search_options(values);
  input.program_dir = program_dir();
  input.output = values["output"].as<std::string>();
  input.environment = environment();
  const std::vector<doctor::Finding> findings = doctor::examine(input);
  std::cout << (values.count("json") != 0 ? doctor::to_json(findings, kVersion) : doctor::to_text(findings, kVersion));
  return doctor::healthy(findings) ? kExitOk : kExitFailed;
}

}  // namespace assay::cli
